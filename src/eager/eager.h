// The eager engine: what the bridge calls. Thread-safe, but for what is said at its type.
//
// A storage is a mutable slot that names its current version, an immutable value (pending in a
// window, or a device buffer). Tensors are PyTorch's own strided metadata over a storage. An op
// call finds its instance (op + static facts of all arguments) in a cache; the recorder gives the
// instance its input versions and makes output versions. Strict submits the instance's own program
// at once; Debug also waits; DeferAndFuse appends to the stream's window and runs it at a flush.
#ifndef TT_EAGER_EAGER_H_
#define TT_EAGER_EAGER_H_

#include "aten/call.h"
#include "aten/lower.h"
#include "pjrt/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tt_eager_mode_e {
  TT_MODE_STRICT,
  TT_MODE_DEBUG,
  TT_MODE_DEFER_AND_FUSE,
} tt_eager_mode_t;

// --- what the engine asks of the bridge ----------------------------------------------------------
typedef struct tt_inferred_s {
  tt_out_meta_t *outs;  // results of the functional form, arrays in `arena`
                        // (a result not made, such as a masked-out gradient, has rank TT_NO_TENSOR)
  uint32_t out_count;
  tt_arena_t *arena;
  // Bit a: argument a is written (the schema's alias annotations). 0 stands for the usual case: the
  // first argument of an in-place op, the trailing tensors of an out= op. Needed for ops that write
  // several lists (_fused_adamw_). Result i goes to the i-th tensor of those arguments.
  uint64_t mutated;
} tt_inferred_t;

// Any thread may call them; a hook may take Python's lock, which is why no lock is held then.
typedef struct tt_eager_hooks_s {
  void *context;
  // Result metadata by PyTorch's own meta kernels, with PyTorch's own errors. Called on an instance
  // cache miss only. For TT_INPLACE and TT_OUT it also runs that form's own checks (cast, overlap,
  // resize) and infers the functional results where the functional form exists; for
  // TT_ATEN_INPLACE_ONLY it gives no results (they have the written tensors' types), only
  // `mutated`. Not called for TT_ATEN_KEEP_SELF_DTYPE. Called without any lock of the engine.
  tt_status_t (*infer)(void *context, const tt_call_t *call, tt_inferred_t *out);
  // The innermost Python frame, "file.py:12 in step" (Debug mode); false when there is none.
  bool (*python_location)(void *context, char *buffer, size_t size);
} tt_eager_hooks_t;
// Copied; once, before the first call.
void tt_eager_install(const tt_eager_hooks_t *hooks);

// --- devices -------------------------------------------------------------------------------------
// Starts the client on the first use of a device (never at import). TORCHTPU_PLUGIN,
// XRT_TPU_CONFIG.
tt_status_t tt_eager_start(void) TT_MUST_USE;
bool tt_eager_is_started(void);
// Starts the client, except where it will be the software TPU.
tt_status_t tt_eager_device_count(int *out_count) TT_MUST_USE;
tt_client_t *tt_eager_client(void);  // NULL before the start
tt_status_t tt_eager_synchronize(int device)
    TT_MUST_USE;                                     // flush all its windows, wait, report errors
tt_status_t tt_eager_flush(int device) TT_MUST_USE;  // flush only

// The process's, for all devices and threads. TORCHTPU_EAGER_MODE until one is set.
tt_eager_mode_t tt_eager_mode(void);
tt_status_t tt_eager_set_mode(tt_eager_mode_t mode) TT_MUST_USE;  // flushes first
void tt_eager_set_check_finite(bool on);                          // Debug: NaN/Inf after each op

// --- storages ------------------------------------------------------------------------------------
tt_status_t tt_storage_create(int device, size_t bytes, tt_storage_t **out_storage) TT_MUST_USE;
void tt_storage_retain(tt_storage_t *storage);
void tt_storage_release(tt_storage_t *storage);
// A stable, unique, reserved (not backed) address; NULL for 0 bytes.
void *tt_storage_address(const tt_storage_t *storage);
size_t tt_storage_bytes(const tt_storage_t *storage);
int tt_storage_device(const tt_storage_t *storage);
// Keeps the common prefix, as PyTorch's resize_ does.
tt_status_t tt_storage_resize(tt_storage_t *storage, size_t bytes) TT_MUST_USE;
// The storage whose address range holds `address`, borrowed; NULL when none does.
tt_storage_t *tt_storage_find(const void *address);

// --- ops -----------------------------------------------------------------------------------------
// One returned tensor of a functional call. `storage` is retained for the caller; metadata lives
// until tt_outs_deinit, that of TT_ATEN_HOST ops until the thread's next call. A bool result
// (equal) comes as `offset`, without storage and metadata; an undefined tensor has metadata of rank
// TT_NO_TENSOR and no storage.
typedef struct tt_out_s {
  tt_storage_t *storage;
  const tt_out_meta_t *meta;
  int64_t offset;
} tt_out_t;

// What a call returns; the callee fills it, the caller ends it with tt_outs_deinit.
typedef struct tt_outs_s {
  struct tt__instance_s *instance;  // retained: the metadata is its; NULL: none
  uint32_t count;
  tt_out_t *items;  // points to `inline_items` or to tt_alloc'ed memory
  tt_out_t inline_items[8];
} tt_outs_t;
void tt_outs_deinit(tt_outs_t *outs);  // frees the array and the metadata, not the storages

// Runs one op of tt_aten_ops. Functional results arrive in `outs` (in-place and out= forms give
// none: the bridge returns the mutated arguments). An UNIMPLEMENTED status whose message starts
// with "lower:" means that there is no lowering for this form: the bridge goes on to its fallbacks.
tt_status_t tt_eager_call(const tt_call_t *call, tt_outs_t *outs) TT_MUST_USE;

// What runs a TT_ATEN_HOST op.
typedef tt_status_t (*tt_host_fn_t)(const tt_call_t *call, tt_outs_t *outs);

// `host` is dense row-major, of dst's dtype and sizes; copied before the call returns.
tt_status_t tt_eager_upload(const tt_tensor_t *dst, const void *host) TT_MUST_USE;
// Waits. `host` receives src's logical value (conj, neg resolved) dense row-major.
tt_status_t tt_eager_download(const tt_tensor_t *src, void *host) TT_MUST_USE;
// dst.copy_(src): casts, broadcasts, any views, also between devices.
tt_status_t tt_eager_copy(const tt_tensor_t *dst, const tt_tensor_t *src) TT_MUST_USE;
tt_status_t tt_eager_item(const tt_tensor_t *src, tt_number_t *out_number) TT_MUST_USE;
// src's logical value at this moment, for reading later from any thread; flushes what it needs and
// does not wait. Reading waits and gives it dense row-major.
typedef struct tt_snapshot_s tt_snapshot_t;
tt_status_t tt_eager_snapshot(const tt_tensor_t *src, tt_snapshot_t **out_snapshot) TT_MUST_USE;
tt_status_t tt_snapshot_read(tt_snapshot_t *snapshot, void *host, size_t bytes) TT_MUST_USE;
// Where device memory is the host's own: waits and gives the value's memory itself, which stays as
// it is until the drop. Elsewhere *out_data is NULL and nothing is to be dropped.
tt_status_t tt_snapshot_hold(tt_snapshot_t *snapshot, const void **out_data) TT_MUST_USE;
void tt_snapshot_drop(tt_snapshot_t *snapshot);
// A new value for the storage that `dst` fills, in the making: the caller writes dense row-major
// data and gives the buffer to tt_eager_replace, or releases it. *out_data is NULL where only an
// upload will do: device memory is not the host's or is short, or dst is part of its storage.
tt_status_t tt_eager_allocate(const tt_tensor_t *dst, void **out_data,
                              tt_buffer_t **out_buffer) TT_MUST_USE;
tt_status_t tt_eager_replace(const tt_tensor_t *dst, tt_buffer_t *buffer) TT_MUST_USE;
void tt_snapshot_release(tt_snapshot_t *snapshot);  // NULL-safe

// --- captured programs ---------------------------------------------------------------------------
// For torch.compile: between begin and end the calls of this thread are recorded, not run, whatever
// the mode; end makes a callable of them. A capture changes nothing: inputs hold afterwards what
// they held before, and values made meanwhile are gone. Reading a value while capturing fails
// (UNIMPLEMENTED, "capture: ..."). Outputs are tensors made by the captured calls, or over an
// input's storage. An input that the calls write is written by each run. A host scalar
// (TT_TENSOR_HOST) may be an input: each run takes its value anew.
typedef struct tt_capture_s tt_capture_t;
tt_status_t tt_capture_begin(int device, const tt_tensor_t *inputs, uint32_t count,
                             tt_capture_t **out_capture) TT_MUST_USE;
tt_status_t tt_capture_end(tt_capture_t *capture, const tt_tensor_t *outputs,
                           uint32_t count) TT_MUST_USE;
// After their ends: both do the same with the same inputs. Of captures that differ in nothing but
// their host inputs' values this tells that no value was read behind the recorder's back.
bool tt_capture_same(const tt_capture_t *a, const tt_capture_t *b);
// After its end: the program as StableHLO text, inputs that it writes donated. Caller frees
// (tt_free).
tt_status_t tt_capture_print(tt_capture_t *capture, char **out_text, size_t *out_size) TT_MUST_USE;
void tt_capture_destroy(tt_capture_t *capture);  // also before its end; NULL-safe

#define TT_CAPTURE_FRESH UINT32_MAX
// A captured output as a tensor: its metadata, and the storage that it is over.
typedef struct tt_capture_output_s {
  tt_out_meta_t meta;
  int64_t offset;
  uint32_t input;    // the input over whose storage it is, or TT_CAPTURE_FRESH
  uint32_t storage;  // TT_CAPTURE_FRESH: which of the run's new storages it is over
  bool same;         // it is that input itself
} tt_capture_output_t;

// What one run gave; filled by tt_programs_run, ended with tt_program_run_deinit.
typedef struct tt_program_run_s {
  uint32_t program;  // its number: in the order of tt_programs_add
  uint32_t output_count, storage_count;
  const tt_capture_output_t *outputs;  // live as long as the programs
  tt_storage_t **storages;             // new ones, retained for the caller
  tt_storage_t *few[8];
} tt_program_run_t;
void tt_program_run_deinit(tt_program_run_t *run);  // frees the array, not the storages

// The programs of one compiled graph, found by their inputs' metadata and by `words`: whatever else
// they were captured for.
typedef struct tt_programs_s tt_programs_t;
tt_status_t tt_programs_create(tt_programs_t **out_programs) TT_MUST_USE;
void tt_programs_destroy(tt_programs_t *programs);  // NULL-safe
// Takes over `capture`, ended; destroys it on failure.
tt_status_t tt_programs_add(tt_programs_t *programs, const uint64_t *words, uint32_t word_count,
                            tt_capture_t *capture) TT_MUST_USE;
uint32_t tt_programs_count(const tt_programs_t *programs);
// Runs the program for these inputs; draws random numbers anew. NOT_FOUND: there is none yet.
tt_status_t tt_programs_run(tt_programs_t *programs, const tt_tensor_t *inputs, uint32_t count,
                            const uint64_t *words, uint32_t word_count,
                            tt_program_run_t *out_run) TT_MUST_USE;

// --- random numbers ------------------------------------------------------------------------------
// A generator is a seed and an offset; every op that draws advances the offset. Refcounted.
typedef struct tt_generator_s tt_generator_t;
tt_status_t tt_generator_create(int device, tt_generator_t **out_generator) TT_MUST_USE;
void tt_generator_release(tt_generator_t *generator);
tt_generator_t *tt_generator_default(int device);  // borrowed
void tt_generator_state(const tt_generator_t *g, uint64_t *out_seed, uint64_t *out_offset);
void tt_generator_set_state(tt_generator_t *g, uint64_t seed, uint64_t offset);
// Seeds the default generator of every device there may be: it starts none to count them.
void tt_generator_seed_all(uint64_t seed);

// --- streams and events --------------------------------------------------------------------------
// Stream 0 is the default. Each has its own window in DeferAndFuse; work of one stream runs in
// order.
tt_status_t tt_stream_create(int device, int64_t *out_stream) TT_MUST_USE;
int64_t tt_stream_current(int device);  // of the calling thread
void tt_stream_set_current(int device, int64_t stream);
tt_status_t tt_stream_synchronize(int device, int64_t stream) TT_MUST_USE;
bool tt_stream_query(int device, int64_t stream);

// A moment of a stream, recorded as often as wanted; thread-compatible. One that was never recorded
// is done. elapsed_ms wants both recorded, on one device, and waits for them.
typedef struct tt_event_s tt_event_t;
tt_status_t tt_event_create(int device, tt_event_t **out_event) TT_MUST_USE;
void tt_event_destroy(tt_event_t *event);
tt_status_t tt_event_record(tt_event_t *event, int64_t stream) TT_MUST_USE;  // flushes the stream
tt_status_t tt_event_wait(tt_event_t *event, int64_t stream) TT_MUST_USE;  // stream waits for event
bool tt_event_query(tt_event_t *event);
tt_status_t tt_event_synchronize(tt_event_t *event) TT_MUST_USE;
tt_status_t tt_event_elapsed_ms(tt_event_t *start, tt_event_t *end, double *out_ms) TT_MUST_USE;

// --- statistics ----------------------------------------------------------------------------------
// Counts since the process started, all devices together.
typedef struct tt_eager_stats_s {
  int64_t instances, programs_compiled, program_hits, windows_flushed, window_hits, ops_recorded,
      ops_submitted, compile_ns;
} tt_eager_stats_t;
void tt_eager_stats(tt_eager_stats_t *out_stats);

#ifdef __cplusplus
}
#endif
#endif  // TT_EAGER_EAGER_H_
