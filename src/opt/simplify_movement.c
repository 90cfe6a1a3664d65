// Transposes, reshapes, broadcasts, slices, pads and concatenations that cancel or combine.
#include <string.h>

#include "opt/rewrite.h"

// A movement of a splat is a splat.
static bool splat(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_node_t *constant = tt__rewrite_is(rw, node->operands[0], TT_OP_CONSTANT);
  const void *bytes = constant ? tt__rewrite_splat(rw, node->operands[0]) : NULL;
  if (!bytes) return false;
  const tt_type_t *type = tt__rewrite_type(rw, node->first_result);
  const tt_attr_t attr = tt_attr_bytes(TT_ATTR_VALUE, bytes, (uint32_t)tt_dtype_size(type->dtype));
  tt_node_spec_t spec = {
      .op = TT_OP_CONSTANT, .attrs = &attr, .attr_count = 1, .types = type, .type_count = 1};
  *out = tt_emit(&rw->build, &spec);
  return true;
}

// Of a reshape: once; of a repeated scalar: the broadcast to the new shape.
static bool reshape(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_value_t x = node->operands[0];
  const tt_type_t *to = tt__rewrite_type(rw, node->first_result);
  if (tt_type_same_shape(tt__rewrite_type(rw, x), to)) return tt__rewrite_keep(out, x);
  const tt_node_t *inner = tt__rewrite_is(rw, x, TT_OP_RESHAPE);
  if (inner) {
    *out = tt_emit_reshape(&rw->build, inner->operands[0], to->rank, to->dims);
    return true;
  }
  inner = tt__rewrite_is(rw, x, TT_OP_BROADCAST_IN_DIM);
  if (inner && tt__rewrite_type(rw, inner->operands[0])->rank == 0) {
    *out = tt_emit_broadcast_to(&rw->build, inner->operands[0], to->rank, to->dims);
    return true;
  }
  return splat(rw, node, out);
}

// Dimensions of size 1 aside, does the permutation keep the order?
static bool keeps_order(const tt_type_t *x, const int64_t *permutation) {
  int64_t last = -1;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (x->dims[permutation[i]] == 1) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  return true;
}

// Of a concatenation that nobody else reads: the transposed parts, joined. Views of parts cost
// nothing, and the whole is written in the order in which it is read.
static bool transpose_of_concat(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_node_t *concat = tt__rewrite_is(rw, node->operands[0], TT_OP_CONCATENATE);
  if (!concat || concat->parent != rw->build.block ||
      !tt__rewrite_single_use(rw, node->operands[0]))
    return false;
  const int64_t *permutation = tt__rewrite_ints(node, TT_ATTR_PERMUTATION);
  int64_t from = tt_node_int(concat, TT_ATTR_DIMENSION, 0), to = 0;
  while (permutation[to] != from) to++;
  tt_value_t *parts = TT_ARENA_ARRAY(&rw->graph->arena, tt_value_t, concat->operand_count);
  if (!parts) return false;
  for (uint32_t i = 0; i < concat->operand_count; i++)
    parts[i] = tt_emit_transpose(&rw->build, concat->operands[i], permutation);
  *out = tt_emit_concat(&rw->build, parts, concat->operand_count, to);
  return true;
}

// A transpose that moves only dimensions of size 1 is a reshape, which later rules and the planner
// take for free; two in a row are one.
static bool transpose(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_value_t x = node->operands[0];
  const tt_type_t *from = tt__rewrite_type(rw, x), *to = tt__rewrite_type(rw, node->first_result);
  const int64_t *permutation = tt__rewrite_ints(node, TT_ATTR_PERMUTATION);
  if (keeps_order(from, permutation)) {
    *out = tt_emit_reshape(&rw->build, x, to->rank, to->dims);
    return true;
  }
  const tt_node_t *inner = tt__rewrite_is(rw, x, TT_OP_TRANSPOSE);
  if (inner) {
    const int64_t *first = tt__rewrite_ints(inner, TT_ATTR_PERMUTATION);
    int64_t both[TT_MAX_RANK];
    for (uint32_t i = 0; i < to->rank; i++) both[i] = first[permutation[i]];
    *out = tt_emit_transpose(&rw->build, inner->operands[0], both);
    return true;
  }
  inner = tt__rewrite_is(rw, x, TT_OP_BROADCAST_IN_DIM);
  if (inner) {  // the broadcast goes where the transpose would have moved its dimensions
    const int64_t *map = tt__rewrite_ints(inner, TT_ATTR_BROADCAST_DIMENSIONS);
    uint32_t rank = tt__rewrite_type(rw, inner->operands[0])->rank;
    int64_t moved[TT_MAX_RANK], where[TT_MAX_RANK];
    for (uint32_t i = 0; i < to->rank; i++) where[permutation[i]] = i;
    for (uint32_t i = 0; i < rank; i++) moved[i] = where[map[i]];
    *out = tt_emit_broadcast_in_dim(&rw->build, inner->operands[0], to->rank, to->dims, moved);
    return true;
  }
  return transpose_of_concat(rw, node, out) || splat(rw, node, out);
}

// Where each dimension of x is in `reshaped`, which only has more dimensions of size 1.
static bool find_inserted(const tt_type_t *x, const tt_type_t *reshaped, int64_t *out) {
  uint32_t i = 0;
  for (uint32_t j = 0; j < reshaped->rank; j++) {
    if (i < x->rank && x->dims[i] == reshaped->dims[j]) {
      out[i++] = j;
    } else if (reshaped->dims[j] != 1) {
      return false;
    }
  }
  return i == x->rank;
}

// Chains of broadcasts, and of reshapes that insert dimensions of size 1, become one broadcast.
static bool broadcast(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_value_t x = node->operands[0];
  const tt_type_t *from = tt__rewrite_type(rw, x), *to = tt__rewrite_type(rw, node->first_result);
  const int64_t *map = tt__rewrite_ints(node, TT_ATTR_BROADCAST_DIMENSIONS);
  bool ascending = true;
  for (uint32_t i = 1; i < from->rank; i++) ascending = ascending && map[i - 1] < map[i];
  // Nothing is repeated: a reshape, or nothing at all. A rank-0 operand stays a broadcast, the form
  // that other rules recognise.
  if (from->rank && ascending && tt_type_elements(from) == tt_type_elements(to)) {
    bool sizes_kept = true;
    for (uint32_t i = 0; i < from->rank; i++) {
      sizes_kept = sizes_kept && from->dims[i] == to->dims[map[i]];
    }
    if (sizes_kept) {
      *out = tt_emit_reshape(&rw->build, x, to->rank, to->dims);
      return true;
    }
  }
  const tt_node_t *inner = tt__rewrite_is(rw, x, TT_OP_BROADCAST_IN_DIM);
  if (inner) {
    const int64_t *first = tt__rewrite_ints(inner, TT_ATTR_BROADCAST_DIMENSIONS);
    const tt_type_t *source = tt__rewrite_type(rw, inner->operands[0]);
    int64_t both[TT_MAX_RANK];
    for (uint32_t i = 0; i < source->rank; i++) both[i] = map[first[i]];
    *out = tt_emit_broadcast_in_dim(&rw->build, inner->operands[0], to->rank, to->dims, both);
    return true;
  }
  inner = tt__rewrite_is(rw, x, TT_OP_RESHAPE);
  int64_t where[TT_MAX_RANK];
  if (inner && find_inserted(tt__rewrite_type(rw, inner->operands[0]), from, where)) {
    uint32_t rank = tt__rewrite_type(rw, inner->operands[0])->rank;
    for (uint32_t i = 0; i < rank; i++) where[i] = map[where[i]];
    *out = tt_emit_broadcast_in_dim(&rw->build, inner->operands[0], to->rank, to->dims, where);
    return true;
  }
  return splat(rw, node, out);
}

// Only the same list twice cancels; lists in another order are rare enough to stay.
static bool reverse(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  uint32_t n, m;
  const int64_t *dims = tt_node_ints(node, TT_ATTR_DIMENSIONS, &n);
  const tt_type_t *x = tt__rewrite_type(rw, node->operands[0]);
  bool still = true;
  for (uint32_t i = 0; i < n; i++) still = still && x->dims[dims[i]] <= 1;
  if (still) return tt__rewrite_keep(out, node->operands[0]);
  const tt_node_t *inner = tt__rewrite_is(rw, node->operands[0], TT_OP_REVERSE);
  if (!inner) return splat(rw, node, out);
  const int64_t *first = tt_node_ints(inner, TT_ATTR_DIMENSIONS, &m);
  if (n != m || memcmp(dims, first, n * sizeof *dims) != 0) return false;
  return tt__rewrite_keep(out, inner->operands[0]);
}

// slice(concatenate(a, b, ...)) that reads one operand only.
static bool slice_of_concat(tt__rewrite_t *rw, const tt_node_t *node, const tt_node_t *concat,
                            tt_value_t *out) {
  int64_t d = tt_node_int(concat, TT_ATTR_DIMENSION, 0), offset = 0;
  const int64_t *starts = tt__rewrite_ints(node, TT_ATTR_START_INDICES);
  const int64_t *limits = tt__rewrite_ints(node, TT_ATTR_LIMIT_INDICES);
  uint32_t rank = tt__rewrite_type(rw, node->first_result)->rank;
  int64_t new_starts[TT_MAX_RANK], new_limits[TT_MAX_RANK];
  for (uint32_t k = 0; k < concat->operand_count; k++) {
    int64_t size = tt__rewrite_type(rw, concat->operands[k])->dims[d];
    if (starts[d] >= offset && limits[d] <= offset + size) {
      memcpy(new_starts, starts, rank * sizeof *starts);
      memcpy(new_limits, limits, rank * sizeof *limits);
      new_starts[d] -= offset;
      new_limits[d] -= offset;
      *out = tt_emit_slice(&rw->build, concat->operands[k], new_starts, new_limits,
                           tt__rewrite_ints(node, TT_ATTR_STRIDES));
      return true;
    }
    offset += size;
  }
  return false;
}

// start, limit and stride of the composition; infer_slice's constraints hold for it as they did for
// both.
static bool slice_of_slice(tt__rewrite_t *rw, const tt_node_t *node, const tt_node_t *inner,
                           tt_value_t *out) {
  const int64_t *s0 = tt__rewrite_ints(inner, TT_ATTR_START_INDICES),
                *t0 = tt__rewrite_ints(inner, TT_ATTR_STRIDES);
  const int64_t *s1 = tt__rewrite_ints(node, TT_ATTR_START_INDICES),
                *t1 = tt__rewrite_ints(node, TT_ATTR_STRIDES);
  const tt_type_t *to = tt__rewrite_type(rw, node->first_result);
  const tt_type_t *source = tt__rewrite_type(rw, inner->operands[0]);
  int64_t starts[TT_MAX_RANK], limits[TT_MAX_RANK], strides[TT_MAX_RANK];
  for (uint32_t i = 0; i < to->rank; i++) {
    int64_t step = tt__at(t0, i, 1);
    // A stride past the end reads one element; clamping it keeps the arithmetic small.
    if (__builtin_mul_overflow(step, tt__at(t1, i, 1), &strides[i])) return false;
    starts[i] = s0[i] + s1[i] * step;
    if (to->dims[i] == 0 || to->dims[i] == 1) strides[i] = 1;
    limits[i] = to->dims[i] ? starts[i] + (to->dims[i] - 1) * strides[i] + 1 : starts[i];
    if (starts[i] > source->dims[i]) starts[i] = limits[i] = source->dims[i];  // an empty slice
  }
  *out = tt_emit_slice(&rw->build, inner->operands[0], starts, limits, strides);
  return true;
}

// slice(pad(x)) that reads x and nothing else.
static bool slice_of_pad(tt__rewrite_t *rw, const tt_node_t *node, const tt_node_t *pad,
                         tt_value_t *out) {
  const tt_type_t *x = tt__rewrite_type(rw, pad->operands[0]);
  const int64_t *low = tt__rewrite_ints(pad, TT_ATTR_EDGE_PADDING_LOW);
  const int64_t *interior = tt__rewrite_ints(pad, TT_ATTR_INTERIOR_PADDING);
  const int64_t *starts = tt__rewrite_ints(node, TT_ATTR_START_INDICES);
  const int64_t *limits = tt__rewrite_ints(node, TT_ATTR_LIMIT_INDICES);
  const int64_t *strides = tt__rewrite_ints(node, TT_ATTR_STRIDES);
  int64_t new_starts[TT_MAX_RANK], new_limits[TT_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    if (tt__at(interior, i, 0) != 0) return false;
    new_starts[i] = starts[i] - low[i];
    new_limits[i] = limits[i] - low[i];
    if (new_starts[i] < 0 || new_limits[i] > x->dims[i]) return false;
  }
  *out = tt_emit_slice(&rw->build, pad->operands[0], new_starts, new_limits, strides);
  return true;
}

static bool slice(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_value_t x = node->operands[0];
  if (tt_type_same_shape(tt__rewrite_type(rw, x), tt__rewrite_type(rw, node->first_result))) {
    return tt__rewrite_keep(out, x);
  }
  const tt_node_t *inner = tt__rewrite_def(rw, x);
  if (!inner) return false;
  if (inner->op == TT_OP_CONCATENATE) return slice_of_concat(rw, node, inner, out);
  if (inner->op == TT_OP_SLICE) return slice_of_slice(rw, node, inner, out);
  if (inner->op == TT_OP_PAD) return slice_of_pad(rw, node, inner, out);
  return splat(rw, node, out);
}

static bool pad(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_type_t *x = tt__rewrite_type(rw, node->operands[0]);
  const int64_t *low = tt__rewrite_ints(node, TT_ATTR_EDGE_PADDING_LOW);
  const int64_t *high = tt__rewrite_ints(node, TT_ATTR_EDGE_PADDING_HIGH);
  const int64_t *interior = tt__rewrite_ints(node, TT_ATTR_INTERIOR_PADDING);
  for (uint32_t i = 0; i < x->rank; i++) {
    if (low[i] != 0 || high[i] != 0 || (tt__at(interior, i, 0) != 0 && x->dims[i] > 1))
      return false;
  }
  return tt__rewrite_keep(out, node->operands[0]);
}

// Slices of one tensor, end to end along d and whole elsewhere: x itself where they cover it.
static bool rejoined(tt__rewrite_t *rw, const tt_node_t *node, int64_t d, tt_value_t *out) {
  const tt_node_t *first = tt__rewrite_is(rw, node->operands[0], TT_OP_SLICE);
  if (!first) return false;
  const tt_type_t *x = tt__rewrite_type(rw, first->operands[0]);
  if (!tt_type_same_shape(x, tt__rewrite_type(rw, node->first_result))) return false;
  int64_t at = 0;
  for (uint32_t k = 0; k < node->operand_count; k++) {
    const tt_node_t *s = tt__rewrite_is(rw, node->operands[k], TT_OP_SLICE);
    if (!s || s->operands[0] != first->operands[0]) return false;
    const int64_t *strides = tt__rewrite_ints(s, TT_ATTR_STRIDES);
    if (tt__rewrite_ints(s, TT_ATTR_START_INDICES)[d] != at ||
        tt__at(strides, (uint32_t)d, 1) != 1) {
      return false;
    }
    at = tt__rewrite_ints(s, TT_ATTR_LIMIT_INDICES)[d];
    // Equal sizes in the other dimensions mean whole dimensions, read in steps of 1.
  }
  return tt__rewrite_keep(out, first->operands[0]);
}

// Empty operands add nothing; one that is left stands alone.
static bool concatenate(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  int64_t d = tt_node_int(node, TT_ATTR_DIMENSION, 0);
  uint32_t full = 0;
  tt_value_t last = node->operands[0];
  if (node->operand_count == 1) return tt__rewrite_keep(out, last);
  for (uint32_t k = 0; k < node->operand_count; k++) {
    if (tt__rewrite_type(rw, node->operands[k])->dims[d] == 0) continue;
    full++;
    last = node->operands[k];
  }
  if (full <= 1) return tt__rewrite_keep(out, last);
  if (full == node->operand_count) return rejoined(rw, node, d, out);
  tt_value_t *kept = TT_ARENA_ARRAY(&rw->graph->arena, tt_value_t, full);
  if (!kept) return false;
  full = 0;
  for (uint32_t k = 0; k < node->operand_count; k++) {
    if (tt__rewrite_type(rw, node->operands[k])->dims[d] != 0) kept[full++] = node->operands[k];
  }
  *out = tt_emit_concat(&rw->build, kept, full, d);
  return true;
}

// Constant start indices, which are clamped so that the slice fits.
static bool dynamic_slice(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_type_t *x = tt__rewrite_type(rw, node->operands[0]);
  const int64_t *sizes = tt__rewrite_ints(node, TT_ATTR_SLICE_SIZES);
  int64_t starts[TT_MAX_RANK], limits[TT_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    const void *bytes = tt__rewrite_splat(rw, node->operands[1 + i]);
    tt_dtype_t dtype = tt__rewrite_type(rw, node->operands[1 + i])->dtype;
    size_t size = tt_dtype_size(dtype);
    uint64_t bits = 0;
    if (sizes[i] == x->dims[i]) {  // whatever the start, it is clamped to 0
      starts[i] = 0;
      limits[i] = sizes[i];
      continue;
    }
    if (!bytes) return false;
    memcpy(&bits, bytes, size);
    int64_t start = (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size);
    if (tt_dtype_is_unsigned(dtype)) start = bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    int64_t most = x->dims[i] - sizes[i];
    starts[i] = start < 0 ? 0 : start > most ? most : start;
    limits[i] = starts[i] + sizes[i];
  }
  *out = tt_emit_slice(&rw->build, node->operands[0], starts, limits, NULL);
  return true;
}

bool tt__simplify_movement(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  switch ((tt_op_t)node->op) {
    case TT_OP_RESHAPE:
      return reshape(rw, node, out);
    case TT_OP_TRANSPOSE:
      return transpose(rw, node, out);
    case TT_OP_BROADCAST_IN_DIM:
      return broadcast(rw, node, out);
    case TT_OP_REVERSE:
      return reverse(rw, node, out);
    case TT_OP_SLICE:
      return slice(rw, node, out);
    case TT_OP_PAD:
      return pad(rw, node, out);
    case TT_OP_CONCATENATE:
      return concatenate(rw, node, out);
    case TT_OP_DYNAMIC_SLICE:
      return dynamic_slice(rw, node, out);
    default:
      return false;
  }
}
