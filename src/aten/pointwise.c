// Elementwise arithmetic of two and three operands.
#include <math.h>
#include <string.h>

#include "aten/emit.h"
#include "aten/math.h"
#include "aten/pointwise_params.h"

tt_value_t tt__operand(tt_lower_t *L, uint32_t i, tt_dtype_t dtype) {
  tt_dtype_t wide = tt_lower_opmath(dtype);
  if (!tt_lower_is_tensor(L, i) || (tt_lower_meta(L, i)->flags & TT_TENSOR_HOST)) {
    return tt_lower_operand(L, i, wide);
  }
  return tt_emit_convert(L->b, tt_lower_operand(L, i, dtype), wide);
}

// The same with a Python number rounded too, as in the other kernels.
static tt_value_t rounded_operand(tt_lower_t *L, uint32_t i, tt_dtype_t dtype) {
  return tt_emit_convert(L->b, tt_lower_operand(L, i, dtype), tt_lower_opmath(dtype));
}

// --- functions of two values ---------------------------------------------------------------------
static tt_value_t pw_atan2(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt_emit_binary(b, TT_OP_ATAN2, x, y);
}
static tt_value_t pw_nextafter(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return tt_emit_binary(b, TT_OP_NEXT_AFTER, x, y);
}
static tt_value_t ignoring_nan(tt_build_t *b, tt_op_t op, tt_value_t x, tt_value_t y) {
  tt_value_t r = tt_emit_binary(b, op, x, y);
  if (!tt_dtype_is_float(tt_build_dtype(b, x))) return r;
  r = tt__select(b, tt__isnan(b, y), x, r);
  return tt__select(b, tt__isnan(b, x), y, r);
}
static tt_value_t pw_fmax(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return ignoring_nan(b, TT_OP_MAXIMUM, x, y);
}
static tt_value_t pw_fmin(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return ignoring_nan(b, TT_OP_MINIMUM, x, y);
}
static tt_value_t pw_shift_left(tt_build_t *b, tt_value_t x, tt_value_t y) {
  if (!tt_dtype_is_float(tt_build_dtype(b, x))) return tt_emit_binary(b, TT_OP_SHIFT_LEFT, x, y);
  return tt__mul(b, x, tt__exp2(b, y));
}
static tt_value_t pw_shift_right(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_dtype_t d = tt_build_dtype(b, x);
  if (tt_dtype_is_float(d)) return tt__div(b, x, tt__exp2(b, y));
  return tt_emit_binary(
      b, tt_dtype_is_unsigned(d) ? TT_OP_SHIFT_RIGHT_LOGICAL : TT_OP_SHIFT_RIGHT_ARITHMETIC, x, y);
}
static tt_value_t pw_heaviside(tt_build_t *b, tt_value_t x, tt_value_t values) {
  tt_value_t step = tt_emit_convert(b, tt__cmpc(b, TT_GT, x, 0), tt_build_dtype(b, x));
  return tt__select(b, tt__cmpc(b, TT_EQ, x, 0), values, step);
}
static tt_value_t pw_logaddexp2(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_value_t d = tt__neg(b, tt__abs(b, tt__sub(b, x, y)));
  tt_value_t tail = tt__mulc(b, tt__log1p(b, tt__exp2(b, d)), M_LOG2E);
  tt_value_t same = tt__and(b, tt__isinf(b, x), tt__eq(b, x, y));
  return tt__select(b, same, x, tt__add(b, tt__max(b, x, y), tail));
}
// x log(y), where 0 times anything but NaN is 0.
static tt_value_t x_times(tt_build_t *b, tt_value_t x, tt_value_t y, tt_value_t log_y) {
  tt_value_t zero = tt__cmpc(b, TT_EQ, x, 0);
  tt_value_t r = tt__select_yes(b, zero, 0, tt__mul(b, x, log_y));
  return tt__select_yes(b, tt__isnan(b, y), NAN, r);
}
static tt_value_t pw_xlogy(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return x_times(b, x, y, tt__log(b, y));
}
static tt_value_t pw_xlog1py(tt_build_t *b, tt_value_t x, tt_value_t y) {
  return x_times(b, x, y, tt__log1p(b, y));
}

// Euclid's algorithm on all elements at once.
static tt_value_t pw_gcd(tt_build_t *b, tt_value_t x, tt_value_t y) {
  const tt_dtype_t d = tt_build_dtype(b, x);
  if (!tt_dtype_is_int(d)) {
    tt_build_fail(b, TT_ERROR(TYPE, "%s numbers have no common divisor", tt_dtype_text(d)));
    return TT_NO_VALUE;
  }
  tt_value_t sum = tt__add(b, x, y);
  const tt_type_t type = *tt_build_type(b, sum);
  bool has_sign = tt_dtype_is_signed_int(type.dtype);
  tt_value_t init[2] = {
      tt_emit_broadcast_to(b, has_sign ? tt__abs(b, x) : x, type.rank, type.dims),
      tt_emit_broadcast_to(b, has_sign ? tt__abs(b, y) : y, type.rank, type.dims)};
  const tt_type_t types[2] = {type, type};
  tt_value_t args[2], out[2];
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < type.rank; i++) dims[i] = i;
  tt_block_t *condition = tt_emit_region_begin(b, types, 2, args);
  tt_value_t more =
      tt_emit_reduce(b, TT_OP_OR, tt__cmpc(b, TT_NE, args[1], 0), dims, type.rank, false);
  tt_emit_region_end(b, condition, &more, 1);
  tt_block_t *body = tt_emit_region_begin(b, types, 2, args);
  tt_value_t zero = tt__cmpc(b, TT_EQ, args[1], 0);
  tt_value_t divisor = tt__select_yes(b, zero, 1, args[1]);
  const tt_value_t next[2] = {tt__select(b, zero, args[0], args[1]),
                              tt__select_yes(b, zero, 0, tt__rem(b, args[0], divisor))};
  tt_emit_region_end(b, body, next, 2);
  tt_emit_while(b, init, 2, condition, body, out);
  return out[0];
}
static tt_value_t pw_lcm(tt_build_t *b, tt_value_t x, tt_value_t y) {
  tt_value_t g = pw_gcd(b, x, y), zero = tt__cmpc(b, TT_EQ, g, 0);
  tt_value_t r = tt__mul(b, tt__div(b, x, tt__select_yes(b, zero, 1, g)), y);
  if (tt_dtype_is_signed_int(tt_build_dtype(b, r))) r = tt__abs(b, r);
  return tt__select_yes(b, zero, 0, r);
}

// --- the table ---------------------------------------------------------------------------------
#define B(name, cls, fn) tt_value_t fn(tt_build_t *b, tt_value_t x, tt_value_t y);
TT_SPECIAL_BINARIES(B)
#undef B

enum { ARITH, REAL, EXACT, WHOLE, COMPARE, LOGICAL };
static const struct {
  tt__binary_fn_t fn;
  int cls;
} functions[TT_B_COUNT] = {
#define B(name, cls, fn) {fn, cls},
    TT_BINARIES(B)
#undef B
};

tt_value_t tt__binary(tt_build_t *b, int kind, tt_value_t x, tt_value_t y) {
  return functions[kind].fn(b, x, y);
}

// Fails the call where the numbers are not of the kind that the op is for.
static bool is_for(tt_lower_t *L, tt_dtype_t d, bool holds) {
  if (!holds) TT__FAIL(L, TYPE, "not implemented for %s", tt_dtype_text(d));
  return holds;
}

TT_LOWER(binary) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_value_t x, y;
  const int cls = functions[param].cls;
  const bool ordered = param >= TT_B_MAXIMUM && param <= TT_B_FMIN;
  if ((cls == REAL || ordered) && !is_for(L, d, !tt_dtype_is_complex(d))) return;
  if (cls == WHOLE && !is_for(L, d, tt_dtype_is_int(d))) return;
  switch (cls) {
    case REAL:
    case ARITH: {
      bool exact = param == TT_B_MUL || param == TT_B_DIV;
      x = exact ? tt__operand(L, 0, d) : rounded_operand(L, 0, d);
      y = exact ? tt__operand(L, 1, d) : rounded_operand(L, 1, d);
      break;
    }
    case COMPARE:
      d = tt_lower_promote(L, 0, 1);  // fall through
    case WHOLE:
    case EXACT:
      x = tt_lower_operand(L, 0, d);
      y = tt_lower_operand(L, 1, d);
      break;
    default:
      x = tt_lower_operand(L, 0, tt_lower_promote(L, 0, 0));
      y = tt_lower_operand(L, 1, tt_lower_promote(L, 1, 1));
      x = tt_emit_convert(L->b, x, TT_I1);
      y = tt_emit_convert(L->b, y, TT_I1);
  }
  tt_lower_return(L, 0, functions[param].fn(L->b, x, y));
}

// --- sums --------------------------------------------------------------------------------------
// x + alpha y and its kin. param: TT_B_ADD or TT_B_SUB, or TT__REVERSED (rsub)
// or TT__RELU. alpha is argument 2.
TT_LOWER(add) {
  tt_build_t *b = L->b;
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  bool reversed = param & TT__REVERSED;
  if (reversed && tt_lower_meta(L, 0)->dtype == TT_I1) {
    return tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT,
                                     "Subtraction, the `-` operator, with a bool tensor is not "
                                     "supported. If you are trying to invert a mask, use the `~` "
                                     "or `logical_not()` operator instead."));
  }
  tt_value_t x = rounded_operand(L, reversed, d), y = rounded_operand(L, !reversed, d);
  if (tt_lower_has(L, 2) && !tt_lower_scalar_is(L, 2, 1)) {
    y = tt__mul(b, y, tt__scalar(L, 2, d));
  }
  tt_value_t r = tt__binary(b, param & 255, x, y);
  tt_lower_return(L, 0, param & TT__RELU ? tt__max(b, r, tt__num(b, r, 0)) : r);
}

// self + value * t1 * t2 (TT_B_MUL) or self + value * t1 / t2 (TT_B_DIV).
TT_LOWER(addc) {
  tt_build_t *b = L->b;
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_value_t t1 = tt__operand(L, 1, d);
  if (!tt_lower_scalar_is(L, 3, 1)) t1 = tt__mul(b, tt__scalar(L, 3, d), t1);
  tt_lower_return(L, 0,
                  tt__add(b, tt__operand(L, 0, d), tt__binary(b, param, t1, tt__operand(L, 2, d))));
}

TT_LOWER0(lerp) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_lower_return(L, 0,
                  tt__lerp(L->b, tt__operand(L, 0, d), tt__operand(L, 1, d), tt__operand(L, 2, d)));
}

// --- division ----------------------------------------------------------------------------------
// Fails the call where any element of an integer divisor is zero.
static void check_divisor(tt_lower_t *L, tt_value_t y) {
  tt_build_t *b = L->b;
  if (!tt_dtype_is_int(tt_build_dtype(b, y))) return;
  if (tt__product(L->outs[0].sizes, L->outs[0].rank) == 0) return;
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = tt__rank(b, y);
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  tt_value_t ok = tt_emit_reduce(b, TT_OP_AND, tt__cmpc(b, TT_NE, y, 0), dims, rank, false);
  tt_lower_check(L, ok, TT_INVALID_ARGUMENT, "ZeroDivisionError");
}

typedef enum { DIV_TRUNC, DIV_FLOOR, DIV_REMAINDER, DIV_FMOD, DIV_MODE } division_t;

// A small float's quotient is rounded to it before it is truncated, as on the CPU.
static tt_value_t divide(tt_build_t *b, int how, tt_value_t x, tt_value_t y, tt_dtype_t dtype) {
  bool integer = tt_dtype_is_int(tt_build_dtype(b, x));
  switch (how) {
    case DIV_TRUNC:
      if (integer) return tt__div(b, x, y);
      return tt__trunc(b, tt__widen(b, tt_emit_convert(b, tt__div(b, x, y), dtype)));
    case DIV_FLOOR:
      return tt__floor_div(b, x, y);
    case DIV_REMAINDER:
      return tt__remainder(b, x, y);
    case DIV_FMOD:
      return tt__rem(b, x, y);
    default:
      return tt__div(b, x, y);
  }
}

// param: 0 trunc, 1 floor, 2 remainder, 3 fmod, 4 the rounding mode is argument 2.
TT_LOWER(division) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_value_t x = tt__operand(L, 0, d), y = tt__operand(L, 1, d);
  if (param == DIV_MODE && tt_lower_has(L, 2)) {
    const tt_arg_t *mode = tt_lower_arg(L, 2);
    param = mode->count == 5 && memcmp(mode->u.string, "floor", 5) == 0 ? DIV_FLOOR : DIV_TRUNC;
  }
  bool whole = param == DIV_REMAINDER || param == DIV_FMOD;
  if (!is_for(L, d, !whole || !tt_dtype_is_complex(d))) return;
  check_divisor(L, y);
  tt_lower_return(L, 0, divide(L->b, param, x, y, d));
}

// --- powers --------------------------------------------------------------------------------------
// pow.Tensor_Scalar: the exponent is static, so that the common ones cost a multiplication.
TT_LOWER0(pow_scalar) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  const tt_arg_t *exponent = tt_lower_arg(L, 1);
  tt_value_t x = tt__operand(L, 0, d);
  if (exponent->kind == TT_ARG_COMPLEX) {
    tt_lower_return(L, 0,
                    tt__pow(L->b, x,
                            tt_emit_broadcast_to(L->b, tt__scalar(L, 1, d), tt__rank(L->b, x),
                                                 tt_build_type(L->b, x)->dims)));
    return;
  }
  double e = tt_lower_static_float(L, 1, 1);
  if (e == 0) {
    tt_lower_return(L, 0, tt_emit_splat_like(L->b, x, 1));
  } else {
    tt_lower_return(L, 0, tt__power_static(L->b, x, e));
  }
}

// --- choices -------------------------------------------------------------------------------------
// clamp: param 0 (self, min?, max?), 1 (self, max), 2 (self, min); tensors or scalars.
TT_LOWER(clamp) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_value_t x = tt_lower_operand(L, 0, d);
  uint32_t max = param == 1 ? 1 : 2;
  if (param != 1 && tt_lower_has(L, 1)) x = tt__max(L->b, x, tt_lower_operand(L, 1, d));
  if (param != 2 && tt_lower_has(L, max)) x = tt__min(L->b, x, tt_lower_operand(L, max, d));
  tt_lower_return(L, 0, x);
}

TT_LOWER0(where) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_value_t p = tt_lower_tensor_as(L, 0, TT_I1);
  tt_value_t yes = tt_lower_operand(L, 1, d), no = tt_lower_operand(L, 2, d);
  tt_lower_return(
      L, 0, tt__select(L->b, tt__to_out(L, 0, p), tt__to_out(L, 0, yes), tt__to_out(L, 0, no)));
}

TT_LOWER0(masked_fill) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  tt_value_t x = tt_lower_operand(L, 0, d), p = tt_lower_tensor_as(L, 1, TT_I1);
  tt_lower_return(L, 0,
                  tt__select(L->b, tt__to_out(L, 0, p), tt__to_out(L, 0, tt_lower_operand(L, 2, d)),
                             tt__to_out(L, 0, x)));
}

TT_LOWER0(fill) { tt_lower_return(L, 0, tt_lower_operand(L, 1, tt_lower_out_dtype(L, 0))); }

// complex(re, im) and polar(abs, angle): param 1.
TT_LOWER(complex) {
  tt_build_t *b = L->b;
  tt_dtype_t d = tt_dtype_real(tt_lower_out_dtype(L, 0));
  tt_value_t x = tt__to_out(L, 0, tt_lower_operand(L, 0, d));
  tt_value_t y = tt__to_out(L, 0, tt_lower_operand(L, 1, d));
  if (param == 1) {
    tt_value_t re = tt__mul(b, x, tt__cos(b, y));
    y = tt__mul(b, x, tt__sin(b, y));
    x = re;
  }
  tt_lower_return(L, 0, tt__complex(b, x, y));
}
