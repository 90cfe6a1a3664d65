// The reference executor: plain loops, one op at a time, the oracle of the planned executor. It
// follows the StableHLO specification to the letter; where that leaves a choice:
//   - real elementwise math is done in f64 and rounded once to the result type, which equals exact
//     rounding for + - * / and sqrt of every smaller type;
//   - a one-op sum or product over floats (reduce, reduce_window, dot_general, convolution)
//     accumulates in f64 and rounds once; other reducer bodies round at every step;
//   - reductions combine elements in row-major order of the reduced dimensions;
//   - integer x / 0 is -1 (all ones), x % 0 is x, INT_MIN / -1 is INT_MIN, shifts past the width
//     give 0 or the sign, float -> integer saturates and NaN becomes 0;
//   - a scatter window that is not wholly inside the operand is skipped, as XLA skips it;
//   - `rng` draws from a fixed sequence, so a run repeats.
#ifndef TT_SOFTTPU_REFERENCE_H_
#define TT_SOFTTPU_REFERENCE_H_

#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runs main. Buffers are dense row-major in the types of main's arguments and returns (i1 and 4-bit
// values take a byte); outputs are allocated by the caller and must not overlap inputs. Collectives
// see one device. Thread-safe: a graph may run in several threads at once.
tt_status_t tt_reference_run(const tt_graph_t *graph, const void *const *inputs,
                             void *const *outputs) TT_MUST_USE;

// Runs main on `device_count` devices in lock step: inputs[device][argument]. Device d is replica
// d / partition_count and partition d % partition_count of the graph; device_count must be
// replica_count * partition_count, or anything where both are 1 (all are replicas then).
tt_status_t tt_reference_run_replicas(const tt_graph_t *graph, uint32_t device_count,
                                      const void *const *const *inputs,
                                      void *const *const *outputs) TT_MUST_USE;

// What a node's regions need beyond operands. Thread-compatible: one environment a running
// execution; reusable for any number of nodes and runs of its graph.
typedef struct tt_reference_env_s {
  const tt_graph_t *graph;
  // [graph->value_count], all NULL at first. The caller stores the buffers of the values that a
  // region captures (tt_reference_captures) before the call; entries of values defined inside
  // regions are used by the executor and NULL again when a call returns.
  void **values;
  uint32_t replica_id, partition_id;
  struct tt__ref_state_s *state;  // private
} tt_reference_env_t;

// Caller destroys; the graph is borrowed.
tt_status_t tt_reference_env_create(const tt_graph_t *graph,
                                    tt_reference_env_t **out_env) TT_MUST_USE;
void tt_reference_env_destroy(tt_reference_env_t *env);  // NULL-safe

// The values defined outside `node` that its regions use, each once, in `out_values` (room for
// `capacity`); returns how many there are, also where that is more than `capacity`.
uint32_t tt_reference_captures(const tt_graph_t *graph, const tt_node_t *node,
                               tt_value_t *out_values, uint32_t capacity);

// Evaluates one node: any op, control flow and collectives (as a single device) included. Results
// are preallocated and do not overlap operands. `env` may be NULL for a node without regions.
tt_status_t tt_reference_node(const tt_graph_t *graph, const tt_node_t *node,
                              tt_reference_env_t *env, const void *const *operands,
                              void *const *results) TT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif  // TT_SOFTTPU_REFERENCE_H_
