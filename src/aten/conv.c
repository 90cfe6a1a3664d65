// Convolutions of any spatial rank, and their gradients.
//
// All three products are one StableHLO convolution each, in the shapes that a planner can map back
// to a library's forward, input-gradient and weight-gradient calls: the input gradient dilates the
// output's gradient by the stride and reverses the window; the weight gradient swaps batch and
// feature and, for groups, counts them on the batch side.
#include "aten/emit.h"

#define TT_CONV_SPATIAL 8

typedef struct conv_s {
  uint32_t spatial;
  const int64_t *stride, *padding, *dilation;
  int64_t groups;
  int64_t ones[TT_CONV_SPATIAL];
} conv_t;

// PyTorch lets one number stand for all spatial dimensions.
static void spread(tt_lower_t *L, uint32_t arg, uint32_t spatial, int64_t *out) {
  uint32_t n;
  const int64_t *v = tt_lower_ints(L, arg, &n);
  for (uint32_t i = 0; i < spatial; i++) out[i] = n == 0 ? 0 : v[n == 1 ? 0 : i];
}

// [O, I/g, k...] -> [I, O/g, k...]: what the transposed convolution's kernel is as an ordinary one.
static tt_value_t swap_kernel(tt_build_t *b, tt_value_t w, int64_t groups) {
  const tt_type_t *t = tt_build_type(b, w);
  const uint32_t rank = t->rank;
  int64_t dims[TT_CONV_SPATIAL + 3], permutation[TT_CONV_SPATIAL + 3];
  if (rank < 3) return w;
  if (groups == 1) {
    for (uint32_t i = 0; i < rank; i++) permutation[i] = i;
    permutation[0] = 1;
    permutation[1] = 0;
    return tt_emit_transpose(b, w, permutation);
  }
  dims[0] = groups;
  dims[1] = t->dims[0] / groups;
  for (uint32_t i = 1; i < rank; i++) dims[i + 1] = t->dims[i];
  w = tt_emit_reshape(b, w, rank + 1, dims);
  for (uint32_t i = 0; i <= rank; i++) permutation[i] = i;
  permutation[1] = 2;
  permutation[2] = 1;
  const int64_t per_group_out = dims[1], per_group_in = dims[2];
  w = tt_emit_transpose(b, w, permutation);
  dims[0] = groups * per_group_in;
  dims[1] = per_group_out;
  for (uint32_t i = 2; i < rank; i++) dims[i] = dims[i + 1];
  return tt_emit_reshape(b, w, rank, dims);
}

// y [N, O, ...] = conv(x, w [O, I/g, k...]) with the output sizes given: padding at the far end is
// what makes them so.
static tt_value_t conv_forward(tt_build_t *b, const conv_t *c, tt_value_t x, const int64_t *in,
                               tt_value_t w, const int64_t *kernel, const int64_t *out,
                               tt_dtype_t d) {
  int64_t padding[2 * TT_CONV_SPATIAL];
  for (uint32_t i = 0; i < c->spatial; i++) {
    const int64_t span = c->dilation[i] * (kernel[i] - 1) + 1;
    int64_t high = (out[i] - 1) * c->stride[i] + span - in[i] - c->padding[i];
    // A stride that does not divide evenly leaves input over at the far end; keep padding symmetric
    // then, which gives the same output.
    if (high < c->padding[i] && high + c->stride[i] > c->padding[i]) high = c->padding[i];
    padding[2 * i] = c->padding[i];
    padding[2 * i + 1] = high;
  }
  const tt_conv_t conv = {c->stride, padding, c->ones, c->dilation, NULL, c->groups, 1};
  return tt_emit_conv(b, x, w, &conv, d);
}

// x-shaped gradient of conv_forward, or the transposed convolution itself: g [N, O, out...],
// w [O, I/g, k...] -> [N, I, in...].
static tt_value_t conv_input_grad(tt_build_t *b, const conv_t *c, tt_value_t g, const int64_t *out,
                                  tt_value_t w, const int64_t *kernel, const int64_t *in,
                                  tt_dtype_t d) {
  int64_t padding[2 * TT_CONV_SPATIAL];
  for (uint32_t i = 0; i < c->spatial; i++) {
    const int64_t span = c->dilation[i] * (kernel[i] - 1);
    padding[2 * i] = span - c->padding[i];
    padding[2 * i + 1] = in[i] + span - (out[i] - 1) * c->stride[i] - 1 - padding[2 * i];
  }
  const tt_conv_t conv = {c->ones, padding, c->stride, c->dilation, c->ones, c->groups, 1};
  return tt_emit_conv(b, g, swap_kernel(b, w, c->groups), &conv, d);
}

// w-shaped gradient of conv_forward: x [N, I, in...], g [N, O, out...] -> [O, I/g, k...].
static tt_value_t conv_weight_grad(tt_build_t *b, const conv_t *c, tt_value_t x, const int64_t *in,
                                   tt_value_t g, const int64_t *out, const int64_t *kernel,
                                   tt_dtype_t d) {
  int64_t padding[2 * TT_CONV_SPATIAL], swap[TT_CONV_SPATIAL + 2];
  for (uint32_t i = 0; i < c->spatial; i++) {
    const int64_t span = c->dilation[i] * (kernel[i] - 1);
    padding[2 * i] = c->padding[i];
    padding[2 * i + 1] = span + (out[i] - 1) * c->stride[i] + 1 - in[i] - c->padding[i];
  }
  for (uint32_t i = 0; i < c->spatial + 2; i++) swap[i] = i;
  swap[0] = 1;
  swap[1] = 0;
  // The window of this convolution walks by the dilation and is dilated by the stride.
  const tt_conv_t conv = {c->dilation, padding, c->ones, c->stride, NULL, 1, c->groups};
  const tt_value_t r =
      tt_emit_conv(b, tt_emit_transpose(b, x, swap), tt_emit_transpose(b, g, swap), &conv, d);
  return tt_emit_transpose(b, r, swap);
}

// Fills `c` from arguments (stride, padding, dilation) that start at `first`.
static bool conv_read(tt_lower_t *L, uint32_t first, uint32_t rank, int64_t groups, conv_t *c,
                      int64_t (*store)[TT_CONV_SPATIAL]) {
  if (rank < 3 || rank - 2 > TT_CONV_SPATIAL) {
    tt_lower_unsupported(L, "a convolution of rank %u", rank);
    return false;
  }
  c->spatial = rank - 2;
  c->groups = groups;
  for (uint32_t i = 0; i < 3; i++) spread(L, first + i, c->spatial, store[i]);
  c->stride = store[0];
  c->padding = store[1];
  c->dilation = store[2];
  for (uint32_t i = 0; i < TT_CONV_SPATIAL; i++) c->ones[i] = 1;
  return true;
}

// convolution_overrideable(input, weight, bias, stride, padding, dilation, transposed,
// output_padding, groups)
TT_LOWER0(convolution) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0), *w = tt_lower_meta(L, 1);
  const tt_out_meta_t *y = &L->outs[0];
  const bool transposed = tt_lower_int(L, 6, 0) != 0, biased = tt_lower_has(L, 2);
  int64_t store[3][TT_CONV_SPATIAL];
  conv_t c;
  if (!tt_lower_same_dtype(L, 0, 1)) return;
  if (!conv_read(L, 3, x->rank, tt_lower_int(L, 8, 1), &c, store)) return;
  const tt_dtype_t out = (tt_dtype_t)y->dtype, d = biased ? tt_lower_opmath(out) : out;
  const tt_value_t xv = tt_lower_tensor(L, 0), wv = tt_lower_tensor(L, 1);
  tt_value_t r = transposed
                     ? conv_input_grad(b, &c, xv, x->sizes + 2, wv, w->sizes + 2, y->sizes + 2, d)
                     : conv_forward(b, &c, xv, x->sizes + 2, wv, w->sizes + 2, y->sizes + 2, d);
  if (biased) r = tt__add(b, r, tt__along(b, tt_lower_tensor_as(L, 2, d), x->rank, 1));
  tt_lower_return(L, 0, r);
}

// convolution_backward_overrideable(grad, input, weight, stride, padding, dilation, transposed,
// output_padding, groups, mask); param 1: convolution_backward, with bias_sizes before stride.
TT_LOWER(convolution_backward) {
  tt_build_t *b = L->b;
  const uint32_t at = 3 + (uint32_t)param;
  const tt_tensor_t *g = tt_lower_meta(L, 0), *x = tt_lower_meta(L, 1), *w = tt_lower_meta(L, 2);
  const bool transposed = tt_lower_int(L, at + 3, 0) != 0;
  int64_t store[3][TT_CONV_SPATIAL], reduced[TT_CONV_SPATIAL + 2];
  conv_t c;
  if (!conv_read(L, at, x->rank, tt_lower_int(L, at + 5, 1), &c, store)) return;
  const tt_dtype_t d = (tt_dtype_t)x->dtype;
  const tt_value_t gv = tt_lower_tensor(L, 0), xv = tt_lower_tensor(L, 1);
  if (tt__wanted(L, at + 6, 0)) {
    const tt_value_t wv = tt_lower_tensor(L, 2);
    tt_lower_return(
        L, 0,
        transposed ? conv_forward(b, &c, gv, g->sizes + 2, wv, w->sizes + 2, x->sizes + 2, d)
                   : conv_input_grad(b, &c, gv, g->sizes + 2, wv, w->sizes + 2, x->sizes + 2, d));
  }
  if (tt__wanted(L, at + 6, 1)) {
    tt_lower_return(
        L, 1,
        transposed ? conv_weight_grad(b, &c, gv, g->sizes + 2, xv, x->sizes + 2, w->sizes + 2, d)
                   : conv_weight_grad(b, &c, xv, x->sizes + 2, gv, g->sizes + 2, w->sizes + 2, d));
  }
  if (tt__wanted(L, at + 6, 2)) {
    const uint32_t n = tt__other_dims(g->rank, 1, reduced);
    tt_lower_return(L, 2, tt__sum_over(b, tt__opmath_tensor(L, 0), reduced, n, false));
  }
}

// conv_tbc(self [T, B, I], weight [k, I, O], bias [O], pad)
TT_LOWER0(conv_tbc) {
  tt_build_t *b = L->b;
  static const int64_t to_nct[] = {1, 2, 0}, to_oik[] = {2, 1, 0}, to_tbc[] = {2, 0, 1};
  static const int64_t one[] = {1};
  const int64_t pad = tt_lower_int(L, 3, 0), padding[] = {pad, pad};
  const tt_dtype_t d = tt_lower_opmath(tt_lower_out_dtype(L, 0));
  const tt_conv_t conv = {one, padding, one, one, NULL, 1, 1};
  const tt_value_t r = tt_emit_conv(b, tt_emit_transpose(b, tt_lower_tensor(L, 0), to_nct),
                                    tt_emit_transpose(b, tt_lower_tensor(L, 1), to_oik), &conv, d);
  tt_lower_return(
      L, 0,
      tt__add(b, tt_emit_transpose(b, r, to_tbc), tt__along(b, tt_lower_tensor_as(L, 2, d), 3, 2)));
}
