// Rules of the elementwise ops: element types allowed, shapes equal.
#include "ir/internal.h"

enum {
  P = 1 << TT_CLASS_PRED,
  S = 1 << TT_CLASS_SIGNED,
  U = 1 << TT_CLASS_UNSIGNED,
  F = 1 << TT_CLASS_FLOAT,
  C = 1 << TT_CLASS_COMPLEX,
  ALL = P | S | U | F | C,
};

// Element classes that an op takes.
static const uint8_t classes[TT_OP_COUNT] = {
    [TT_OP_ABS] = S | F | C,
    [TT_OP_CBRT] = F | C,
    [TT_OP_CEIL] = F,
    [TT_OP_COSINE] = F | C,
    [TT_OP_COUNT_LEADING_ZEROS] = S | U,
    [TT_OP_EXPONENTIAL] = F | C,
    [TT_OP_EXPONENTIAL_MINUS_ONE] = F | C,
    [TT_OP_FLOOR] = F,
    [TT_OP_IMAG] = F | C,
    [TT_OP_IS_FINITE] = F,
    [TT_OP_LOG] = F | C,
    [TT_OP_LOG_PLUS_ONE] = F | C,
    [TT_OP_LOGISTIC] = F | C,
    [TT_OP_NEGATE] = S | U | F | C,
    [TT_OP_NOT] = P | S | U,
    [TT_OP_POPCNT] = S | U,
    [TT_OP_REAL] = F | C,
    [TT_OP_ROUND_NEAREST_AFZ] = F,
    [TT_OP_ROUND_NEAREST_EVEN] = F,
    [TT_OP_RSQRT] = F | C,
    [TT_OP_SIGN] = S | F | C,
    [TT_OP_SINE] = F | C,
    [TT_OP_SQRT] = F | C,
    [TT_OP_TAN] = F | C,
    [TT_OP_TANH] = F | C,
    [TT_OP_REDUCE_PRECISION] = F,
    [TT_OP_ERF] = F,
    [TT_OP_ERF_INV] = F,
    [TT_OP_ERFC] = F,
    [TT_OP_LGAMMA] = F,
    [TT_OP_DIGAMMA] = F,
    [TT_OP_ACOS] = F | C,
    [TT_OP_ACOSH] = F | C,
    [TT_OP_ASIN] = F | C,
    [TT_OP_ASINH] = F | C,
    [TT_OP_ATAN] = F | C,
    [TT_OP_ATANH] = F | C,
    [TT_OP_COSH] = F | C,
    [TT_OP_SINH] = F | C,
    [TT_OP_NEXT_AFTER] = F,
    [TT_OP_ADD] = ALL,
    [TT_OP_AND] = P | S | U,
    [TT_OP_ATAN2] = F | C,
    [TT_OP_COMPLEX] = F,
    [TT_OP_DIVIDE] = S | U | F | C,
    [TT_OP_MAXIMUM] = ALL,
    [TT_OP_MINIMUM] = ALL,
    [TT_OP_MULTIPLY] = ALL,
    [TT_OP_OR] = P | S | U,
    [TT_OP_POWER] = S | U | F | C,
    [TT_OP_REMAINDER] = S | U | F | C,
    [TT_OP_SHIFT_LEFT] = S | U,
    [TT_OP_SHIFT_RIGHT_ARITHMETIC] = S | U,
    [TT_OP_SHIFT_RIGHT_LOGICAL] = S | U,
    [TT_OP_SUBTRACT] = S | U | F | C,
    [TT_OP_XOR] = P | S | U,
};

// A TYPE error: in Python it is the TypeError that PyTorch's users know.
static tt_status_t check_class(const tt__infer_t *c) {
  tt_dtype_t d = tt__operand(c, 0)->dtype;
  if (classes[c->node->op] >> tt_dtype_class(d) & 1) return TT_OK_STATUS;
  return TT_ERROR(TYPE, "%s: element type %s is not supported", tt_op_infos[c->node->op].text,
                  tt_dtype_text(d));
}

// c1 of every binary op: both operands and, by inference, the result are of one type.
static tt_status_t check_pair(const tt__infer_t *c) {
  TT__REQUIRE(c, tt_type_equal(tt__operand(c, 0), tt__operand(c, 1)), "c1",
              "operands have different types");
  return TT_OK_STATUS;
}

// One result of operand 0's shape.
static tt_status_t one_like(tt__infer_t *c, tt_dtype_t dtype) {
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, dtype, tt__operand(c, 0));
  return TT_OK_STATUS;
}

// Result: the operand's type. reduce_precision also needs room for a format.
tt_status_t tt__infer_unary(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_class(c));
  if (c->node->op == TT_OP_REDUCE_PRECISION) {
    TT__REQUIRE(c, tt_node_int(c->node, TT_ATTR_EXPONENT_BITS, 0) >= 1, "c2",
                "exponent_bits is less than 1");
    TT__REQUIRE(c, tt_node_int(c->node, TT_ATTR_MANTISSA_BITS, -1) >= 0, "c3",
                "mantissa_bits is negative");
  }
  return one_like(c, tt__operand(c, 0)->dtype);
}

// |z| of a complex number is real.
tt_status_t tt__infer_abs(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_class(c));
  return one_like(c, tt_dtype_real(tt__operand(c, 0)->dtype));
}

tt_status_t tt__infer_real_imag(tt__infer_t *c) { return tt__infer_abs(c); }

// Result: i1 of the operand's shape.
tt_status_t tt__infer_is_finite(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_class(c));
  return one_like(c, TT_I1);
}

// Result: the type that both operands have. Broadcasting is the emitter's job, not the op's.
tt_status_t tt__infer_binary(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_pair(c));
  TT_RETURN_IF_ERROR(check_class(c));
  return one_like(c, tt__operand(c, 0)->dtype);
}

// Two real parts -> one complex number of twice the width.
tt_status_t tt__infer_complex(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_pair(c));
  tt_dtype_t d = tt__operand(c, 0)->dtype;
  TT__REQUIRE(c, d == TT_F32 || d == TT_F64, NULL, "parts are neither f32 nor f64");
  return one_like(c, d == TT_F32 ? TT_C64 : TT_C128);
}

// Result: i1. The comparison type may be left to the element type; complex has only == and !=.
tt_status_t tt__infer_compare(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(check_pair(c));
  int64_t how = tt_node_int(c->node, TT_ATTR_COMPARISON_DIRECTION, -1);
  TT__REQUIRE(c, how >= TT_EQ && how <= TT_LT, NULL, "comparison_direction is missing");
  int64_t type = tt_node_int(c->node, TT_ATTR_COMPARE_TYPE, TT_COMPARE_DEFAULT);
  tt_dtype_class_t cls = tt_dtype_class(tt__operand(c, 0)->dtype);
  bool fits = true;
  switch (type) {
    case TT_COMPARE_FLOAT:
      fits = cls == TT_CLASS_FLOAT || cls == TT_CLASS_COMPLEX;
      break;
    case TT_COMPARE_TOTALORDER:
      fits = cls == TT_CLASS_FLOAT;
      break;
    case TT_COMPARE_SIGNED:
      fits = cls == TT_CLASS_SIGNED;
      break;
    case TT_COMPARE_UNSIGNED:
      fits = cls == TT_CLASS_UNSIGNED || cls == TT_CLASS_PRED;
      break;
    default:
      fits = type == TT_COMPARE_DEFAULT;
  }
  TT__REQUIRE(c, fits, "c3", "compare_type %lld does not suit the element type", (long long)type);
  if (cls == TT_CLASS_COMPLEX && how != TT_EQ && how != TT_NE) {
    return TT_ERROR(TYPE, "compare (compare_c4): complex numbers have no order");
  }
  return one_like(c, TT_I1);
}

// Operands are low, x, high; either bound may be a scalar for all elements.
tt_status_t tt__infer_clamp(tt__infer_t *c) {
  const tt_type_t *x = tt__operand(c, 1);
  for (uint32_t i = 0; i < 3; i += 2) {
    const tt_type_t *bound = tt__operand(c, i);
    TT__REQUIRE(c, bound->rank == 0 || tt_type_same_shape(bound, x), i ? "c2" : "c1",
                "a bound is neither a scalar nor of the operand's shape");
    TT__REQUIRE(c, bound->dtype == x->dtype, "c3", "element types differ");
  }
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, x->dtype, x);
  return TT_OK_STATUS;
}

// Operands are predicate, then, else; the predicate may be a scalar for all elements.
tt_status_t tt__infer_select(tt__infer_t *c) {
  const tt_type_t *pred = tt__operand(c, 0), *yes = tt__operand(c, 1);
  TT__REQUIRE(c, pred->dtype == TT_I1, NULL, "the predicate is not i1");
  TT__REQUIRE(c, pred->rank == 0 || tt_type_same_shape(pred, yes), "c1",
              "the predicate is neither a scalar nor of the operands' shape");
  TT__REQUIRE(c, tt_type_equal(yes, tt__operand(c, 2)), "c2", "the choices have different types");
  TT_RETURN_IF_ERROR(tt__infer_results(c, 1));
  tt__infer_like(c, 0, yes->dtype, yes);
  return TT_OK_STATUS;
}

// The maker says the element type; complex -> real keeps the real part.
tt_status_t tt__infer_convert(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  TT__REQUIRE(c, tt_type_same_shape(&c->given[0], tt__operand(c, 0)), "c1",
              "the result has another shape");
  TT__REQUIRE(c, c->given[0].dtype < TT_DTYPE_COUNT, NULL, "the result has no element type");
  return one_like(c, c->given[0].dtype);
}

// Where widths differ, the narrower side has one dimension more, which makes up one wide element.
tt_status_t tt__infer_bitcast_convert(tt__infer_t *c) {
  TT__REQUIRE(c, c->given_count == 1, NULL, "the result type is missing");
  const tt_type_t *from = tt__operand(c, 0), *to = &c->given[0];
  TT__REQUIRE(c, to->dtype < TT_DTYPE_COUNT, NULL, "the result has no element type");
  uint32_t a = tt_dtype_infos[from->dtype].bits, b = tt_dtype_infos[to->dtype].bits;
  uint32_t common = from->rank < to->rank ? from->rank : to->rank;
  uint32_t from_extra = b > a, to_extra = a > b;
  TT__REQUIRE(c, from->rank == common + from_extra && to->rank == common + to_extra, "c1",
              "rank %u does not follow from %u and %u bits", to->rank, a, b);
  for (uint32_t i = 0; i < common; i++) {
    TT__REQUIRE(c, from->dims[i] == to->dims[i], "c1", "dimension %u changes", i);
  }
  TT__REQUIRE(c, !from_extra || from->dims[common] == b / a, "c1",
              "the last dimension does not make up one %s", tt_dtype_text(to->dtype));
  TT__REQUIRE(c, !to_extra || to->dims[common] == a / b, "c1",
              "the last dimension does not hold one %s", tt_dtype_text(from->dtype));
  TT__REQUIRE(c, tt_dtype_is_complex(from->dtype) == tt_dtype_is_complex(to->dtype), "c2",
              "complex numbers convert to complex numbers only");
  return tt__infer_given(c);
}

// Results are the operands, one by one.
tt_status_t tt__infer_same_types(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(tt__infer_results(c, c->node->operand_count));
  for (uint32_t i = 0; i < c->count; i++) {
    tt__infer_like(c, i, tt__operand(c, i)->dtype, tt__operand(c, i));
  }
  return TT_OK_STATUS;
}
