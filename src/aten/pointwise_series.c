// Functions that take a loop: the Hurwitz zeta function, the incomplete gamma functions, polygamma
// and the orthogonal polynomials. Computed in f64 whatever the operands' type.
#include <math.h>

#include "aten/emit.h"
#include "aten/pointwise_params.h"

#define B(name, cls, fn) tt_value_t fn(tt_build_t *b, tt_value_t x, tt_value_t y);
TT_SPECIAL_BINARIES(B)
#undef B
tt_value_t tt__digamma(tt_build_t *b, tt_value_t x);
tt_value_t tt__trigamma(tt_build_t *b, tt_value_t x);

// Both operands as f64 of their common shape.
static void common(tt_build_t *b, tt_value_t *x, tt_value_t *y) {
  *x = tt_emit_convert(b, *x, TT_F64);
  *y = tt_emit_convert(b, *y, TT_F64);
  const tt_type_t shape = *tt_build_type(b, tt__add(b, *x, *y));
  *x = tt_emit_broadcast_to(b, *x, shape.rank, shape.dims);
  *y = tt_emit_broadcast_to(b, *y, shape.rank, shape.dims);
}
static tt_value_t any(tt_build_t *b, tt_value_t p) {
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = tt__rank(b, p);
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  return tt_emit_reduce(b, TT_OP_OR, p, dims, rank, false);
}

// A loop over a counter (state 0, rank-0 f64) and tensors of one shape. `step` replaces the state;
// the loop goes on while `more` holds and the counter is below `limit`.
#define LOOP_STATES 8
typedef void (*step_t)(tt_build_t *b, tt_value_t *state);
typedef tt_value_t (*more_t)(tt_build_t *b, const tt_value_t *state);
static void loop(tt_build_t *b, tt_value_t *state, uint32_t count, more_t more, step_t step,
                 double limit) {
  tt_type_t types[LOOP_STATES];
  tt_value_t args[LOOP_STATES], out[LOOP_STATES];
  for (uint32_t i = 0; i < count; i++) types[i] = *tt_build_type(b, state[i]);
  tt_block_t *condition = tt_emit_region_begin(b, types, count, args);
  tt_value_t go = tt__and(b, more(b, args), tt__cmpc(b, TT_LT, args[0], limit));
  tt_emit_region_end(b, condition, &go, 1);
  tt_block_t *body = tt_emit_region_begin(b, types, count, args);
  step(b, args);
  args[0] = tt__addc(b, args[0], 1);
  tt_emit_region_end(b, body, args, count);
  tt_emit_while(b, state, count, condition, body, out);
  for (uint32_t i = 0; i < count; i++) state[i] = out[i];
}

// --- zeta ----------------------------------------------------------------------------------------
// States: counter, x, a, sum of a^-x so far (a excluded).
static tt_value_t zeta_more(tt_build_t *b, const tt_value_t *s) {
  tt_value_t low = tt__and(b, tt__cmpc(b, TT_LE, s[2], 9), tt__cmpc(b, TT_GT, s[2], -INFINITY));
  return tt__or(b, any(b, low), tt__cmpc(b, TT_LT, s[0], 9));
}
static void zeta_step(tt_build_t *b, tt_value_t *s) {
  s[3] = tt__add(b, s[3], tt__pow(b, s[2], tt__neg(b, s[1])));
  s[2] = tt__addc(b, s[2], 1);
}

// A sum of the first terms, then the Euler-Maclaurin tail; its constants are (2k)! / B_2k.
tt_value_t tt__zeta(tt_build_t *b, tt_value_t x, tt_value_t q) {
  static const double factors[] = {12.0,
                                   -720.0,
                                   30240.0,
                                   -1209600.0,
                                   47900160.0,
                                   -1892437580.3183792,
                                   74724249600.0,
                                   -2950130727918.1641,
                                   116467828143500.67,
                                   -4597978722407472.6,
                                   1.8152105401943546e+17,
                                   -7.1661652561756672e+18};
  common(b, &x, &q);
  tt_value_t s[4] = {tt_emit_scalar(b, TT_F64, 0), x, q, tt_emit_splat_like(b, x, 0)};
  loop(b, s, 4, zeta_more, zeta_step, 4096);
  tt_value_t w = s[2], term = tt__pow(b, w, tt__neg(b, x));
  tt_value_t sum = tt__add(b, s[3], tt__div(b, tt__mul(b, term, w), tt__addc(b, x, -1)));
  sum = tt__add(b, sum, tt__mulc(b, term, 0.5));
  tt_value_t rising = x;
  term = tt__div(b, term, w);
  for (int k = 0; k < 12; k++) {
    sum = tt__add(b, sum, tt__divc(b, tt__mul(b, rising, term), factors[k]));
    rising = tt__mul(b, rising, tt__mul(b, tt__addc(b, x, 2 * k + 1), tt__addc(b, x, 2 * k + 2)));
    term = tt__div(b, term, tt__square(b, w));
  }
  // Where w is huge or infinite only the sum counts.
  sum = tt__select_yes(b, tt__cmpc(b, TT_EQ, q, INFINITY), 0, sum);
  tt_value_t pole = tt__eq(b, q, tt__floor(b, q)), fraction = tt__ne(b, x, tt__floor(b, x));
  tt_value_t left = tt__select_yes(b, fraction, NAN, sum);
  left = tt__select_yes(b, pole, INFINITY, left);
  sum = tt__select(b, tt__cmpc(b, TT_LE, q, 0), left, sum);
  sum = tt__select_yes(b, tt__cmpc(b, TT_LT, x, 1), NAN, sum);
  return tt__select_yes(b, tt__cmpc(b, TT_EQ, x, 1), INFINITY, sum);
}

// Reflected for x < 0.5, as the series is for positive arguments.
tt_value_t tt__trigamma(tt_build_t *b, tt_value_t x) {
  tt_value_t y = tt_emit_convert(b, x, TT_F64);
  tt_value_t left = tt__cmpc(b, TT_LT, y, 0.5);
  tt_value_t z = tt__select(b, left, tt__rsubc(b, 1, y), y);
  tt_value_t r = tt__zeta(b, tt_emit_scalar(b, TT_F64, 2), z);
  tt_value_t root = tt__rdivc(
      b, M_PI,
      tt__sin(b, tt__mulc(b, tt__sub(b, y, tt_emit_unary(b, TT_OP_ROUND_NEAREST_EVEN, y)), M_PI)));
  tt_value_t reflected = tt__sub(b, tt__square(b, root), r);
  return tt__select(b, left, reflected, r);
}

// polygamma(n, self)
TT_LOWER0(polygamma) {
  tt_build_t *b = L->b;
  int64_t n = tt_lower_int(L, 0, 0);
  tt_value_t x = tt__operand(L, 1, tt_lower_out_dtype(L, 0));
  if (n < 2) {
    tt_lower_return(L, 0, n == 0 ? tt__digamma(b, x) : tt__trigamma(b, x));
    return;
  }
  double factor = tgamma((double)n + 1) * (n % 2 ? 1 : -1);
  tt_value_t z = tt__zeta(b, tt_emit_scalar(b, TT_F64, (double)n + 1), x);
  tt_lower_return(L, 0, tt__mulc(b, z, factor));
}

// --- incomplete gamma functions ------------------------------------------------------------------

// States: counter, x, a + k, term, sum.
static tt_value_t series_more(tt_build_t *b, const tt_value_t *s) {
  return any(b, tt__gt(b, s[3], tt__mulc(b, s[4], 0x1p-54)));
}
static void series_step(tt_build_t *b, tt_value_t *s) {
  s[2] = tt__addc(b, s[2], 1);
  s[3] = tt__mul(b, s[3], tt__div(b, s[1], s[2]));
  s[4] = tt__add(b, s[4], s[3]);
}
// Lentz's continued fraction. States: counter, a, b, c, d, h, last factor.
static tt_value_t fraction_more(tt_build_t *b, const tt_value_t *s) {
  return any(b, tt__cmpc(b, TT_GT, tt__abs(b, tt__addc(b, s[6], -1)), 0x1p-52));
}
static void fraction_step(tt_build_t *b, tt_value_t *s) {
  tt_value_t i = tt__addc(b, s[0], 1);
  tt_value_t an = tt__mul(b, i, tt__sub(b, s[1], i));
  s[2] = tt__addc(b, s[2], 2);
  s[4] = tt__rdivc(b, 1, tt__add(b, tt__mul(b, an, s[4]), s[2]));
  s[3] = tt__add(b, s[2], tt__div(b, an, s[3]));
  s[6] = tt__mul(b, s[4], s[3]);
  s[5] = tt__mul(b, s[5], s[6]);
}

static tt_value_t incomplete_gamma(tt_build_t *b, tt_value_t a, tt_value_t x, bool upper) {
  common(b, &a, &x);
  tt_value_t plain =
      tt__and(b, tt__and(b, tt__cmpc(b, TT_GT, a, 0), tt__cmpc(b, TT_GT, x, 0)),
              tt__and(b, tt__cmpc(b, TT_LT, a, INFINITY), tt__cmpc(b, TT_LT, x, INFINITY)));
  tt_value_t small = tt__le(b, x, tt__addc(b, a, 1));
  // Each method sees harmless operands where the other one answers.
  tt_value_t by_series = tt__and(b, plain, small),
             by_fraction = tt__and(b, plain, tt__not(b, small));
  tt_value_t as = tt__select_no(b, by_series, a, 1), xs = tt__select_no(b, by_series, x, 0.5);
  tt_value_t af = tt__select_no(b, by_fraction, a, 1), xf = tt__select_no(b, by_fraction, x, 3);
  tt_value_t zero = tt_emit_scalar(b, TT_F64, 0), one = tt_emit_splat_like(b, a, 1);

  tt_value_t s[5] = {zero, xs, as, one, one};
  loop(b, s, 5, series_more, series_step, 20000);
  tt_value_t scale = tt__sub(b, tt__sub(b, tt__mul(b, as, tt__log(b, xs)), xs),
                             tt_emit_unary(b, TT_OP_LGAMMA, as));
  tt_value_t lower = tt__div(b, tt__mul(b, s[4], tt__exp(b, scale)), as);

  tt_value_t b0 = tt__addc(b, tt__sub(b, xf, af), 1), d0 = tt__rdivc(b, 1, b0);
  tt_value_t f[7] = {
      zero, af, b0, tt_emit_splat_like(b, a, 1e300), d0, d0, tt_emit_splat_like(b, a, 2)};
  loop(b, f, 7, fraction_more, fraction_step, 20000);
  scale = tt__sub(b, tt__sub(b, tt__mul(b, af, tt__log(b, xf)), xf),
                  tt_emit_unary(b, TT_OP_LGAMMA, af));
  tt_value_t above = tt__mul(b, f[5], tt__exp(b, scale));

  tt_value_t r = upper ? tt__select(b, small, tt__rsubc(b, 1, lower), above)
                       : tt__select(b, small, lower, tt__rsubc(b, 1, above));
  tt_value_t none = tt_emit_splat_like(b, a, upper ? 1 : 0),
             all = tt_emit_splat_like(b, a, upper ? 0 : 1);
  r = tt__select(b, tt__cmpc(b, TT_EQ, x, 0), none, r);
  r = tt__select(b, tt__cmpc(b, TT_EQ, a, 0), tt__select_no(b, tt__cmpc(b, TT_GT, x, 0), all, NAN),
                 r);
  tt_value_t inf_a = tt__cmpc(b, TT_EQ, a, INFINITY), inf_x = tt__cmpc(b, TT_EQ, x, INFINITY);
  r = tt__select(b, inf_x, tt__select_yes(b, inf_a, NAN, all), tt__select(b, inf_a, none, r));
  tt_value_t domain = tt__and(b, tt__cmpc(b, TT_GE, a, 0), tt__cmpc(b, TT_GE, x, 0));
  return tt__select_no(b, domain, r, NAN);
}
tt_value_t tt__igamma(tt_build_t *b, tt_value_t a, tt_value_t x) {
  return incomplete_gamma(b, a, x, false);
}
tt_value_t tt__igammac(tt_build_t *b, tt_value_t a, tt_value_t x) {
  return incomplete_gamma(b, a, x, true);
}

// --- orthogonal polynomials ----------------------------------------------------------------------

// States: counter k - 1, x, n, P_(k-1), P_k. One step makes P_(k+1) where k < n.
static tt_value_t degree_more(tt_build_t *b, const tt_value_t *s) {
  return any(b, tt__gt(b, s[2], tt__addc(b, s[0], 1)));
}
static void advance(tt_build_t *b, tt_value_t *s, tt_value_t next) {
  tt_value_t active = tt__gt(b, s[2], tt__addc(b, s[0], 1));
  tt_value_t now = s[4];
  s[4] = tt__select(b, active, next, now);
  s[3] = tt__select(b, active, now, s[3]);
}
static void chebyshev_step(tt_build_t *b, tt_value_t *s) {
  advance(b, s, tt__sub(b, tt__mul(b, tt__mulc(b, s[1], 2), s[4]), s[3]));
}
static void hermite_h_step(tt_build_t *b, tt_value_t *s) {
  tt_value_t k = tt__addc(b, s[0], 1);
  tt_value_t r = tt__sub(b, tt__mul(b, s[1], s[4]), tt__mul(b, k, s[3]));
  advance(b, s, tt__mulc(b, r, 2));
}
static void hermite_he_step(tt_build_t *b, tt_value_t *s) {
  tt_value_t k = tt__addc(b, s[0], 1);
  advance(b, s, tt__sub(b, tt__mul(b, s[1], s[4]), tt__mul(b, k, s[3])));
}
static void laguerre_step(tt_build_t *b, tt_value_t *s) {
  tt_value_t k = tt__addc(b, s[0], 1), c = tt__sub(b, tt__addc(b, tt__mulc(b, k, 2), 1), s[1]);
  tt_value_t r = tt__sub(b, tt__mul(b, c, s[4]), tt__mul(b, k, s[3]));
  advance(b, s, tt__div(b, r, tt__addc(b, k, 1)));
}
static void legendre_step(tt_build_t *b, tt_value_t *s) {
  tt_value_t k = tt__addc(b, s[0], 1), c = tt__addc(b, tt__mulc(b, k, 2), 1);
  tt_value_t r = tt__sub(b, tt__mul(b, tt__mul(b, c, s[1]), s[4]), tt__mul(b, k, s[3]));
  advance(b, s, tt__div(b, r, tt__addc(b, k, 1)));
}

// P_0 = 1, P_1 = slope x + constant.
static tt_value_t polynomial(tt_build_t *b, tt_value_t x, tt_value_t n, double slope,
                             double constant, step_t step) {
  common(b, &x, &n);
  n = tt__trunc(b, n);
  tt_value_t first = tt__addc(b, tt__mulc(b, x, slope), constant),
             one = tt_emit_splat_like(b, x, 1);
  tt_value_t s[5] = {tt_emit_scalar(b, TT_F64, 0), x, n, one, first};
  loop(b, s, 5, degree_more, step, 1e6);
  tt_value_t r = tt__select(b, tt__cmpc(b, TT_LE, n, 0), one, s[4]);
  return tt__select_yes(b, tt__cmpc(b, TT_LT, n, 0), 0, r);
}
static tt_value_t shifted(tt_build_t *b, tt_value_t x) {
  return tt__addc(b, tt__mulc(b, tt_emit_convert(b, x, TT_F64), 2), -1);
}
#define POLYNOMIAL(name, argument, slope, constant, step)            \
  tt_value_t tt__##name(tt_build_t *b, tt_value_t x, tt_value_t n) { \
    return polynomial(b, (argument), n, (slope), (constant), step);  \
  }
POLYNOMIAL(chebyshev_t, x, 1, 0, chebyshev_step)
POLYNOMIAL(chebyshev_u, x, 2, 0, chebyshev_step)
POLYNOMIAL(chebyshev_v, x, 2, -1, chebyshev_step)
POLYNOMIAL(chebyshev_w, x, 2, 1, chebyshev_step)
POLYNOMIAL(shifted_t, shifted(b, x), 1, 0, chebyshev_step)
POLYNOMIAL(shifted_u, shifted(b, x), 2, 0, chebyshev_step)
POLYNOMIAL(shifted_v, shifted(b, x), 2, -1, chebyshev_step)
POLYNOMIAL(shifted_w, shifted(b, x), 2, 1, chebyshev_step)
POLYNOMIAL(hermite_h, x, 2, 0, hermite_h_step)
POLYNOMIAL(hermite_he, x, 1, 0, hermite_he_step)
POLYNOMIAL(laguerre, x, -1, 1, laguerre_step)
POLYNOMIAL(legendre, x, 1, 0, legendre_step)
