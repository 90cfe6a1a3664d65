// The walk that passes share: nodes in order, each kept or replaced; uses are counted as it goes.
#ifndef TT_OPT_REWRITE_H_
#define TT_OPT_REWRITE_H_

#include "ir/build.h"
#include "ir/internal.h"

// Thread-compatible; lives on the stack of tt__rewrite_run.
typedef struct tt__rewrite_s tt__rewrite_t;

// Looks at a node whose operands are final. True: the node goes away and its results are out[i], of
// the same types; new nodes were emitted through rw->build. False: the node stays (and nothing was
// emitted). A failed emit sticks in rw->build and ends the walk.
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

// The node that defines v; NULL for an argument.
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
// One use by a node or return. Values made in this step count as used by nobody yet.
static inline bool tt__rewrite_single_use(const tt__rewrite_t *rw, tt_value_t v) {
  return v < rw->count && rw->uses[v] == 1;
}

// A list whose presence and length the op's rule has checked.
static inline const int64_t *tt__rewrite_ints(const tt_node_t *node, tt_attr_key_t key) {
  return tt_node_list(node, key).at;
}
// An existing value takes the node's place: a rule's last line.
static inline bool tt__rewrite_keep(tt_value_t *out, tt_value_t v) {
  *out = v;
  return true;
}

// One element's bytes where all elements of v are the same constant, else NULL. Borrowed from the
// graph.
const void *tt__rewrite_splat(const tt__rewrite_t *rw, tt_value_t v);
// The rank-0 value that v repeats, or TT_NO_VALUE. It may be any value, not only a constant.
tt_value_t tt__rewrite_scalar(const tt__rewrite_t *rw, tt_value_t v);

// Rules by family; each answers for the ops it knows, as a tt__rewrite_fn_t does. The node has one
// result.
bool tt__simplify_algebra(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);
bool tt__simplify_movement(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);
bool tt__simplify_contraction(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);
bool tt__simplify_sink(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out);

#endif  // TT_OPT_REWRITE_H_
