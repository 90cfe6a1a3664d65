// All rules of simplification in one walk, families in the order of how much they save: an identity
// makes the others unnecessary, and sinking comes last because it only prepares.
#include "opt/opt.h"
#include "opt/rewrite.h"

static bool simplify(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  if (node->result_count != 1) return false;
  return tt__simplify_algebra(rw, node, out) || tt__simplify_movement(rw, node, out) ||
         tt__simplify_contraction(rw, node, out) || tt__simplify_sink(rw, node, out);
}

tt_status_t tt_simplify(tt_graph_t *graph) {
  enum { MOST_ROUNDS = 4 };  // one is nearly always enough: operands come before users
  bool changed = true;
  for (int round = 0; round < MOST_ROUNDS && changed; round++) {
    TT_RETURN_IF_ERROR(tt__rewrite_run(graph, simplify, &changed));
    if (changed) TT_RETURN_IF_ERROR(tt_dce(graph));  // keeps use counts honest
  }
  return TT_OK_STATUS;
}
