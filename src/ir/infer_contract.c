// Rules of dot products, convolutions and reductions.
#include <string.h>

#include "ir/internal.h"

// A typed result: derived dims, the maker's element type (products may accumulate into a wider
// one).
static tt_status_t typed_result(tt__infer_t *c, const char *id, tt_dtype_t dtype, uint32_t rank,
                                const int64_t *dims) {
  tt_type_t derived = {c->given ? c->given[0].dtype : dtype, rank, dims};
  TT__REQUIRE(c, c->given_count <= 1, NULL, "one result type is needed");
  if (c->given && !tt_type_same_shape(&derived, &c->given[0])) {
    char is[160], asked[160];
    tt_type_format(&derived, is, sizeof is);
    tt_type_format(&c->given[0], asked, sizeof asked);
    return tt__infer_fail(c, id, "the result is %s, not %s", is, asked);
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  return tt__infer_dims(c, 0, derived.dtype, rank, dims);
}

// One precision an operand, or none.
static tt_status_t check_precision(const tt__infer_t *c, const char *id) {
  uint32_t n;
  const int64_t *p = tt_node_ints(c->node, TT_ATTR_PRECISION_CONFIG, &n);
  TT__REQUIRE(c, !p || n == 2 || n == 0, id, "precision_config has %u elements, not 2", n);
  return TT_OK_STATUS;
}

// Dimensions as bits; they have been checked to be within a rank of at most 64.
static uint64_t dim_set(const int64_t *list, uint32_t count) {
  uint64_t set = 0;
  for (uint32_t i = 0; i < count; i++) set |= UINT64_C(1) << list[i];
  return set;
}

// Batch, free dimensions of lhs, free dimensions of rhs; the maker chooses the element type. c1 and
// c2: as many numbers on both sides; c3, c4: none in both roles; c5 to c8: unique and in range; c9,
// c10: paired dimensions agree in size; c12: the shape of the result.
tt_status_t tt__infer_dot_general(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0), *y = tt__operand(c, 1);
  uint32_t nb, nb2, nc, nc2;
  const int64_t *xb = tt_node_ints(c->node, TT_ATTR_LHS_BATCHING_DIMENSIONS, &nb);
  const int64_t *yb = tt_node_ints(c->node, TT_ATTR_RHS_BATCHING_DIMENSIONS, &nb2);
  const int64_t *xc = tt_node_ints(c->node, TT_ATTR_LHS_CONTRACTING_DIMENSIONS, &nc);
  const int64_t *yc = tt_node_ints(c->node, TT_ATTR_RHS_CONTRACTING_DIMENSIONS, &nc2);
  TT__REQUIRE(c, nb == nb2, "c1", "%u and %u batching dimensions", nb, nb2);
  TT__REQUIRE(c, nc == nc2, "c2", "%u and %u contracting dimensions", nc, nc2);
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c5", xb, nb, x->rank));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c6", xc, nc, x->rank));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c7", yb, nb, y->rank));
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c8", yc, nc, y->rank));
  uint64_t xs = dim_set(xb, nb), ys = dim_set(yb, nb);
  TT__REQUIRE(c, !(xs & dim_set(xc, nc)), "c3", "a dimension of lhs is batching and contracting");
  TT__REQUIRE(c, !(ys & dim_set(yc, nc)), "c4", "a dimension of rhs is batching and contracting");
  xs |= dim_set(xc, nc);
  ys |= dim_set(yc, nc);
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < nb; i++) {
    TT__REQUIRE(c, x->dims[xb[i]] == y->dims[yb[i]], "c9", "batching dimensions differ in size");
    dims[rank++] = x->dims[xb[i]];
  }
  for (uint32_t i = 0; i < nc; i++) {
    TT__REQUIRE(c, x->dims[xc[i]] == y->dims[yc[i]], "c10",
                "contracting dimensions differ in size: %lld and %lld", (long long)x->dims[xc[i]],
                (long long)y->dims[yc[i]]);
  }
  TT__REQUIRE(c, x->rank + y->rank - nb - 2 * nc <= TT_MAX_RANK, NULL, "the rank is too large");
  for (uint32_t i = 0; i < x->rank; i++) {
    if (!(xs >> i & 1)) dims[rank++] = x->dims[i];
  }
  for (uint32_t i = 0; i < y->rank; i++) {
    if (!(ys >> i & 1)) dims[rank++] = y->dims[i];
  }
  TT_RETURN_IF_ERROR(check_precision(c, "c11"));
  return typed_result(c, "c12", x->dtype, rank, dims);
}

// Where batch, feature and space are in one of a convolution's tensors.
typedef struct layout_s {
  int64_t batch, feature;
  const int64_t *spatial;
} layout_t;

// The three together must be a permutation of all dimensions (c13, c18, c20). For the kernel,
// "batch" is its output feature dimension.
static tt_status_t read_layout(const tt__infer_t *c, const char *id, tt_attr_key_t batch,
                               tt_attr_key_t feature, tt_attr_key_t spatial, uint32_t rank,
                               layout_t *out) {
  int64_t all[TT_MAX_RANK];
  out->batch = tt_node_int(c->node, batch, -1);
  out->feature = tt_node_int(c->node, feature, -1);
  TT_RETURN_IF_ERROR(tt__infer_list(c, spatial, rank - 2, &out->spatial));
  all[0] = out->batch;
  all[1] = out->feature;
  for (uint32_t i = 2; i < rank; i++) all[i] = out->spatial[i - 2];
  return tt__infer_dimensions(c, id, all, rank, rank);
}

// Window arithmetic a spatial dimension; the three layouts are independent of each other. c10, c11,
// c16: groups divide batch and features; c14: the kernel sees one group's features; c21 to c23:
// group counts; c25: the shape of the result.
tt_status_t tt__infer_convolution(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 0), *k = tt__operand(c, 1);
  TT__REQUIRE(c, x->rank == k->rank && x->rank >= 2, "c1", "ranks differ or are less than 2");
  uint32_t rank = x->rank, n = rank - 2;
  const int64_t *strides, *padding, *lhs_dilation, *rhs_dilation, *reversal;
  layout_t in, kernel, out;
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_WINDOW_STRIDES, n, &strides));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_PADDING, 2 * n, &padding));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_LHS_DILATION, n, &lhs_dilation));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_RHS_DILATION, n, &rhs_dilation));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_WINDOW_REVERSAL, n, &reversal));
  TT_RETURN_IF_ERROR(read_layout(c, "c13", TT_ATTR_INPUT_BATCH_DIMENSION,
                                 TT_ATTR_INPUT_FEATURE_DIMENSION, TT_ATTR_INPUT_SPATIAL_DIMENSIONS,
                                 rank, &in));
  TT_RETURN_IF_ERROR(read_layout(c, "c18", TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
                                 TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION,
                                 TT_ATTR_KERNEL_SPATIAL_DIMENSIONS, rank, &kernel));
  TT_RETURN_IF_ERROR(read_layout(c, "c20", TT_ATTR_OUTPUT_BATCH_DIMENSION,
                                 TT_ATTR_OUTPUT_FEATURE_DIMENSION,
                                 TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS, rank, &out));
  int64_t fg = tt_node_int(c->node, TT_ATTR_FEATURE_GROUP_COUNT, 1);
  int64_t bg = tt_node_int(c->node, TT_ATTR_BATCH_GROUP_COUNT, 1);
  TT__REQUIRE(c, fg > 0, "c21", "feature_group_count is %lld", (long long)fg);
  TT__REQUIRE(c, bg > 0, "c22", "batch_group_count is %lld", (long long)bg);
  TT__REQUIRE(c, fg == 1 || bg == 1, "c23", "both group counts are above 1");
  int64_t batch = x->dims[in.batch], features = x->dims[in.feature];
  int64_t outputs = k->dims[kernel.batch], inputs = k->dims[kernel.feature];
  TT__REQUIRE(c, batch % bg == 0, "c10", "batch %lld is not divisible by batch_group_count",
              (long long)batch);
  TT__REQUIRE(c, features % fg == 0, "c11",
              "%lld features are not divisible by "
              "feature_group_count",
              (long long)features);
  TT__REQUIRE(c, inputs == features / fg, "c14", "the kernel has %lld input features, not %lld",
              (long long)inputs, (long long)(features / fg));
  TT__REQUIRE(c, outputs % bg == 0 && outputs % fg == 0, "c16",
              "%lld output features are not divisible by the group count", (long long)outputs);
  int64_t dims[TT_MAX_RANK];
  dims[out.batch] = batch / bg;
  dims[out.feature] = outputs;
  for (uint32_t i = 0; i < n; i++) {
    int64_t window = k->dims[kernel.spatial[i]];
    TT__REQUIRE(c, window >= 0, NULL, "negative window");
    // A window without elements fits everywhere; XLA counts it as one position a step.
    int64_t size =
        tt__window_output(x->dims[in.spatial[i]], window ? window : 1, tt__at(strides, i, 1),
                          tt__at(padding, 2 * i, 0), tt__at(padding, 2 * i + 1, 0),
                          tt__at(lhs_dilation, i, 1), tt__at(rhs_dilation, i, 1));
    TT__REQUIRE(c, size >= 0, "c3", "strides, padding or dilation of spatial dimension %u", i);
    dims[out.spatial[i]] = size;
  }
  TT_RETURN_IF_ERROR(check_precision(c, "c24"));
  return typed_result(c, "c25", x->dtype, rank, dims);
}

// Reductions: operands are N inputs and N initial scalars; the body maps 2N scalars to N. c1:
// inputs agree in shape, c2: initial values in element type.
static tt_status_t check_reduction(tt__infer_t *c, const char *region_id) {
  uint32_t operands = c->node->operand_count, n = operands / 2;
  TT__REQUIRE(c, operands >= 2 && operands % 2 == 0, NULL,
              "%u operands are not pairs of inputs and initial values", operands);
  tt_dtype_t *dtypes = TT_ARENA_ARRAY(c->arena, tt_dtype_t, 2 * n);
  if (!dtypes) return tt__no_memory();
  for (uint32_t i = 0; i < n; i++) {
    const tt_type_t *x = tt__operand(c, i), *init = tt__operand(c, n + i);
    TT__REQUIRE(c, tt_type_same_shape(x, tt__operand(c, 0)), "c1", "inputs differ in shape");
    TT__REQUIRE(c, init->rank == 0 && init->dtype == x->dtype, "c2",
                "initial value %u is no scalar of its input's element type", i);
    dtypes[i] = dtypes[n + i] = x->dtype;
  }
  TT_RETURN_IF_ERROR(tt__infer_scalar_region(c, 0, region_id, dtypes, 2 * n, dtypes, n));
  return tt__infer_results(c, n);
}

// N results of one shape, sharing its dims; the inputs' element types.
static tt_status_t reduced_results(tt__infer_t *c, uint32_t rank, const int64_t *dims) {
  TT_RETURN_IF_ERROR(tt__infer_dims(c, 0, tt__operand(c, 0)->dtype, rank, dims));
  for (uint32_t i = 1; i < c->count; i++) {
    tt__infer_like(c, i, tt__operand(c, i)->dtype, &c->types[0]);
  }
  return TT_OK_STATUS;
}

// Reduced dimensions vanish. c4: they are unique and in range; c6: the body's signature.
tt_status_t tt__infer_reduce(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_reduction(c, "c6"));
  const tt_type_t *x = tt__operand(c, 0);
  uint32_t count, rank = 0;
  const int64_t *list = tt_node_ints(c->node, TT_ATTR_DIMENSIONS, &count);
  TT_RETURN_IF_ERROR(tt__infer_dimensions(c, "c4", list, count, x->rank));
  uint64_t reduced = dim_set(list, count);
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    if (!(reduced >> i & 1)) dims[rank++] = x->dims[i];
  }
  return reduced_results(c, rank, dims);
}

// One result element a window position. c5 and its neighbours: sizes, strides and dilations are
// positive; c13: the body's signature.
tt_status_t tt__infer_reduce_window(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_reduction(c, "c13"));
  const tt_type_t *x = tt__operand(c, 0);
  const int64_t *sizes, *strides, *base, *window, *padding;
  TT_RETURN_IF_ERROR(tt__infer_list(c, TT_ATTR_WINDOW_DIMENSIONS, x->rank, &sizes));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_WINDOW_STRIDES, x->rank, &strides));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_BASE_DILATIONS, x->rank, &base));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_WINDOW_DILATIONS, x->rank, &window));
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_PADDING, 2 * x->rank, &padding));
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    dims[i] =
        tt__window_output(x->dims[i], sizes[i], tt__at(strides, i, 1), tt__at(padding, 2 * i, 0),
                          tt__at(padding, 2 * i + 1, 0), tt__at(base, i, 1), tt__at(window, i, 1));
    TT__REQUIRE(c, dims[i] >= 0, "c5", "window, stride or dilation of dimension %u", i);
  }
  return reduced_results(c, x->rank, dims);
}

// The region computes one element; the result's element type is what it returns.
tt_status_t tt__infer_map(tt__infer_t *c) {
  uint32_t n = c->node->operand_count;
  TT__REQUIRE(c, n >= 1, NULL, "there is no operand");
  const tt_type_t *x = tt__operand(c, 0);
  const int64_t *dims;
  TT_RETURN_IF_ERROR(tt__infer_optional(c, TT_ATTR_DIMENSIONS, x->rank, &dims));
  for (uint32_t i = 0; dims && i < x->rank; i++) {
    TT__REQUIRE(c, dims[i] == i, "c3", "dimensions are not 0, 1, ... in order");
  }
  tt_dtype_t *args = TT_ARENA_ARRAY(c->arena, tt_dtype_t, n);
  if (!args) return tt__no_memory();
  for (uint32_t i = 0; i < n; i++) {
    TT__REQUIRE(c, tt_type_same_shape(tt__operand(c, i), x), "c1", "operands differ in shape");
    args[i] = tt__operand(c, i)->dtype;
  }
  const tt_block_t *body = c->node->regions[0];
  TT__REQUIRE(c, body->return_count == 1, "c4", "the region returns %u values", body->return_count);
  tt_dtype_t result = tt_graph_type(c->graph, body->returns[0])->dtype;
  TT_RETURN_IF_ERROR(tt__infer_scalar_region(c, 0, "c4", args, n, &result, 1));
  TT__REQUIRE(c, !c->given || c->given[0].dtype == result, "c4", "the result is of type %s",
              tt_dtype_text(result));
  return typed_result(c, "c1", result, x->rank, x->dims);
}
