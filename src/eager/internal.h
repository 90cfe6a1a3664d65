// What the files of eager/ share. Unless said otherwise everything here is guarded by the engine's
// one lock (tt__lock); hooks, inference, lowering and waiting happen outside it.
#ifndef TT_EAGER_INTERNAL_H_
#define TT_EAGER_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "aten/view.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/table.h"
#include "eager/eager.h"

typedef struct tt__window_s tt__window_t;
typedef struct tt__instance_s tt__instance_t;

enum { TT__MAX_DEVICES = 64 };

// --- layouts (layout.c) --------------------------------------------------------------------------

// The type of a storage's value: interned and immortal, so equal types are equal pointers.
typedef struct tt__layout_s {
  uint64_t hash;
  size_t bytes;
  tt_dtype_t dtype;
  uint32_t rank;
  int64_t dims[];
} tt__layout_t;
// Thread-safe. NULL without memory.
const tt__layout_t *tt__layout(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) TT_MUST_USE;
static inline tt_type_t tt__layout_type(const tt__layout_t *l) {
  return (tt_type_t){l->dtype, l->rank, l->dims};
}

// --- versions (version.c) ------------------------------------------------------------------------

// One value that a storage had: a device buffer, pending in a window, or lost to an error.
typedef struct tt__version_s {
  uint32_t refs;
  uint32_t number;    // pending: its number in `window`
  uint32_t external;  // its number among the inputs of the window whose epoch is `epoch`
  uint64_t epoch;
  const tt__layout_t *layout;
  tt_buffer_t *buffer;   // NULL: pending or failed
  tt__window_t *window;  // NULL: not pending
  tt_status_t error;     // what to tell who reads a failed one
  struct tt__version_s *next_free;
} tt__version_t;
tt__version_t *tt__version_make(const tt__layout_t *layout, tt_buffer_t *buffer) TT_MUST_USE;
static inline void tt__version_retain(tt__version_t *v) { v->refs++; }
void tt__version_release(tt__version_t *v);  // NULL-safe
// Makes sure that the version has a buffer (flushes its window); tells why it has none.
tt_status_t tt__version_settle(tt__version_t *v) TT_MUST_USE;

// --- storages (storage.c) ------------------------------------------------------------------------
struct tt_storage_s {
  _Atomic uint32_t refs;
  int8_t device;
  uint8_t size_class;  // of its address range; TT__NO_RANGE for none
  uint32_t slot;       // its number in the call whose serial is `serial`
  uint64_t serial;
  size_t bytes;
  char *address;
  tt__version_t *version;  // NULL: never written
  tt_storage_t *next_free;
};
enum { TT__NO_RANGE = 255 };
tt_status_t tt__storage_make(int device, size_t bytes, tt_storage_t **out_storage) TT_MUST_USE;
// Under the lock, with no reference left: the storage and its range wait for reuse.
void tt__storage_discard(tt_storage_t *storage);
// Takes over the caller's reference to `version`.
static inline void tt__storage_set(tt_storage_t *s, tt__version_t *version) {
  tt__version_t *old = s->version;
  s->version = version;
  tt__version_release(old);
}

// --- address ranges (address.c) ------------------------------------------------------------------
tt_status_t tt__address_reserve(tt_storage_t *storage, size_t bytes) TT_MUST_USE;
uint8_t tt__address_class(size_t bytes);
size_t tt__address_capacity(uint8_t size_class);  // the largest storage that fits
// The two storages have changed ranges.
void tt__address_swap(tt_storage_t *a, tt_storage_t *b);
// The storage that last took the range around `address`.
tt_storage_t *tt__address_owner(const void *address);

// --- calls (frame.c) -----------------------------------------------------------------------------

// A storage that a call touches, as it was when the key was made.
typedef struct tt__slot_s {
  tt_storage_t *storage;
  const tt__layout_t *layout;  // NULL: never written
  size_t bytes;
} tt__slot_t;

// A call as the cache sees it: its key (op and static facts) and the storages it touches, each
// once.
typedef struct tt__frame_s {
  const tt_call_t *call;
  const tt_aten_op_t *op;
  uint64_t *key;
  uint32_t key_count, key_capacity;
  tt__slot_t *slots;
  uint32_t slot_count, slot_capacity;
  uint64_t hash;
  uint64_t few_words[160];
  tt__slot_t few_slots[16];
} tt__frame_t;
void tt__frame_init(tt__frame_t *frame, const tt_call_t *call);
tt_status_t tt__frame_key(tt__frame_t *frame) TT_MUST_USE;  // under the lock; again after a change
void tt__frame_deinit(tt__frame_t *frame);
// "add.Tensor(f32[2, 3], f32[3], 1)". Returns the buffer.
const char *tt__describe_call(const tt_call_t *call, char *buffer, size_t size);
const char *tt__call_name(const tt_call_t *call);  // the overload that was called

// Ops of our own, beyond the table (copy.c). They answer to the same cache and recorder.
enum {
  TT__OP_COPY = 0xfff0,
  TT__OP_CONTIGUOUS,
  TT__OP_REPLICAS,
  TT__OP_FIRST = TT__OP_COPY,
};
extern const tt_aten_op_t tt__own_ops[];
void tt__lower_replicas(tt_lower_t *L, int param);  // replicas.c
static inline const tt_aten_op_t *tt__op(uint16_t op) {
  return op >= TT__OP_FIRST ? &tt__own_ops[op - TT__OP_FIRST] : &tt_aten_ops[op];
}

// The bits of a run-time scalar in `dtype`, rounded once. `kind` is that of a tt_number_t.
// Fails where a Scalar argument is no value of the type of argument 0 (TT_ATEN_FITS).
tt_status_t tt__check_fits(const tt_call_t *call, bool promotes) TT_MUST_USE;
void tt__scalar_bits(uint8_t kind, const void *payload, tt_dtype_t dtype, uint64_t *out_bits);
// The other way round: one element's bytes as a Python number.
void tt__number_of(tt_dtype_t dtype, const void *data, tt_number_t *out_number);

// --- instances (instance.c, lowering.c) ----------------------------------------------------------
typedef enum tt__input_kind_e {
  TT__INPUT_SLOT,    // the value of slot `index`
  TT__INPUT_SCALAR,  // argument arg, list element index, as dtype
  TT__INPUT_SEED,
  TT__INPUT_OFFSET,
} tt__input_kind_t;

// One input of an instance's lowering, in the order in which it first asked for them.
typedef struct tt__input_s {
  uint8_t kind, dtype;
  uint16_t arg;
  uint32_t index;
} tt__input_t;

// One output of its program: a new value of a slot that the call writes, or a fresh storage's.
typedef struct tt__output_s {
  uint32_t slot;    // the slot that gets the value, or TT__FRESH
  uint32_t result;  // TT__FRESH: which result
  uint32_t input;   // the input that holds the slot's old value, or TT__NO_INPUT
  const tt__layout_t *layout;
  size_t bytes;  // of a fresh storage
} tt__output_t;
#define TT__FRESH UINT32_MAX
#define TT__NO_INPUT UINT32_MAX

// What to raise where a program's check number names it (tt__emit_checks).
typedef struct tt__check_s {
  tt_code_t code;
  const char *op_name, *message;  // owned by who owns the list
} tt__check_t;

// An instance has one program for each set of inputs that a call lets it overwrite.
typedef struct tt__program_s {
  tt_executable_t *executable;
  uint64_t donated;  // bit o: output o takes its input's memory; the last bit stands for the rest
} tt__program_t;

// One op with one set of static facts. Immutable once in the cache, but for its programs.
struct tt__instance_s {
  uint64_t hash;
  _Atomic uint32_t refs;  // the cache's, and of those who look at it without the lock
  bool used;              // since the cache was last looked through
  bool pinned;            // a captured program has it
  uint32_t held;          // the latest look through the cache at which a window had it
  uint64_t *key;
  uint32_t key_count;
  uint32_t id;
  const tt_aten_op_t *op;
  const char *name;
  tt_call_t call;                    // own copy; of a tensor, `handle` is its slot's number
  tt_status_t unsupported;           // why there is no lowering
  tt_out_meta_t *outs;               // results as the lowering gives them
  const tt_tensor_t **destinations;  // where each goes; NULL: a fresh storage
  uint32_t out_count, fresh_count;
  uint32_t returned_count;  // results that a functional call gives back: outs[0, returned_count)
  uint32_t *fresh_results;  // those of them that are not undefined
  tt__slot_t *slots;
  uint32_t slot_count;
  tt__input_t *inputs;
  uint32_t input_count, input_capacity, slot_input_count;
  tt__output_t *outputs;
  uint32_t output_count;
  bool donates;           // some output has an input to reuse
  uint64_t random_count;  // how far the generator's offset moves
  tt__check_t *checks;
  uint32_t check_count;
  uint32_t window_words;  // words of its entry in a window's trace
  tt_graph_t *graph;      // until the first compile
  tt__program_t *programs;
  uint32_t program_count, program_capacity;
  tt_arena_t arena;
};
// Under the lock. NULL: not there.
tt__instance_t *tt__instance_find(const tt__frame_t *frame);
// Outside the lock: asks the bridge for result types, lowers once. A form without a lowering is an
// instance too.
tt_status_t tt__instance_create(const tt__frame_t *frame,
                                tt__instance_t **out_instance) TT_MUST_USE;
void tt__instance_retain(tt__instance_t *instance);
void tt__instance_release(tt__instance_t *instance);  // NULL-safe
// The cache holds so many; what was not used for the longest goes first, but nothing that a window
// or a captured program has. Under the lock.
void tt__instance_limit(uint32_t count);
// A window takes the lowering, not the program: gives up the graph that was to become that.
static inline void tt__instance_settle(tt__instance_t *n) {
  if (__builtin_expect(n->graph != NULL, 0)) {
    tt_graph_destroy(n->graph);
    n->graph = NULL;
  }
}
void tt__windows_hold(uint32_t look);  // sets `held` in the streams' windows' instances (stream.c)
// Under the lock: puts it in the cache, or destroys it where an equal one is there already.
tt_status_t tt__instance_insert(tt__instance_t *instance) TT_MUST_USE;
tt_status_t tt__instance_program(tt__instance_t *instance, uint64_t donated,
                                 tt_executable_t **out_executable) TT_MUST_USE;

// Appends the instance to a program. `values` has the instance's inputs, `out_values` gets its
// outputs; failed checks are added to `checks`.
typedef struct tt__check_list_s {
  tt_value_t *ok;
  tt__check_t *checks;
  uint32_t count, capacity;
  tt_arena_t *arena;
} tt__check_list_t;
tt_status_t tt__lower_instance(tt__instance_t *instance, tt_build_t *b, tt_value_t *values,
                               tt_value_t *out_values, tt__check_list_t *checks) TT_MUST_USE;
// The same for a new instance: finds its inputs, makes an argument of each, fills inputs, outputs.
tt_status_t tt__lower_new_instance(tt__instance_t *instance) TT_MUST_USE;
// The s32 number of the first failing check plus one, 0 when all hold.
tt_value_t tt__emit_checks(tt_build_t *b, const tt__check_list_t *checks);

// --- running (run.c) -----------------------------------------------------------------------------

// Executes; when memory is short, waits for the device to free what it holds and tries once more.
tt_status_t tt__run(int device, tt_executable_t *executable, const tt_input_t *inputs,
                    uint32_t input_count, tt_buffer_t **out_buffers, const char *name) TT_MUST_USE;

// --- checks (check.c) ----------------------------------------------------------------------------

// Takes over `buffer`, the s32 of tt__emit_checks. Reports at once what is known at once. `checks`
// belong to the program or (NULL) to the instance, which is kept as long as they are needed.
typedef struct tt__fused_s tt__fused_t;
tt_status_t tt__check_add(int device, tt_buffer_t *buffer, const tt__check_t *checks,
                          tt__fused_t *program, tt__instance_t *instance) TT_MUST_USE;
void tt__fused_retain(tt__fused_t *program);
void tt__fused_release(tt__fused_t *program);  // NULL-safe
// Keeps an error (taken over) that nobody waits for until tt__check_all.
void tt__error_defer(int device, tt_status_t status);
// The caller gets `status` at once (borrowed here): a shortage of memory is not told twice.
void tt__error_told(int device, tt_status_t status);
// Outside the lock: waits for all pending ones; the first failure.
tt_status_t tt__check_all(int device) TT_MUST_USE;

// --- windows (window.c) --------------------------------------------------------------------------
tt_status_t tt__window_append(tt__window_t *window, tt__frame_t *frame, tt__instance_t *instance,
                              tt_outs_t *outs) TT_MUST_USE;
tt_status_t tt__window_flush(tt__window_t *window) TT_MUST_USE;
void tt__window_forget(tt__window_t *window, tt__version_t *version);  // a pending version dies
void tt__window_hold(const tt__window_t *window, uint32_t look);  // sets `held` in its instances
// `capture` NULL: a stream's window. The caller destroys it.
tt_status_t tt__window_create(int device, tt_capture_t *capture,
                              tt__window_t **out_window) TT_MUST_USE;
void tt__window_destroy(tt__window_t *window);
// Values that nobody will compute: those who hold them get `error` (copied) to read.
void tt__window_give_up(tt__window_t *window, tt_status_t error);
tt_status_t tt__flush_device(int device) TT_MUST_USE;
tt_status_t tt__flush_stream(int device, int64_t stream) TT_MUST_USE;

// --- recording (recorder.c) ----------------------------------------------------------------------
tt_status_t tt__record(const tt_call_t *call, tt_outs_t *outs) TT_MUST_USE;
void tt__outs_drop(tt_outs_t *outs);  // after a failure: releases the storages too
// Hands output `o` its version (taken over).
void tt__output_set(const tt__instance_t *instance, uint32_t o, const tt__frame_t *frame,
                    tt_outs_t *outs, tt__version_t *version);
// What the program gets for an input that is no slot.
void tt__scalar_input(const tt__input_t *input, const tt_call_t *call, uint64_t seed,
                      uint64_t offset, tt_input_t *out_input);
// Takes the default generator's numbers and moves it on by `count`.
void tt__generator_advance(int device, uint64_t count, uint64_t *out_seed, uint64_t *out_offset);
// Seed and offset for a call that draws; moves the generator on.
void tt__random_draw(const tt__instance_t *instance, const tt_call_t *call, uint64_t *out_seed,
                     uint64_t *out_offset);

// --- the engine (engine.c) -----------------------------------------------------------------------
typedef struct tt__engine_s {
  pthread_mutex_t lock;
  tt_client_t *client;
  int device_count;
  _Atomic int mode;
  _Atomic bool started, forked, check_finite;
  tt_eager_hooks_t hooks;
  tt_eager_stats_t stats;
  uint64_t serial;       // of calls
  _Atomic int captures;  // threads that are capturing
} tt__engine_t;
extern tt__engine_t tt__engine;
static inline void tt__lock(void) { pthread_mutex_lock(&tt__engine.lock); }
static inline void tt__unlock(void) { pthread_mutex_unlock(&tt__engine.lock); }
// Starts where needed; checks the device number and that this is no forked child.
tt_status_t tt__ready(int device) TT_MUST_USE;
tt_status_t tt__no_host_memory(void) TT_MUST_USE;
int64_t tt__now_ns(void);
const char *tt__plugin(void);  // the plugin to load (plugin.c)

// The window of the program that this thread captures on the device, or NULL (capture.c).
tt__window_t *tt__capture_window(int device);
// Outside the lock: where the program that this thread captures is to know its Python lines, notes
// the line that now makes a call.
void tt__capture_note_place(void);
const char *tt__capture_place(const tt_capture_t *capture);  // the last one; NULL: unknown
// Bringing host data to the device while a program with host inputs is captured would freeze them.
tt_status_t tt__capture_upload(int device) TT_MUST_USE;
// The host input whose handle this is, or UINT32_MAX.
uint32_t tt__capture_host(const tt_capture_t *capture, const void *handle);
// What reading a value of such a window gives.
tt_status_t tt__capture_read(tt_capture_t *capture) TT_MUST_USE;
// Whether a captured program may do what this call does.
tt_status_t tt__capture_admit(const tt__window_t *window, const tt__frame_t *frame,
                              const tt__instance_t *instance) TT_MUST_USE;

tt__window_t *tt__stream_window(int device);  // of the calling thread's current stream
// Debug mode, outside the lock, after a call that ended with `status` (taken over): waits for its
// results and adds what is known about it to a failure.
tt_status_t tt__debug_after(const tt_call_t *call, const tt__instance_t *instance, tt_outs_t *outs,
                            tt_status_t status) TT_MUST_USE;
// Waits for one storage's value and checks that it is finite where that is asked for.
tt_status_t tt__debug_settle(tt_storage_t *storage) TT_MUST_USE;
// TT_ATEN_HOST and TT_ATEN_MASKS ops (host.c).
tt_status_t tt__host_call(const tt_call_t *call, tt_outs_t *outs) TT_MUST_USE;

#endif  // TT_EAGER_INTERNAL_H_
