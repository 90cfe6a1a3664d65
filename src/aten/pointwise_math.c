// Functions of one or two real values that take a few StableHLO ops.
#include <math.h>

#include "aten/math.h"

static tt_dtype_t bits_dtype(tt_dtype_t d) {
  switch (tt_dtype_size(d)) {
    case 1:
      return TT_S8;
    case 2:
      return TT_S16;
    case 4:
      return TT_S32;
    default:
      return TT_S64;
  }
}
static tt_value_t bitcast(tt_build_t *b, tt_value_t x, tt_dtype_t d) {
  const tt_type_t *t = tt_build_type(b, x);
  return tt_emit_bitcast(b, x, d, t->rank, t->dims);
}
static tt_value_t integer(tt_build_t *b, tt_value_t like, int64_t value) {
  return tt_emit_splat_int(b, tt_build_dtype(b, like), 0, NULL, value);
}

tt_value_t tt__widen(tt_build_t *b, tt_value_t x) {
  return tt_emit_convert(b, x, tt_lower_opmath(tt_build_dtype(b, x)));
}

tt_value_t tt__trunc(tt_build_t *b, tt_value_t x) {
  return tt__select(b, tt__cmpc(b, TT_LT, x, 0), tt__ceil(b, x), tt__floor(b, x));
}
tt_value_t tt__signbit(tt_build_t *b, tt_value_t x) {
  return tt__cmpc(b, TT_LT, bitcast(b, x, bits_dtype(tt_build_dtype(b, x))), 0);
}
tt_value_t tt__copysign(tt_build_t *b, tt_value_t magnitude, tt_value_t sign) {
  tt_value_t size = tt__abs(b, magnitude);
  return tt__select(b, tt__signbit(b, sign), tt__neg(b, size), size);
}
tt_value_t tt__isinf(tt_build_t *b, tt_value_t x) {
  return tt__cmpc(b, TT_EQ, tt__abs(b, x), INFINITY);
}

// Exponent bits are read and replaced as integers; subnormal values are scaled up first. Zero,
// infinity and NaN are their own mantissa.
// From the bits: the exponent is cut out and the one of [0.5, 1) put in its place. Subnormal
// numbers are scaled up first, which their exponent makes up for.
void tt__frexp(tt_build_t *b, tt_value_t x, tt_value_t *out_mantissa, tt_value_t *out_exponent) {
  tt_dtype_t d = tt_build_dtype(b, x), bits = bits_dtype(d);
  int mantissa = tt_dtype_infos[d].mantissa, width = d == TT_F64 ? 11 : 8;
  int64_t mask = ((INT64_C(1) << width) - 1), bias = (mask >> 1) - 1;
  double tiny = d == TT_F64 ? 0x1p-1022 : 0x1p-126, up = d == TT_F64 ? 0x1p54 : 0x1p25;
  tt_value_t size = tt__abs(b, x);
  tt_value_t small = tt__cmpc(b, TT_LT, size, tiny);
  tt_value_t special =
      tt__or(b, tt__cmpc(b, TT_EQ, size, 0), tt__not(b, tt_emit_unary(b, TT_OP_IS_FINITE, x)));
  tt_value_t i = bitcast(b, tt__select(b, small, tt__mulc(b, x, up), x), bits);
  tt_value_t e = tt_emit_binary(b, TT_OP_SHIFT_RIGHT_LOGICAL, i, integer(b, i, mantissa));
  e = tt__sub(b, tt__and(b, e, integer(b, i, mask)), integer(b, i, bias));
  e = tt__sub(b, e, tt__select(b, small, integer(b, e, d == TT_F64 ? 54 : 25), integer(b, e, 0)));
  tt_value_t m = tt__and(b, i, integer(b, i, ~(mask << mantissa)));
  m = bitcast(b, tt__or(b, m, integer(b, i, bias << mantissa)), d);
  *out_mantissa = tt__select(b, special, x, m);
  *out_exponent = tt_emit_convert(b, tt__select(b, special, integer(b, e, 0), e), TT_S32);
}

// Exponent plus the logarithm of a mantissa near one: exact for powers of two.
tt_value_t tt__log2(tt_build_t *b, tt_value_t x) {
  if (tt_dtype_is_complex(tt_build_dtype(b, x))) {
    return tt__div(b, tt__log(b, x), tt__num(b, x, M_LN2));
  }
  tt_value_t m, e;
  tt__frexp(b, x, &m, &e);
  e = tt_emit_convert(b, e, tt_build_dtype(b, x));
  tt_value_t low = tt__cmpc(b, TT_LT, m, M_SQRT1_2);
  m = tt__select(b, low, tt__mulc(b, m, 2), m);
  e = tt__select(b, low, tt__addc(b, e, -1), e);
  tt_value_t r = tt__add(b, e, tt__mulc(b, tt__log(b, m), M_LOG2E));
  tt_value_t plain = tt__and(b, tt__cmpc(b, TT_GT, x, 0), tt__cmpc(b, TT_LT, x, INFINITY));
  return tt__select(b, plain, r, tt__log(b, x));
}
tt_value_t tt__exp2(tt_build_t *b, tt_value_t x) {
  return tt__pow(b, tt_emit_splat_like(b, x, 2), x);
}

// The larger side is factored out, so that squares neither overflow nor vanish.
tt_value_t tt__hypot(tt_build_t *b, tt_value_t x, tt_value_t y) {
  x = tt__abs(b, x);
  y = tt__abs(b, y);
  tt_value_t large = tt__max(b, x, y), small = tt__min(b, x, y);
  tt_value_t zero = tt__cmpc(b, TT_EQ, large, 0);
  tt_value_t ratio = tt__div(b, small, tt__select_yes(b, zero, 1, large));
  tt_value_t r = tt__mul(b, large, tt__sqrt(b, tt__addc(b, tt__square(b, ratio), 1)));
  tt_value_t infinite = tt__or(b, tt__cmpc(b, TT_EQ, x, INFINITY), tt__cmpc(b, TT_EQ, y, INFINITY));
  return tt__select_yes(b, infinite, INFINITY, r);
}

tt_value_t tt__logaddexp(tt_build_t *b, tt_value_t x, tt_value_t y) {
  if (tt_dtype_is_complex(tt_build_dtype(b, x))) {
    tt_value_t less = tt__lt(b, tt_emit_unary(b, TT_OP_REAL, x), tt_emit_unary(b, TT_OP_REAL, y));
    tt_value_t large = tt__select(b, less, y, x), small = tt__select(b, less, x, y);
    tt_value_t r = tt__add(b, large, tt__log1p(b, tt__exp(b, tt__sub(b, small, large))));
    tt_value_t none = tt__cmpc(b, TT_EQ, tt_emit_unary(b, TT_OP_REAL, small), -INFINITY);
    return tt__select(b, none, large, r);
  }
  tt_value_t d = tt__neg(b, tt__abs(b, tt__sub(b, x, y)));
  tt_value_t top = tt__max(b, x, y);
  tt_value_t r = tt__add(b, top, tt__log1p(b, tt__exp(b, d)));
  tt_value_t same = tt__and(b, tt__isinf(b, x), tt__eq(b, x, y));
  return tt__select(b, same, x, r);
}

tt_value_t tt__chebyshev(tt_build_t *b, tt_value_t x, const double *c, uint32_t count) {
  // Terms below the type's precision are left out.
  double floor = tt_build_dtype(b, x) == TT_F64 ? 0 : 1e-10;
  while (count > 2 && fabs(c[count - 1]) < floor) count--;
  tt_value_t twice = tt__mulc(b, x, 2), next = tt__num(b, x, 0), r = tt__num(b, x, c[count - 1]);
  for (uint32_t i = count - 1; i-- > 1;) {
    tt_value_t now = tt__addc(b, tt__sub(b, tt__mul(b, twice, r), next), c[i]);
    next = r;
    r = now;
  }
  return tt__addc(b, tt__sub(b, tt__mul(b, x, r), next), c[0]);
}

static bool is_int(const tt_build_t *b, tt_value_t x) {
  return tt_dtype_is_int(tt_build_dtype(b, x)) || tt_build_dtype(b, x) == TT_I1;
}
// x and y have different signs.
static tt_value_t signs_differ(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt__ne(b, tt__cmpc(b, TT_LT, x, 0), tt__cmpc(b, TT_LT, y, 0));
}

static tt_value_t floor_div_int(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_value_t q = tt__div(b, x, y);
  if (!tt_dtype_is_signed_int(tt_build_dtype(b, x))) return q;
  tt_value_t inexact = tt__cmpc(b, TT_NE, tt__sub(b, x, tt__mul(b, q, y)), 0);
  tt_value_t down = tt__and(b, inexact, signs_differ(b, x, y));
  return tt__sub(b, q, tt_emit_convert(b, down, tt_build_dtype(b, q)));
}

// Python's floor division: from the exact remainder, so that a rounded quotient never jumps.
tt_value_t tt__floor_div(tt_build_t *b, tt_value_t x, tt_value_t y) {
  if (is_int(b, x)) return floor_div_int(b, x, y);
  tt_value_t quotient = tt__div(b, x, y), mod = tt__rem(b, x, y);
  tt_value_t q = tt__div(b, tt__sub(b, x, mod), y);
  tt_value_t down = tt__and(b, tt__cmpc(b, TT_NE, mod, 0), signs_differ(b, mod, y));
  q = tt__select(b, down, tt__addc(b, q, -1), q);
  tt_value_t f = tt__floor(b, q);
  f = tt__select(b, tt__cmpc(b, TT_GT, tt__sub(b, q, f), 0.5), tt__addc(b, f, 1), f);
  f = tt__select(b, tt__cmpc(b, TT_EQ, q, 0), tt__copysign(b, tt__num(b, q, 0), quotient), f);
  return tt__select(b, tt__cmpc(b, TT_EQ, y, 0), quotient, f);
}

tt_value_t tt__remainder(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_value_t mod = tt__rem(b, x, y);
  tt_dtype_t d = tt_build_dtype(b, x);
  if (is_int(b, x) && !tt_dtype_is_signed_int(d)) return mod;
  tt_value_t wrong = tt__and(b, tt__cmpc(b, TT_NE, mod, 0), signs_differ(b, mod, y));
  return tt__select(b, wrong, tt__add(b, mod, y), mod);
}

// Integers: a negative exponent gives 1, -1 or 0, as PyTorch has it.
tt_value_t tt__power(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_dtype_t d = tt_build_dtype(b, x);
  if (!tt_dtype_is_signed_int(d)) return tt__pow(b, x, y);
  tt_value_t zero = integer(b, x, 0), one = integer(b, x, 1);
  tt_value_t r = tt__pow(b, x, tt__max(b, y, zero));
  tt_value_t odd = tt__eq(b, tt__and(b, y, one), one);
  tt_value_t sign = tt__select(b, odd, integer(b, x, -1), one);
  tt_value_t unit = tt__select(b, tt__eq(b, x, one), one,
                               tt__select(b, tt__eq(b, x, integer(b, x, -1)), sign, zero));
  return tt__select(b, tt__lt(b, y, zero), unit, r);
}

tt_value_t tt__power_static(tt_build_t *b, tt_value_t x, double exponent) {
  tt_dtype_t d = tt_build_dtype(b, x);
  if (exponent == 1) return x;
  if (exponent == 2) return tt__square(b, x);
  if (exponent == 3) return tt__mul(b, tt__square(b, x), x);
  if (tt_dtype_is_float(d)) {
    if (exponent == 0.5) return tt__sqrt(b, x);
    if (exponent == -0.5) return tt__rsqrt(b, x);
    if (exponent == -1) return tt__rdivc(b, 1, x);
    if (exponent == -2) return tt__rdivc(b, 1, tt__square(b, x));
  }
  return tt__power(b, x, tt_emit_splat_like(b, x, exponent));
}

// From whichever end is nearer, so that weight 1 gives `end` exactly.
tt_value_t tt__lerp(tt_build_t *b, tt_value_t x, tt_value_t end, tt_value_t weight) {
  tt_value_t span = tt__sub(b, end, x);
  tt_value_t from_start = tt__add(b, x, tt__mul(b, weight, span));
  tt_value_t from_end = tt__sub(b, end, tt__mul(b, span, tt__rsubc(b, 1, weight)));
  tt_value_t size = tt__abs(b, weight);
  return tt__select(b, tt__cmpc(b, TT_LT, size, 0.5), from_start, from_end);
}
