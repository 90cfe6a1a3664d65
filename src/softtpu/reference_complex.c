// Elementwise functions of complex numbers, in f64.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "softtpu/reference_internal.h"

// Not by CMPLX, which clang lacks with glibc, nor by re + im * I, which spoils infinities.
static double complex join(tt_complex_t x) {
  double complex z;
  double parts[2] = {x.re, x.im};
  memcpy(&z, parts, sizeof z);
  return z;
}
static tt_complex_t split(double complex z) {
  tt_complex_t r = {creal(z), cimag(z)};
  return r;
}

// By the C library, branch cuts included.
#define UNARY(name, expr)                    \
  static tt_complex_t name(tt_complex_t x) { \
    double complex z = join(x);              \
    return split(expr);                      \
  }
UNARY(cosine, ccos(z))
UNARY(exponential, cexp(z))
UNARY(logarithm, clog(z))
UNARY(logistic, 1 / (1 + cexp(-z)))
UNARY(rsqrt, 1 / csqrt(z))
UNARY(sine, csin(z))
UNARY(square_root, csqrt(z))
UNARY(tangent, ctan(z))
UNARY(hyperbolic_tangent, ctanh(z))
UNARY(arc_cosine, cacos(z))
UNARY(arc_cosine_h, cacosh(z))
UNARY(arc_sine, casin(z))
UNARY(arc_sine_h, casinh(z))
UNARY(arc_tangent, catan(z))
UNARY(arc_tangent_h, catanh(z))
UNARY(cosine_h, ccosh(z))
UNARY(sine_h, csinh(z))
UNARY(cube_root, z == 0 ? z : cpow(z, 1.0 / 3))

static tt_complex_t negate(tt_complex_t x) {
  tt_complex_t r = {-x.re, -x.im};
  return r;
}
// z / |z|, and 0 for 0.
static tt_complex_t sign(tt_complex_t x) {
  double size = hypot(x.re, x.im);
  tt_complex_t r = {x.re / size, x.im / size};
  return size == 0 ? x : r;
}
// Without the cancellation of exp(z) - 1 near 0.
static tt_complex_t expm1_complex(tt_complex_t x) {
  double s = sin(x.im / 2), e = exp(x.re);
  tt_complex_t r = {expm1(x.re) * cos(x.im) - 2 * s * s, e * sin(x.im)};
  if (x.im == 0) r.im = x.im;
  return r;
}
// log|1 + z| from |1 + z|^2 - 1 = re (2 + re) + im^2 where |1 + z| is near 1 and its logarithm
// would have no digits.
static tt_complex_t log1p_complex(tt_complex_t x) {
  double size = hypot(1 + x.re, x.im);
  tt_complex_t r = {log(size), atan2(x.im, 1 + x.re)};
  if (size > 0.5 && size < 2) r.re = 0.5 * log1p(x.re * (2 + x.re) + x.im * x.im);
  return r;
}

static tt_complex_t add(tt_complex_t x, tt_complex_t y) {
  tt_complex_t r = {x.re + y.re, x.im + y.im};
  return r;
}
static tt_complex_t subtract(tt_complex_t x, tt_complex_t y) {
  tt_complex_t r = {x.re - y.re, x.im - y.im};
  return r;
}
static tt_complex_t multiply(tt_complex_t x, tt_complex_t y) {
  tt_complex_t r = {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  return r;
}
static tt_complex_t divide(tt_complex_t x, tt_complex_t y) { return split(join(x) / join(y)); }
// cpow makes NaN of a zero base.
static tt_complex_t power(tt_complex_t x, tt_complex_t y) {
  if (y.re == 0 && y.im == 0) return (tt_complex_t){1, 0};
  if (x.re == 0 && x.im == 0) return (tt_complex_t){0, 0};
  return split(cpow(join(x), join(y)));
}

static const tt__ref_complex1_t unary[TT_OP_COUNT] = {
    [TT_OP_CBRT] = cube_root,
    [TT_OP_COSINE] = cosine,
    [TT_OP_EXPONENTIAL] = exponential,
    [TT_OP_EXPONENTIAL_MINUS_ONE] = expm1_complex,
    [TT_OP_LOG] = logarithm,
    [TT_OP_LOG_PLUS_ONE] = log1p_complex,
    [TT_OP_LOGISTIC] = logistic,
    [TT_OP_NEGATE] = negate,
    [TT_OP_RSQRT] = rsqrt,
    [TT_OP_SIGN] = sign,
    [TT_OP_SINE] = sine,
    [TT_OP_SQRT] = square_root,
    [TT_OP_TAN] = tangent,
    [TT_OP_TANH] = hyperbolic_tangent,
    [TT_OP_ACOS] = arc_cosine,
    [TT_OP_ACOSH] = arc_cosine_h,
    [TT_OP_ASIN] = arc_sine,
    [TT_OP_ASINH] = arc_sine_h,
    [TT_OP_ATAN] = arc_tangent,
    [TT_OP_ATANH] = arc_tangent_h,
    [TT_OP_COSH] = cosine_h,
    [TT_OP_SINH] = sine_h,
};

static const tt__ref_complex2_t binary[TT_OP_COUNT] = {
    [TT_OP_ADD] = add,     [TT_OP_DIVIDE] = divide,     [TT_OP_MULTIPLY] = multiply,
    [TT_OP_POWER] = power, [TT_OP_SUBTRACT] = subtract,
};

tt__ref_complex1_t tt__ref_complex1(tt_op_t op) { return unary[op]; }
tt__ref_complex2_t tt__ref_complex2(tt_op_t op) { return binary[op]; }
