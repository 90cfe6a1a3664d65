// Distances between rows (cdist, pdist) and renorm. The exponent p is static.
#include <math.h>

#include "aten/emit.h"
#include "aten/pointwise_params.h"

static tt_value_t sign(tt_build_t *b, tt_value_t x) {
  return tt__unary(b, TT_U_SIGN, x, tt_build_dtype(b, x));
}
// The derivative of a p-norm `dist` by the difference `d`, zero where the distance is zero.
static tt_value_t norm_slope(tt_build_t *b, tt_value_t d, tt_value_t dist, double p) {
  if (p == 0) return tt_emit_splat_like(b, d, 0);
  if (p == 1) return sign(b, d);
  tt_value_t size = tt__abs(b, d);
  if (p == INFINITY) {
    return tt__mul(b, sign(b, d), tt_emit_convert(b, tt__eq(b, size, dist), tt_build_dtype(b, d)));
  }
  tt_value_t zero = tt__cmpc(b, TT_EQ, dist, 0), safe = tt__select_yes(b, zero, 1, dist), r;
  if (p == 2) {
    r = tt__div(b, d, safe);
  } else {
    tt_value_t here = tt__cmpc(b, TT_EQ, size, 0);
    r = tt__power_static(b, tt__select_yes(b, here, 1, size), p - 1);
    r = tt__mul(b, sign(b, d), tt__div(b, r, tt__power_static(b, safe, p - 1)));
  }
  const tt_type_t *t = tt_build_type(b, r);
  return tt__select_yes(b, tt_emit_broadcast_to(b, zero, t->rank, t->dims), 0, r);
}
static tt_value_t with_size_one(tt_build_t *b, tt_value_t x, int64_t before) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dims[TT_MAX_RANK + 1];
  for (uint32_t i = 0, j = 0; i <= t->rank; i++) dims[i] = i == before ? 1 : t->dims[j++];
  return tt_emit_reshape(b, x, t->rank + 1, dims);
}
// x1[.., p, 1, m] - x2[.., 1, r, m]
static tt_value_t differences(tt_build_t *b, tt_value_t x1, tt_value_t x2) {
  return tt__sub(b, with_size_one(b, x1, (int64_t)tt__rank(b, x1) - 1),
                 with_size_one(b, x2, (int64_t)tt__rank(b, x2) - 2));
}

// _cdist_forward(x1, x2, p, compute_mode)
TT_LOWER0(cdist) {
  tt_build_t *b = L->b;
  tt_value_t d = differences(b, tt__opmath_tensor(L, 0), tt__opmath_tensor(L, 1));
  int64_t last = (int64_t)tt__rank(b, d) - 1;
  if (tt__dim(b, d, last) == 0) {
    tt_lower_return(L, 0, tt_emit_scalar(b, tt_lower_out_dtype(L, 0), 0));
    return;
  }
  tt_lower_return(L, 0, tt__norm(b, d, tt_lower_static_float(L, 2, 2), &last, 1, false));
}
// _cdist_backward(grad, x1, x2, p, cdist)
TT_LOWER0(cdist_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), dist = tt__opmath_tensor(L, 4);
  if (tt__elements(b, g) == 0) {
    const tt_out_meta_t *out = &L->outs[0];
    tt_lower_return(L, 0, tt_emit_splat(b, (tt_dtype_t)out->dtype, out->rank, out->sizes, 0));
    return;
  }
  tt_value_t d = differences(b, tt__opmath_tensor(L, 1), tt__opmath_tensor(L, 2));
  int64_t rank = tt__rank(b, dist), wide = tt__rank(b, g);
  tt_value_t slope = norm_slope(b, d, with_size_one(b, dist, rank), tt_lower_static_float(L, 3, 2));
  tt_value_t r = tt__mul(b, slope, with_size_one(b, g, wide));
  // Under vmap the gradient alone may be batched.
  const int64_t others = tt__rank(b, r) - 2;
  tt_lower_return(L, 0, tt_emit_reduce(b, TT_OP_ADD, r, &others, 1, false));
}

// The rows of all pairs i < j, as constant indices.
static bool pairs(tt_lower_t *L, int64_t n, tt_value_t *out_i, tt_value_t *out_j) {
  int64_t count = n * (n - 1) / 2, k = 0;
  int64_t *rows = TT_SCRATCH(L->b, int64_t, 2 * count);
  if (!rows) return false;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = i + 1; j < n; j++, k++) rows[k] = i, rows[count + k] = j;
  }
  *out_i = tt__constant_s32(L->b, rows, 1, &count);
  *out_j = tt__constant_s32(L->b, rows + count, 1, &count);
  return true;
}
// _pdist_forward(self, p)
TT_LOWER0(pdist) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__opmath_tensor(L, 0), i, j;
  int64_t one = 1;
  if (tt__elements(b, x) == 0 || !pairs(L, tt__dim(b, x, 0), &i, &j)) {
    tt_lower_return(L, 0, tt_emit_scalar(b, tt_lower_out_dtype(L, 0), 0));
    return;
  }
  tt_value_t d = tt__sub(b, tt_emit_take(b, x, i, 0), tt_emit_take(b, x, j, 0));
  tt_lower_return(L, 0, tt__norm(b, d, tt_lower_static_float(L, 1, 2), &one, 1, false));
}
// _pdist_backward(grad, self, p, pdist)
TT_LOWER0(pdist_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), x = tt__opmath_tensor(L, 1),
             dist = tt__opmath_tensor(L, 3), i, j;
  if (tt__elements(b, x) == 0 || !pairs(L, tt__dim(b, x, 0), &i, &j)) {
    tt_lower_return(L, 0, tt_emit_scalar(b, tt_lower_out_dtype(L, 0), 0));
    return;
  }
  tt_value_t d = tt__sub(b, tt_emit_take(b, x, i, 0), tt_emit_take(b, x, j, 0));
  tt_value_t slope = norm_slope(b, d, with_size_one(b, dist, 1), tt_lower_static_float(L, 2, 2));
  tt_value_t r = tt__mul(b, slope, with_size_one(b, g, 1)), sum = tt_emit_splat_like(b, x, 0);
  sum = tt_emit_put(b, sum, i, r, 0, TT_OP_ADD);
  tt_lower_return(L, 0, tt_emit_put(b, sum, j, tt__neg(b, r), 0, TT_OP_ADD));
}

// renorm(self, p, dim, maxnorm): slices along dim whose norm is larger are scaled down.
TT_LOWER0(renorm) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__opmath_tensor(L, 0);
  uint32_t rank = tt__rank(b, x), count = 0;
  int64_t dim = tt_lower_dim(L, 2, rank), dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    if (i != dim) dims[count++] = i;
  }
  tt_value_t norm = tt__norm(b, x, tt_lower_static_float(L, 1, 2), dims, count, true);
  double most = tt_lower_static_float(L, 3, 1);
  tt_value_t scale = tt__rdivc(b, most, tt__addc(b, norm, 1e-7));
  scale = tt__select_no(b, tt__cmpc(b, TT_GT, norm, most), scale, 1);
  tt_lower_return(L, 0, tt__mul(b, x, tt_emit_convert(b, scale, tt_build_dtype(b, x))));
}
