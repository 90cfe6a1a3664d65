// The walk that passes share: nodes in order, each kept or replaced; uses are counted as it goes.
#ifndef TT_OPT_REWRITE_H_
#define TT_OPT_REWRITE_H_

#include "ir/build.h"
#include "ir/internal.h"

typedef struct tt__rewrite_s tt__rewrite_t;

// Looks at a node whose operands are final. True: the node goes away and its results are out[i];
// new nodes were emitted through rw->build. False: the node stays (and nothing was emitted).
typedef bool (*tt__rewrite_fn_t)(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);

struct tt__rewrite_s {
  tt_graph_t *graph;
  tt_build_t build;
  tt__rewrite_fn_t fn;
  tt_value_t *map;  // old value -> the value that stands for it
  uint32_t *uses;   // how often a value is used by nodes and returns
  uint32_t map_capacity, uses_capacity, count;
  bool changed;
};

// Walks the graph once. *out_changed: something was replaced.
tt_status_t tt__rewrite_run(tt_graph_t *graph, tt__rewrite_fn_t fn, bool *out_changed) TT_MUST_USE;

static inline tt_node_t *tt__rewrite_def(const tt__rewrite_t *rw, tt_value_t v) {
  return rw->graph->values[v].node;
}
// The node that defines v if it is an `op`.
static inline tt_node_t *tt__rewrite_is(const tt__rewrite_t *rw, tt_value_t v, tt_op_t op) {
  tt_node_t *node = tt__rewrite_def(rw, v);
  return node && node->op == op ? node : NULL;
}
static inline const tt_type_t *tt__rewrite_type(const tt__rewrite_t *rw, tt_value_t v) {
  return tt_graph_type(rw->graph, v);
}
static inline bool tt__rewrite_single_use(const tt__rewrite_t *rw, tt_value_t v) {
  return v < rw->count && rw->uses[v] == 1;
}

// One element's bytes where all elements of v are the same constant, else NULL.
const void *tt__rewrite_splat(const tt__rewrite_t *rw, tt_value_t v);
// The rank-0 value that v repeats, or TT_NO_VALUE.
tt_value_t tt__rewrite_scalar(const tt__rewrite_t *rw, tt_value_t v);

// Rules by family; each answers for the ops it knows.
bool tt__simplify_algebra(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);
bool tt__simplify_movement(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);
bool tt__simplify_contraction(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);
bool tt__simplify_sink(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);

#endif  // TT_OPT_REWRITE_H_
