// dot_general and convolution. Both gather their operands into wide matrices and multiply those:
// sums are exact to f64 (or wrap in 64 bits) and round once.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/reference_internal.h"

// sums[n] += sum over k of x[k] * y[k * columns + n], for n < count; each sum in the order of k.
static void multiply_add(tt_wide_t wide, int64_t depth, int64_t columns, int64_t count,
                         const void *x, const void *y, void *sums) {
  for (int64_t k = 0; k < depth; k++) {
    switch (wide) {
      case TT_WIDE_REAL: {
        const double a = ((const double *)x)[k], *b = (const double *)y + k * columns;
        double *r = (double *)sums;
        for (int64_t n = 0; n < count; n++) r[n] += a * b[n];
        break;
      }
      case TT_WIDE_SIGNED:
      case TT_WIDE_UNSIGNED: {
        const uint64_t a = ((const uint64_t *)x)[k], *b = (const uint64_t *)y + k * columns;
        uint64_t *r = (uint64_t *)sums;
        for (int64_t n = 0; n < count; n++) r[n] += a * b[n];
        break;
      }
      case TT_WIDE_COMPLEX: {
        const tt_complex_t a = ((const tt_complex_t *)x)[k];
        const tt_complex_t *b = (const tt_complex_t *)y + k * columns;
        tt_complex_t *r = (tt_complex_t *)sums;
        for (int64_t n = 0; n < count; n++) {
          r[n].re += a.re * b[n].re - a.im * b[n].im;
          r[n].im += a.re * b[n].im + a.im * b[n].re;
        }
        break;
      }
    }
  }
}

// Stores wide sums in the result's type; sums of integers may go to a float type.
static void store_sums(tt_wide_t wide, const void *sums, int64_t count, tt_dtype_t dtype,
                       void *out) {
  static const tt_dtype_t types[] = {[TT_WIDE_REAL] = TT_F64,
                                     [TT_WIDE_SIGNED] = TT_S64,
                                     [TT_WIDE_UNSIGNED] = TT_U64,
                                     [TT_WIDE_COMPLEX] = TT_C128};
  if (tt_element_wide(dtype) == wide) {
    tt_element_store(dtype, sums, count, out);
  } else {
    tt_element_convert(types[wide], sums, count, dtype, out);
  }
}

// The wide kind of a contraction's products: the operands' (they may differ in dtype: then both are
// converted to the result's).
static tt_dtype_t product_dtype(const tt_type_t *x, const tt_type_t *y, const tt_type_t *out) {
  return tt_element_wide(x->dtype) == tt_element_wide(y->dtype) ? TT_DTYPE_NONE : out->dtype;
}

// Copies an operand, in the dimension order `order`, to a dense wide array.
static void *widen(const tt_type_t *type, const void *data, const uint32_t *order,
                   tt_dtype_t convert) {
  int64_t strides[TT__REF_MAX_RANK], dims[TT__REF_MAX_RANK], from[TT__REF_MAX_RANK];
  int64_t to[TT__REF_MAX_RANK];
  size_t count = (size_t)tt_type_elements(type), size = tt_dtype_size(type->dtype);
  tt_dtype_t target = convert == TT_DTYPE_NONE ? type->dtype : convert;
  char *dense = (char *)tt_alloc(size * count + 1);
  char *converted = (char *)tt_alloc(tt_dtype_size(target) * count + 1);
  void *wide = tt_alloc(tt_element_wide_size(tt_element_wide(target)) * count + 1);
  if (dense && converted && wide) {
    tt__ref_strides(type, strides);
    for (uint32_t d = 0; d < type->rank; d++) {
      dims[d] = type->dims[order[d]];
      from[d] = strides[order[d]];
    }
    tt_type_t ordered = {type->dtype, type->rank, dims};
    tt__ref_strides(&ordered, to);
    tt__ref_copy(size, type->rank, dims, dense, to, data, from);
    tt_element_convert(type->dtype, dense, (int64_t)count, target, converted);
    tt_element_load(target, converted, (int64_t)count, wide);
  } else {
    tt_free(wide);
    wide = NULL;
  }
  tt_free(dense);
  tt_free(converted);
  return wide;
}

// [batch..., free..., contracting...] of the left side, [batch..., contracting..., free...] of the
// right one, and the sizes of the three groups.
typedef struct side_s {
  uint32_t order[TT__REF_MAX_RANK];
  int64_t batch, free, contract;
} side_t;

// Places are counted out beforehand: the free dimensions come before the contracting ones on the
// left and after them on the right.
static void side_init(const tt_node_t *node, const tt_type_t *type, bool is_left, side_t *side) {
  tt_attr_key_t batch_key =
      is_left ? TT_ATTR_LHS_BATCHING_DIMENSIONS : TT_ATTR_RHS_BATCHING_DIMENSIONS;
  tt_attr_key_t contract_key =
      is_left ? TT_ATTR_LHS_CONTRACTING_DIMENSIONS : TT_ATTR_RHS_CONTRACTING_DIMENSIONS;
  uint32_t batch_count, contract_count, at = 0;
  const int64_t *batch = tt_node_ints(node, batch_key, &batch_count);
  const int64_t *contract = tt_node_ints(node, contract_key, &contract_count);
  bool used[TT__REF_MAX_RANK] = {false};
  side->batch = side->free = side->contract = 1;
  for (uint32_t i = 0; i < contract_count; i++) used[contract[i]] = true;
  for (uint32_t i = 0; i < batch_count; i++) {
    used[batch[i]] = true;
    side->order[at++] = (uint32_t)batch[i];
    side->batch *= type->dims[batch[i]];
  }
  uint32_t free_at = at + (is_left ? 0 : contract_count);
  uint32_t contract_at = is_left ? type->rank - contract_count : at;
  for (uint32_t d = 0; d < type->rank; d++) {
    if (used[d]) continue;
    side->order[free_at++] = d;
    side->free *= type->dims[d];
  }
  for (uint32_t i = 0; i < contract_count; i++) {
    side->order[contract_at++] = (uint32_t)contract[i];
    side->contract *= type->dims[contract[i]];
  }
}

// One row of results at a time, stored with one rounding.
static tt_status_t multiply_all(const tt__ref_call_t *call, tt_wide_t wide, const side_t *lhs,
                                const side_t *rhs, const char *x, const char *y) {
  tt_dtype_t dtype = tt__ref_out(call, 0)->dtype;
  size_t unit = tt_element_wide_size(wide), depth = (size_t)lhs->contract;
  size_t columns = (size_t)rhs->free;
  void *row = tt_alloc(unit * columns + 1);
  if (!row) return tt__ref_no_memory(call->node);
  char *to = (char *)call->results[0];
  for (int64_t b = 0; b < lhs->batch; b++) {
    const char *right = y + (size_t)b * depth * columns * unit;
    for (int64_t m = 0; m < lhs->free; m++) {
      const char *left = x + (size_t)(b * lhs->free + m) * depth * unit;
      memset(row, 0, unit * columns);
      multiply_add(wide, lhs->contract, rhs->free, rhs->free, left, right, row);
      store_sums(wide, row, rhs->free, dtype, to);
      to += columns * tt_dtype_size(dtype);
    }
  }
  tt_free(row);
  return TT_OK_STATUS;
}

tt_status_t tt__ref_dot_general(const tt__ref_call_t *call) {
  const tt_type_t *x = tt__ref_in(call, 0), *y = tt__ref_in(call, 1);
  side_t lhs, rhs;
  side_init(call->node, x, true, &lhs);
  side_init(call->node, y, false, &rhs);
  tt_dtype_t convert = product_dtype(x, y, tt__ref_out(call, 0));
  tt_wide_t wide = tt_element_wide(convert == TT_DTYPE_NONE ? x->dtype : convert);
  char *a = (char *)widen(x, call->operands[0], lhs.order, convert);
  char *b = (char *)widen(y, call->operands[1], rhs.order, convert);
  tt_status_t status =
      a && b ? multiply_all(call, wide, &lhs, &rhs, a, b) : tt__ref_no_memory(call->node);
  tt_free(a);
  tt_free(b);
  return status;
}

// ---- convolution

// Operands and result reordered to [batch, spatial..., feature], [spatial..., in feature, out
// feature] and [batch, spatial..., feature].
typedef struct conv_s {
  uint32_t spatial;
  int64_t batch, in_features, kernel_features, out_features, feature_groups, batch_groups;
  int64_t in[TT__REF_MAX_RANK], kernel[TT__REF_MAX_RANK], out[TT__REF_MAX_RANK];
  int64_t stride[TT__REF_MAX_RANK], low[TT__REF_MAX_RANK];
  int64_t lhs_dilation[TT__REF_MAX_RANK], rhs_dilation[TT__REF_MAX_RANK];
  bool reversed[TT__REF_MAX_RANK];
  uint32_t in_order[TT__REF_MAX_RANK], kernel_order[TT__REF_MAX_RANK];
  uint32_t out_order[TT__REF_MAX_RANK];
} conv_t;

// batch, spatial..., feature
static void image_order(const tt_node_t *node, tt_attr_key_t batch, tt_attr_key_t spatial,
                        tt_attr_key_t feature, uint32_t spatial_count, uint32_t *order) {
  order[0] = (uint32_t)tt_node_int(node, batch, 0);
  for (uint32_t i = 0; i < spatial_count; i++)
    order[i + 1] = (uint32_t)tt_node_entry(node, spatial, i, 0);
  order[spatial_count + 1] = (uint32_t)tt_node_int(node, feature, 0);
}

static void conv_init(const tt__ref_call_t *call, conv_t *c) {
  const tt_node_t *node = call->node;
  const tt_type_t *x = tt__ref_in(call, 0), *k = tt__ref_in(call, 1), *out = tt__ref_out(call, 0);
  uint32_t n = c->spatial = x->rank - 2;
  image_order(node, TT_ATTR_INPUT_BATCH_DIMENSION, TT_ATTR_INPUT_SPATIAL_DIMENSIONS,
              TT_ATTR_INPUT_FEATURE_DIMENSION, n, c->in_order);
  image_order(node, TT_ATTR_OUTPUT_BATCH_DIMENSION, TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS,
              TT_ATTR_OUTPUT_FEATURE_DIMENSION, n, c->out_order);
  for (uint32_t i = 0; i < n; i++) {
    c->kernel_order[i] = (uint32_t)tt_node_entry(node, TT_ATTR_KERNEL_SPATIAL_DIMENSIONS, i, 0);
  }
  c->kernel_order[n] = (uint32_t)tt_node_int(node, TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 0);
  c->kernel_order[n + 1] = (uint32_t)tt_node_int(node, TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0);
  c->batch = x->dims[c->in_order[0]];
  c->in_features = x->dims[c->in_order[n + 1]];
  c->kernel_features = k->dims[c->kernel_order[n]];
  c->out_features = k->dims[c->kernel_order[n + 1]];
  c->feature_groups = tt_node_int(node, TT_ATTR_FEATURE_GROUP_COUNT, 1);
  c->batch_groups = tt_node_int(node, TT_ATTR_BATCH_GROUP_COUNT, 1);
  for (uint32_t i = 0; i < n; i++) {
    c->in[i] = x->dims[c->in_order[i + 1]];
    c->kernel[i] = k->dims[c->kernel_order[i]];
    c->out[i] = out->dims[c->out_order[i + 1]];
    c->stride[i] = tt_node_entry(node, TT_ATTR_WINDOW_STRIDES, i, 1);
    c->low[i] = tt_node_entry(node, TT_ATTR_PADDING, 2 * i, 0);
    c->lhs_dilation[i] = tt_node_entry(node, TT_ATTR_LHS_DILATION, i, 1);
    c->rhs_dilation[i] = tt_node_entry(node, TT_ATTR_RHS_DILATION, i, 1);
    c->reversed[i] = tt_node_entry(node, TT_ATTR_WINDOW_REVERSAL, i, 0) != 0;
  }
}

// The input position (over spatial dimensions) under kernel position `k` of output `o`, -1 where
// that is padding or a hole.
static int64_t input_position(const conv_t *c, const int64_t *o, const int64_t *k) {
  int64_t position = 0;
  for (uint32_t d = 0; d < c->spatial; d++) {
    int64_t tap = c->reversed[d] ? c->kernel[d] - 1 - k[d] : k[d];
    int64_t at = o[d] * c->stride[d] + tap * c->rhs_dilation[d] - c->low[d];
    if (at < 0 || at % c->lhs_dilation[d] != 0) return -1;
    at /= c->lhs_dilation[d];
    if (at >= c->in[d]) return -1;
    position = position * c->in[d] + at;
  }
  return position;
}

static int64_t product(uint32_t count, const int64_t *dims) {
  int64_t n = 1;
  for (uint32_t i = 0; i < count; i++) n *= dims[i];
  return n;
}

// All features of one output position: the group of an output feature selects the slice of input
// features or of the batch that it reads.
static void convolve_at(const conv_t *c, tt_wide_t wide, const char *x, const char *kernel,
                        int64_t batch, const int64_t *o, char *row) {
  size_t unit = tt_element_wide_size(wide);
  int64_t taps = product(c->spatial, c->kernel), pixels = product(c->spatial, c->in);
  int64_t groups = c->feature_groups * c->batch_groups, per_group = c->out_features / groups;
  int64_t out_batch = c->batch / c->batch_groups, tap = 0, k[TT__REF_MAX_RANK] = {0};
  memset(row, 0, unit * (size_t)c->out_features);
  if (taps == 0) return;
  do {
    int64_t position = input_position(c, o, k);
    for (int64_t g = 0; position >= 0 && g < groups; g++) {
      int64_t image = c->batch_groups > 1 ? g * out_batch + batch : batch;
      int64_t feature = c->batch_groups > 1 ? 0 : g * c->kernel_features;
      int64_t in_at = (image * pixels + position) * c->in_features + feature;
      int64_t kernel_at = tap * c->kernel_features * c->out_features + g * per_group;
      multiply_add(wide, c->kernel_features, c->out_features, per_group, x + (size_t)in_at * unit,
                   kernel + (size_t)kernel_at * unit, row + (size_t)(g * per_group) * unit);
    }
    tap++;
  } while (tt__ref_next(c->spatial, c->kernel, k));
}

// Results in [batch, spatial..., feature] order, dense.
static void convolve(const conv_t *c, tt_wide_t wide, tt_dtype_t dtype, const char *x,
                     const char *kernel, char *row, char *dense) {
  if (product(c->spatial, c->out) == 0) return;
  for (int64_t batch = 0; batch < c->batch / c->batch_groups; batch++) {
    int64_t o[TT__REF_MAX_RANK] = {0};
    do {
      convolve_at(c, wide, x, kernel, batch, o, row);
      store_sums(wide, row, c->out_features, dtype, dense);
      dense += (size_t)c->out_features * tt_dtype_size(dtype);
    } while (tt__ref_next(c->spatial, c->out, o));
  }
}

tt_status_t tt__ref_convolution(const tt__ref_call_t *call) {
  const tt_type_t *x = tt__ref_in(call, 0), *k = tt__ref_in(call, 1), *out = tt__ref_out(call, 0);
  conv_t c;
  conv_init(call, &c);
  tt_dtype_t convert = product_dtype(x, k, out);
  tt_wide_t wide = tt_element_wide(convert == TT_DTYPE_NONE ? x->dtype : convert);
  size_t unit = tt_element_wide_size(wide), size = tt_dtype_size(out->dtype);
  char *a = (char *)widen(x, call->operands[0], c.in_order, convert);
  char *b = (char *)widen(k, call->operands[1], c.kernel_order, convert);
  char *row = (char *)tt_alloc(unit * (size_t)c.out_features + 1);
  char *dense = (char *)tt_alloc(tt_type_bytes(out) + 1);
  tt_status_t status = TT_OK_STATUS;
  if (!a || !b || !row || !dense) {
    status = tt__ref_no_memory(call->node);
  } else {
    convolve(&c, wide, out->dtype, a, b, row, dense);
    int64_t strides[TT__REF_MAX_RANK], to[TT__REF_MAX_RANK], dims[TT__REF_MAX_RANK];
    int64_t from[TT__REF_MAX_RANK];
    tt__ref_strides(out, strides);
    for (uint32_t d = 0; d < out->rank; d++) {
      dims[d] = out->dims[c.out_order[d]];
      to[d] = strides[c.out_order[d]];
    }
    tt_type_t ordered = {out->dtype, out->rank, dims};
    tt__ref_strides(&ordered, from);
    tt__ref_copy(size, out->rank, dims, call->results[0], to, dense, from);
  }
  tt_free(a);
  tt_free(b);
  tt_free(row);
  tt_free(dense);
  return status;
}
