// Transcendental functions. f32 comes from branch-free code of our own that the compiler turns into
// vectors, within 2 ulp of the exact result; f64 calls the C library. f32's polynomials are fits
// over the reduced range, the doubles' are Taylor's. Special values are put right at the end by
// selection, which costs less than branches: both sides are computed, so none may trap
// (-fno-trapping-math), and garbage on the side not taken is fine.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "softtpu/kernels/kernels.h"

// One rounding where the machine has the instruction; two are good enough for the bounds below.
#ifdef __FMA__
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define FMAD(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define FMAD(a, b, c) ((a) * (b) + (c))
#endif

// Adding and removing 1.5 * 2^23 (2^52) rounds to an integer, which the sum's low bits hold.
#define ROUND_F32 12582912.0f
#define ROUND_F64 6755399441055744.0

// 2^n in two halves, so that results may be denormal and infinite.
static inline float scale_f32(float x, int32_t n) {
  int32_t half = n >> 1;
  return x * tt_bits_to_f32((uint32_t)(half + 127) << 23) *
         tt_bits_to_f32((uint32_t)(n - half + 127) << 23);
}

// n = round(x / ln 2), r = x - n ln 2 with ln 2 in two parts, whose first has so few bits that n
// times it is exact; exp(r) by a polynomial for |r| <= ln(2) / 2. Above 89 the result is infinite,
// below -103.98 it rounds to zero. What rounds to zero (a masked score) takes the way of exp(0):
// arithmetic that underflows is slow.
static inline float exp_f32(float x) {
  bool vanishes = x < -103.98f;
  float c = vanishes ? 0.0f : x;
  c = c > 89.0f ? 89.0f : c;
  float shifted = FMA(c, 1.44269504f, ROUND_F32), n = shifted - ROUND_F32;
  float r = FMA(n, -0.693145752f, c);
  r = FMA(n, -1.42860677e-6f, r);
  float q = FMA(1.3950833455e-03f, r, 8.3690882839e-03f);
  q = FMA(q, r, 4.1666200667e-02f);
  q = FMA(q, r, 1.6666517181e-01f);
  q = FMA(q, r, 5.0000000968e-01f);
  float p = FMA(q, r * r, r) + 1.0f;
  int32_t e = (int32_t)(tt_f32_to_bits(shifted) & 0x3fffffu);
  e = (int32_t)((uint32_t)e << 10) >> 10;  // the low 22 bits, signed
  float y = vanishes ? 0.0f : scale_f32(p, e);
  return x != x ? x : y;
}

// Through exp(-|x|), which cannot overflow: the tail keeps its denormals.
static inline float logistic_f32(float x) {
  float e = exp_f32(-__builtin_fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): subtracting sqrt(1/2)'s bits leaves the
// exponent n in the upper bits and f's mantissa in the lower ones. log(1 + f) = f - f^2 / 2 + f^3
// p(f); n ln 2 in the two parts of exp. Denormals are scaled by 2^23 first.
static inline float log_f32(float x) {
  bool small = x < 1.17549435e-38f;
  float scaled = small ? x * 8388608.0f : x;
  uint32_t u = tt_f32_to_bits(scaled) - 0x3f3504f3u;  // sqrt(1/2)
  int32_t e = (int32_t)u >> 23;
  float f = tt_bits_to_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float n = (float)(e - (small ? 23 : 0));
  float p = FMA(6.9153680628e-02f, f, -1.1789807694e-01f);
  p = FMA(p, f, 1.1872976295e-01f);
  p = FMA(p, f, -1.2384348470e-01f);
  p = FMA(p, f, 1.4218658090e-01f);
  p = FMA(p, f, -1.6669250816e-01f);
  p = FMA(p, f, 2.0002226614e-01f);
  p = FMA(p, f, -2.4999986600e-01f);
  p = FMA(p, f, 3.3333310440e-01f);
  float ff = f * f;
  float y = FMA(p * f, ff, n * 1.42860677e-6f);
  y = FMA(-0.5f, ff, y) + f;
  y = FMA(n, 0.693145752f, y);
  y = x == 0.0f ? -INFINITY : y;
  y = x == INFINITY ? x : y;
  return x < 0.0f || x != x ? NAN : y;
}

// An odd polynomial up to 0.625, above it 1 - 2 / (exp(2|x|) + 1), which does not cancel there.
// From 10 on the result is 1.
static inline float tanh_f32(float x) {
  float a = __builtin_fabsf(x), s = x * x;
  float p = FMA(-5.7170365613e-03f, s, 2.0650579004e-02f);
  p = FMA(p, s, -5.3743495261e-02f);
  p = FMA(p, s, 1.3331491249e-01f);
  p = FMA(p, s, -3.3333283924e-01f);
  float small = FMA(p * s, x, x);
  float capped = a > 10.0f ? 10.0f : a;
  float large = 1.0f - 2.0f / (exp_f32(capped + capped) + 1.0f);
  float y = a < 0.625f ? small : copysignf(large, x);
  return x != x ? x : y;
}

// x times an even polynomial up to 1; above it 1 - exp(-x^2) q(t) in t = 1 / (1 + x / 2). From 4.2
// on the result is 1.
static inline float erf_f32(float x) {
  float a = __builtin_fabsf(x), s = x * x;
  float p = FMA(7.8891195350e-05f, s, -8.0208412793e-04f);
  p = FMA(p, s, 5.1895353391e-03f);
  p = FMA(p, s, -2.6854444592e-02f);
  p = FMA(p, s, 1.1283600176e-01f);
  p = FMA(p, s, -3.7612627136e-01f);
  p = FMA(p, s, 1.1283791659e+00f);
  float small = p * x;
  float capped = a > 4.2f ? 4.2f : a;
  float t = 1.0f / FMA(0.5f, capped, 1.0f);
  float q = FMA(1.1870364551e-01f, t, -4.6897588941e-01f);
  q = FMA(q, t, 5.5999866031e-01f);
  q = FMA(q, t, -1.0095223987e-01f);
  q = FMA(q, t, 3.4651018447e-01f);
  q = FMA(q, t, 2.6006323885e-01f);
  q = FMA(q, t, 2.8485212899e-01f);
  q = FMA(q, t, -1.5003812140e-04f);
  float large = 1.0f - exp_f32(-capped * capped) * q;
  float y = a < 1.0f ? small : copysignf(large, x);
  return x != x ? x : y;
}

// exp in double with 27 or more good bits, for functions where f32 steps would lose some. Taylor's
// series to the seventh power for |r| <= ln(2) / 2 (the next term is 5e-9 there); the exponent is
// added to the result's bits, which are normal for the range |x| <= 200 that f32's results need.
static inline double exp_d(double x) {
  double c = x < -200.0 ? -200.0 : x;
  c = c > 200.0 ? 200.0 : c;
  double shifted = FMAD(c, 1.4426950408889634, ROUND_F64), n = shifted - ROUND_F64;
  double r = FMAD(n, -0.69314718055994531, c);
  double q = FMAD(1.0 / 5040, r, 1.0 / 720);
  q = FMAD(q, r, 1.0 / 120);
  q = FMAD(q, r, 1.0 / 24);
  q = FMAD(q, r, 1.0 / 6);
  q = FMAD(q, r, 0.5);
  q = FMAD(q, r, 1.0);
  q = FMAD(q, r, 1.0);
  return tt_bits_to_f64(tt_f64_to_bits(q) + (tt_f64_to_bits(shifted) << 52));
}

// For normal positive doubles. As log_f32 cuts, then 2 atanh(s) with s = (m - 1) / (m + 1): |s| <=
// 0.172, an odd series to the 13th power. The exponent becomes a double by way of 2^52's bits:
// there is no vector instruction for int64 to double below AVX-512.
static inline double log_d(double x) {
  uint64_t u = tt_f64_to_bits(x) - UINT64_C(0x3fe6a09e667f3bcd);
  double e =
      tt_bits_to_f64((u >> 52 ^ UINT64_C(0x4330000000000800)) & UINT64_C(0x4330000000000fff));
  double n = e - 4503599627372544.0;
  double m = tt_bits_to_f64((u & UINT64_C(0xfffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
  double s = (m - 1.0) / (m + 1.0), ss = s * s;
  double p = FMAD(2.0 / 13, ss, 2.0 / 11);
  p = FMAD(p, ss, 2.0 / 9);
  p = FMAD(p, ss, 2.0 / 7);
  p = FMAD(p, ss, 2.0 / 5);
  p = FMAD(p, ss, 2.0 / 3);
  p = FMAD(p, ss, 2.0);
  return FMAD(n, 0.69314718055994531, p * s);
}

static inline float expm1_f32(float x) {
  double d = x;
  // Below 2^-10 the series is exact enough and keeps the sign of zero.
  double series = d * (1.0 + d * (0.5 + d * (1.0 / 6 + d * (1.0 / 24))));
  double y = __builtin_fabs(d) < 0.0009765625 ? series : exp_d(d) - 1.0;
  return x != x || x == 0.0f ? x : (float)y;
}

static inline float log1p_f32(float x) {
  double d = x;
  double series = d * (1.0 - d * (0.5 - d * (1.0 / 3 - d * 0.25)));
  double y = __builtin_fabs(d) < 0.0009765625 ? series : log_d(1.0 + d);
  y = x == -1.0f ? -INFINITY : y;
  y = x == INFINITY ? x : y;
  y = x < -1.0f ? NAN : y;
  return x != x || x == 0.0f ? x : (float)y;
}

// Quadrant and remainder of x / (pi / 2), |x| < 2^20. pi / 2 in two parts: the first has 33 bits,
// so that n times it is exact for n below 2^20.
static inline double remainder_pi(double x, uint64_t *quadrant) {
  double shifted = FMAD(x, 0.63661977236758134, ROUND_F64), n = shifted - ROUND_F64;
  *quadrant = tt_f64_to_bits(shifted) & 3;
  return (x - n * 1.5707963267341256) - n * 6.0771005065061922e-11;
}
// cos is sin a quadrant further. Taylor's series for |r| <= pi / 4: to r^9 and r^10 they are good
// to more than f32's digits.
static inline float sin_cos(double x, uint64_t shift) {
  uint64_t quadrant;
  double r = remainder_pi(x, &quadrant), s = r * r;
  quadrant += shift;
  double sine = FMAD(2.7557319223985893e-06, s, -1.9841269841269841e-04);
  sine = FMAD(sine, s, 8.3333333333333332e-03);
  sine = FMAD(sine, s, -1.6666666666666666e-01);
  sine = FMAD(sine * s, r, r);
  double cosine = FMAD(-2.7557319223985888e-07, s, 2.4801587301587302e-05);
  cosine = FMAD(cosine, s, -1.3888888888888889e-03);
  cosine = FMAD(cosine, s, 4.1666666666666664e-02);
  cosine = FMAD(cosine, s, -0.5);
  cosine = FMAD(cosine, s, 1.0);
  double y = quadrant & 1 ? cosine : sine;
  return (float)(quadrant & 2 ? -y : y);
}
static inline float sin_f32(float x) {
  float y = sin_cos(x, 0);
  return x == 0.0f ? x : y;
}
static inline float cos_f32(float x) { return sin_cos(x, 1); }

// Runs the vector form; where an element is outside its range (rare), all go one by one and those
// outside through the C library. The results do not depend on the neighbours.
#define WITH_RARE(name, vector, scalar, common)                                          \
  static void name(int64_t n, void *d_, const void *a_, const void *b_, const void *c_,  \
                   uint32_t mode) {                                                      \
    float *d = d_;                                                                       \
    const float *a = a_;                                                                 \
    TT__UNUSED_BC;                                                                       \
    int rare = 0;                                                                        \
    for (int64_t i = 0; i < n; i++) rare |= !(common(a[i]));                             \
    if (rare) {                                                                          \
      for (int64_t i = 0; i < n; i++) d[i] = common(a[i]) ? vector(a[i]) : scalar(a[i]); \
    } else {                                                                             \
      TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = vector(a[i]);                     \
    }                                                                                    \
  }
#define BELOW_2_20(x) (__builtin_fabsf(x) < 1048576.0f)
WITH_RARE(sin_float, sin_f32, sinf, BELOW_2_20)
WITH_RARE(cos_float, cos_f32, cosf, BELOW_2_20)

// y log x is below 128 ln 2 where the result is finite: the logarithm's 39 good bits leave more
// than exp_d has.
static inline float pow_f32(float x, float y) { return (float)exp_d((double)y * log_d(x)); }
#define POW_COMMON(x, y) ((x) > 0.0f && (x) < INFINITY && __builtin_fabsf(y) < INFINITY)
// Squares are products and first powers copies, exactly; they are most of the powers in models.
// Zeros, negative bases and infinities go through the C library's double pow.
static void pow_float(int64_t n, void *d_, const void *a_, const void *b_, const void *c_,
                      uint32_t mode) {
  float *d = d_;
  const float *a = a_, *b = b_;
  (void)c_;
  int64_t sa = mode & TT__MODE_A ? 0 : 1, sb = mode & TT__MODE_B ? 0 : 1;
  if (sb == 0 && *b == 2.0f) {
    TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = a[i] * a[i];
    return;
  }
  if (sb == 0 && *b == 1.0f) {
    if (d != a) memcpy(d, a, sizeof *d * (size_t)n);
    return;
  }
  int rare = 0;
  if (sa && sb) {
    for (int64_t i = 0; i < n; i++) rare |= !POW_COMMON(a[i], b[i]);
  } else if (sa) {
    for (int64_t i = 0; i < n; i++) rare |= !POW_COMMON(a[i], b[0]);
  } else {
    for (int64_t i = 0; i < n; i++) rare |= !POW_COMMON(a[0], b[i]);
  }
  if (rare) {
    float a0 = a[0], b0 = b[0];
    for (int64_t i = 0; i < n; i++) {
      float x = sa ? a[i] : a0, y = sb ? b[i] : b0;
      d[i] = POW_COMMON(x, y) ? pow_f32(x, y) : (float)pow((double)x, (double)y);
    }
  } else if (sa && sb) {
    TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = pow_f32(a[i], b[i]);
  } else if (sa) {
    float y = b[0];
    TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = pow_f32(a[i], y);
  } else {
    float x = a[0];
    TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = pow_f32(x, b[i]);
  }
}

TT__UNARY(exp_float, float, float, exp_f32(x))
TT__UNARY(log_float, float, float, log_f32(x))
TT__UNARY(tanh_float, float, float, tanh_f32(x))
TT__UNARY(erf_float, float, float, erf_f32(x))
TT__UNARY(logistic_float, float, float, logistic_f32(x))
TT__UNARY(expm1_float, float, float, expm1_f32(x))
TT__UNARY(log1p_float, float, float, log1p_f32(x))
TT__UNARY(rsqrt_float, float, float, (float)(1.0 / __builtin_sqrt((double)x)))

TT__UNARY(exp_double, double, double, exp(x))
TT__UNARY(log_double, double, double, log(x))
TT__UNARY(tanh_double, double, double, tanh(x))
TT__UNARY(erf_double, double, double, erf(x))
TT__UNARY(logistic_double, double, double, 1 / (1 + exp(-x)))
TT__UNARY(expm1_double, double, double, expm1(x))
TT__UNARY(log1p_double, double, double, log1p(x))
TT__UNARY(rsqrt_double, double, double, 1 / __builtin_sqrt(x))
TT__UNARY(sin_double, double, double, sin(x))
TT__UNARY(cos_double, double, double, cos(x))
TT__BINARY(pow_double, double, double, pow(x, y))

#define SET(op_, name)                             \
  k->op[TT_OP_##op_][TT__LANE_F32] = name##_float; \
  k->op[TT_OP_##op_][TT__LANE_F64] = name##_double;

void TT__AT_LEVEL(tt__kernels_math)(tt__kernels_t *k) {
  SET(EXPONENTIAL, exp)
  SET(LOG, log)
  SET(TANH, tanh)
  SET(ERF, erf)
  SET(LOGISTIC, logistic)
  SET(EXPONENTIAL_MINUS_ONE, expm1)
  SET(LOG_PLUS_ONE, log1p)
  SET(RSQRT, rsqrt)
  SET(SINE, sin)
  SET(COSINE, cos)
  SET(POWER, pow)
}
