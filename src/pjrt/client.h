// A client of any PJRT plugin: ours, libtpu, XLA's CPU plugin. The software TPU gets the in-memory
// graph and inline scalars through its PJRT extension; every other plugin gets StableHLO text.
#ifndef TT_PJRT_CLIENT_H_
#define TT_PJRT_CLIENT_H_

#include "ir/graph.h"
#include "softtpu/library.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_client_s tt_client_t;          // thread-safe, refcounted by its objects
typedef struct tt_executable_s tt_executable_t;  // thread-safe, refcounted
typedef struct tt_buffer_s tt_buffer_t;  // thread-safe, refcounted, an immutable device array
typedef struct tt_marker_s tt_marker_t;  // thread-safe, refcounted, a point in the device's work

// `plugin`: "soft", "libtpu" or a path. Loads it once a process; sets what libtpu needs in the
// environment first. Errors name the plugin and what failed (no such file, no GetPjrtApi, version).
tt_status_t tt_client_create(const char *plugin, tt_client_t **out_client) TT_MUST_USE;
void tt_client_destroy(tt_client_t *client);

const char *tt_client_platform(const tt_client_t *client);  // "softtpu", "cpu", "tpu"
// What the plugin says of itself, of any number of lines. Borrowed, as all names here.
const char *tt_client_platform_version(const tt_client_t *client);
bool tt_client_is_soft(const tt_client_t *client);
// The software TPU's matrix kernels from now on (see softtpu/library.h); other plugins have theirs.
void tt_client_install_library(tt_client_t *client, const tt_library_t *library);
uint32_t tt_client_device_count(const tt_client_t *client);  // addressable ones
const char *tt_client_device_kind(const tt_client_t *client, uint32_t device);

// --- programs ----------------------------------------------------------------------------------
// graph->donations say which inputs the program consumes. Errors keep the compiler's message.
tt_status_t tt_client_compile(tt_client_t *client, const tt_graph_t *graph,
                              tt_executable_t **out_executable) TT_MUST_USE;
// The same from text (a user's program).
tt_status_t tt_client_compile_text(tt_client_t *client, const char *text, size_t size,
                                   tt_executable_t **out_executable) TT_MUST_USE;
void tt_executable_release(tt_executable_t *executable);
uint32_t tt_executable_output_count(const tt_executable_t *executable);

// An input: a buffer, or (buffer NULL) a rank-0 value of `dtype` whose bytes are in `bits`.
typedef struct tt_input_s {
  tt_buffer_t *buffer;  // borrowed; a donated one is dead afterwards (its memory is the program's)
  uint8_t dtype;
  uint64_t bits[2];
} tt_input_t;

// Enqueues one run on `device` and returns at once; outputs are retained for the caller and become
// ready later. A failure of the run itself (not of enqueueing) is found by tt_buffer_await/read of
// any of its outputs. Out of memory is found here, with nothing changed.
tt_status_t tt_executable_execute(tt_executable_t *executable, uint32_t device,
                                  const tt_input_t *inputs, uint32_t input_count,
                                  tt_buffer_t **out_buffers) TT_MUST_USE;

// --- buffers -----------------------------------------------------------------------------------
// Copies dense row-major data before it returns.
tt_status_t tt_buffer_create(tt_client_t *client, uint32_t device, const tt_type_t *type,
                             const void *data, tt_buffer_t **out_buffer) TT_MUST_USE;
void tt_buffer_retain(tt_buffer_t *buffer);
void tt_buffer_release(tt_buffer_t *buffer);  // memory goes back when pending work is done with it
// Waits for the buffer and copies it out, dense row-major; size must be the array's bytes.
tt_status_t tt_buffer_read(tt_buffer_t *buffer, void *data, size_t size) TT_MUST_USE;
// Where device memory is the host's own (the software TPU; else *out_data is NULL and nothing is
// done): waits for the buffer and gives its memory, which nobody writes or frees until the drop.
tt_status_t tt_buffer_hold(tt_buffer_t *buffer, const void **out_data) TT_MUST_USE;
void tt_buffer_drop(tt_buffer_t *buffer);
// The same for a new buffer that the caller fills before anybody else sees it.
tt_status_t tt_buffer_allocate(tt_client_t *client, uint32_t device, const tt_type_t *type,
                               void **out_data, tt_buffer_t **out_buffer) TT_MUST_USE;
tt_status_t tt_buffer_await(tt_buffer_t *buffer) TT_MUST_USE;
bool tt_buffer_is_ready(tt_buffer_t *buffer);
tt_status_t tt_buffer_copy_to_device(tt_buffer_t *buffer, uint32_t device,
                                     tt_buffer_t **out_buffer) TT_MUST_USE;
size_t tt_buffer_bytes(const tt_buffer_t *buffer);  // bytes on the device

// --- the device's queue -------------------------------------------------------------------------
// Everything submitted to `device` so far; has a completion time for event timing.
tt_status_t tt_marker_create(tt_client_t *client, uint32_t device,
                             tt_marker_t **out_marker) TT_MUST_USE;
void tt_marker_release(tt_marker_t *marker);
bool tt_marker_is_done(tt_marker_t *marker);
tt_status_t tt_marker_await(tt_marker_t *marker) TT_MUST_USE;
double tt_marker_time_ms(tt_marker_t *marker);  // completion, monotonic clock; waits for it
// Waits for all work on the device.
tt_status_t tt_client_synchronize(tt_client_t *client, uint32_t device) TT_MUST_USE;

// --- memory ------------------------------------------------------------------------------------
typedef struct tt_memory_stats_s {
  int64_t bytes_in_use, peak_bytes_in_use, bytes_limit, bytes_reserved;
  int64_t allocations, frees, live_allocations, largest_allocation;
} tt_memory_stats_t;
// Where the plugin tells nothing the client counts the buffers it made itself.
tt_status_t tt_client_memory_stats(tt_client_t *client, uint32_t device,
                                   tt_memory_stats_t *out_stats) TT_MUST_USE;
void tt_client_reset_peak(tt_client_t *client, uint32_t device);
// Memory that the device's allocator keeps for later goes back to the system.
void tt_client_trim(tt_client_t *client, uint32_t device);

#ifdef __cplusplus
}
#endif
#endif  // TT_PJRT_CLIENT_H_
