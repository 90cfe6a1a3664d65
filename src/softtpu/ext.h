// What the software TPU's plugin offers beyond PJRT: programs as graphs in memory, scalars in the
// call, arrays read without an event. Found in the plugin's list of extensions by its number.
#ifndef TT_SOFTTPU_EXT_H_
#define TT_SOFTTPU_EXT_H_

#include "ir/graph.h"
#include "pjrt/pjrt_abi.h"
#include "softtpu/library.h"

// Raised when a field changes its meaning or place; new ones go to the end.
#define TT_SOFT_EXT_VERSION 1

// An input: a buffer, or (buffer NULL) a rank-0 value of `dtype` whose bytes are in `bits`. Scalars
// in the call spare an upload for every learning rate. The same record as tt_operand_t (device.h).
typedef struct tt_soft_operand_s {
  void *buffer;
  uint8_t dtype;
  bool keep;  // not donated, whatever the program says
  uint64_t bits[2];
} tt_soft_operand_t;

// Bytes and counts since the device was made; peak since reset_peak. Reserved is what the system
// has given, in use or cached.
typedef struct tt_soft_stats_s {
  int64_t bytes_in_use, peak_bytes_in_use, bytes_limit, bytes_reserved;
  int64_t allocations, frees, live_allocations, largest_allocation;
} tt_soft_stats_t;

// `client`, `device` and so on are the plugin's own handles. Every function is thread-safe.
typedef struct tt_soft_ext_s {
  tt_pjrt_extension_t base;
  uint32_t version;
  // tt_code_t of an error, more exact than the interface's codes.
  int (*error_code)(const tt_pjrt_error_t *error);
  // The graph stays the caller's.
  tt_pjrt_error_t *(*compile)(void *client, const tt_graph_t *graph, void **out_loaded);
  // One run on `device`; `outputs` is as long as the program has outputs.
  tt_pjrt_error_t *(*execute)(void *loaded, void *device, const tt_soft_operand_t *inputs,
                              uint32_t input_count, void **outputs);
  // Dense row-major data, copied before it returns.
  tt_pjrt_error_t *(*upload)(void *device, const tt_type_t *type, const void *data,
                             void **out_buffer);
  // Waits and copies; `size` must be the array's.
  tt_pjrt_error_t *(*read)(void *buffer, void *data, size_t size);
  tt_pjrt_error_t *(*await)(void *buffer);
  bool (*is_ready)(void *buffer);
  void (*release)(void *buffer);
  size_t (*bytes)(void *buffer);
  // An event that is done when all work enqueued on `device` so far is; its completion on
  // CLOCK_MONOTONIC in nanoseconds, 0 while it is pending.
  tt_pjrt_error_t *(*mark)(void *device, void **out_event);
  int64_t (*event_time)(void *event);
  tt_pjrt_error_t *(*synchronize)(void *device);
  void (*memory_stats)(void *device, tt_soft_stats_t *out_stats);
  void (*reset_peak)(void *device);
  void (*trim)(void *device);  // unused memory back to the system
  void (*install_library)(const tt_library_t *library);
  // The array's own memory, once its value is there; nobody writes or frees it until `drop`.
  tt_pjrt_error_t *(*hold)(void *buffer, const void **out_data);
  void (*drop)(void *buffer);
  // An array whose memory the caller fills before anybody else sees it.
  tt_pjrt_error_t *(*allocate)(void *device, const tt_type_t *type, void **out_data,
                               void **out_buffer);
} tt_soft_ext_t;

#endif  // TT_SOFTTPU_EXT_H_
