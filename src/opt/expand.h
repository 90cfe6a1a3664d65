// What expand_chlo.c and expand_special.c share: formulas over values of f32 or f64.
#ifndef TT_OPT_EXPAND_H_
#define TT_OPT_EXPAND_H_

#include "opt/rewrite.h"

// Short forms for a function with a builder `b` and an argument `x`, so that formulas read as such.
#define ADD(x, y) tt_emit_binary(b, TT_OP_ADD, x, y)
#define SUB(x, y) tt_emit_binary(b, TT_OP_SUBTRACT, x, y)
#define MUL(x, y) tt_emit_binary(b, TT_OP_MULTIPLY, x, y)
#define DIV(x, y) tt_emit_binary(b, TT_OP_DIVIDE, x, y)
#define NUM(value) tt_emit_splat_like(b, x, value)  // a constant of x's type
#define CALL(op, x) tt_emit_unary(b, TT_OP_##op, x)
#define LESS(x, y) tt_emit_compare(b, TT_LT, x, y)
#define WHERE(p, x, y) tt_emit_select(b, p, x, y)

// f64 takes longer series and other thresholds than f32.
static inline bool tt__expand_is_wide(tt_build_t *b, tt_value_t x) {
  return tt_build_dtype(b, x) == TT_F64;
}

// Each emits a formula for every element of x (f32 or f64) and returns its value; NaN in, NaN out.
// Both sides of every WHERE are computed for all elements, so neither may trap, and an infinity or
// NaN on the side not chosen does no harm.
tt_value_t tt__expand_erf(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_erfc(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_erf_inv(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_lgamma(tt_build_t *b, tt_value_t x);
tt_value_t tt__expand_digamma(tt_build_t *b, tt_value_t x);

#endif  // TT_OPT_EXPAND_H_
