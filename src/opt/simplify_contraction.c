// Transposes that dot products and convolutions take over as dimension numbers.
#include <string.h>

#include "opt/rewrite.h"

// Remaps one operand's dimension numbers through the transpose that makes it. Free dimensions
// appear in the result in order, so their order must survive.
static bool remap_dot(const tt__rewrite_t *rw, tt_value_t *operand, const int64_t *batch,
                      uint32_t batch_count, const int64_t *contract, uint32_t contract_count,
                      int64_t *new_batch, int64_t *new_contract) {
  const tt_node_t *t = tt__rewrite_is(rw, *operand, TT_OP_TRANSPOSE);
  if (batch_count) memcpy(new_batch, batch, batch_count * sizeof *batch);
  if (contract_count) memcpy(new_contract, contract, contract_count * sizeof *contract);
  if (!t) return false;
  const int64_t *permutation = tt__rewrite_ints(t, TT_ATTR_PERMUTATION);
  int64_t last = -1;
  for (uint32_t i = 0; i < tt__rewrite_type(rw, *operand)->rank; i++) {
    if (tt_ints_has((tt_ints_t){batch, batch_count}, i)) continue;
    if (tt_ints_has((tt_ints_t){contract, contract_count}, i)) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  for (uint32_t i = 0; i < batch_count; i++) new_batch[i] = permutation[batch[i]];
  for (uint32_t i = 0; i < contract_count; i++) new_contract[i] = permutation[contract[i]];
  *operand = t->operands[0];
  return true;
}

// The node again, with other operands, attributes and result type.
static tt_value_t rebuild(tt__rewrite_t *rw, const tt_node_t *node, const tt_value_t *operands,
                          tt_attr_t *attrs, const tt_type_t *type) {
  tt_node_spec_t spec = {.op = (tt_op_t)node->op,
                         .operands = operands,
                         .operand_count = node->operand_count,
                         .attrs = attrs,
                         .attr_count = node->attr_count,
                         .types = type,
                         .type_count = 1};
  return tt_emit(&rw->build, &spec);
}

// Each operand for itself: x^T y, x y^T and x^T y^T all become one dot_general over x and y.
static bool dot(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  if (!tt__rewrite_is(rw, node->operands[0], TT_OP_TRANSPOSE) &&
      !tt__rewrite_is(rw, node->operands[1], TT_OP_TRANSPOSE)) {
    return false;
  }
  uint32_t nb, nc;
  const int64_t *xb = tt_node_ints(node, TT_ATTR_LHS_BATCHING_DIMENSIONS, &nb);
  const int64_t *yb = tt_node_ints(node, TT_ATTR_RHS_BATCHING_DIMENSIONS, &nb);
  const int64_t *xc = tt_node_ints(node, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, &nc);
  const int64_t *yc = tt_node_ints(node, TT_ATTR_RHS_CONTRACTING_DIMENSIONS, &nc);
  int64_t lists[4][TT_MAX_RANK];
  tt_value_t operands[] = {node->operands[0], node->operands[1]};
  bool x = remap_dot(rw, &operands[0], xb, nb, xc, nc, lists[0], lists[2]);
  bool y = remap_dot(rw, &operands[1], yb, nb, yc, nc, lists[1], lists[3]);
  if (!x && !y) return false;
  tt_attr_t attrs[TT_ATTR_COUNT];
  memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
  for (uint32_t i = 0; i < node->attr_count; i++) {
    uint32_t which = (uint32_t)attrs[i].key - TT_ATTR_LHS_BATCHING_DIMENSIONS;
    if (which < 4) attrs[i].u.ints = lists[which];  // the keys stand in this order in attrs.def
  }
  *out = rebuild(rw, node, operands, attrs, tt__rewrite_type(rw, node->first_result));
  return true;
}

// Sends one tensor's dimension numbers of a convolution through `map`.
static void remap_conv(tt_attr_t *attrs, uint32_t count, tt_attr_key_t first, tt_attr_key_t second,
                       tt_attr_key_t space, const int64_t *map, int64_t *list) {
  for (uint32_t i = 0; i < count; i++) {
    if (attrs[i].key == first || attrs[i].key == second) attrs[i].u.i = map[attrs[i].u.i];
    if (attrs[i].key != space) continue;
    for (uint32_t k = 0; k < attrs[i].count; k++) list[k] = map[attrs[i].u.ints[k]];
    attrs[i].u.ints = list;
  }
}

// A convolution's dimension numbers name any order, so that every transpose of an operand fits in.
static bool convolution(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_node_t *x = tt__rewrite_is(rw, node->operands[0], TT_OP_TRANSPOSE);
  const tt_node_t *k = tt__rewrite_is(rw, node->operands[1], TT_OP_TRANSPOSE);
  if (!x && !k) return false;
  int64_t lists[2][TT_MAX_RANK];
  tt_attr_t attrs[TT_ATTR_COUNT];
  tt_value_t operands[] = {x ? x->operands[0] : node->operands[0],
                           k ? k->operands[0] : node->operands[1]};
  memcpy(attrs, node->attrs, node->attr_count * sizeof *attrs);
  if (x) {
    remap_conv(attrs, node->attr_count, TT_ATTR_INPUT_BATCH_DIMENSION,
               TT_ATTR_INPUT_FEATURE_DIMENSION, TT_ATTR_INPUT_SPATIAL_DIMENSIONS,
               tt__rewrite_ints(x, TT_ATTR_PERMUTATION), lists[0]);
  }
  if (k) {
    remap_conv(attrs, node->attr_count, TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
               TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, TT_ATTR_KERNEL_SPATIAL_DIMENSIONS,
               tt__rewrite_ints(k, TT_ATTR_PERMUTATION), lists[1]);
  }
  *out = rebuild(rw, node, operands, attrs, tt__rewrite_type(rw, node->first_result));
  return true;
}

// transpose(convolution) with one use: the convolution writes its result where it should be. With
// more uses it would be computed twice.
static bool transposed_convolution(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_node_t *conv = tt__rewrite_is(rw, node->operands[0], TT_OP_CONVOLUTION);
  if (!conv || !tt__rewrite_single_use(rw, node->operands[0])) return false;
  const int64_t *permutation = tt__rewrite_ints(node, TT_ATTR_PERMUTATION);
  int64_t where[TT_MAX_RANK], list[TT_MAX_RANK];
  tt_attr_t attrs[TT_ATTR_COUNT];
  const tt_type_t *type = tt__rewrite_type(rw, node->first_result);
  for (uint32_t i = 0; i < type->rank; i++) where[permutation[i]] = i;
  memcpy(attrs, conv->attrs, conv->attr_count * sizeof *attrs);
  remap_conv(attrs, conv->attr_count, TT_ATTR_OUTPUT_BATCH_DIMENSION,
             TT_ATTR_OUTPUT_FEATURE_DIMENSION, TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS, where, list);
  *out = rebuild(rw, conv, conv->operands, attrs, type);
  return true;
}

bool tt__simplify_contraction(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  switch ((tt_op_t)node->op) {
    case TT_OP_DOT_GENERAL:
      return dot(rw, node, out);
    case TT_OP_CONVOLUTION:
      return convolution(rw, node, out);
    case TT_OP_TRANSPOSE:
      return transposed_convolution(rw, node, out);
    default:
      return false;
  }
}
