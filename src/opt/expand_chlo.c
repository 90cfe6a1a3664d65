// Writes chlo ops in StableHLO, for plugins that do not know chlo. Formulas are chosen for accuracy
// at the ends of the range: where the textbook's form cancels or overflows, another one takes over.
// tests/test_expand_chlo.py holds them against PyTorch's.
#include <math.h>
#include <string.h>

#include "opt/expand.h"
#include "opt/opt.h"

#define LN2 0.69314718055994530942

// exp(x) / 2 for large x, without overflow before its time.
static tt_value_t half_exp(tt_build_t *b, tt_value_t x) {
  tt_value_t root = CALL(EXPONENTIAL, MUL(x, NUM(0.5)));
  return MUL(MUL(root, NUM(0.5)), root);
}

// With e = exp(|x|) - 1: (e + e / (e + 1)) / 2 does not cancel near 0. From 20 on exp(-x) is below
// half an ulp of exp(x) in f64, too.
static tt_value_t sinh_of(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x), e = CALL(EXPONENTIAL_MINUS_ONE, size);
  tt_value_t small = MUL(NUM(0.5), ADD(e, DIV(e, ADD(e, NUM(1)))));
  return MUL(CALL(SIGN, x), WHERE(LESS(size, NUM(20)), small, half_exp(b, size)));
}

static tt_value_t cosh_of(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x), e = CALL(EXPONENTIAL, size);
  tt_value_t small = MUL(NUM(0.5), ADD(e, DIV(NUM(1), e)));
  return WHERE(LESS(size, NUM(20)), small, half_exp(b, size));
}

// log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))), odd and without cancellation near 0; beyond the limit x^2
// + 1 is x^2 to the last bit and log(2|x|) is as good, long before x^2 overflows.
static tt_value_t asinh_of(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x), square = MUL(size, size), one = NUM(1);
  tt_value_t root = ADD(one, CALL(SQRT, ADD(square, one)));
  tt_value_t small = CALL(LOG_PLUS_ONE, ADD(size, DIV(square, root)));
  tt_value_t large = ADD(CALL(LOG, size), NUM(LN2));
  double limit = tt__expand_is_wide(b, x) ? 1e10 : 1e5;
  return MUL(CALL(SIGN, x), WHERE(LESS(size, NUM(limit)), small, large));
}

// In t = x - 1, which is exact near 1, where acosh goes like sqrt(2 t).
static tt_value_t acosh_of(tt_build_t *b, tt_value_t x) {
  tt_value_t t = SUB(x, NUM(1));
  tt_value_t small = CALL(LOG_PLUS_ONE, ADD(t, CALL(SQRT, MUL(t, ADD(t, NUM(2))))));
  tt_value_t large = ADD(CALL(LOG, x), NUM(LN2));
  double limit = tt__expand_is_wide(b, x) ? 1e10 : 1e5;
  tt_value_t r = WHERE(LESS(x, NUM(limit)), small, large);
  return WHERE(LESS(x, NUM(1)), NUM((double)NAN), r);
}

// log1p(2|x| / (1 - |x|)) / 2; gives infinity at 1 and NaN beyond by itself.
static tt_value_t atanh_of(tt_build_t *b, tt_value_t x) {
  tt_value_t size = CALL(ABS, x);
  tt_value_t ratio = DIV(MUL(NUM(2), size), SUB(NUM(1), size));
  return MUL(MUL(NUM(0.5), CALL(SIGN, x)), CALL(LOG_PLUS_ONE, ratio));
}

// The other leg of a right triangle with hypotenuse 1: (1 - x)(1 + x) keeps the digits that 1 - x^2
// loses near 1.
static tt_value_t leg(tt_build_t *b, tt_value_t x) {
  return CALL(SQRT, MUL(SUB(NUM(1), x), ADD(NUM(1), x)));
}

static tt_value_t real_function(tt_build_t *b, tt_op_t op, tt_value_t x) {
  switch (op) {
    case TT_OP_ERF:
      return tt__expand_erf(b, x);
    case TT_OP_ERFC:
      return tt__expand_erfc(b, x);
    case TT_OP_ERF_INV:
      return tt__expand_erf_inv(b, x);
    case TT_OP_LGAMMA:
      return tt__expand_lgamma(b, x);
    case TT_OP_DIGAMMA:
      return tt__expand_digamma(b, x);
    case TT_OP_SINH:
      return sinh_of(b, x);
    case TT_OP_COSH:
      return cosh_of(b, x);
    case TT_OP_ASINH:
      return asinh_of(b, x);
    case TT_OP_ACOSH:
      return acosh_of(b, x);
    case TT_OP_ATANH:
      return atanh_of(b, x);
    case TT_OP_ASIN:
      return tt_emit_binary(b, TT_OP_ATAN2, x, leg(b, x));
    case TT_OP_ACOS:
      return tt_emit_binary(b, TT_OP_ATAN2, leg(b, x), x);
    default:
      return tt_emit_binary(b, TT_OP_ATAN2, x, NUM(1));
  }
}

// A float's bits as an integer with the floats' order: both zeros are 0, neighbours differ by 1.
// The map is its own inverse.
static tt_value_t ordered(tt_build_t *b, tt_value_t bits, tt_value_t negative) {
  tt_value_t lowest = tt_emit_lowest(b, tt_build_dtype(b, bits));
  return WHERE(negative, SUB(lowest, bits), bits);
}

// The neighbour of x towards y, on the bits: devices that flush subnormals do not get in the way.
static bool next_after(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_build_t *b = &rw->build;
  tt_value_t x = node->operands[0], y = node->operands[1];
  const tt_type_t *type = tt_build_type(b, x);
  static const tt_dtype_t by_size[] = {[1] = TT_S8, [2] = TT_S16, [4] = TT_S32, [8] = TT_S64};
  if (type->dtype == TT_F8E4M3FN) return false;  // its largest number's neighbour is NaN
  tt_dtype_t int_type = by_size[tt_dtype_size(type->dtype)];
  tt_value_t x_bits = tt_emit_bitcast(b, x, int_type, type->rank, type->dims);
  tt_value_t y_bits = tt_emit_bitcast(b, y, int_type, type->rank, type->dims);
  tt_value_t zero = tt_emit_splat_like(b, x_bits, 0), one = tt_emit_splat_like(b, x_bits, 1);
  tt_value_t x_negative = LESS(x_bits, zero);
  tt_value_t from = ordered(b, x_bits, x_negative), to = ordered(b, y_bits, LESS(y_bits, zero));
  tt_value_t next = WHERE(LESS(from, to), ADD(from, one), SUB(from, one));
  // Stepping from the smallest negative number up gives -0.
  tt_value_t minus_zero =
      tt_emit_binary(b, TT_OP_AND, x_negative, tt_emit_compare(b, TT_EQ, next, zero));
  tt_value_t next_negative = tt_emit_binary(b, TT_OP_OR, LESS(next, zero), minus_zero);
  tt_value_t bits = ordered(b, next, next_negative);
  bits = WHERE(tt_emit_compare(b, TT_EQ, from, to), y_bits, bits);
  tt_value_t nan =
      tt_emit_binary(b, TT_OP_OR, tt_emit_compare(b, TT_NE, x, x), tt_emit_compare(b, TT_NE, y, y));
  tt_value_t r = tt_emit_bitcast(b, bits, type->dtype, type->rank, type->dims);
  *out = WHERE(nan, ADD(x, y), r);
  return true;
}

// A stable descending sort of values and positions, cut off after k: equal values keep their order,
// as top_k wants.
static bool top_k(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_build_t *b = &rw->build;
  const tt_type_t *type = tt_build_type(b, node->operands[0]);
  int64_t last = (int64_t)type->rank - 1, k = tt_node_int(node, TT_ATTR_K, 0);
  tt_value_t xs[] = {node->operands[0], tt_emit_iota(b, TT_S32, type->rank, type->dims, last)};
  tt_emit_sort(b, xs, 2, last, true, out);
  for (int i = 0; i < 2; i++) out[i] = tt_emit_slice_dim(b, out[i], last, 0, k, 1);
  return true;
}

// Narrow floats compute in f32 and
// round once.
static bool expand(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  if (!tt__op_is_chlo(node->op)) return false;
  if (node->op == TT_OP_TOP_K) return top_k(rw, node, out);
  if (node->op == TT_OP_NEXT_AFTER) return next_after(rw, node, out);
  tt_value_t x = node->operands[0];
  tt_dtype_t dtype = tt__rewrite_type(rw, x)->dtype;
  if (tt_dtype_is_complex(dtype)) return false;  // such a device has to know the op itself
  if (dtype != TT_F64) x = tt_emit_convert(&rw->build, x, TT_F32);
  *out = tt_emit_convert(&rw->build, real_function(&rw->build, (tt_op_t)node->op, x), dtype);
  return true;
}

tt_status_t tt_expand_chlo(tt_graph_t *graph) {
  bool changed;
  TT_RETURN_IF_ERROR(tt__rewrite_run(graph, expand, &changed));
  return changed ? tt_cse(graph) : TT_OK_STATUS;  // the formulas repeat their constants
}
