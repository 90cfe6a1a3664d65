// Elementwise functions of one value: the table behind TT_U_* and its lowering.
#include <math.h>

#include "aten/math.h"
#include "aten/pointwise_params.h"

static bool is_complex(const tt_build_t *b, tt_value_t x) {
  return tt_dtype_is_complex(tt_build_dtype(b, x));
}
static bool is_float(const tt_build_t *b, tt_value_t x) {
  return tt_dtype_is_float(tt_build_dtype(b, x));
}
static tt_value_t real_of(tt_build_t *b, tt_value_t x) { return tt_emit_unary(b, TT_OP_REAL, x); }
static tt_value_t imag_of(tt_build_t *b, tt_value_t x) { return tt_emit_unary(b, TT_OP_IMAG, x); }
static tt_value_t false_like(tt_build_t *b, tt_value_t x) {
  const tt_type_t *t = tt_build_type(b, x);
  return tt_emit_splat_int(b, TT_I1, t->rank, t->dims, 0);
}

tt_value_t tt__complex(tt_build_t *b, tt_value_t re, tt_value_t im) {
  return tt_emit_binary(b, TT_OP_COMPLEX, re, im);
}
// i z and -i z.
static tt_value_t times_i(tt_build_t *b, tt_value_t z) {
  return tt__complex(b, tt__neg(b, imag_of(b, z)), real_of(b, z));
}
static tt_value_t times_minus_i(tt_build_t *b, tt_value_t z) {
  return tt__complex(b, imag_of(b, z), tt__neg(b, real_of(b, z)));
}

static tt_value_t pw_identity(tt_build_t *b, tt_value_t x) {
  (void)b;
  return x;
}
static tt_value_t pw_zero(tt_build_t *b, tt_value_t x) { return tt__num(b, x, 0); }

static tt_value_t pw_abs(tt_build_t *b, tt_value_t x) {
  tt_dtype_t d = tt_build_dtype(b, x);
  return d == TT_I1 || tt_dtype_is_unsigned(d) ? x : tt__abs(b, x);
}
// (0 < x) - (x < 0): NaN gives 0, as in PyTorch.
static tt_value_t pw_sign(tt_build_t *b, tt_value_t x) {
  tt_dtype_t d = tt_build_dtype(b, x);
  if (d == TT_I1) return x;
  tt_value_t positive = tt_emit_convert(b, tt__cmpc(b, TT_GT, x, 0), d);
  if (tt_dtype_is_unsigned(d)) return positive;
  return tt__sub(b, positive, tt_emit_convert(b, tt__cmpc(b, TT_LT, x, 0), d));
}
static tt_value_t pw_sgn(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return pw_sign(b, x);
  tt_value_t size = tt__abs(b, x), zero = tt__cmpc(b, TT_EQ, size, 0);
  tt_value_t one = tt__select_yes(b, zero, 1, size);
  return tt__complex(b, tt__div(b, real_of(b, x), one), tt__div(b, imag_of(b, x), one));
}
static tt_value_t pw_ceil(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt__ceil(b, x) : x;
}
static tt_value_t pw_floor(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt__floor(b, x) : x;
}
static tt_value_t pw_round(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt_emit_unary(b, TT_OP_ROUND_NEAREST_EVEN, x) : x;
}
static tt_value_t pw_trunc(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt__trunc(b, x) : x;
}
static tt_value_t pw_frac(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt__sub(b, x, tt__trunc(b, x)) : tt__sub(b, x, x);
}
static tt_value_t pw_relu(tt_build_t *b, tt_value_t x) {
  if (tt_dtype_is_complex(tt_build_dtype(b, x))) {
    tt_build_fail(b, TT_ERROR(TYPE, "complex numbers have no order"));
    return TT_NO_VALUE;
  }
  return tt__max(b, x, tt__num(b, x, 0));
}
static tt_value_t pw_logical_not(tt_build_t *b, tt_value_t x) {
  return tt__not(b, tt_emit_convert(b, x, TT_I1));
}

static tt_value_t pw_isnan(tt_build_t *b, tt_value_t x) {
  if (is_complex(b, x)) {
    return tt__or(b, tt__isnan(b, real_of(b, x)), tt__isnan(b, imag_of(b, x)));
  }
  return is_float(b, x) ? tt__isnan(b, x) : false_like(b, x);
}
static tt_value_t pw_isinf(tt_build_t *b, tt_value_t x) {
  if (is_complex(b, x)) {
    return tt__or(b, tt__isinf(b, real_of(b, x)), tt__isinf(b, imag_of(b, x)));
  }
  return is_float(b, x) ? tt__isinf(b, x) : false_like(b, x);
}
static tt_value_t pw_isposinf(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt__cmpc(b, TT_EQ, x, INFINITY) : false_like(b, x);
}
static tt_value_t pw_isneginf(tt_build_t *b, tt_value_t x) {
  return is_float(b, x) ? tt__cmpc(b, TT_EQ, x, -INFINITY) : false_like(b, x);
}
static tt_value_t pw_signbit(tt_build_t *b, tt_value_t x) {
  if (is_float(b, x)) return tt__signbit(b, x);
  if (tt_dtype_is_signed_int(tt_build_dtype(b, x))) return tt__cmpc(b, TT_LT, x, 0);
  return false_like(b, x);
}

static tt_value_t pw_conj(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return x;
  return tt__complex(b, real_of(b, x), tt__neg(b, imag_of(b, x)));
}
static tt_value_t pw_angle(tt_build_t *b, tt_value_t x) {
  if (is_complex(b, x)) return tt_emit_binary(b, TT_OP_ATAN2, imag_of(b, x), real_of(b, x));
  tt_value_t pi = tt_emit_splat_like(b, x, M_PI), zero = tt_emit_splat_like(b, x, 0);
  tt_value_t angle = tt__select(b, tt__cmpc(b, TT_LT, x, 0), pi, zero);
  return is_float(b, x) ? tt__select(b, tt__isnan(b, x), x, angle) : angle;
}

static tt_value_t pw_reciprocal(tt_build_t *b, tt_value_t x) { return tt__rdivc(b, 1, x); }
static tt_value_t pw_log10(tt_build_t *b, tt_value_t x) {
  return tt__div(b, tt__log(b, x), tt__num(b, x, M_LN10));
}
static tt_value_t pw_tan(tt_build_t *b, tt_value_t x) { return tt_emit_unary(b, TT_OP_TAN, x); }

static tt_value_t pw_sinh(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_SINH, x);
  return tt__mulc(b, tt__sub(b, tt__exp(b, x), tt__exp(b, tt__neg(b, x))), 0.5);
}
static tt_value_t pw_cosh(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_COSH, x);
  return tt__mulc(b, tt__add(b, tt__exp(b, x), tt__exp(b, tt__neg(b, x))), 0.5);
}
// log(x + sqrt(x^2 + 1)) on the half plane where nothing cancels; asinh is odd.
static tt_value_t pw_asinh(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_ASINH, x);
  tt_value_t left = tt__cmpc(b, TT_LT, real_of(b, x), 0);
  tt_value_t z = tt__select(b, left, tt__neg(b, x), x);
  tt_value_t root = tt__sqrt(b, tt__addc(b, tt__square(b, z), 1));
  tt_value_t r = tt__log(b, tt__add(b, z, root));
  return tt__select(b, left, tt__neg(b, r), r);
}
static tt_value_t pw_asin(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_ASIN, x);
  return times_minus_i(b, pw_asinh(b, times_i(b, x)));
}
static tt_value_t pw_acos(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_ACOS, x);
  return tt__rsubc(b, M_PI_2, pw_asin(b, x));
}
static tt_value_t pw_acosh(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_ACOSH, x);
  tt_value_t roots = tt__mul(b, tt__sqrt(b, tt__addc(b, x, 1)), tt__sqrt(b, tt__addc(b, x, -1)));
  return tt__log(b, tt__add(b, x, roots));
}
static tt_value_t pw_atanh(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_ATANH, x);
  return tt__mulc(b, tt__sub(b, tt__log1p(b, x), tt__log1p(b, tt__neg(b, x))), 0.5);
}
static tt_value_t pw_atan(tt_build_t *b, tt_value_t x) {
  if (!is_complex(b, x)) return tt_emit_unary(b, TT_OP_ATAN, x);
  return times_minus_i(b, pw_atanh(b, times_i(b, x)));
}

static tt_value_t pw_sinc(tt_build_t *b, tt_value_t x) {
  tt_value_t zero = tt__cmpc(b, TT_EQ, x, 0), p = tt__mulc(b, x, M_PI);
  tt_value_t safe = tt__select_yes(b, zero, 1, p);
  return tt__select_yes(b, zero, 1, tt__div(b, tt__sin(b, safe), safe));
}
static tt_value_t pw_spherical_j0(tt_build_t *b, tt_value_t x) {
  tt_value_t zero = tt__cmpc(b, TT_LT, tt__abs(b, x), 1e-3);
  tt_value_t safe = tt__select_yes(b, zero, 1, x);
  tt_value_t series = tt__rsubc(b, 1, tt__mulc(b, tt__square(b, x), 1.0 / 6));
  tt_value_t far = tt__select_yes(b, tt__isinf(b, x), 0, tt__div(b, tt__sin(b, safe), safe));
  return tt__select(b, zero, series, far);
}
static tt_value_t pw_entr(tt_build_t *b, tt_value_t x) {
  tt_value_t positive = tt__cmpc(b, TT_GT, x, 0);
  tt_value_t r = tt__neg(b, tt__mul(b, x, tt__log(b, x)));
  tt_value_t rest = tt__select(b, tt__cmpc(b, TT_EQ, x, 0), tt_emit_splat_like(b, x, 0),
                               tt_emit_splat_like(b, x, -INFINITY));
  return tt__select(b, tt__isnan(b, x), x, tt__select(b, positive, r, rest));
}
static tt_value_t pw_rad2deg(tt_build_t *b, tt_value_t x) { return tt__mulc(b, x, 180 / M_PI); }
static tt_value_t pw_deg2rad(tt_build_t *b, tt_value_t x) { return tt__mulc(b, x, M_PI / 180); }

static tt_value_t pw_silu(tt_build_t *b, tt_value_t x) { return tt__mul(b, x, tt__sigmoid(b, x)); }
// log1p(exp(x)) without overflow.
static tt_value_t softplus(tt_build_t *b, tt_value_t x) {
  tt_value_t tail = tt__log1p(b, tt__exp(b, tt__neg(b, tt__abs(b, x))));
  return tt__add(b, tt__max(b, x, tt__num(b, x, 0)), tail);
}
static tt_value_t pw_mish(tt_build_t *b, tt_value_t x) {
  return tt__mul(b, x, tt__tanh(b, softplus(b, x)));
}
static tt_value_t relu6_plus_3(tt_build_t *b, tt_value_t x) {
  tt_value_t low = tt__max(b, tt__addc(b, x, 3), tt__num(b, x, 0));
  return tt__min(b, low, tt__num(b, x, 6));
}
static tt_value_t pw_hardsigmoid(tt_build_t *b, tt_value_t x) {
  return tt__div(b, relu6_plus_3(b, x), tt__num(b, x, 6));
}
static tt_value_t pw_hardswish(tt_build_t *b, tt_value_t x) {
  return tt__div(b, tt__mul(b, x, relu6_plus_3(b, x)), tt__num(b, x, 6));
}

// --- the table -----------------------------------------------------------------------------------
// Functions of pointwise_special.c.
#define U(name, cls, fn) tt_value_t fn(tt_build_t *b, tt_value_t x);
TT_SPECIAL_UNARIES(U)
#undef U

enum { SAME, EXACT, FLOAT };
static const struct {
  tt__unary_fn_t fn;
  int cls;
} functions[TT_U_COUNT] = {
#define U(name, cls, fn) {fn, cls},
    TT_UNARIES(U)
#undef U
};

tt_value_t tt__unary(tt_build_t *b, int kind, tt_value_t x, tt_dtype_t dtype) {
  int cls = functions[kind].cls;
  if (cls == FLOAT && !is_complex(b, x)) x = tt_emit_convert(b, x, dtype);
  if (cls != EXACT) x = tt__widen(b, x);
  return functions[kind].fn(b, x);
}

TT_LOWER(unary) {
  tt_lower_return(L, 0, tt__unary(L->b, param, tt_lower_tensor(L, 0), tt_lower_out_dtype(L, 0)));
}

TT_LOWER0(round_decimals) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__widen(b, tt_lower_tensor(L, 0));
  int64_t decimals = tt_lower_int(L, 1, 0);
  if (!is_float(b, x) || decimals == 0) {
    tt_lower_return(L, 0, pw_round(b, x));
    return;
  }
  tt_value_t scale = tt__num(b, x, pow(10, (double)(decimals < 0 ? -decimals : decimals)));
  tt_value_t y = decimals < 0 ? tt__div(b, x, scale) : tt__mul(b, x, scale);
  y = pw_round(b, y);
  tt_lower_return(L, 0, decimals < 0 ? tt__mul(b, y, scale) : tt__div(b, y, scale));
}

TT_LOWER0(frexp) {
  tt_build_t *b = L->b;
  tt_value_t mantissa, exponent;
  tt__frexp(b, tt__widen(b, tt_lower_tensor(L, 0)), &mantissa, &exponent);
  tt_lower_return(L, 0, mantissa);
  tt_lower_return(L, 1, exponent);
}

// logit(self, eps): eps clamps into [eps, 1 - eps].
TT_LOWER0(logit) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__operand(L, 0, tt_lower_out_dtype(L, 0));
  if (tt_lower_has(L, 1)) {
    tt_value_t eps = tt_lower_scalar(L, 1, tt_build_dtype(b, x)), high = tt__rsubc(b, 1, eps);
    tt_value_t low = tt__select(b, tt__lt(b, x, eps), eps, x);
    tt_value_t both = tt__select(b, tt__gt(b, low, high), high, low);
    x = tt__select(b, tt__cmpc(b, TT_LT, eps, 0), x, both);
  }
  tt_lower_return(L, 0, tt__log(b, tt__div(b, x, tt__rsubc(b, 1, x))));
}

// nan_to_num(self, nan, posinf, neginf) of real numbers; what is left out is 0 and the type's
// limits.
static tt_value_t without_infinities(tt_lower_t *L, tt_value_t x) {
  tt_build_t *b = L->b;
  tt_dtype_t d = tt_build_dtype(b, x);
  double largest = d == TT_F64    ? 0x1.fffffffffffffp+1023
                   : d == TT_F32  ? 0x1.fffffep+127
                   : d == TT_BF16 ? 0x1.fep+127
                                  : 65504;
  tt_value_t nan = tt_lower_has(L, 1) ? tt_lower_scalar(L, 1, d) : tt_emit_scalar(b, d, 0);
  tt_value_t top = tt_lower_has(L, 2) ? tt_lower_scalar(L, 2, d) : tt_emit_scalar(b, d, largest);
  tt_value_t low = tt_lower_has(L, 3) ? tt_lower_scalar(L, 3, d) : tt_emit_scalar(b, d, -largest);
  tt_value_t y = tt__select(b, tt__isnan(b, x), nan, x);
  y = tt__select(b, tt__cmpc(b, TT_EQ, x, INFINITY), top, y);
  return tt__select(b, tt__cmpc(b, TT_EQ, x, -INFINITY), low, y);
}
TT_LOWER0(nan_to_num) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  if (is_complex(b, x)) {
    x = tt__complex(b, without_infinities(L, real_of(b, x)), without_infinities(L, imag_of(b, x)));
  } else if (is_float(b, x)) {
    x = without_infinities(L, x);
  }
  tt_lower_return(L, 0, x);
}
