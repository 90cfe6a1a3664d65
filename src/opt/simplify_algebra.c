// Identities that hold for every bit pattern: NaN, infinities and signed zeros included.
#include <string.h>

#include "opt/rewrite.h"

// Is v everywhere the number `value`, which `dtype` holds exactly? Floats must agree in the sign of
// zero: the caller says -0.0 when it means it.
static bool is_number(const tt__rewrite_t *rw, tt_value_t v, double value) {
  const void *bytes = tt__rewrite_splat(rw, v);
  if (!bytes) return false;
  char wanted[16];
  tt_dtype_t dtype = tt__rewrite_type(rw, v)->dtype;
  tt__element_double(dtype, value, wanted);
  return memcmp(bytes, wanted, tt_dtype_size(dtype)) == 0;
}

// All bits of the element set: the identity of AND.
static bool is_all_ones(const tt__rewrite_t *rw, tt_value_t v) {
  const void *bytes = tt__rewrite_splat(rw, v);
  char wanted[16];
  tt_dtype_t dtype = tt__rewrite_type(rw, v)->dtype;
  return bytes && tt__element_identity(TT_OP_AND, dtype, wanted) &&
         memcmp(bytes, wanted, tt_dtype_size(dtype)) == 0;
}

// i1 included: its arithmetic has no NaN and no signed zero either.
static bool is_integer(const tt__rewrite_t *rw, tt_value_t v) {
  tt_dtype_t d = tt__rewrite_type(rw, v)->dtype;
  return tt_dtype_is_int(d) || d == TT_I1;
}

// x op c = x and x op c = c, for a constant on one side; `right`: c is the right one. For floats
// only what holds for NaN, infinities and both zeros: 0 * x is not 0, x + 0 turns -0 into +0.
// Complex numbers have too many zeros for any of it.
static bool with_constant(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t x, tt_value_t c,
                          bool right, tt_value_t *out) {
  bool integer = is_integer(rw, x);
  bool complex = tt_dtype_is_complex(tt__rewrite_type(rw, x)->dtype);
  switch ((tt_op_t)node->op) {
    case TT_OP_ADD:
      // -0 is the float's neutral element: -0 + 0 = 0.
      if (!complex && is_number(rw, c, integer ? 0.0 : -0.0)) return tt__rewrite_keep(out, x);
      return false;
    case TT_OP_SUBTRACT:
      if (right && !complex && is_number(rw, c, 0.0)) return tt__rewrite_keep(out, x);
      return false;
    case TT_OP_MULTIPLY:
      if (!complex && is_number(rw, c, 1.0)) return tt__rewrite_keep(out, x);
      if (integer && is_number(rw, c, 0.0)) return tt__rewrite_keep(out, c);
      return false;
    case TT_OP_DIVIDE:
      if (right && !complex && is_number(rw, c, 1.0)) return tt__rewrite_keep(out, x);
      return false;
    case TT_OP_AND:
      if (is_all_ones(rw, c)) return tt__rewrite_keep(out, x);
      if (is_number(rw, c, 0.0)) return tt__rewrite_keep(out, c);
      return false;
    case TT_OP_OR:
      if (is_number(rw, c, 0.0)) return tt__rewrite_keep(out, x);
      if (is_all_ones(rw, c)) return tt__rewrite_keep(out, c);
      return false;
    case TT_OP_XOR:
      if (is_number(rw, c, 0.0)) return tt__rewrite_keep(out, x);
      return false;
    case TT_OP_SHIFT_LEFT:
    case TT_OP_SHIFT_RIGHT_ARITHMETIC:
    case TT_OP_SHIFT_RIGHT_LOGICAL:
      if (right && is_number(rw, c, 0.0)) return tt__rewrite_keep(out, x);
      return false;
    default:
      return false;
  }
}

// x op x. Not x - x or x / x of floats: x may be NaN, infinite or zero.
static bool same_operands(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_value_t x = node->operands[0];
  switch ((tt_op_t)node->op) {
    case TT_OP_AND:
    case TT_OP_OR:
    case TT_OP_MAXIMUM:
    case TT_OP_MINIMUM:
      return tt__rewrite_keep(out, x);
    case TT_OP_SUBTRACT:
    case TT_OP_XOR:
      if (!is_integer(rw, x)) return false;
      *out = tt_emit_splat_like(&rw->build, x, 0);
      return true;
    default:
      return false;
  }
}

// Every value of `from` is one of `to`, and converting there and on is converting directly.
static bool is_exact(tt_dtype_t from, tt_dtype_t to) {
  const tt_dtype_info_t *a = &tt_dtype_infos[from], *b = &tt_dtype_infos[to];
  if (from == TT_I1) return true;
  if (tt_dtype_is_int(from)) {
    bool sign = tt_dtype_is_signed_int(from);
    if (tt_dtype_is_int(to)) {
      if (tt_dtype_is_signed_int(to)) return b->bits > a->bits || (sign && b->bits == a->bits);
      return !sign && b->bits >= a->bits;
    }
    // f16's range covers 8-bit integers; the wider floats' ranges cover whatever the mantissa does
    return tt_dtype_is_float(to) && a->bits <= b->mantissa + 1 && (b->bits > 16 || a->bits <= 8);
  }
  if (!tt_dtype_is_float(from) || !tt_dtype_is_float(to)) return false;
  return (to == TT_F32 && a->bits <= 16) || (to == TT_F64 && a->bits <= 32);
}

// convert(convert(x)) by way of a type that loses nothing. A float saturates where an integer
// wraps: between integers by way of one, the last type must hold all values of the first.
static bool convert(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_node_t *inner = tt__rewrite_is(rw, node->operands[0], TT_OP_CONVERT);
  const tt_type_t *to = tt__rewrite_type(rw, node->first_result);
  if (!inner) return false;
  const tt_type_t *from = tt__rewrite_type(rw, inner->operands[0]);
  const tt_type_t *middle = tt__rewrite_type(rw, inner->first_result);
  if (!is_exact(from->dtype, middle->dtype)) return false;
  if (from->dtype == to->dtype) return tt__rewrite_keep(out, inner->operands[0]);
  bool saturates = tt_dtype_is_float(middle->dtype) && tt_dtype_is_int(to->dtype);
  if (saturates && tt_dtype_is_int(from->dtype) && !is_exact(from->dtype, to->dtype)) return false;
  tt_node_spec_t spec = {.op = TT_OP_CONVERT,
                         .operands = inner->operands,
                         .operand_count = 1,
                         .types = to,
                         .type_count = 1};
  *out = tt_emit(&rw->build, &spec);
  return true;
}

// A choice between equals or by a known predicate; select(not p, a, b) is select(p, b, a).
static bool select(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  tt_value_t p = node->operands[0], yes = node->operands[1], no = node->operands[2];
  if (yes == no) return tt__rewrite_keep(out, yes);
  const uint8_t *fixed = tt__rewrite_splat(rw, p);
  if (fixed) return tt__rewrite_keep(out, *fixed ? yes : no);
  const tt_node_t *inverse = tt__rewrite_is(rw, p, TT_OP_NOT);
  if (!inverse) return false;
  *out = tt_emit_select(&rw->build, inverse->operands[0], no, yes);
  return true;
}

// Taking apart what was just put together, and the other way round.
static bool complex_parts(tt__rewrite_t *rw, const tt_node_t *node, tt_value_t *out) {
  const tt_node_t *z = tt__rewrite_is(rw, node->operands[0], TT_OP_COMPLEX);
  if (node->op == TT_OP_REAL || node->op == TT_OP_IMAG) {
    if (z) return tt__rewrite_keep(out, z->operands[node->op == TT_OP_IMAG]);
    // a real number is its own real part
    bool real = !tt_dtype_is_complex(tt__rewrite_type(rw, node->operands[0])->dtype);
    return real && node->op == TT_OP_REAL ? tt__rewrite_keep(out, node->operands[0]) : false;
  }
  const tt_node_t *re = tt__rewrite_is(rw, node->operands[0], TT_OP_REAL);
  const tt_node_t *im = tt__rewrite_is(rw, node->operands[1], TT_OP_IMAG);
  if (!re || !im || re->operands[0] != im->operands[0]) return false;
  if (!tt_type_equal(tt__rewrite_type(rw, re->operands[0]),
                     tt__rewrite_type(rw, node->first_result))) {
    return false;
  }
  return tt__rewrite_keep(out, re->operands[0]);
}

bool tt__simplify_algebra(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  const tt_node_t *inner;
  switch ((tt_op_t)node->op) {
    case TT_OP_NEGATE:
    case TT_OP_NOT:
      inner = tt__rewrite_is(rw, node->operands[0], (tt_op_t)node->op);
      return inner ? tt__rewrite_keep(out, inner->operands[0]) : false;
    case TT_OP_ABS:
    case TT_OP_FLOOR:
    case TT_OP_CEIL:
    case TT_OP_ROUND_NEAREST_EVEN:
    case TT_OP_ROUND_NEAREST_AFZ:  // doing it twice changes nothing
      inner = tt__rewrite_is(rw, node->operands[0], (tt_op_t)node->op);
      return inner && tt_type_equal(tt__rewrite_type(rw, node->operands[0]),
                                    tt__rewrite_type(rw, inner->operands[0]))
                 ? tt__rewrite_keep(out, node->operands[0])
                 : false;
    case TT_OP_CONVERT:
      return convert(rw, node, out);
    case TT_OP_SELECT:
      return select(rw, node, out);
    case TT_OP_REAL:
    case TT_OP_IMAG:
    case TT_OP_COMPLEX:
      return complex_parts(rw, node, out);
    default:
      break;
  }
  if (node->operand_count != 2 || !(tt_op_infos[node->op].traits & TT_TRAIT_ELEMENTWISE)) {
    return false;
  }
  tt_value_t x = node->operands[0], y = node->operands[1];
  if (x == y) return same_operands(rw, node, out);
  if (with_constant(rw, node, x, y, true, out)) return true;
  return with_constant(rw, node, y, x, false, out);
}
