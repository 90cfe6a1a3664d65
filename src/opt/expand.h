// What expand_chlo.c and expand_special.c share: formulas over values of f32 or f64.
#ifndef TT_OPT_EXPAND_H_
#define TT_OPT_EXPAND_H_

#include "opt/rewrite.h"

static inline tt_value_t tt__expand_two(tt_build_t *b, tt_op_t op, tt_value_t x, tt_value_t y) {
  return tt_emit_binary(b, op, x, y);
}
static inline tt_value_t tt__expand_add(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt__expand_two(b, TT_OP_ADD, x, y);
}
static inline tt_value_t tt__expand_sub(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt__expand_two(b, TT_OP_SUBTRACT, x, y);
}
static inline tt_value_t tt__expand_mul(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt__expand_two(b, TT_OP_MULTIPLY, x, y);
}
static inline tt_value_t tt__expand_div(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt__expand_two(b, TT_OP_DIVIDE, x, y);
}
static inline tt_value_t tt__expand_one(tt_build_t *b, tt_op_t op, tt_value_t x) {
  return tt_emit_unary(b, op, x);
}
// A constant of x's type.
static inline tt_value_t tt__expand_num(tt_build_t *b, tt_value_t x, double value) {
  return tt_emit_splat_like(b, x, value);
}
static inline bool tt__expand_is_wide(tt_build_t *b, tt_value_t x) {
  return tt_build_dtype(b, x) == TT_F64;
}

tt_value_t tt__expand_erf(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_erfc(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_erf_inv(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_lgamma(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_digamma(tt_build_t *b, tt_value_t x);

#endif  // TT_OPT_EXPAND_H_
