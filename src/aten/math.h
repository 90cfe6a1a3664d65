// Short names for the arithmetic that lowerings are made of, and the functions of a real variable
// that StableHLO has no op for. Internal to aten/.
#ifndef TT_ATEN_MATH_H_
#define TT_ATEN_MATH_H_

#include "aten/lower.h"

// A lowering's definition; the declaration before it satisfies -Wmissing-prototypes.
#define TT_LOWER(name)                             \
  void tt__lower_##name(tt_lower_t *L, int param); \
  void tt__lower_##name(tt_lower_t *L, int param)
// The same for lowerings that need no parameter.
#define TT_LOWER0(name)                            \
  void tt__lower_##name(tt_lower_t *L, int param); \
  void tt__lower_##name(tt_lower_t *L, int param __attribute__((unused)))

#define TT__BINARY(name, op)                                                       \
  static inline tt_value_t tt__##name(tt_build_t *b, tt_value_t x, tt_value_t y) { \
    return tt_emit_binary(b, TT_OP_##op, x, y);                                    \
  }
#define TT__UNARY(name, op)                                          \
  static inline tt_value_t tt__##name(tt_build_t *b, tt_value_t x) { \
    return tt_emit_unary(b, TT_OP_##op, x);                          \
  }
#define TT__COMPARE(name, how)                                                     \
  static inline tt_value_t tt__##name(tt_build_t *b, tt_value_t x, tt_value_t y) { \
    return tt_emit_compare(b, how, x, y);                                          \
  }
TT__BINARY(add, ADD)
TT__BINARY(sub, SUBTRACT)
TT__BINARY(mul, MULTIPLY)
TT__BINARY(div, DIVIDE)
TT__BINARY(rem, REMAINDER)
TT__BINARY(max, MAXIMUM)
TT__BINARY(min, MINIMUM)
TT__BINARY(pow, POWER)
TT__BINARY(and, AND)
TT__BINARY(or, OR)
TT__BINARY(xor, XOR)
TT__UNARY(neg, NEGATE)
TT__UNARY(not, NOT)
TT__UNARY(abs, ABS)
TT__UNARY(exp, EXPONENTIAL)
TT__UNARY(expm1, EXPONENTIAL_MINUS_ONE)
TT__UNARY(log, LOG)
TT__UNARY(log1p, LOG_PLUS_ONE)
TT__UNARY(sqrt, SQRT)
TT__UNARY(rsqrt, RSQRT)
TT__UNARY(tanh, TANH)
TT__UNARY(sin, SINE)
TT__UNARY(cos, COSINE)
TT__UNARY(floor, FLOOR)
TT__UNARY(ceil, CEIL)
TT__UNARY(sigmoid, LOGISTIC)
TT__UNARY(erf, ERF)
TT__COMPARE(eq, TT_EQ)
TT__COMPARE(ne, TT_NE)
TT__COMPARE(lt, TT_LT)
TT__COMPARE(le, TT_LE)
TT__COMPARE(gt, TT_GT)
TT__COMPARE(ge, TT_GE)
#undef TT__BINARY
#undef TT__UNARY
#undef TT__COMPARE

static inline tt_value_t tt__select(tt_build_t *b, tt_value_t p, tt_value_t yes, tt_value_t no) {
  return tt_emit_select(b, p, yes, no);
}
// A rank-0 constant of x's dtype: it broadcasts where it is used.
static inline tt_value_t tt__num(tt_build_t *b, tt_value_t x, double value) {
  return tt_emit_scalar(b, tt_build_dtype(b, x), value);
}
static inline tt_value_t tt__addc(tt_build_t *b, tt_value_t x, double c) {
  return tt__add(b, x, tt__num(b, x, c));
}
static inline tt_value_t tt__mulc(tt_build_t *b, tt_value_t x, double c) {
  return tt__mul(b, x, tt__num(b, x, c));
}
static inline tt_value_t tt__rsubc(tt_build_t *b, double c, tt_value_t x) {  // c - x
  return tt__sub(b, tt__num(b, x, c), x);
}
static inline tt_value_t tt__rdivc(tt_build_t *b, double c, tt_value_t x) {  // c / x
  return tt__div(b, tt__num(b, x, c), x);
}
static inline tt_value_t tt__cmpc(tt_build_t *b, tt_compare_t how, tt_value_t x, double c) {
  return tt_emit_compare(b, how, x, tt__num(b, x, c));
}
// select with a constant on one side.
static inline tt_value_t tt__select_yes(tt_build_t *b, tt_value_t p, double yes, tt_value_t no) {
  return tt_emit_select(b, p, tt__num(b, no, yes), no);
}
static inline tt_value_t tt__select_no(tt_build_t *b, tt_value_t p, tt_value_t yes, double no) {
  return tt_emit_select(b, p, yes, tt__num(b, yes, no));
}
static inline tt_value_t tt__square(tt_build_t *b, tt_value_t x) { return tt__mul(b, x, x); }
static inline tt_value_t tt__isnan(tt_build_t *b, tt_value_t x) { return tt__ne(b, x, x); }

static inline uint32_t tt__rank(const tt_build_t *b, tt_value_t x) {
  return tt_build_type(b, x)->rank;
}
static inline int64_t tt__dim(const tt_build_t *b, tt_value_t x, int64_t d) {
  const tt_type_t *t = tt_build_type(b, x);
  return d < (int64_t)t->rank ? t->dims[d] : 1;
}
static inline int64_t tt__elements(const tt_build_t *b, tt_value_t x) {
  return tt_type_elements(tt_build_type(b, x));
}
static inline tt_value_t tt__flatten(tt_build_t *b, tt_value_t x) {
  int64_t n = tt__elements(b, x);
  return tt_emit_reshape(b, x, 1, &n);
}
// x broadcast to the inferred shape of result i.
static inline tt_value_t tt__to_out(tt_lower_t *L, uint32_t i, tt_value_t x) {
  return tt_emit_broadcast_to(L->b, x, L->outs[i].rank, L->outs[i].sizes);
}
static inline tt_value_t tt__reshape_out(tt_lower_t *L, uint32_t i, tt_value_t x) {
  return tt_emit_reshape(L->b, x, L->outs[i].rank, L->outs[i].sizes);
}
// A failed call in PyTorch's own words (an error known when the program is built).
#define TT__FAIL(L, code, ...) tt_build_fail((L)->b, TT_ERROR(code, __VA_ARGS__))

// --- operands (pointwise.c) --------------------------------------------------------------------
// Tensor or Scalar argument as `dtype`, then as the type PyTorch computes in. A Python number skips
// the first rounding, as in PyTorch's CPU kernels of products and quotients.
tt_value_t tt__operand(tt_lower_t *L, uint32_t i, tt_dtype_t dtype);
tt_value_t tt__widen(tt_build_t *b, tt_value_t x);  // to tt_lower_opmath of its dtype
// A Scalar argument in the opmath type of `dtype`.
static inline tt_value_t tt__scalar(tt_lower_t *L, uint32_t i, tt_dtype_t dtype) {
  return tt_lower_scalar(L, i, tt_lower_opmath(dtype));
}

// --- functions (pointwise_math.c, pointwise_special.c); float operands of opmath type ------------
tt_value_t tt__trunc(tt_build_t *b, tt_value_t x);
tt_value_t tt__signbit(tt_build_t *b, tt_value_t x);
tt_value_t tt__copysign(tt_build_t *b, tt_value_t magnitude, tt_value_t sign);
tt_value_t tt__isinf(tt_build_t *b, tt_value_t x);
tt_value_t tt__log2(tt_build_t *b, tt_value_t x);
tt_value_t tt__exp2(tt_build_t *b, tt_value_t x);
tt_value_t tt__hypot(tt_build_t *b, tt_value_t x, tt_value_t y);
tt_value_t tt__logaddexp(tt_build_t *b, tt_value_t x, tt_value_t y);
// x = mantissa * 2^exponent with the mantissa in [0.5, 1) or 0; infinities and NaN as they are.
void tt__frexp(tt_build_t *b, tt_value_t x, tt_value_t *out_mantissa, tt_value_t *out_exponent);
// Sum of c[i] T_i(x) by Clenshaw's recurrence.
tt_value_t tt__chebyshev(tt_build_t *b, tt_value_t x, const double *c, uint32_t count);
// Division rounded down, and its rest, which has the divisor's sign.
tt_value_t tt__floor_div(tt_build_t *b, tt_value_t x, tt_value_t y);
tt_value_t tt__remainder(tt_build_t *b, tt_value_t x, tt_value_t y);
// Signed integers to a negative power: 0, but for 1 and -1. The static one is products, roots and
// quotients where an exponent allows, as PyTorch's CPU kernel is.
tt_value_t tt__power(tt_build_t *b, tt_value_t x, tt_value_t y);
tt_value_t tt__power_static(tt_build_t *b, tt_value_t x, double exponent);
tt_value_t tt__lerp(tt_build_t *b, tt_value_t x, tt_value_t end, tt_value_t weight);
tt_value_t tt__complex(tt_build_t *b, tt_value_t re, tt_value_t im);

// --- tables of elementwise functions, shared with foreach ----------------------------------------
typedef tt_value_t (*tt__unary_fn_t)(tt_build_t *b, tt_value_t x);
typedef tt_value_t (*tt__binary_fn_t)(tt_build_t *b, tt_value_t x, tt_value_t y);
// The function `kind` (TT_U_*) of one value, with PyTorch's promotion to `dtype` (the result's).
tt_value_t tt__unary(tt_build_t *b, int kind, tt_value_t x, tt_dtype_t dtype);
// The function `kind` (TT_B_*) of operands that already have the dtype to compute in.
tt_value_t tt__binary(tt_build_t *b, int kind, tt_value_t x, tt_value_t y);

// --- reductions (reduce.c), shared with loss and foreach -----------------------------------------
tt_value_t tt__sum(tt_build_t *b, tt_value_t x);  // of all elements, rank 0
// The p-norm of |x| over dims; `p` is static.
tt_value_t tt__norm(tt_build_t *b, tt_value_t x, double p, const int64_t *dims, uint32_t count,
                    bool keepdim);
// PyTorch's reduction argument: 0 none, 1 mean, 2 sum.
tt_value_t tt__apply_reduction(tt_build_t *b, tt_value_t x, int64_t reduction);

#endif  // TT_ATEN_MATH_H_
