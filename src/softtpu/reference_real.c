// Elementwise functions of floats, in f64. Smaller types call these and round once.
#include <math.h>
#include <string.h>

#include "softtpu/reference_internal.h"

static const double pi = 3.14159265358979323846;

double tt__ref_maximum(double x, double y) {
  if (isnan(x)) return x;
  if (isnan(y)) return y;
  if (x == y) return signbit(x) ? y : x;  // +0 is larger than -0
  return x > y ? x : y;
}

double tt__ref_minimum(double x, double y) {
  if (isnan(x)) return x;
  if (isnan(y)) return y;
  if (x == y) return signbit(x) ? x : y;
  return x < y ? x : y;
}

static double add(double x, double y) { return x + y; }
static double subtract(double x, double y) { return x - y; }
static double multiply(double x, double y) { return x * y; }
static double divide(double x, double y) { return x / y; }

static double negate(double x) { return -x; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double sign(double x) { return isnan(x) || x == 0 ? x : copysign(1, x); }

static double log_gamma(double x) {
  int unused;
  return lgamma_r(x, &unused);
}

// Reflection below zero, recurrence up to 12, then the asymptotic series in 1 / x^2.
static double digamma(double x) {
  static const double bernoulli[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  if (isinf(x)) return x > 0 ? x : (double)NAN;
  if (x <= 0) {
    if (x == floor(x)) return (double)NAN;
    // The fraction first: tan(pi x) would lose it for a large |x|.
    double fraction = x - floor(x);
    return digamma(1 - x) - pi / tan(pi * fraction);
  }
  double sum = 0;
  for (; x < 12; x += 1) sum -= 1 / x;
  double inverse = 1 / (x * x), series = 0;
  for (size_t i = sizeof bernoulli / sizeof *bernoulli; i-- > 0;) {
    series = (series + bernoulli[i]) * inverse;
  }
  return sum + log(x) - 0.5 / x - series;
}

// Winitzki's approximation (2e-3) and Halley steps, which triple the digits. The residual comes
// from erfc where erf is too flat.
static double erf_inverse(double x) {
  if (isnan(x) || x == 0) return x;
  double size = fabs(x);
  if (size > 1) return (double)NAN;
  if (size == 1) return copysign((double)INFINITY, x);
  double a = 0.147, log_term = log1p(-size * size), half = 2 / (pi * a) + log_term / 2;
  double y = sqrt(sqrt(half * half - log_term / a) - half);
  // Small arguments: y is sqrt(pi) / 2 * x to the last bit, and the formula above cancels.
  if (size < 1e-8) return x * sqrt(pi) / 2;
  for (int step = 0; step < 4; step++) {
    double residual = size > 0.5 ? (1 - size) - erfc(y) : erf(y) - size;
    double newton = residual / (2 / sqrt(pi) * exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return copysign(y, x);
}

static const tt__ref_real1_t unary[TT_OP_COUNT] = {
    [TT_OP_ABS] = fabs,
    [TT_OP_CBRT] = cbrt,
    [TT_OP_CEIL] = ceil,
    [TT_OP_COSINE] = cos,
    [TT_OP_EXPONENTIAL] = exp,
    [TT_OP_EXPONENTIAL_MINUS_ONE] = expm1,
    [TT_OP_FLOOR] = floor,
    [TT_OP_LOG] = log,
    [TT_OP_LOG_PLUS_ONE] = log1p,
    [TT_OP_LOGISTIC] = logistic,
    [TT_OP_NEGATE] = negate,
    [TT_OP_ROUND_NEAREST_AFZ] = round,
    [TT_OP_ROUND_NEAREST_EVEN] = rint,
    [TT_OP_RSQRT] = rsqrt,
    [TT_OP_SIGN] = sign,
    [TT_OP_SINE] = sin,
    [TT_OP_SQRT] = sqrt,
    [TT_OP_TAN] = tan,
    [TT_OP_TANH] = tanh,
    [TT_OP_ERF] = erf,
    [TT_OP_ERF_INV] = erf_inverse,
    [TT_OP_ERFC] = erfc,
    [TT_OP_LGAMMA] = log_gamma,
    [TT_OP_DIGAMMA] = digamma,
    [TT_OP_ACOS] = acos,
    [TT_OP_ACOSH] = acosh,
    [TT_OP_ASIN] = asin,
    [TT_OP_ASINH] = asinh,
    [TT_OP_ATAN] = atan,
    [TT_OP_ATANH] = atanh,
    [TT_OP_COSH] = cosh,
    [TT_OP_SINH] = sinh,
};

static const tt__ref_real2_t binary[TT_OP_COUNT] = {
    [TT_OP_ADD] = add,
    [TT_OP_ATAN2] = atan2,
    [TT_OP_DIVIDE] = divide,
    [TT_OP_MAXIMUM] = tt__ref_maximum,
    [TT_OP_MINIMUM] = tt__ref_minimum,
    [TT_OP_MULTIPLY] = multiply,
    [TT_OP_POWER] = pow,
    [TT_OP_REMAINDER] = fmod,
    [TT_OP_SUBTRACT] = subtract,
};

tt__ref_real1_t tt__ref_real1(tt_op_t op) { return unary[op]; }
tt__ref_real2_t tt__ref_real2(tt_op_t op) { return binary[op]; }

// Steps the storage bits, which order as sign and magnitude: away from zero is one more, towards
// zero one less, whatever the sign.
double tt__ref_next_after(tt_dtype_t dtype, double from, double to) {
  if (isnan(from) || isnan(to)) return from + to;
  if (from == to) return to;
  uint64_t bits = 0;
  size_t width = tt_dtype_infos[dtype].bits;
  uint64_t sign_bit = UINT64_C(1) << (width - 1);
  tt_element_store(dtype, &from, 1, &bits);
  if (from == 0) {
    bits = 1 | (to < 0 ? sign_bit : 0);
  } else {
    bool grows = (from < to) == (from > 0);
    bits = grows ? bits + 1 : bits - 1;
  }
  double result;
  tt_element_load(dtype, &bits, 1, &result);
  return result;
}

// IEEE rounding to the given format, without its denormals: those flush to zero, as XLA has it.
double tt__ref_reduce_precision(double x, int64_t exponent_bits, int64_t mantissa_bits) {
  if (isnan(x) || isinf(x) || x == 0) return x;
  int exponent;
  double fraction = frexp(x, &exponent);  // in [0.5, 1)
  double scaled = rint(ldexp(fraction, (int)mantissa_bits + 1));
  // Without a mantissa the exponent's last bit decides a tie; the bias is odd.
  if (mantissa_bits == 0 && fabs(fraction) == 0.75) scaled = exponent % 2 ? scaled : scaled / 2;
  double rounded = ldexp(scaled, exponent - (int)mantissa_bits - 1);
  int64_t bias = (INT64_C(1) << (exponent_bits - 1)) - 1;
  if (exponent_bits >= 11) return rounded;
  if (fabs(rounded) >= ldexp(1, (int)bias + 1)) return copysign((double)INFINITY, x);
  if (fabs(rounded) < ldexp(1, (int)(1 - bias))) return copysign(0, x);
  return rounded;
}
