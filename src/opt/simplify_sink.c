// Moves transposes below elementwise ops, towards a transpose that undoes them or a contraction
// that takes them over: add(transpose(x), 1) -> transpose(add(x, 1)).
#include <string.h>

#include "opt/rewrite.h"

// select and clamp have the most.
enum { MOST_OPERANDS = 3 };

static bool is_pointwise(const tt_node_t *node) {
  return (tt_op_infos[node->op].traits & TT_TRAIT_ELEMENTWISE) || node->op == TT_OP_SELECT ||
         node->op == TT_OP_CLAMP;
}

// The permutation that all transposed operands share; NULL: none is transposed, they differ, one is
// used elsewhere too, or another operand is neither a repeated scalar nor a scalar.
static const int64_t *common_permutation(const tt__rewrite_t *rw, const tt_node_t *node) {
  const int64_t *common = NULL;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    tt_value_t v = node->operands[i];
    const tt_node_t *t = tt__rewrite_is(rw, v, TT_OP_TRANSPOSE);
    if (!t) {
      if (!tt__rewrite_splat(rw, v) && tt__rewrite_scalar(rw, v) == TT_NO_VALUE) return NULL;
      continue;
    }
    const int64_t *p = tt__rewrite_ints(t, TT_ATTR_PERMUTATION);
    size_t size = tt__rewrite_type(rw, v)->rank * sizeof *p;
    // A transpose outside a loop must not move into it.
    if (t->parent != rw->build.block) return NULL;
    // The same value twice is two uses and still one transpose.
    bool twice = node->operand_count == 2 && node->operands[0] == node->operands[1] &&
                 v < rw->count && rw->uses[v] == 2;
    if (!tt__rewrite_single_use(rw, v) && !twice) return NULL;
    if (common && memcmp(common, p, size) != 0) return NULL;
    common = p;
  }
  return common;
}

// The repeated scalar v in the shape that the untransposed operands have.
static tt_value_t respread(tt__rewrite_t *rw, tt_value_t v, const tt_type_t *shape) {
  const tt_type_t *type = tt__rewrite_type(rw, v);
  if (type->rank == 0) return v;  // select's predicate, clamp's bounds
  tt_value_t scalar = tt__rewrite_scalar(rw, v);
  if (scalar != TT_NO_VALUE) {
    return tt_emit_broadcast_to(&rw->build, scalar, shape->rank, shape->dims);
  }
  const tt_type_t to = {type->dtype, shape->rank, shape->dims};
  const tt_attr_t attr =
      tt_attr_bytes(TT_ATTR_VALUE, tt__rewrite_splat(rw, v), (uint32_t)tt_dtype_size(type->dtype));
  tt_node_spec_t spec = {
      .op = TT_OP_CONSTANT, .attrs = &attr, .attr_count = 1, .types = &to, .type_count = 1};
  return tt_emit(&rw->build, &spec);
}

// The op is done in the operands' order, its result transposed. Terminates: every application moves
// a transpose one node closer to the returns and makes no new one.
bool tt__simplify_sink(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  if (!is_pointwise(node) || node->operand_count > MOST_OPERANDS) return false;
  bool any = false;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    any = any || tt__rewrite_is(rw, node->operands[i], TT_OP_TRANSPOSE);
  }
  const int64_t *permutation = any ? common_permutation(rw, node) : NULL;
  if (!permutation) return false;
  tt_value_t operands[MOST_OPERANDS];
  const tt_type_t *shape = NULL;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    const tt_node_t *t = tt__rewrite_is(rw, node->operands[i], TT_OP_TRANSPOSE);
    if (t) shape = tt__rewrite_type(rw, t->operands[0]);
    operands[i] = t ? t->operands[0] : TT_NO_VALUE;
  }
  for (uint32_t i = 0; i < node->operand_count; i++) {
    if (operands[i] == TT_NO_VALUE) operands[i] = respread(rw, node->operands[i], shape);
  }
  tt_type_t type = {tt__rewrite_type(rw, node->first_result)->dtype, shape->rank, shape->dims};
  tt_node_spec_t spec = {.op = (tt_op_t)node->op,
                         .operands = operands,
                         .operand_count = node->operand_count,
                         .attrs = node->attrs,
                         .attr_count = node->attr_count,
                         .types = &type,
                         .type_count = 1};
  *out = tt_emit_transpose(&rw->build, tt_emit(&rw->build, &spec), permutation);
  return true;
}
