// Arithmetic on constants that every device must do alike: exact or correctly rounded.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "opt/opt.h"
#include "opt/rewrite.h"

// Larger constants stay: folding them would trade a kernel's time for a program's size.
enum { MOST_ELEMENTS = 64 };

// An element as the widest number of its class.
typedef union number_u {
  double f;
  int64_t i;
  uint64_t u;
} number_t;

// Exact: a double holds every value of every float type.
static double load_real(tt_dtype_t dtype, const void *p) {
  uint16_t h;
  float f;
  double d;
  switch (dtype) {
    case TT_F64:
      memcpy(&d, p, 8);
      return d;
    case TT_F32:
      memcpy(&f, p, 4);
      return (double)f;
    case TT_BF16:
      memcpy(&h, p, 2);
      return (double)tt_bf16_to_f32(h);
    case TT_F16:
      memcpy(&h, p, 2);
      return (double)tt_f16_to_f32(h);
    case TT_F8E4M3FN:
      return (double)tt_f8e4m3fn_to_f32(*(const uint8_t *)p);
    default:
      return (double)tt_f8e5m2_to_f32(*(const uint8_t *)p);
  }
}

// Integers come sign- or zero-extended to 64 bits.
static number_t load(tt_dtype_t dtype, const void *p) {
  number_t n = {.u = 0};
  size_t size = tt_dtype_size(dtype);
  if (tt_dtype_is_float(dtype)) {
    n.f = load_real(dtype, p);
    return n;
  }
  memcpy(&n.u, p, size);
  if (tt_dtype_is_signed_int(dtype)) n.i = (int64_t)(n.u << (64 - 8 * size)) >> (64 - 8 * size);
  return n;
}

// Integers wrap to the type's width, as arithmetic in that width would have.
static void store(tt_dtype_t dtype, number_t n, void *p) {
  if (tt_dtype_is_float(dtype)) {
    tt__element_double(dtype, n.f, p);
    return;
  }
  if (dtype == TT_S4) n.i = (int64_t)(n.u << 60) >> 60;
  if (dtype == TT_U4) n.u &= 15;
  if (dtype == TT_I1) n.u = n.u != 0;
  memcpy(p, &n.u, tt_dtype_size(dtype));
}

// In double: sums, products, quotients and roots of narrower floats come out correctly rounded
// after the one rounding in store, since a double has more than twice their digits.
static bool real_op(tt_op_t op, const number_t *x, number_t *out) {
  switch (op) {
    case TT_OP_ADD:
      out->f = x[0].f + x[1].f;
      return true;
    case TT_OP_SUBTRACT:
      out->f = x[0].f - x[1].f;
      return true;
    case TT_OP_MULTIPLY:
      out->f = x[0].f * x[1].f;
      return true;
    case TT_OP_DIVIDE:
      out->f = x[0].f / x[1].f;
      return true;
    case TT_OP_NEGATE:
      out->f = -x[0].f;
      return true;
    case TT_OP_ABS:
      out->f = fabs(x[0].f);
      return true;
    case TT_OP_SQRT:
      out->f = sqrt(x[0].f);
      return true;
    case TT_OP_FLOOR:
      out->f = floor(x[0].f);
      return true;
    case TT_OP_CEIL:
      out->f = ceil(x[0].f);
      return true;
    default:
      return false;
  }
}

// Modulo 2^64; store cuts the result to size, which is the same as computing in that size.
static bool int_op(tt_op_t op, const number_t *x, number_t *out) {
  switch (op) {
    case TT_OP_ADD:
      out->u = x[0].u + x[1].u;
      return true;
    case TT_OP_SUBTRACT:
      out->u = x[0].u - x[1].u;
      return true;
    case TT_OP_MULTIPLY:
      out->u = x[0].u * x[1].u;
      return true;
    case TT_OP_NEGATE:
      out->u = 0 - x[0].u;
      return true;
    case TT_OP_AND:
      out->u = x[0].u & x[1].u;
      return true;
    case TT_OP_OR:
      out->u = x[0].u | x[1].u;
      return true;
    case TT_OP_XOR:
      out->u = x[0].u ^ x[1].u;
      return true;
    case TT_OP_NOT:
      out->u = ~x[0].u;
      return true;
    default:
      return false;
  }
}

// Bytes of i1 are 0 or 1, so the bitwise operators are the logical ones.
static bool bool_op(tt_op_t op, const number_t *x, number_t *out) {
  out->u = op == TT_OP_NOT   ? !x[0].u
           : op == TT_OP_AND ? x[0].u & x[1].u
           : op == TT_OP_OR  ? x[0].u | x[1].u
                             : x[0].u ^ x[1].u;
  return op == TT_OP_NOT || op == TT_OP_AND || op == TT_OP_OR || op == TT_OP_XOR;
}

// IEEE: with a NaN only NE is true.
static bool compare(int64_t how, tt_dtype_t dtype, const number_t *x, number_t *out) {
  bool less, equal, ordered = true;
  if (tt_dtype_is_float(dtype)) {
    less = x[0].f < x[1].f;
    equal = x[0].f == x[1].f;
    ordered = !isnan(x[0].f) && !isnan(x[1].f);
  } else if (tt_dtype_is_signed_int(dtype)) {
    less = x[0].i < x[1].i;
    equal = x[0].i == x[1].i;
  } else {
    less = x[0].u < x[1].u;
    equal = x[0].u == x[1].u;
  }
  switch ((tt_compare_t)how) {
    case TT_EQ:
      out->u = equal;
      return true;
    case TT_NE:
      out->u = !equal;
      return true;
    case TT_GE:
      out->u = ordered && !less;
      return true;
    case TT_GT:
      out->u = ordered && !less && !equal;
      return true;
    case TT_LE:
      out->u = less || equal;
      return true;
    case TT_LT:
      out->u = less;
      return true;
  }
  return false;
}

// Only conversions whose result no device may choose: StableHLO leaves NaN and what is out of range
// to an integer to the implementation.
static bool convert(tt_dtype_t from, tt_dtype_t to, number_t x, number_t *out) {
  if (to == TT_I1) {
    out->u = tt_dtype_is_float(from) ? x.f != 0 : x.u != 0;
    return true;
  }
  if (tt_dtype_is_float(from) && tt_dtype_is_float(to)) {
    *out = x;
    return true;
  }
  if (tt_dtype_is_float(from)) {
    double limit = ldexp(1, tt_dtype_infos[to].bits - tt_dtype_is_signed_int(to));
    double low = tt_dtype_is_signed_int(to) ? -limit : 0;
    double whole = trunc(x.f);
    if (!(whole >= low && whole < limit)) return false;
    if (tt_dtype_is_signed_int(to)) {
      out->i = (int64_t)whole;
    } else {
      out->u = (uint64_t)whole;
    }
    return true;
  }
  if (!tt_dtype_is_float(to)) {
    *out = x;
    return true;
  }
  bool is_signed = tt_dtype_is_signed_int(from);
  double d = is_signed ? (double)x.i : (double)x.u;
  // A large integer would be rounded twice on its way to a narrow float.
  if (to != TT_F64 && (fabs(d) > 9007199254740992.0)) return false;
  out->f = d;
  return true;
}

// One element of the result. False: not decided here, the node stays.
static bool evaluate(const tt_node_t *node, tt_dtype_t from, tt_dtype_t to, const number_t *x,
                     number_t *out) {
  switch ((tt_op_t)node->op) {
    case TT_OP_CONVERT:
      return convert(from, to, x[0], out);
    case TT_OP_COMPARE:
      if (tt_node_int(node, TT_ATTR_COMPARE_TYPE, 0) == TT_COMPARE_TOTALORDER) return false;
      return compare(tt_node_int(node, TT_ATTR_COMPARISON_DIRECTION, 0), from, x, out);
    case TT_OP_SELECT:
      *out = x[0].u ? x[1] : x[2];
      return true;
    default:
      break;
  }
  if (from == TT_I1) return bool_op((tt_op_t)node->op, x, out);
  return tt_dtype_is_float(from) ? real_op((tt_op_t)node->op, x, out)
                                 : int_op((tt_op_t)node->op, x, out);
}

// A quick look before any operand is: most nodes are not.
static bool is_foldable(const tt_node_t *node) {
  switch ((tt_op_t)node->op) {
    case TT_OP_CONVERT:
    case TT_OP_COMPARE:
    case TT_OP_SELECT:
    case TT_OP_ADD:
    case TT_OP_SUBTRACT:
    case TT_OP_MULTIPLY:
    case TT_OP_DIVIDE:
    case TT_OP_NEGATE:
    case TT_OP_ABS:
    case TT_OP_SQRT:
    case TT_OP_FLOOR:
    case TT_OP_CEIL:
    case TT_OP_AND:
    case TT_OP_OR:
    case TT_OP_XOR:
    case TT_OP_NOT:
      return true;
    default:
      return false;
  }
}

// Operand i's bytes and how far its elements are apart (0: a splat).
typedef struct source_s {
  const char *bytes;
  size_t step;
  tt_dtype_t dtype;
} source_t;

static bool find_source(const tt__rewrite_t *rw, tt_value_t v, source_t *out) {
  const tt_type_t *type = tt__rewrite_type(rw, v);
  size_t one = tt_dtype_size(type->dtype);
  if (tt_dtype_is_complex(type->dtype)) return false;  // number_t has no room for two parts
  out->dtype = type->dtype;
  out->step = 0;
  out->bytes = tt__rewrite_splat(rw, v);
  if (out->bytes) return true;
  const tt_node_t *node = tt__rewrite_is(rw, v, TT_OP_CONSTANT);
  if (!node || tt_type_elements(type) > MOST_ELEMENTS) return false;
  out->bytes = tt_node_attr(node, TT_ATTR_VALUE)->u.bytes;
  out->step = one;
  return true;
}

// Splats fold to a splat whatever their size; else all operands are small dense constants. Nothing
// is emitted before every element has been decided.
static bool fold(tt__rewrite_t *rw, tt_node_t *node, tt_value_t *out) {
  source_t sources[3];
  char bytes[MOST_ELEMENTS * 8];
  bool splat = true;
  if (!is_foldable(node) || node->operand_count > 3) return false;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    if (!find_source(rw, node->operands[i], &sources[i])) return false;
    splat = splat && sources[i].step == 0;
  }
  const tt_type_t *type = tt__rewrite_type(rw, node->first_result);
  int64_t count = splat ? 1 : tt_type_elements(type);
  if (tt_dtype_is_complex(type->dtype) || count > MOST_ELEMENTS) return false;
  tt_dtype_t from = sources[node->op == TT_OP_SELECT].dtype;
  size_t one = tt_dtype_size(type->dtype);
  for (int64_t e = 0; e < count; e++) {
    number_t x[3], result = {.u = 0};
    for (uint32_t i = 0; i < node->operand_count; i++) {
      x[i] = load(sources[i].dtype, sources[i].bytes + (size_t)e * sources[i].step);
    }
    if (!evaluate(node, from, type->dtype, x, &result)) return false;
    // Which NaN comes out is the device's choice.
    if (tt_dtype_is_float(type->dtype) && isnan(result.f)) return false;
    store(type->dtype, result, bytes + (size_t)e * one);
  }
  const tt_attr_t attr = tt_attr_bytes(TT_ATTR_VALUE, bytes, (uint32_t)((size_t)count * one));
  tt_node_spec_t spec = {
      .op = TT_OP_CONSTANT, .attrs = &attr, .attr_count = 1, .types = type, .type_count = 1};
  *out = tt_emit(&rw->build, &spec);
  return true;
}

tt_status_t tt_fold(tt_graph_t *graph) {
  bool changed;
  return tt__rewrite_run(graph, fold, &changed);
}
