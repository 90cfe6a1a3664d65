// One software TPU: memory, a queue of work, arrays and programs. All functions are thread-safe.
// Memory follows the order of the queue: an array that is released while queued work uses it may be
// recycled for work enqueued later, never earlier.
#ifndef TT_SOFTTPU_DEVICE_H_
#define TT_SOFTTPU_DEVICE_H_

#include <pthread.h>

#include "base/pool.h"
#include "ir/graph.h"
#include "softtpu/memory.h"
#include "softtpu/plan.h"
#include "softtpu/queue.h"
#include "softtpu/queue_event.h"

// Thread-safe; initialised in place and not moved. Lock order: a device's mutex before any event's;
// several devices' in the order of their addresses.
typedef struct tt_device_s {
  uint32_t ordinal;
  pthread_mutex_t mutex;  // guards memory, queue, the arrays' memory and the failure
  tt_memory_t memory;
  tt_queue_t queue;
  tt_queue_event_t *failure;  // the first failed run that nobody has been told of; may be NULL
} tt_device_t;

// `memory_limit` in bytes. Starts no thread: the queue's starts with its first task.
tt_status_t tt_device_init(tt_device_t *device, uint32_t ordinal, int64_t memory_limit) TT_MUST_USE;
void tt_device_deinit(tt_device_t *device);  // finishes pending work first
// Fails in a child of fork: the threads that do the work are not there, and locks may be held by
// them for ever. Every entry point that waits or locks asks first.
tt_status_t tt_device_check(void) TT_MUST_USE;
// The threads that all devices of a process share; made at first use, never ended.
// TORCHTPU_NUM_THREADS says how many. NULL: there are none, work runs on the caller.
tt_pool_t *tt_device_pool(void);

// Waits for everything enqueued so far; returns the first failure that nobody has been told of,
// once.
tt_status_t tt_device_synchronize(tt_device_t *device) TT_MUST_USE;
// An event that is done when everything enqueued so far is. Caller releases.
tt_status_t tt_device_mark(tt_device_t *device, tt_queue_event_t **out_event) TT_MUST_USE;

// --- arrays ---

// An immutable dense row-major array. Refcounted, thread-safe. Two lives: the record's, counted by
// refs, and the memory's, which ends with delete, donation or the last reference, but not before
// the last hold is dropped.
typedef struct tt_array_s {
  _Atomic uint32_t refs;
  uint8_t dtype;
  bool foreign;  // the memory belongs to somebody else: never written
  uint32_t rank;
  uint32_t uses;   // scratch of one execution, under the device's lock
  uint32_t holds;  // readers and external references that keep the memory
  tt_device_t *device;
  void *data;  // NULL: deleted or donated
  void *held;  // deleted while held: freed with the last hold
  size_t bytes;
  tt_queue_event_t *ready;      // NULL: ready
  struct end_task_s *end_task;  // tells the owner of foreign memory
  const int64_t *dims;
} tt_array_t;

// Uninitialised memory that the host may write at once, before anybody else sees the array. No
// pending work uses it.
tt_status_t tt_array_create(tt_device_t *device, const tt_type_t *type,
                            tt_array_t **out_array) TT_MUST_USE;
// Over memory of the caller, who is told of its end: on_free (may be NULL) runs once, on any
// thread, after the last work that may read it. The program never writes to it, donated or not.
tt_status_t tt_array_wrap(tt_device_t *device, const tt_type_t *type, void *data,
                          void (*on_free)(void *data, void *context), void *context,
                          tt_array_t **out_array) TT_MUST_USE;
static inline void tt_array_retain(tt_array_t *array) {
  atomic_fetch_add_explicit(&array->refs, 1, memory_order_relaxed);
}
void tt_array_release(tt_array_t *array);  // NULL-safe
// Gives the memory back now; later uses fail. Work that is enqueued already still reads it.
void tt_array_delete(tt_array_t *array);
bool tt_array_is_deleted(tt_array_t *array);
// Waits for the array and keeps its memory until drop, deleted or not. Fails with the failure of
// the work that was to fill it.
tt_status_t tt_array_hold(tt_array_t *array, const void **out_data) TT_MUST_USE;
// The same without waiting: the address, whose contents may still be on their way.
tt_status_t tt_array_pin(tt_array_t *array, const void **out_data) TT_MUST_USE;
void tt_array_drop(tt_array_t *array);
static inline bool tt_array_is_ready(const tt_array_t *array) {
  return !array->ready || tt_queue_event_is_done(array->ready);
}
static inline tt_type_t tt_array_type(const tt_array_t *array) {
  tt_type_t type = {(tt_dtype_t)array->dtype, array->rank, array->dims};
  return type;
}
// Enqueues a copy to `target`, which may be the same device.
tt_status_t tt_array_copy(tt_array_t *array, tt_device_t *target,
                          tt_array_t **out_array) TT_MUST_USE;
// The same bytes under another type of the same size.
tt_status_t tt_array_copy_as(tt_array_t *array, tt_device_t *target, const tt_type_t *type,
                             tt_array_t **out_array) TT_MUST_USE;
typedef void (*tt_array_read_fn_t)(void *context, const void *data);
// Calls read(context, data) when the array is ready, at once where it is, else on the queue's
// thread; with data NULL where the array failed. *out_event is done after it (caller releases). Not
// called at all where this function fails.
tt_status_t tt_array_read(tt_array_t *array, tt_array_read_fn_t read, void *context,
                          tt_queue_event_t **out_event) TT_MUST_USE;

// --- programs ---

// Immutable, refcounted, thread-safe: it may run on several devices at once.
typedef struct tt_program_s {
  _Atomic uint32_t refs;
  tt_plan_t *plan;
  tt_graph_t *graph;  // owned; NULL where nobody needs it
  uint32_t input_count, output_count, alias_count;
  uint32_t replica_count, partition_count;
  bool collective;  // its devices must run together
  size_t arena_bytes;
  uint64_t cost;       // nanoseconds, the plan's own estimate
  int32_t *donations;  // [input] tt_donation_t
  int32_t *aliases;    // [output] the input whose memory it takes, or -1
  bool *borrows;       // [input] its memory serves values on the way, and no output takes it
  const tt_type_t **input_types, **output_types;
  size_t *output_bytes;
} tt_program_t;

// Plans the graph, which stays the caller's. `keep_graph`: keeps a clone for serialization;
// programs that talk keep one anyway, for the executor that runs their devices together.
// TORCHTPU_ENGINE=reference makes a program that runs on the reference executor.
tt_status_t tt_program_create(const tt_graph_t *graph, bool keep_graph,
                              tt_program_t **out_program) TT_MUST_USE;
void tt_program_retain(tt_program_t *program);
void tt_program_release(tt_program_t *program);  // NULL-safe

// An input: an array, or (array NULL) a rank-0 value of `dtype` whose bytes are in `bits`.
typedef struct tt_operand_s {
  tt_array_t *array;
  uint8_t dtype;
  bool keep;  // not donated, whatever the program says
  uint64_t bits[2];
} tt_operand_t;

// Small work on an idle queue is done before it returns, other work is enqueued. Donated arrays are
// deleted. Outputs are the caller's (released by him), ready or not. Fails (out of memory, wrong
// input) with nothing changed; what fails later fails the outputs. `out_done` may be NULL;
// *out_done is NULL for done without failure.
tt_status_t tt_device_execute(tt_device_t *device, tt_program_t *program,
                              const tt_operand_t *inputs, uint32_t input_count,
                              tt_array_t **outputs, tt_queue_event_t **out_done) TT_MUST_USE;
// One program on several devices that talk to each other: inputs[device][input],
// outputs[device][output], out_done[device] (each may stay NULL). Every device's queue gets its
// part in one critical section, so two joint runs meet on all devices in the same order and cannot
// wait for each other crosswise.
tt_status_t tt_device_execute_together(tt_device_t *const *devices, uint32_t device_count,
                                       tt_program_t *program, const tt_operand_t *const *inputs,
                                       uint32_t input_count, tt_array_t **const *outputs,
                                       tt_queue_event_t **out_done) TT_MUST_USE;

// --- shared by the device's files ---

// The device's lock is held in all of these.
// `idle`: for use by the host at once; else for work enqueued from now on.
tt_status_t tt__array_allocate(tt_device_t *device, const tt_type_t *type, size_t bytes, bool idle,
                               tt_array_t **out_array) TT_MUST_USE;
// A header over memory that is already there (an in-place output).
tt_array_t *tt__array_header(tt_device_t *device, const tt_type_t *type, size_t bytes,
                             void *data) TT_MUST_USE;
// The memory back to the device, or to `held` while somebody holds it. No-op when it is gone.
void tt__array_free_memory(tt_array_t *array);
// Without the lock: tells the owner of foreign memory that was freed.
void tt__array_end_foreign(tt_array_t *array);
// Frees an array that nobody has seen.
void tt__array_discard(tt_array_t *array);

#endif  // TT_SOFTTPU_DEVICE_H_
