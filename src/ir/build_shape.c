// Emitters of constants and of ops that move data.
#include <string.h>

#include "ir/build.h"
#include "ir/internal.h"

// One element's bytes make a splat; an attribute's size has 32 bits.
static tt_value_t constant(tt_build_t *b, tt_type_t type, const void *bytes, size_t size) {
  if (size > UINT32_MAX) {
    tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT, "constant: %zu bytes of data", size));
    return TT_NO_VALUE;
  }
  const tt_attr_t attr = tt_attr_bytes(TT_ATTR_VALUE, bytes, (uint32_t)size);
  tt_node_spec_t spec = {
      .op = TT_OP_CONSTANT, .attrs = &attr, .attr_count = 1, .types = &type, .type_count = 1};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_splat(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                         double value) {
  char bytes[16];
  tt__element_double(dtype, value, bytes);
  return constant(b, (tt_type_t){dtype, rank, dims}, bytes, tt_dtype_size(dtype));
}

tt_value_t tt_emit_splat_int(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                             int64_t value) {
  char bytes[16];
  tt__element_int(dtype, value, bytes);
  return constant(b, (tt_type_t){dtype, rank, dims}, bytes, tt_dtype_size(dtype));
}

tt_value_t tt_emit_scalar(tt_build_t *b, tt_dtype_t dtype, double value) {
  return tt_emit_splat(b, dtype, 0, NULL, value);
}

tt_value_t tt_emit_splat_like(tt_build_t *b, tt_value_t like, double value) {
  const tt_type_t *t = tt_build_type(b, like);
  return tt_emit_splat(b, t->dtype, t->rank, t->dims, value);
}

tt_value_t tt_emit_constant(tt_build_t *b, tt_type_t type, const void *data) {
  return constant(b, type, data, tt_type_bytes(&type));
}

static tt_value_t extreme(tt_build_t *b, tt_dtype_t dtype, bool highest) {
  char bytes[16];
  if (!tt__element_extreme(dtype, highest, bytes)) {
    tt_build_fail(b, TT_ERROR(TYPE, "%s numbers have no order", tt_dtype_text(dtype)));
    return TT_NO_VALUE;
  }
  return constant(b, (tt_type_t){dtype, 0, NULL}, bytes, tt_dtype_size(dtype));
}

tt_value_t tt_emit_lowest(tt_build_t *b, tt_dtype_t dtype) { return extreme(b, dtype, false); }
tt_value_t tt_emit_highest(tt_build_t *b, tt_dtype_t dtype) { return extreme(b, dtype, true); }

tt_value_t tt_emit_iota(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims,
                        int64_t dimension) {
  const tt_attr_t attr = tt_attr_int(TT_ATTR_IOTA_DIMENSION, dimension);
  const tt_type_t type = {dtype, rank, dims};
  tt_node_spec_t spec = {
      .op = TT_OP_IOTA, .attrs = &attr, .attr_count = 1, .types = &type, .type_count = 1};
  return tt_emit(b, &spec);
}

static tt_value_t one_operand(tt_build_t *b, tt_op_t op, tt_value_t x, const tt_attr_t *attrs,
                              uint32_t attr_count, const tt_type_t *type) {
  tt_node_spec_t spec = {.op = op,
                         .operands = &x,
                         .operand_count = 1,
                         .attrs = attrs,
                         .attr_count = attr_count,
                         .types = type,
                         .type_count = type ? 1 : 0};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_reshape(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *dims) {
  const tt_type_t *t = tt_build_type(b, x), to = {t->dtype, rank, dims};
  if (b->status || tt_type_same_shape(t, &to)) return x;
  return one_operand(b, TT_OP_RESHAPE, x, NULL, 0, &to);
}

tt_value_t tt_emit_transpose(tt_build_t *b, tt_value_t x, const int64_t *permutation) {
  uint32_t rank = tt_build_type(b, x)->rank, i = 0;
  while (i < rank && permutation[i] == i) i++;
  if (b->status || i == rank) return x;
  const tt_attr_t attr = tt_attr_ints(TT_ATTR_PERMUTATION, permutation, rank);
  return one_operand(b, TT_OP_TRANSPOSE, x, &attr, 1, NULL);
}

tt_value_t tt_emit_broadcast_in_dim(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *dims,
                                    const int64_t *broadcast_dimensions) {
  const tt_type_t *t = tt_build_type(b, x), to = {t->dtype, rank, dims};
  if (b->status) return x;
  if (tt_type_same_shape(t, &to)) {
    uint32_t i = 0;
    while (i < rank && broadcast_dimensions[i] == i) i++;
    if (i == rank) return x;
  }
  const tt_attr_t attr = tt_attr_ints(TT_ATTR_BROADCAST_DIMENSIONS, broadcast_dimensions, t->rank);
  return one_operand(b, TT_OP_BROADCAST_IN_DIM, x, &attr, 1, &to);
}

tt_value_t tt_emit_broadcast_to(tt_build_t *b, tt_value_t x, uint32_t rank, const int64_t *dims) {
  uint32_t from = tt_build_type(b, x)->rank;
  int64_t map[TT_MAX_RANK];
  if (b->status) return x;
  if (from > rank || rank > TT_MAX_RANK) {
    tt_build_fail(
        b, TT_ERROR(INVALID_ARGUMENT, "cannot expand a tensor of rank %u to rank %u", from, rank));
    return TT_NO_VALUE;
  }
  for (uint32_t i = 0; i < from; i++) map[i] = i + rank - from;
  return tt_emit_broadcast_in_dim(b, x, rank, dims, map);
}

tt_value_t tt_emit_slice(tt_build_t *b, tt_value_t x, const int64_t *starts, const int64_t *limits,
                         const int64_t *strides) {
  const tt_type_t *t = tt_build_type(b, x);
  if (b->status) return x;
  bool whole = true;
  for (uint32_t i = 0; i < t->rank; i++) {
    whole = whole && starts[i] == 0 && limits[i] == t->dims[i] && tt__at(strides, i, 1) == 1;
  }
  if (whole) return x;
  const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_START_INDICES, starts, t->rank),
                             tt_attr_ints(TT_ATTR_LIMIT_INDICES, limits, t->rank),
                             tt_attr_ints(TT_ATTR_STRIDES, strides, t->rank)};
  return one_operand(b, TT_OP_SLICE, x, attrs, strides ? 3 : 2, NULL);
}

// All other dimensions stay whole.
tt_value_t tt_emit_slice_dim(tt_build_t *b, tt_value_t x, int64_t dim, int64_t start, int64_t limit,
                             int64_t step) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t starts[TT_MAX_RANK] = {0}, limits[TT_MAX_RANK], strides[TT_MAX_RANK];
  if (b->status) return x;
  for (uint32_t i = 0; i < t->rank; i++) {
    limits[i] = t->dims[i];
    strides[i] = 1;
  }
  starts[dim] = start;
  limits[dim] = limit;
  strides[dim] = step;
  return tt_emit_slice(b, x, starts, limits, step == 1 ? NULL : strides);
}

static bool all_zero(const int64_t *list, uint32_t count) {
  for (uint32_t i = 0; list && i < count; i++) {
    if (list[i] != 0) return false;
  }
  return true;
}

// Padding by nothing is x.
tt_value_t tt_emit_pad(tt_build_t *b, tt_value_t x, tt_value_t value, const int64_t *low,
                       const int64_t *high, const int64_t *interior) {
  uint32_t rank = tt_build_type(b, x)->rank;
  if (b->status) return x;
  if (all_zero(low, rank) && all_zero(high, rank) && all_zero(interior, rank)) return x;
  const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_EDGE_PADDING_LOW, low, rank),
                             tt_attr_ints(TT_ATTR_EDGE_PADDING_HIGH, high, rank),
                             tt_attr_ints(TT_ATTR_INTERIOR_PADDING, interior, rank)};
  const tt_value_t operands[] = {x, value};
  tt_node_spec_t spec = {.op = TT_OP_PAD,
                         .operands = operands,
                         .operand_count = 2,
                         .attrs = attrs,
                         .attr_count = interior ? 3 : 2};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_concat(tt_build_t *b, const tt_value_t *xs, uint32_t count, int64_t dimension) {
  if (count == 1) return xs[0];
  const tt_attr_t attr = tt_attr_int(TT_ATTR_DIMENSION, dimension);
  tt_node_spec_t spec = {.op = TT_OP_CONCATENATE,
                         .operands = xs,
                         .operand_count = count,
                         .attrs = &attr,
                         .attr_count = 1};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_reverse(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count) {
  if (count == 0) return x;
  const tt_attr_t attr = tt_attr_ints(TT_ATTR_DIMENSIONS, dims, count);
  return one_operand(b, TT_OP_REVERSE, x, &attr, 1, NULL);
}

tt_value_t tt_emit_dynamic_slice(tt_build_t *b, tt_value_t x, const tt_value_t *starts,
                                 const int64_t *sizes) {
  const tt_type_t *t = tt_build_type(b, x), to = {t->dtype, t->rank, sizes};
  tt_value_t operands[1 + TT_MAX_RANK];
  // Starts are clamped so that the slice fits: all of x is x.
  if (b->status || tt_type_same_shape(t, &to)) return x;
  operands[0] = x;
  memcpy(operands + 1, starts, t->rank * sizeof *starts);
  const tt_attr_t attr = tt_attr_ints(TT_ATTR_SLICE_SIZES, sizes, t->rank);
  tt_node_spec_t spec = {.op = TT_OP_DYNAMIC_SLICE,
                         .operands = operands,
                         .operand_count = 1 + t->rank,
                         .attrs = &attr,
                         .attr_count = 1};
  return tt_emit(b, &spec);
}

// An update of all of x is the result, whatever the starts: they are clamped to 0.
tt_value_t tt_emit_dynamic_update_slice(tt_build_t *b, tt_value_t x, tt_value_t update,
                                        const tt_value_t *starts) {
  const tt_type_t *t = tt_build_type(b, x);
  tt_value_t operands[2 + TT_MAX_RANK];
  if (b->status || tt_type_equal(t, tt_build_type(b, update))) return update;
  operands[0] = x;
  operands[1] = update;
  memcpy(operands + 2, starts, t->rank * sizeof *starts);
  tt_node_spec_t spec = {
      .op = TT_OP_DYNAMIC_UPDATE_SLICE, .operands = operands, .operand_count = 2 + t->rank};
  return tt_emit(b, &spec);
}
