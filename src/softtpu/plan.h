// A program ready to run on the software TPU: kernels in order, one arena, in-place decisions made.
#ifndef TT_SOFTTPU_PLAN_H_
#define TT_SOFTTPU_PLAN_H_

#include "base/pool.h"
#include "ir/graph.h"
#include "softtpu/library.h"

typedef struct tt_plan_s tt_plan_t;  // immutable once made: thread-safe

// NULL stands for all false.
typedef struct tt_plan_options_s {
  bool reference;  // plan nothing: run the reference executor
} tt_plan_options_t;

// Clones, simplifies, clusters, assigns buffers. Microseconds for one op, milliseconds for
// thousands. The graph stays the caller's, who destroys the plan. Fails for an op, type or custom
// call that the device does not have.
tt_status_t tt_plan_create(const tt_graph_t *graph, const tt_plan_options_t *options,
                           tt_plan_t **out_plan) TT_MUST_USE;
void tt_plan_destroy(tt_plan_t *plan);

// Types are borrowed from the plan.
uint32_t tt_plan_input_count(const tt_plan_t *plan);
uint32_t tt_plan_output_count(const tt_plan_t *plan);
const tt_type_t *tt_plan_input_type(const tt_plan_t *plan, uint32_t index);
const tt_type_t *tt_plan_output_type(const tt_plan_t *plan, uint32_t index);
size_t tt_plan_arena_bytes(const tt_plan_t *plan);  // temporaries, 64-byte aligned
// Which donated input's memory output `index` is written to, or -1: its own buffer.
int32_t tt_plan_output_alias(const tt_plan_t *plan, uint32_t index);
// Whether a run writes to input `index`, a donated one: an output or values on the way.
bool tt_plan_input_written(const tt_plan_t *plan, uint32_t index);
// A rough count of nanoseconds of work, for deciding between inline and queued execution.
uint64_t tt_plan_cost(const tt_plan_t *plan);
// Number of kernels, and a readable listing of them for tests and debugging (caller frees).
uint32_t tt_plan_kernel_count(const tt_plan_t *plan);
char *tt_plan_describe(const tt_plan_t *plan) TT_MUST_USE;

// Runs to completion on the calling thread and `pool` (may be NULL), with the same result bits for
// any number of threads. Buffers are dense row-major; inputs[i] of a rank-0 value may point
// anywhere; outputs[i] == inputs[j] exactly where tt_plan_output_alias says so. `arena`:
// tt_plan_arena_bytes, 64-byte aligned, contents of no matter. Fails only for what is found at run
// time (an unimplemented custom call is found at create). Thread-safe for disjoint outputs and
// arenas.
tt_status_t tt_plan_run(const tt_plan_t *plan, tt_pool_t *pool, const void *const *inputs,
                        void *const *outputs, void *arena) TT_MUST_USE;

#endif  // TT_SOFTTPU_PLAN_H_
