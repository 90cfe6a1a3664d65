// Emitters of reductions, dot products and convolutions.
#include <string.h>

#include "ir/build.h"
#include "ir/internal.h"

tt_block_t *tt__one_op_body(tt_build_t *b, tt_op_t op, tt_dtype_t dtype) {
  const tt_type_t scalar = {dtype, 0, NULL}, types[] = {scalar, scalar};
  tt_value_t args[2];
  tt_block_t *body = tt_emit_region_begin(b, types, 2, args);
  tt_value_t r = tt_emit_binary(b, op, args[0], args[1]);
  tt_emit_region_end(b, body, &r, 1);
  return body;
}

// The initial value: a reduction of nothing gives it, one of something does not see it.
static tt_value_t identity(tt_build_t *b, tt_op_t op, tt_dtype_t dtype) {
  char bytes[16];
  if (!b->status && !tt__element_identity(op, dtype, bytes)) {
    tt_build_fail(
        b, TT_ERROR(TYPE, "%s has no identity for %s", tt_op_infos[op].text, tt_dtype_text(dtype)));
  }
  if (b->status) return TT_NO_VALUE;
  return tt_emit_constant(b, (tt_type_t){dtype, 0, NULL}, bytes);
}

// Inputs first, then as many initial values.
static tt_value_t emit_reduce(tt_build_t *b, const tt_value_t *operands, uint32_t operand_count,
                              const int64_t *dims, uint32_t dim_count, tt_block_t *body) {
  const tt_attr_t attr = tt_attr_ints(TT_ATTR_DIMENSIONS, dims, dim_count);
  tt_node_spec_t spec = {.op = TT_OP_REDUCE,
                         .operands = operands,
                         .operand_count = operand_count,
                         .attrs = &attr,
                         .attr_count = 1,
                         .regions = &body,
                         .region_count = 1};
  return tt_emit(b, &spec);
}

// x's dims with those in `dims` set to 1.
static tt_value_t keep_dims(tt_build_t *b, tt_value_t reduced, const tt_type_t *x,
                            const int64_t *dims, uint32_t count) {
  int64_t kept[TT_MAX_RANK];
  if (b->status) return TT_NO_VALUE;
  memcpy(kept, x->dims, x->rank * sizeof *kept);
  for (uint32_t i = 0; i < count; i++) kept[dims[i]] = 1;
  return tt_emit_reshape(b, reduced, x->rank, kept);
}

tt_value_t tt_emit_reduce(tt_build_t *b, tt_op_t op, tt_value_t x, const int64_t *dims,
                          uint32_t dim_count, bool keepdim) {
  const tt_type_t *t = tt_build_type(b, x);
  if (b->status || dim_count == 0) return x;
  const tt_value_t operands[] = {x, identity(b, op, t->dtype)};
  tt_block_t *body = tt__one_op_body(b, op, t->dtype);
  tt_value_t r = emit_reduce(b, operands, 2, dims, dim_count, body);
  return keepdim ? keep_dims(b, r, t, dims, dim_count) : r;
}

// The body of an arg-reduction must not depend on the order of its arguments: of two candidates the
// better value wins, among equals the lower index. NaN is better than any number.
static tt_block_t *arg_body(tt_build_t *b, bool largest, tt_dtype_t dtype, tt_dtype_t index) {
  const tt_type_t v = {dtype, 0, NULL}, i = {index, 0, NULL}, types[] = {v, i, v, i};
  tt_value_t a[4];
  tt_block_t *body = tt_emit_region_begin(b, types, 4, a);
  tt_value_t better = tt_emit_compare(b, largest ? TT_GT : TT_LT, a[0], a[2]);
  tt_value_t equal = tt_emit_compare(b, TT_EQ, a[0], a[2]);
  if (tt_dtype_is_float(dtype)) {
    tt_value_t nan0 = tt_emit_compare(b, TT_NE, a[0], a[0]);
    tt_value_t nan1 = tt_emit_compare(b, TT_NE, a[2], a[2]);
    tt_value_t only0 = tt_emit_binary(b, TT_OP_AND, nan0, tt_emit_unary(b, TT_OP_NOT, nan1));
    better = tt_emit_binary(b, TT_OP_OR, better, only0);
    equal = tt_emit_binary(b, TT_OP_OR, equal, tt_emit_binary(b, TT_OP_AND, nan0, nan1));
  }
  tt_value_t lower = tt_emit_compare(b, TT_LT, a[1], a[3]);
  tt_value_t first =
      tt_emit_binary(b, TT_OP_OR, better, tt_emit_binary(b, TT_OP_AND, equal, lower));
  const tt_value_t returns[] = {tt_emit_select(b, first, a[0], a[2]),
                                tt_emit_select(b, first, a[1], a[3])};
  tt_emit_region_end(b, body, returns, 2);
  return body;
}

// A variadic reduction of (x, iota): values and places travel together.
void tt_emit_arg_reduce(tt_build_t *b, bool largest, tt_value_t x, int64_t dim,
                        tt_dtype_t index_dtype, bool keepdim, tt_value_t *out_value,
                        tt_value_t *out_index) {
  const tt_type_t *t = tt_build_type(b, x);
  *out_value = *out_index = TT_NO_VALUE;
  if (b->status) return;
  // The initial index is the highest one, so that it loses every tie.
  const tt_value_t operands[] = {x, tt_emit_iota(b, index_dtype, t->rank, t->dims, dim),
                                 identity(b, largest ? TT_OP_MAXIMUM : TT_OP_MINIMUM, t->dtype),
                                 tt_emit_highest(b, index_dtype)};
  tt_block_t *body = arg_body(b, largest, t->dtype, index_dtype);
  tt_value_t first = emit_reduce(b, operands, 4, &dim, 1, body);
  if (b->status) return;
  *out_value = keepdim ? keep_dims(b, first, t, &dim, 1) : first;
  *out_index = keepdim ? keep_dims(b, first + 1, t, &dim, 1) : first + 1;
}

// Absent lists stay absent: that is how StableHLO spells their defaults.
tt_value_t tt_emit_reduce_window(tt_build_t *b, tt_op_t op, tt_value_t x, const tt_window_t *w) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t ones[TT_MAX_RANK];
  tt_attr_t attrs[5];
  uint32_t n = 0;
  if (b->status) return TT_NO_VALUE;
  for (uint32_t i = 0; i < t->rank; i++) ones[i] = 1;
  attrs[n++] = tt_attr_ints(TT_ATTR_WINDOW_DIMENSIONS, w->sizes ? w->sizes : ones, t->rank);
  if (w->strides) attrs[n++] = tt_attr_ints(TT_ATTR_WINDOW_STRIDES, w->strides, t->rank);
  if (w->padding) attrs[n++] = tt_attr_ints(TT_ATTR_PADDING, w->padding, 2 * t->rank);
  if (w->base_dilations) {
    attrs[n++] = tt_attr_ints(TT_ATTR_BASE_DILATIONS, w->base_dilations, t->rank);
  }
  if (w->window_dilations) {
    attrs[n++] = tt_attr_ints(TT_ATTR_WINDOW_DILATIONS, w->window_dilations, t->rank);
  }
  const tt_value_t operands[] = {x, identity(b, op, t->dtype)};
  tt_block_t *body = tt__one_op_body(b, op, t->dtype);
  tt_node_spec_t spec = {.op = TT_OP_REDUCE_WINDOW,
                         .operands = operands,
                         .operand_count = 2,
                         .attrs = attrs,
                         .attr_count = n,
                         .regions = &body,
                         .region_count = 1};
  return tt_emit(b, &spec);
}

// Wide floats ask for all their bits, as PyTorch does by default; TPUs would otherwise multiply
// f32 as bf16.
static const int64_t highest_precision[] = {TT_PRECISION_HIGHEST, TT_PRECISION_HIGHEST};

static bool wants_precision(tt_dtype_t d) {
  return d == TT_F32 || d == TT_F64 || tt_dtype_is_complex(d);
}

// The result's dims are derived here because the op is typed: its maker chooses the element type
// and so has to write the whole type; dot_general's rule checks it (c12).
tt_value_t tt_emit_dot(tt_build_t *b, tt_value_t x, tt_value_t y, const tt_dot_t *dot,
                       tt_dtype_t dtype) {
  const tt_type_t *s = tt_build_type(b, x), *t = tt_build_type(b, y);
  int64_t dims[2 * TT_MAX_RANK];
  tt_attr_t attrs[5];
  uint32_t rank = 0, n = 0, batch = dot->batch_count, contract = dot->contract_count;
  const tt_ints_t lb = {dot->lhs_batch, batch}, lc = {dot->lhs_contract, contract};
  const tt_ints_t rb = {dot->rhs_batch, batch}, rc = {dot->rhs_contract, contract};
  if (b->status) return TT_NO_VALUE;
  for (uint32_t i = 0; i < batch; i++) dims[rank++] = s->dims[dot->lhs_batch[i]];
  for (uint32_t i = 0; i < s->rank; i++) {
    if (tt_ints_has(lb, i) || tt_ints_has(lc, i)) continue;
    dims[rank++] = s->dims[i];
  }
  for (uint32_t i = 0; i < t->rank; i++) {
    if (tt_ints_has(rb, i) || tt_ints_has(rc, i)) continue;
    dims[rank++] = t->dims[i];
  }
  if (batch) {
    attrs[n++] = tt_attr_ints(TT_ATTR_LHS_BATCHING_DIMENSIONS, dot->lhs_batch, batch);
    attrs[n++] = tt_attr_ints(TT_ATTR_RHS_BATCHING_DIMENSIONS, dot->rhs_batch, batch);
  }
  if (contract) {
    attrs[n++] = tt_attr_ints(TT_ATTR_LHS_CONTRACTING_DIMENSIONS, dot->lhs_contract, contract);
    attrs[n++] = tt_attr_ints(TT_ATTR_RHS_CONTRACTING_DIMENSIONS, dot->rhs_contract, contract);
  }
  if (wants_precision(s->dtype)) {
    attrs[n++] = tt_attr_ints(TT_ATTR_PRECISION_CONFIG, highest_precision, 2);
  }
  const tt_value_t operands[] = {x, y};
  const tt_type_t type = {dtype, rank, dims};
  tt_node_spec_t spec = {.op = TT_OP_DOT_GENERAL,
                         .operands = operands,
                         .operand_count = 2,
                         .attrs = attrs,
                         .attr_count = n,
                         .types = &type,
                         .type_count = 1};
  return tt_emit(b, &spec);
}

// Batch dimensions are all but the last two and must have equal sizes: broadcasting is the
// caller's.
tt_value_t tt_emit_matmul(tt_build_t *b, tt_value_t x, tt_value_t y, tt_dtype_t dtype) {
  uint32_t rank = tt_build_type(b, x)->rank;
  int64_t batch[TT_MAX_RANK];
  if (b->status) return TT_NO_VALUE;
  if (rank < 2 || tt_build_type(b, y)->rank != rank) {
    tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT, "matmul: ranks %u and %u are not equal and >= 2",
                              rank, tt_build_type(b, y)->rank));
    return TT_NO_VALUE;
  }
  for (uint32_t i = 0; i < rank; i++) batch[i] = i;
  const int64_t x_contract = rank - 1, y_contract = rank - 2;
  const tt_dot_t dot = {batch, batch, &x_contract, &y_contract, rank - 2, 1};
  return tt_emit_dot(b, x, y, &dot, dtype);
}

// Layouts are torch's: [batch, feature, space...] by [output, input / groups, space...]. The
// result's type is computed here because its element type may be wider than the operands'.
tt_value_t tt_emit_conv(tt_build_t *b, tt_value_t x, tt_value_t kernel, const tt_conv_t *conv,
                        tt_dtype_t dtype) {
  const tt_type_t *s = tt_build_type(b, x), *k = tt_build_type(b, kernel);
  int64_t dims[TT_MAX_RANK], spatial[TT_MAX_RANK];
  tt_attr_t attrs[18];
  uint32_t n = 0;
  if (b->status) return TT_NO_VALUE;
  if (s->rank < 2 || s->rank != k->rank || conv->batch_groups < 1) {
    tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT, "convolution: ranks %u and %u, batch groups %lld",
                              s->rank, k->rank, (long long)conv->batch_groups));
    return TT_NO_VALUE;
  }
  uint32_t space = s->rank - 2;
  dims[0] = s->dims[0] / conv->batch_groups;
  dims[1] = k->dims[0];
  for (uint32_t i = 0; i < space; i++) {
    spatial[i] = i + 2;
    dims[i + 2] = tt__window_output(
        s->dims[i + 2], k->dims[i + 2] ? k->dims[i + 2] : 1, tt__at(conv->strides, i, 1),
        tt__at(conv->padding, 2 * i, 0), tt__at(conv->padding, 2 * i + 1, 0),
        tt__at(conv->lhs_dilation, i, 1), tt__at(conv->rhs_dilation, i, 1));
  }
  attrs[n++] = tt_attr_int(TT_ATTR_INPUT_BATCH_DIMENSION, 0);
  attrs[n++] = tt_attr_int(TT_ATTR_INPUT_FEATURE_DIMENSION, 1);
  attrs[n++] = tt_attr_ints(TT_ATTR_INPUT_SPATIAL_DIMENSIONS, spatial, space);
  attrs[n++] = tt_attr_int(TT_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 1);
  attrs[n++] = tt_attr_int(TT_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0);
  attrs[n++] = tt_attr_ints(TT_ATTR_KERNEL_SPATIAL_DIMENSIONS, spatial, space);
  attrs[n++] = tt_attr_int(TT_ATTR_OUTPUT_BATCH_DIMENSION, 0);
  attrs[n++] = tt_attr_int(TT_ATTR_OUTPUT_FEATURE_DIMENSION, 1);
  attrs[n++] = tt_attr_ints(TT_ATTR_OUTPUT_SPATIAL_DIMENSIONS, spatial, space);
  attrs[n++] = tt_attr_int(TT_ATTR_FEATURE_GROUP_COUNT, conv->feature_groups);
  attrs[n++] = tt_attr_int(TT_ATTR_BATCH_GROUP_COUNT, conv->batch_groups);
  if (conv->strides) attrs[n++] = tt_attr_ints(TT_ATTR_WINDOW_STRIDES, conv->strides, space);
  if (conv->padding) attrs[n++] = tt_attr_ints(TT_ATTR_PADDING, conv->padding, 2 * space);
  if (conv->lhs_dilation)
    attrs[n++] = tt_attr_ints(TT_ATTR_LHS_DILATION, conv->lhs_dilation, space);
  if (conv->rhs_dilation)
    attrs[n++] = tt_attr_ints(TT_ATTR_RHS_DILATION, conv->rhs_dilation, space);
  if (conv->window_reversal) {
    attrs[n++] = tt_attr_ints(TT_ATTR_WINDOW_REVERSAL, conv->window_reversal, space);
  }
  if (wants_precision(s->dtype)) {
    attrs[n++] = tt_attr_ints(TT_ATTR_PRECISION_CONFIG, highest_precision, 2);
  }
  const tt_value_t operands[] = {x, kernel};
  const tt_type_t type = {dtype, s->rank, dims};
  tt_node_spec_t spec = {.op = TT_OP_CONVOLUTION,
                         .operands = operands,
                         .operand_count = 2,
                         .attrs = attrs,
                         .attr_count = n,
                         .types = &type,
                         .type_count = 1};
  return tt_emit(b, &spec);
}
