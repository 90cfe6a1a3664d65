// Passes over a graph. Each is one file, keeps the program's meaning bit for bit unless it says
// otherwise, and works in place. After a failure the graph may only be destroyed.
#ifndef TT_OPT_OPT_H_
#define TT_OPT_OPT_H_

#include "ir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// All passes below but tt_expand_chlo, in their order. TT_DUMP=<pass> (or all) logs the graph after
// that pass; the text parses back. Costs a microsecond or two for one op, a few milliseconds for
// 3,000. Thread-safe for different graphs.
tt_status_t tt_opt_run(tt_graph_t *graph) TT_MUST_USE;

// Algebra that is exact in IEEE arithmetic; movements of data that cancel, combine, fold into dot
// products and convolutions, or sink through elementwise ops to where they can.
tt_status_t tt_simplify(tt_graph_t *graph) TT_MUST_USE;

// Evaluates ops on small constants, where the result does not depend on who computes it.
tt_status_t tt_fold(tt_graph_t *graph) TT_MUST_USE;

// Merges equal nodes without side effects, across blocks where the earlier one can be seen. Leaves
// nodes without uses.
tt_status_t tt_cse(tt_graph_t *graph) TT_MUST_USE;

// Removes nodes nobody uses, inside regions as well. Arguments stay, main's and regions'.
tt_status_t tt_dce(tt_graph_t *graph) TT_MUST_USE;

// Writes chlo ops in StableHLO, for devices that know no chlo. Accurate to a few ulps of f32 or f64
// (narrower floats compute in f32), not bit for bit.
tt_status_t tt_expand_chlo(tt_graph_t *graph) TT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif  // TT_OPT_OPT_H_
