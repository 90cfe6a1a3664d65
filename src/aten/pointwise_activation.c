// Activations that take scalars, and the derivatives of all of them.
#include <math.h>

#include "aten/emit.h"
#include "aten/pointwise_params.h"

// Argument i in the type that the op computes in.
static tt_value_t in(tt_lower_t *L, uint32_t i) {
  return tt__operand(L, i, tt_lower_out_dtype(L, 0));
}
static void out(tt_lower_t *L, tt_value_t x) { tt_lower_return(L, 0, x); }
// The gradient where `keep` holds, else zero.
static void out_where(tt_lower_t *L, tt_value_t keep, tt_value_t grad) {
  out(L, tt__select_no(L->b, keep, grad, 0));
}
static tt_value_t between(tt_build_t *b, tt_value_t x, tt_value_t low, tt_value_t high) {
  return tt__and(b, tt__ge(b, x, low), tt__le(b, x, high));
}

// --- gelu ----------------------------------------------------------------------------------------
static tt_value_t gelu_inner(tt_build_t *b, tt_value_t x) {
  tt_value_t cubic = tt__mulc(b, tt__mul(b, tt__square(b, x), x), 0.044715);
  return tt__mulc(b, tt__add(b, x, cubic), M_SQRT2 * M_2_SQRTPI * 0.5);
}
static tt_value_t normal_cdf(tt_build_t *b, tt_value_t x) {
  return tt__mulc(b, tt__addc(b, tt__erf(b, tt__mulc(b, x, M_SQRT1_2)), 1), 0.5);
}
// Has the call a known approximation? Fails it where not.
static bool gelu_is_known(tt_lower_t *L, uint32_t arg) {
  const tt_arg_t *how = tt_lower_arg(L, arg);
  bool known = !tt_lower_has(L, arg) || tt__string_is(how, "none") || tt__string_is(how, "tanh");
  if (!known) TT__FAIL(L, INVALID_ARGUMENT, "approximate argument must be either none or tanh.");
  return known;
}
TT_LOWER0(gelu) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0);
  if (!gelu_is_known(L, 1)) return;
  if (!tt__string_is(tt_lower_arg(L, 1), "tanh")) {
    out(L, tt__mul(b, x, normal_cdf(b, x)));
    return;
  }
  tt_value_t half = tt__mulc(b, x, 0.5);
  out(L, tt__mul(b, half, tt__addc(b, tt__tanh(b, gelu_inner(b, x)), 1)));
}
TT_LOWER0(gelu_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), x = in(L, 1), d;
  if (!tt__string_is(tt_lower_arg(L, 2), "tanh")) {
    tt_value_t density = tt__exp(b, tt__mulc(b, tt__square(b, x), -0.5));
    density = tt__mulc(b, density, 0.5 * M_2_SQRTPI * M_SQRT1_2);
    d = tt__add(b, normal_cdf(b, x), tt__mul(b, x, density));
  } else {
    tt_value_t t = tt__tanh(b, gelu_inner(b, x)), k = tt__num(b, x, M_SQRT2 * M_2_SQRTPI * 0.5);
    tt_value_t slope = tt__addc(b, tt__mulc(b, tt__square(b, x), 3 * 0.044715), 1);
    tt_value_t dt = tt__mul(b, tt__rsubc(b, 1, tt__square(b, t)), tt__mul(b, k, slope));
    tt_value_t left = tt__mulc(b, tt__addc(b, t, 1), 0.5);
    d = tt__add(b, left, tt__mul(b, tt__mulc(b, x, 0.5), dt));
  }
  out(L, tt__mul(b, g, d));
}

// --- exponential families ------------------------------------------------------------------------

// elu(self, alpha, scale, input_scale)
TT_LOWER0(elu) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0), scale = in(L, 2);
  tt_value_t low = tt__mul(b, tt__expm1(b, tt__mul(b, x, in(L, 3))), tt__mul(b, in(L, 1), scale));
  out(L, tt__select(b, tt__cmpc(b, TT_LT, x, 0), low, tt__mul(b, x, scale)));
}
// elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)
TT_LOWER0(elu_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), scale = in(L, 2), input_scale = in(L, 3), x = in(L, 5), low;
  tt_value_t factor = tt__mul(b, in(L, 1), scale);
  if (tt_lower_int(L, 4, 0)) {
    low = tt__mul(b, input_scale, tt__add(b, x, factor));
  } else {
    low = tt__mul(b, tt__mul(b, input_scale, factor), tt__exp(b, tt__mul(b, x, input_scale)));
  }
  out(L, tt__mul(b, g,
                 tt__select(b, tt__cmpc(b, TT_LE, x, 0), low,
                            tt_emit_broadcast_to(b, scale, tt__rank(b, low),
                                                 tt_build_type(b, low)->dims))));
}

// softplus(self, beta, threshold)
TT_LOWER0(softplus) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0), beta = in(L, 1), z = tt__mul(b, x, beta);
  tt_value_t soft = tt__div(b, tt__log1p(b, tt__exp(b, z)), beta);
  out(L, tt__select(b, tt__gt(b, z, in(L, 2)), x, soft));
}
TT_LOWER0(softplus_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), z = tt__mul(b, in(L, 1), in(L, 2)), e = tt__exp(b, z);
  tt_value_t soft = tt__div(b, tt__mul(b, g, e), tt__addc(b, e, 1));
  out(L, tt__select(b, tt__gt(b, z, in(L, 3)), g, soft));
}

TT_LOWER0(log_sigmoid) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0), z = tt__exp(b, tt__neg(b, tt__abs(b, x)));
  out(L, tt__sub(b, tt__min(b, x, tt__num(b, x, 0)), tt__log1p(b, z)));
  bool empty = L->outs[1].rank == 1 && L->outs[1].sizes[0] == 0;
  tt_lower_return(L, 1, empty ? tt_emit_splat(b, tt_build_dtype(b, z), 1, L->outs[1].sizes, 0) : z);
}
TT_LOWER0(log_sigmoid_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1), z = tt__exp(b, tt__neg(b, tt__abs(b, x)));
  tt_value_t ratio = tt__div(b, z, tt__addc(b, z, 1));
  tt_value_t d = tt__select(b, tt__cmpc(b, TT_LT, x, 0), tt__rsubc(b, 1, ratio), ratio);
  out(L, tt__mul(b, in(L, 0), d));
}

TT_LOWER0(silu_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1), s = tt__sigmoid(b, x);
  tt_value_t d = tt__addc(b, tt__mul(b, x, tt__rsubc(b, 1, s)), 1);
  out(L, tt__mul(b, tt__mul(b, in(L, 0), s), d));
}
TT_LOWER0(mish_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1), tail = tt__log1p(b, tt__exp(b, tt__neg(b, tt__abs(b, x))));
  tt_value_t t = tt__tanh(b, tt__add(b, tt__max(b, x, tt__num(b, x, 0)), tail));
  tt_value_t inner =
      tt__mul(b, tt__mul(b, x, tt__sigmoid(b, x)), tt__rsubc(b, 1, tt__square(b, t)));
  out(L, tt__mul(b, in(L, 0), tt__add(b, t, inner)));
}
static tt_value_t conjugate(tt_build_t *b, tt_value_t x) {
  return tt__unary(b, TT_U_CONJ, x, tt_build_dtype(b, x));
}
TT_LOWER0(sigmoid_backward) {
  tt_build_t *b = L->b;
  tt_value_t y = conjugate(b, in(L, 1));
  out(L, tt__mul(b, tt__mul(b, in(L, 0), tt__rsubc(b, 1, y)), y));
}
TT_LOWER0(tanh_backward) {
  tt_build_t *b = L->b;
  tt_value_t y = conjugate(b, in(L, 1));
  out(L, tt__mul(b, in(L, 0), tt__rsubc(b, 1, tt__square(b, y))));
}
// logit_backward(grad, self, eps)
TT_LOWER0(logit_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1), d = tt__div(b, in(L, 0), tt__mul(b, x, tt__rsubc(b, 1, x)));
  tt_value_t zero = tt__num(b, x, 0), one = tt__num(b, x, 1);
  tt_value_t outside = tt__not(b, between(b, x, zero, one));
  tt_value_t free = tt__select_yes(b, outside, NAN, d);
  if (!tt_lower_has(L, 2)) {
    out(L, free);
    return;
  }
  tt_value_t eps = in(L, 2);
  tt_value_t kept = between(b, x, eps, tt__rsubc(b, 1, eps));
  tt_value_t clamped = tt__select_no(b, kept, d, 0);
  out(L, tt__select(b, tt__cmpc(b, TT_LT, eps, 0), free, clamped));
}

// --- piecewise linear ----------------------------------------------------------------------------
TT_LOWER0(leaky_relu) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0);
  out(L, tt__select(b, tt__cmpc(b, TT_GT, x, 0), x, tt__mul(b, x, in(L, 1))));
}
TT_LOWER0(leaky_relu_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), x = in(L, 1);
  out(L, tt__select(b, tt__cmpc(b, TT_GT, x, 0), g, tt__mul(b, g, in(L, 2))));
}
TT_LOWER0(hardtanh) {
  tt_value_t x = in(L, 0);
  out(L, tt__min(L->b, tt__max(L->b, x, in(L, 1)), in(L, 2)));
}
TT_LOWER0(hardtanh_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1), outside = tt__or(b, tt__le(b, x, in(L, 2)), tt__ge(b, x, in(L, 3)));
  out(L, tt__select_yes(b, outside, 0, in(L, 0)));
}
TT_LOWER0(hardsigmoid_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1);
  tt_value_t inside = tt__and(b, tt__cmpc(b, TT_GT, x, -3), tt__cmpc(b, TT_LT, x, 3));
  out_where(L, inside, tt__divc(b, in(L, 0), 6));
}
TT_LOWER0(hardswish_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), x = in(L, 1);
  tt_value_t middle = tt__mul(b, g, tt__addc(b, tt__divc(b, x, 3), 0.5));
  tt_value_t low = tt__select(b, tt__cmpc(b, TT_LT, x, 3), middle, g);
  out(L, tt__select_yes(b, tt__cmpc(b, TT_LE, x, -3), 0, low));
}
TT_LOWER0(hardshrink) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0), lambda = in(L, 1);
  out(L, tt__select_yes(b, between(b, x, tt__neg(b, lambda), lambda), 0, x));
}
TT_LOWER0(softshrink) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0), lambda = in(L, 1);
  tt_value_t low =
      tt__select(b, tt__lt(b, x, tt__neg(b, lambda)), tt__add(b, x, lambda), tt__mulc(b, x, 0));
  out(L, tt__select(b, tt__gt(b, x, lambda), tt__sub(b, x, lambda), low));
}
// The gradient of hardshrink and softshrink: (grad, self, lambda).
TT_LOWER0(shrink_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), x = in(L, 1), lambda = in(L, 2);
  out(L, tt__select_yes(b, between(b, x, tt__neg(b, lambda), lambda), 0, g));
}
// threshold(self, threshold, value)
TT_LOWER0(threshold) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0);
  out(L, tt__select(b, tt__le(b, x, in(L, 1)), tt__to_out(L, 0, in(L, 2)), x));
}
// threshold_backward(grad, self, threshold)
TT_LOWER0(threshold_backward) {
  tt_build_t *b = L->b;
  out(L, tt__select_yes(b, tt__le(b, in(L, 1), in(L, 2)), 0, in(L, 0)));
}

// --- prelu, glu ----------------------------------------------------------------------------------
TT_LOWER0(prelu) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0);
  out(L, tt__select(b, tt__cmpc(b, TT_GT, x, 0), x, tt__mul(b, x, in(L, 1))));
}
// _prelu_kernel_backward(grad, self, weight)
TT_LOWER0(prelu_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), x = in(L, 1), positive = tt__cmpc(b, TT_GT, x, 0);
  out(L, tt__select(b, positive, g, tt__mul(b, g, in(L, 2))));
  tt_lower_return(L, 1, tt__select_yes(b, positive, 0, tt__mul(b, x, g)));
}

static void halves(tt_lower_t *L, tt_value_t x, int64_t dim, tt_value_t *out_a, tt_value_t *out_b) {
  int64_t n = tt__dim(L->b, x, dim) / 2;
  *out_a = tt_emit_slice_dim(L->b, x, dim, 0, n, 1);
  *out_b = tt_emit_slice_dim(L->b, x, dim, n, 2 * n, 1);
}
TT_LOWER0(glu) {
  tt_value_t x = in(L, 0), a, gate;
  halves(L, x, tt_lower_dim(L, 1, tt__rank(L->b, x)), &a, &gate);
  out(L, tt__mul(L->b, a, tt__sigmoid(L->b, gate)));
}
// glu_backward(grad, self, dim)
TT_LOWER0(glu_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = in(L, 0), x = in(L, 1), a, gate, d[2];
  int64_t dim = tt_lower_dim(L, 2, tt__rank(b, x));
  halves(L, x, dim, &a, &gate);
  tt_value_t s = tt__sigmoid(b, gate);
  d[0] = tt__mul(b, g, s);
  d[1] = tt__mul(b, tt__mul(b, d[0], tt__rsubc(b, 1, s)), a);
  out(L, tt_emit_concat(b, d, 2, dim));
}
// glu_jvp(glu, x, dx, dim)
TT_LOWER0(glu_jvp) {
  tt_build_t *b = L->b;
  tt_value_t y = in(L, 0), x = in(L, 1), dx = in(L, 2), a, gate, da, dgate;
  int64_t dim = tt_lower_dim(L, 3, tt__rank(b, x));
  halves(L, x, dim, &a, &gate);
  halves(L, dx, dim, &da, &dgate);
  tt_value_t s = tt__sigmoid(b, gate);
  tt_value_t right = tt__mul(b, dgate, tt__sub(b, y, tt__mul(b, s, y)));
  out(L, tt__add(b, tt__mul(b, da, s), right));
}
