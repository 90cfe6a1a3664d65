// Error and gamma functions out of elementary ones.
#include <math.h>

#include "opt/expand.h"
#include "opt/expand_series.h"

// Horner's scheme, coefficients from the lowest power on.
static tt_value_t polynomial(tt_build_t *b, tt_value_t x, const double *series, size_t count) {
  tt_value_t r = NUM(series[count - 1]);
  for (size_t i = count - 1; i-- > 0;) r = ADD(MUL(r, x), NUM(series[i]));
  return r;
}
#define SERIES(x, name) polynomial(b, x, name##_series, sizeof name##_series / sizeof(double))
#define SERIES_OF(x, name) \
  (tt__expand_is_wide(b, x) ? SERIES(x, name##_f64) : SERIES(x, name##_f32))

// erf(x) for |x| <= 1. erf(x) / x is even: a polynomial in x * x, centred on the middle of its
// range.
static tt_value_t erf_near(tt_build_t *b, tt_value_t x) {
  tt_value_t z = SUB(MUL(x, x), NUM(0.5));
  return MUL(x, SERIES_OF(z, erf));
}

// exp(-x * x) for x >= 0. The square's rounding would cost x * x ulps, a hundred at the end of
// f32's range and more of f64's. So x = head + rest with a head of half the digits, whose square is
// exact, and exp(-x * x) = exp(-head * head) (1 + expm1(-(x - head)(x + head))).
static tt_value_t exp_minus_square(tt_build_t *b, tt_value_t x) {
  bool wide = tt__expand_is_wide(b, x);
  const tt_attr_t attrs[] = {tt_attr_int(TT_ATTR_EXPONENT_BITS, wide ? 11 : 8),
                             tt_attr_int(TT_ATTR_MANTISSA_BITS, wide ? 25 : 10)};
  tt_node_spec_t spec = {.op = TT_OP_REDUCE_PRECISION,
                         .operands = &x,
                         .operand_count = 1,
                         .attrs = attrs,
                         .attr_count = 2};
  tt_value_t head = tt_emit(b, &spec);
  tt_value_t rest = MUL(SUB(x, head), ADD(x, head));
  // Not exp * exp: compilers join two exponentials, rounding and all.
  tt_value_t main = CALL(EXPONENTIAL, CALL(NEGATE, MUL(head, head)));
  return ADD(main, MUL(main, CALL(EXPONENTIAL_MINUS_ONE, CALL(NEGATE, rest))));
}

// erfc(x) for 0 <= x; beyond 30 it is 0 in f64 as well. The series is of (1 + 2x) exp(x * x)
// erfc(x), which changes little over the whole half line, in t, which maps that to [-1, 1).
static tt_value_t erfc_far(tt_build_t *b, tt_value_t x) {
  x = tt_emit_binary(b, TT_OP_MINIMUM, x, NUM(30));
  tt_value_t t = DIV(SUB(x, NUM(3.75)), ADD(x, NUM(3.75)));
  tt_value_t scaled = DIV(SERIES_OF(t, erfc), ADD(MUL(x, NUM(2)), NUM(1)));
  return MUL(exp_minus_square(b, x), scaled);
}

// From |x| = 1 on erfc is below 0.16: subtracting it from 1 costs next to nothing.
tt_value_t tt__expand_erf(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x);
  tt_value_t far = MUL(CALL(SIGN, x), SUB(NUM(1), erfc_far(b, size)));
  return WHERE(LESS(size, NUM(1)), erf_near(b, x), far);
}

// Below 1/2 it is the other way round, 1 - erf loses nothing; left of 0, erfc(x) = 2 - erfc(-x).
tt_value_t tt__expand_erfc(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x), far = erfc_far(b, size);
  tt_value_t below = LESS(x, NUM(0));
  far = WHERE(below, SUB(NUM(2), far), far);
  return WHERE(LESS(size, NUM(0.5)), SUB(NUM(1), erf_near(b, x)), far);
}

// One step of Halley's method towards erf(y) = x, which triples the digits of the f32 series; erfc
// is used where x is near 1 in size. 1.128... is 2 / sqrt(pi), erf's slope at 0.
static tt_value_t improve_erf_inv(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_value_t size = CALL(ABS, y), goal = CALL(ABS, x);
  tt_value_t near = SUB(erf_near(b, size), goal);
  tt_value_t far = SUB(SUB(NUM(1), goal), erfc_far(b, size));
  tt_value_t error = WHERE(LESS(size, NUM(0.75)), near, far);
  tt_value_t slope = MUL(NUM(1.1283791670955126), exp_minus_square(b, size));
  tt_value_t step = DIV(error, slope);
  tt_value_t better = SUB(size, DIV(step, ADD(NUM(1), MUL(size, step))));
  return MUL(CALL(SIGN, x), better);
}

// By way of w = -log(1 - x * x), in which erf_inv(x) / x is smooth: one series for the middle, one
// in sqrt(w) for the ends, where 1 - |x| may be as small as the type allows.
tt_value_t tt__expand_erf_inv(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x), one = NUM(1);
  // -log(1 - x * x), with care at both ends
  tt_value_t small = CALL(LOG_PLUS_ONE, CALL(NEGATE, MUL(x, x)));
  tt_value_t large = CALL(LOG, MUL(SUB(one, size), ADD(one, size)));
  tt_value_t w = CALL(NEGATE, WHERE(LESS(size, NUM(0.5)), small, large));
  tt_value_t near = SERIES(SUB(w, NUM(2.5)), erf_inv_near);
  tt_value_t far = SERIES(SUB(CALL(SQRT, w), NUM(4.15)), erf_inv_far);
  tt_value_t y = MUL(x, WHERE(LESS(w, NUM(5)), near, far));
  if (tt__expand_is_wide(b, x)) y = improve_erf_inv(b, x, y);
  tt_value_t at_end = tt_emit_compare(b, TT_EQ, size, one);
  y = WHERE(at_end, MUL(x, NUM((double)INFINITY)), y);
  return WHERE(LESS(one, size), NUM((double)NAN), y);
}

// lgamma(x) for x >= 0. From 8 on Stirling's series, below the recurrence gamma(x) = (x - 1)
// gamma(x - 1) brings x to [1, 2], where the series is of lgamma(x) / ((x - 1)(x - 2)), so that
// both zeros are exact.
static tt_value_t lgamma_positive(tt_build_t *b, tt_value_t x) {
  static const double stirling[] = {1.0 / 12,    -1.0 / 360,       1.0 / 1260,
                                    -1.0 / 1680, 1.0 / 1188,       -691.0 / 360360,
                                    1.0 / 156,   -3617.0 / 122400, 43867.0 / 244188};
  bool wide = tt__expand_is_wide(b, x);
  tt_value_t one = NUM(1), two = NUM(2);
  // Large: Stirling's series in 1 / x.
  tt_value_t inverse = DIV(one, x), square = MUL(inverse, inverse);
  tt_value_t tail = MUL(inverse, polynomial(b, square, stirling, wide ? 9 : 4));
  tt_value_t large = MUL(SUB(x, NUM(0.5)), SUB(CALL(LOG, x), one));
  large = ADD(ADD(large, NUM(0.91893853320467274178 - 0.5)), tail);
  // Small: z into [1, 2] by the recurrence, below 1 one step up; w = z - 1 is exact throughout.
  tt_value_t below = LESS(x, one), z = x, product = one;
  for (int i = 0; i < 6; i++) {
    tt_value_t above = LESS(two, z), lower = SUB(z, one);
    product = WHERE(above, MUL(product, lower), product);
    z = WHERE(above, lower, z);
  }
  tt_value_t w = WHERE(below, x, SUB(z, one));
  tt_value_t quotient = SERIES_OF(SUB(w, NUM(0.5)), lgamma);
  tt_value_t inside = MUL(MUL(w, SUB(w, one)), quotient);
  tt_value_t logs = CALL(LOG, WHERE(below, x, product));
  tt_value_t small = WHERE(below, SUB(inside, logs), ADD(inside, logs));
  return WHERE(LESS(x, NUM(8)), small, large);
}

// Left of 0 by reflection. Only the fraction of x goes into the sine, folded to [0, 1/2]: pi * x
// for a large x would have no digits left.
tt_value_t tt__expand_lgamma(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x), infinity = NUM((double)INFINITY);
  tt_value_t positive = lgamma_positive(b, size);
  // gamma(-y) gamma(y) = -pi / (y sin(pi y))
  tt_value_t part = SUB(size, CALL(FLOOR, size));
  part = tt_emit_binary(b, TT_OP_MINIMUM, part, SUB(NUM(1), part));
  tt_value_t sine = CALL(SINE, MUL(part, NUM(3.14159265358979323846)));
  tt_value_t reflected = CALL(LOG, DIV(NUM(3.14159265358979323846), MUL(size, sine)));
  tt_value_t r = WHERE(LESS(x, NUM(0)), SUB(reflected, positive), positive);
  return WHERE(tt_emit_compare(b, TT_EQ, size, infinity), infinity, r);
}

// The recurrence psi(z) = psi(z + 1) - 1 / z up to `steps`, where the asymptotic series
// (Bernoulli's numbers over their index) is as good as the type; reflection left of 0.
tt_value_t tt__expand_digamma(tt_build_t *b, tt_value_t x) {
  static const double bernoulli[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  bool wide = tt__expand_is_wide(b, x);
  int steps = wide ? 10 : 6;
  tt_value_t size = CALL(ABS, x), one = NUM(1), z = size, sum = NUM(0);
  for (int i = 0; i < steps; i++) {
    tt_value_t low = LESS(z, NUM(steps));
    sum = WHERE(low, ADD(sum, DIV(one, z)), sum);
    z = WHERE(low, ADD(z, one), z);
  }
  tt_value_t inverse = DIV(one, z), square = MUL(inverse, inverse);
  tt_value_t tail = MUL(square, polynomial(b, square, bernoulli, wide ? 8 : 4));
  tt_value_t psi = SUB(SUB(CALL(LOG, z), ADD(MUL(NUM(0.5), inverse), tail)), sum);
  // psi(-y) = psi(y) + 1 / y + pi / tan(pi y)
  tt_value_t part = MUL(SUB(size, CALL(ROUND_NEAREST_EVEN, size)), NUM(3.14159265358979323846));
  tt_value_t cotangent = DIV(CALL(COSINE, part), CALL(SINE, part));
  tt_value_t reflected = ADD(ADD(psi, DIV(one, size)), MUL(cotangent, NUM(3.14159265358979323846)));
  tt_value_t whole = tt_emit_compare(b, TT_EQ, part, NUM(0));
  tt_value_t r = WHERE(LESS(x, NUM(0)), WHERE(whole, NUM((double)NAN), reflected), psi);
  // -infinity at 0 and +infinity at -0, as -1 / x has it
  tt_value_t at_zero = tt_emit_compare(b, TT_EQ, x, NUM(0));
  return WHERE(at_zero, CALL(NEGATE, DIV(one, x)), r);
}
