// Layer, group and RMS normalisation and weight norm, forward and backward. Batch norm:
// norm_batch.c.
#include "aten/norm.h"

#include <float.h>

tt__moments_t tt__moments(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count,
                          int64_t n) {
  tt__moments_t m;
  m.mean = tt__divc(b, tt__sum_over(b, x, dims, count, true), (double)n);
  m.centered = tt__sub(b, x, m.mean);
  m.variance =
      tt__divc(b, tt__sum_over(b, tt__square(b, m.centered), dims, count, true), (double)n);
  return m;
}

// x * rstd * weight + bias; weight or bias may be TT_NO_VALUE where absent.
static tt_value_t affine(tt_build_t *b, tt_value_t x, bool has_weight, tt_value_t weight,
                         bool has_bias, tt_value_t bias) {
  if (has_weight) x = tt__mul(b, x, weight);
  if (has_bias) x = tt__add(b, x, bias);
  return x;
}

static uint32_t trailing_dims(uint32_t rank, uint32_t count, int64_t *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = rank - count + i;
  return count;
}
static uint32_t leading_dims(uint32_t count, int64_t *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = i;
  return count;
}

// native_layer_norm(input, normalized_shape, weight, bias, eps)
TT_LOWER0(layer_norm) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  uint32_t inner;
  int64_t dims[TT_MAX_RANK];
  const int64_t *shape = tt_lower_ints(L, 1, &inner);
  trailing_dims(x->rank, inner, dims);
  const tt__moments_t m =
      tt__moments(b, tt_lower_tensor_as(L, 0, d), dims, inner, tt__product(shape, inner));
  const tt_value_t rstd = tt__rsqrt(b, tt__add(b, m.variance, tt_lower_scalar(L, 4, d)));
  const bool w = tt_lower_has(L, 2), s = tt_lower_has(L, 3);
  tt_lower_return(
      L, 0,
      affine(b, tt__mul(b, m.centered, rstd), w, w ? tt_lower_tensor_as(L, 2, d) : TT_NO_VALUE, s,
             s ? tt_lower_tensor_as(L, 3, d) : TT_NO_VALUE));
  tt_lower_return(L, 1, m.mean);
  tt_lower_return(L, 2, rstd);
}

// _fused_rms_norm(input, normalized_shape, weight, eps) -> (output, rstd)
TT_LOWER0(rms_norm) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  uint32_t inner;
  int64_t dims[TT_MAX_RANK];
  const int64_t *shape = tt_lower_ints(L, 1, &inner);
  trailing_dims(x->rank, inner, dims);
  const tt_value_t v = tt_lower_tensor_as(L, 0, d);
  if (tt_dtype_is_complex(d)) {
    tt_lower_unsupported(L, "a complex input");
    return;
  }
  const tt_value_t mean_square = tt__divc(b, tt__sum_over(b, tt__square(b, v), dims, inner, true),
                                          (double)tt__product(shape, inner));
  const tt_value_t eps =
      tt_lower_has(L, 3) ? tt_lower_scalar(L, 3, d)
                         : tt_emit_scalar(b, d, d == TT_F64 ? DBL_EPSILON : (double)FLT_EPSILON);
  const tt_value_t rstd = tt__rsqrt(b, tt__add(b, mean_square, eps));
  const bool w = tt_lower_has(L, 2);
  tt_lower_return(L, 0,
                  affine(b, tt__mul(b, v, rstd), w, w ? tt_lower_tensor_as(L, 2, d) : TT_NO_VALUE,
                         false, TT_NO_VALUE));
  tt_lower_return(L, 1, rstd);
}

// The gradients of layer_norm (`centered`) and rms_norm, whose arguments are alike but for the mean
// before rstd and the bias behind the weight.
static void norm_backward(tt_lower_t *L, bool centered) {
  tt_build_t *b = L->b;
  const uint32_t rstd_arg = centered ? 4 : 3, weight_arg = rstd_arg + 1, mask = centered ? 7 : 5;
  const tt_tensor_t *x = tt_lower_meta(L, 1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  uint32_t inner;
  int64_t dims[TT_MAX_RANK], outer[TT_MAX_RANK];
  const int64_t *shape = tt_lower_ints(L, 2, &inner);
  const double n = (double)tt__product(shape, inner);
  trailing_dims(x->rank, inner, dims);
  const uint32_t outer_count = leading_dims(x->rank - inner, outer);
  const tt_value_t g = tt_lower_tensor_as(L, 0, d), rstd = tt_lower_tensor_as(L, rstd_arg, d);
  const bool weighted = tt_lower_has(L, weight_arg);
  tt_value_t xhat = tt_lower_tensor_as(L, 1, d);
  if (centered) xhat = tt__sub(b, xhat, tt_lower_tensor_as(L, 3, d));
  xhat = tt__mul(b, xhat, rstd);
  if (tt__wanted(L, mask, 0)) {
    const tt_value_t gw = weighted ? tt__mul(b, g, tt_lower_tensor_as(L, weight_arg, d)) : g;
    const tt_value_t mean_gx =
        tt__divc(b, tt__sum_over(b, tt__mul(b, gw, xhat), dims, inner, true), n);
    const tt_value_t rest =
        centered ? tt__sub(b, gw, tt__divc(b, tt__sum_over(b, gw, dims, inner, true), n)) : gw;
    tt_lower_return(L, 0, tt__mul(b, rstd, tt__sub(b, rest, tt__mul(b, xhat, mean_gx))));
  }
  if (tt__wanted(L, mask, 1) && weighted) {
    tt_lower_return(L, 1, tt__sum_over(b, tt__mul(b, g, xhat), outer, outer_count, false));
  }
  if (centered && tt__wanted(L, mask, 2)) {
    tt_lower_return(L, 2, tt__sum_over(b, g, outer, outer_count, false));
  }
}

// native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, mask[3])
TT_LOWER0(layer_norm_backward) { norm_backward(L, true); }

// _fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight, mask[2])
TT_LOWER0(rms_norm_backward) { norm_backward(L, false); }

// A per-channel vector as [1, G, C/G, 1].
static tt_value_t channels(tt_lower_t *L, uint32_t arg, int64_t c, int64_t groups, tt_dtype_t d) {
  const int64_t dims[] = {1, groups, c / groups, 1};
  return tt_emit_reshape(L->b, tt_lower_tensor_as(L, arg, d), 4, dims);
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
TT_LOWER0(group_norm) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  const int64_t n = tt_lower_int(L, 3, 0), c = tt_lower_int(L, 4, 0), hw = tt_lower_int(L, 5, 0);
  const int64_t groups = tt_lower_int(L, 6, 1);
  const int64_t split[] = {n, groups, c / groups, hw}, stats[] = {n, groups};
  static const int64_t inner[] = {2, 3};
  const tt__moments_t m = tt__moments(b, tt_emit_reshape(b, tt_lower_tensor_as(L, 0, d), 4, split),
                                      inner, 2, c / groups * hw);
  const tt_value_t rstd = tt__rsqrt(b, tt__add(b, m.variance, tt_lower_scalar(L, 7, d)));
  const bool w = tt_lower_has(L, 1), s = tt_lower_has(L, 2);
  const tt_value_t y =
      affine(b, tt__mul(b, m.centered, rstd), w, w ? channels(L, 1, c, groups, d) : TT_NO_VALUE, s,
             s ? channels(L, 2, c, groups, d) : TT_NO_VALUE);
  tt_lower_return(L, 0, tt_emit_reshape(b, y, x->rank, x->sizes));
  tt_lower_return(L, 1, tt_emit_reshape(b, m.mean, 2, stats));
  tt_lower_return(L, 2, tt_emit_reshape(b, rstd, 2, stats));
}

// native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, mask[3])
TT_LOWER0(group_norm_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  const int64_t n = tt_lower_int(L, 5, 0), c = tt_lower_int(L, 6, 0), hw = tt_lower_int(L, 7, 0);
  const int64_t groups = tt_lower_int(L, 8, 1);
  const int64_t split[] = {n, groups, c / groups, hw}, stats[] = {n, groups, 1, 1}, channel[] = {c};
  static const int64_t inner[] = {2, 3}, but_channel[] = {0, 3};
  const tt_value_t g = tt_emit_reshape(b, tt_lower_tensor_as(L, 0, d), 4, split);
  const tt_value_t rstd = tt_emit_reshape(b, tt_lower_tensor_as(L, 3, d), 4, stats);
  const tt_value_t mean = tt_emit_reshape(b, tt_lower_tensor_as(L, 2, d), 4, stats);
  const tt_value_t xhat =
      tt__mul(b, tt__sub(b, tt_emit_reshape(b, tt_lower_tensor_as(L, 1, d), 4, split), mean), rstd);
  if (tt__wanted(L, 9, 0)) {
    const double count = (double)(c / groups * hw);
    const tt_value_t gw = tt_lower_has(L, 4) ? tt__mul(b, g, channels(L, 4, c, groups, d)) : g;
    const tt_value_t mean_g = tt__divc(b, tt__sum_over(b, gw, inner, 2, true), count);
    const tt_value_t mean_gx =
        tt__divc(b, tt__sum_over(b, tt__mul(b, gw, xhat), inner, 2, true), count);
    const tt_value_t gx =
        tt__mul(b, rstd, tt__sub(b, tt__sub(b, gw, mean_g), tt__mul(b, xhat, mean_gx)));
    tt_lower_return(L, 0, tt_emit_reshape(b, gx, x->rank, x->sizes));
  }
  if (tt__wanted(L, 9, 1)) {
    const tt_value_t gw = tt__sum_over(b, tt__mul(b, g, xhat), but_channel, 2, false);
    tt_lower_return(L, 1, tt_emit_reshape(b, gw, 1, channel));
  }
  if (tt__wanted(L, 9, 2)) {
    tt_lower_return(L, 2,
                    tt_emit_reshape(b, tt__sum_over(b, g, but_channel, 2, false), 1, channel));
  }
}

// _weight_norm_interface(v, g, dim) -> (w, norms)
TT_LOWER0(weight_norm) {
  tt_build_t *b = L->b;
  const tt_tensor_t *v = tt_lower_meta(L, 0);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)v->dtype);
  int64_t dims[TT_MAX_RANK];
  const uint32_t count = tt__other_dims(v->rank, (uint32_t)tt_lower_dim(L, 2, v->rank), dims);
  const tt_value_t x = tt_lower_tensor_as(L, 0, d);
  const tt_value_t norm = tt__sqrt(b, tt__sum_over(b, tt__square(b, x), dims, count, true));
  tt_lower_return(L, 0, tt__mul(b, x, tt__div(b, tt_lower_tensor_as(L, 1, d), norm)));
  tt_lower_return(L, 1, norm);
}

// _weight_norm_interface_backward(grad_w, v, g, norms, dim) -> (grad_v, grad_g)
TT_LOWER0(weight_norm_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *v = tt_lower_meta(L, 1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)v->dtype);
  int64_t dims[TT_MAX_RANK];
  const uint32_t count = tt__other_dims(v->rank, (uint32_t)tt_lower_dim(L, 4, v->rank), dims);
  const tt_value_t gw = tt_lower_tensor_as(L, 0, d), x = tt_lower_tensor_as(L, 1, d);
  const tt_value_t norm = tt_lower_tensor_as(L, 3, d);
  const tt_value_t dot = tt__sum_over(b, tt__mul(b, gw, x), dims, count, true);
  const tt_value_t along = tt__mul(b, x, tt__div(b, dot, tt__square(b, norm)));
  tt_lower_return(L, 0,
                  tt__mul(b, tt__div(b, tt_lower_tensor_as(L, 2, d), norm), tt__sub(b, gw, along)));
  tt_lower_return(L, 1, tt__div(b, dot, norm));
}
