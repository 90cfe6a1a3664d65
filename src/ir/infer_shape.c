// Rules of the ops that make, move and reshape data without looking at it.
#include <string.h>

#include "ir/internal.h"

// One element's bytes stand for a splat of any shape, empty ones included.
tt_status_t tt__infer_constant(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  TT_RETURN_IF_ERROR(tt__infer_given(c));
  const tt_attr_t *value = tt_node_attr(c->node, TT_ATTR_VALUE);
  TT__REQUIRE(c, value, NULL, "value is missing");
  size_t one = tt_dtype_size(c->types[0].dtype);
  TT__REQUIRE(c, value->count == one || value->count == tt_type_bytes(&c->types[0]), "c1",
              "value has %u bytes, the type %zu", value->count, tt_type_bytes(&c->types[0]));
  return TT_OK_STATUS;
}

// Counts along iota_dimension; there is no iota of truth values.
tt_status_t tt__infer_iota(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  int64_t d = tt_node_int(c->node, TT_ATTR_IOTA_DIMENSION, -1);
  TT__REQUIRE(c, d >= 0 && d < (int64_t)c->given[0].rank, "c1",
              "iota_dimension %lld is outside the result's rank %u", (long long)d,
              c->given[0].rank);
  TT__REQUIRE(c, c->given[0].dtype != TT_I1, NULL, "element type i1 is not supported");
  return tt__infer_given(c);
}

// Dimension i of the operand becomes broadcast_dimensions[i]; size 1 stretches.
tt_status_t tt__infer_broadcast_in_dim(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  const tt_type_t *x = tt__operand(c, 0), *to = &c->given[0];
  const int64_t *map;
  TT__REQUIRE(c, x->dtype == to->dtype, "c1", "the element type changes to %s",
              tt_dtype_text(to->dtype));
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_BROADCAST_DIMENSIONS, x->rank, &map));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c3", map, x->rank, to->rank));
  for (uint32_t i = 0; i < x->rank; i++) {
    TT__REQUIRE(c, x->dims[i] == 1 || x->dims[i] == to->dims[map[i]], "c5",
                "dimension %u of size %lld cannot become %lld", i, (long long)x->dims[i],
                (long long)to->dims[map[i]]);
  }
  return tt__infer_given(c);
}

// Any shape with as many elements, in row-major order.
tt_status_t tt__infer_reshape(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  const tt_type_t *x = tt__operand(c, 0);
  TT__REQUIRE(c, x->dtype == c->given[0].dtype, "c1", "the element type changes to %s",
              tt_dtype_text(c->given[0].dtype));
  TT_RETURN_IF_ERROR(tt__infer_given(c));
  int64_t before = tt_type_elements(x), after = tt_type_elements(&c->types[0]);
  TT__REQUIRE(c, before == after, "c2", "%lld elements cannot become %lld", (long long)before,
              (long long)after);
  return TT_OK_STATUS;
}

// Result dimension i is operand dimension permutation[i].
tt_status_t tt__infer_transpose(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0);
  const int64_t *permutation;
  int64_t dims[TT_MAX_RANK];
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_PERMUTATION, x->rank, &permutation));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c2", permutation, x->rank, x->rank));
  for (uint32_t i = 0; i < x->rank; i++) dims[i] = x->dims[permutation[i]];
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, x->dtype, x->rank, dims);
}

// Shape stays.
tt_status_t tt__infer_reverse(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0);
  uint32_t count;
  const int64_t *dims = tt_node_ints(c->node, TT_ATTR_DIMENSIONS, &count);
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c2", dims, count, x->rank));
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, x->dtype, x);
  return TT_OK_STATUS;
}

// [start, limit) by stride, rounded up: a stride beyond the limit still reads its start.
tt_status_t tt__infer_slice(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0);
  const int64_t *starts, *limits, *strides;
  int64_t dims[TT_MAX_RANK];
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_START_INDICES, x->rank, &starts));
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_LIMIT_INDICES, x->rank, &limits));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_STRIDES, x->rank, &strides));
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t stride = tt__at(strides, i, 1);
    TT__REQUIRE(c, 0 <= starts[i] && starts[i] <= limits[i] && limits[i] <= x->dims[i], "c3",
                "[%lld, %lld) is not within dimension %u of size %lld", (long long)starts[i],
                (long long)limits[i], i, (long long)x->dims[i]);
    TT__REQUIRE(c, stride > 0, "c4", "stride %lld of dimension %u", (long long)stride, i);
    dims[i] = (limits[i] - starts[i]) / stride + ((limits[i] - starts[i]) % stride != 0);
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, x->dtype, x->rank, dims);
}

// Start indices are scalars of one integer type, from operand `first` on.
static tt_status_t check_starts(const tt__infer_t *c, uint32_t first) {
  const tt_type_t *x = tt__operand(c, 0);
  TT__REQUIRE(c, c->node->operand_count == first + x->rank, "c2", "%u start indices for rank %u",
              c->node->operand_count - first, x->rank);
  for (uint32_t i = first; i < c->node->operand_count; i++) {
    const tt_type_t *t = tt__operand(c, i);
    TT__REQUIRE(c, t->rank == 0 && tt_dtype_is_int(t->dtype), NULL,
                "start index %u is no integer scalar", i - first);
    TT__REQUIRE(c, t->dtype == tt__operand(c, first)->dtype, "c3",
                "start indices have different types");
  }
  return TT_OK_STATUS;
}

// Start indices are operands and are clamped at run time, so that any value is fine.
tt_status_t tt__infer_dynamic_slice(tt__infer_t *c) {
  TT__REQUIRE(c, c->node->operand_count >= 1, NULL, "there is no operand");
  const tt_type_t *x = tt__operand(c, 0);
  const int64_t *sizes;
  TT_RETURN_IF_ERROR(check_starts(c, 1));
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_SLICE_SIZES, x->rank, &sizes));
  for (uint32_t i = 0; i < x->rank; i++) {
    TT__REQUIRE(c, sizes[i] >= 0 && sizes[i] <= x->dims[i], "c4",
                "slice size %lld exceeds dimension %u", (long long)sizes[i], i);
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, x->dtype, x->rank, sizes);
}

// Operands are x, update, start indices; the result has x's type.
tt_status_t tt__infer_dynamic_update_slice(tt__infer_t *c) {
  TT__REQUIRE(c, c->node->operand_count >= 2, NULL, "operand and update are missing");
  const tt_type_t *x = tt__operand(c, 0), *update = tt__operand(c, 1);
  TT_RETURN_IF_ERROR(check_starts(c, 2));
  TT__REQUIRE(c, x->dtype == update->dtype, "c2", "element types differ");
  TT__REQUIRE(c, x->rank == update->rank, "c3", "ranks differ");
  for (uint32_t i = 0; i < x->rank; i++) {
    TT__REQUIRE(c, update->dims[i] <= x->dims[i], "c6", "the update exceeds dimension %u", i);
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, x->dtype, x);
  return TT_OK_STATUS;
}

// size + low + high + (size - 1) * interior; negative edges cut.
tt_status_t tt__infer_pad(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0), *value = tt__operand(c, 1);
  const int64_t *low, *high, *interior;
  int64_t dims[TT_MAX_RANK];
  TT__REQUIRE(c, value->rank == 0 && value->dtype == x->dtype, "c1",
              "the padding value is no scalar of the operand's element type");
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_EDGE_PADDING_LOW, x->rank, &low));
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_EDGE_PADDING_HIGH, x->rank, &high));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_INTERIOR_PADDING, x->rank, &interior));
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t inner = tt__at(interior, i, 0), gaps = x->dims[i] > 0 ? x->dims[i] - 1 : 0, size;
    TT__REQUIRE(c, inner >= 0, "c3", "interior padding of dimension %u is negative", i);
    bool overflow = __builtin_mul_overflow(gaps, inner, &size);
    overflow |= __builtin_add_overflow(size, x->dims[i], &size);
    overflow |= __builtin_add_overflow(size, low[i], &size);
    overflow |= __builtin_add_overflow(size, high[i], &size);
    TT__REQUIRE(c, !overflow && size >= 0, "c4", "dimension %u becomes negative or overflows", i);
    dims[i] = size;
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, x->dtype, x->rank, dims);
}

// Sizes along the dimension add up, all others agree.
tt_status_t tt__infer_concatenate(tt__infer_t *c) {
  TT__REQUIRE(c, c->node->operand_count >= 1, "c3", "there is no operand");
  const tt_type_t *x = tt__operand(c, 0);
  int64_t d = tt_node_int(c->node, TT_ATTR_DIMENSION, -1);
  int64_t dims[TT_MAX_RANK];
  TT__REQUIRE(c, d >= 0 && d < (int64_t)x->rank, "c4", "dimension %lld is outside rank %u",
              (long long)d, x->rank);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  for (uint32_t k = 1; k < c->node->operand_count; k++) {
    const tt_type_t *y = tt__operand(c, k);
    TT__REQUIRE(c, y->dtype == x->dtype, "c1", "element types differ");
    TT__REQUIRE(c, y->rank == x->rank, "c2", "ranks differ");
    for (uint32_t i = 0; i < x->rank; i++) {
      TT__REQUIRE(c, i == (uint32_t)d || y->dims[i] == x->dims[i], "c2",
                  "dimension %u of operand %u differs", i, k);
    }
    TT__REQUIRE(c, !__builtin_add_overflow(dims[d], y->dims[d], &dims[d]), "c6",
                "the result's size overflows");
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, x->dtype, x->rank, dims);
}

tt_status_t tt__infer_get_dimension_size(tt__infer_t *c) {
  int64_t d = tt_node_int(c->node, TT_ATTR_DIMENSION, -1);
  TT__REQUIRE(c, d >= 0 && d < (int64_t)tt__operand(c, 0)->rank, "c1",
              "dimension %lld is outside the operand's rank", (long long)d);
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, TT_S32, 0, NULL);
}
