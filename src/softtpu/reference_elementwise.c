// Elementwise nodes: which function, over which wide kind, and the loop. A node is made ready once
// (a "lane": function and types) and then runs over any number of elements, chunk by chunk: load to
// the wide kind, apply, store with one rounding. The planner's tile programs use the same lanes for
// what their own kernels do not do.
#include <math.h>
#include <string.h>

#include "softtpu/reference_internal.h"

// The signature of tt__ref_lane_t.apply. Inputs and output are wide arrays; out may be one of in,
// so each element is read before it is written.
#define LANE_ARGS const tt__ref_lane_t *lane, int64_t n, const void *const *in, void *out

#define APPLY1(name, type, call)                 \
  static void name(LANE_ARGS) {                  \
    const type *x = (const type *)in[0];         \
    type *r = (type *)out;                       \
    for (int64_t i = 0; i < n; i++) r[i] = call; \
  }
#define APPLY2(name, type, call)                 \
  static void name(LANE_ARGS) {                  \
    const type *x = (const type *)in[0];         \
    const type *y = (const type *)in[1];         \
    type *r = (type *)out;                       \
    for (int64_t i = 0; i < n; i++) r[i] = call; \
  }
APPLY1(apply_real1, double, lane->fn.real1(x[i]))
APPLY2(apply_real2, double, lane->fn.real2(x[i], y[i]))
APPLY1(apply_int1, uint64_t, lane->fn.int1(x[i], lane->bits))
APPLY2(apply_int2, uint64_t, lane->fn.int2(x[i], y[i], lane->bits))
APPLY1(apply_complex1, tt_complex_t, lane->fn.complex1(x[i]))
APPLY2(apply_complex2, tt_complex_t, lane->fn.complex2(x[i], y[i]))
APPLY2(apply_next_after, double, tt__ref_next_after(lane->in[0], x[i], y[i]))
APPLY1(apply_reduce_precision, double,
       tt__ref_reduce_precision(x[i], lane->parameter[0], lane->parameter[1]))

static void apply_is_finite(LANE_ARGS) {
  (void)lane;
  for (int64_t i = 0; i < n; i++) {
    ((uint64_t *)out)[i] = isfinite(((const double *)in[0])[i]) ? 1 : 0;
  }
}

static void apply_real_part(LANE_ARGS) {
  bool is_complex = tt_dtype_is_complex(lane->in[0]);
  for (int64_t i = 0; i < n; i++) {
    ((double *)out)[i] =
        is_complex ? ((const tt_complex_t *)in[0])[i].re : ((const double *)in[0])[i];
  }
}

static void apply_imaginary_part(LANE_ARGS) {
  bool is_complex = tt_dtype_is_complex(lane->in[0]);
  for (int64_t i = 0; i < n; i++) {
    ((double *)out)[i] = is_complex ? ((const tt_complex_t *)in[0])[i].im : 0;
  }
}

static void apply_complex_abs(LANE_ARGS) {
  (void)lane;
  for (int64_t i = 0; i < n; i++) {
    tt_complex_t z = ((const tt_complex_t *)in[0])[i];
    ((double *)out)[i] = hypot(z.re, z.im);
  }
}

static void apply_complex(LANE_ARGS) {
  (void)lane;
  for (int64_t i = 0; i < n; i++) {
    tt_complex_t z = {((const double *)in[0])[i], ((const double *)in[1])[i]};
    ((tt_complex_t *)out)[i] = z;
  }
}

// By size: both choices have the result's type.
static void apply_select(LANE_ARGS) {
  size_t size = tt_element_wide_size(tt_element_wide(lane->out));
  for (int64_t i = 0; i < n; i++) {
    const void *from = ((const uint64_t *)in[0])[i] ? in[1] : in[2];
    memcpy((char *)out + (size_t)i * size, (const char *)from + (size_t)i * size, size);
  }
}

// min(max(x, low), high), so a NaN bound gives NaN.
static void apply_clamp_real(LANE_ARGS) {
  (void)lane;
  for (int64_t i = 0; i < n; i++) {
    double low = ((const double *)in[0])[i], high = ((const double *)in[2])[i];
    ((double *)out)[i] = tt__ref_minimum(tt__ref_maximum(((const double *)in[1])[i], low), high);
  }
}

static void apply_clamp_int(LANE_ARGS) {
  bool is_signed = tt_dtype_is_signed_int(lane->out);
  tt__ref_int2_t max = tt__ref_int2(TT_OP_MAXIMUM, is_signed);
  tt__ref_int2_t min = tt__ref_int2(TT_OP_MINIMUM, is_signed);
  for (int64_t i = 0; i < n; i++) {
    uint64_t low = ((const uint64_t *)in[0])[i], high = ((const uint64_t *)in[2])[i];
    uint64_t raised = max(((const uint64_t *)in[1])[i], low, lane->bits);
    ((uint64_t *)out)[i] = min(raised, high, lane->bits);
  }
}

// All three are false where a NaN is involved: then only NE is true.
static bool decide(int64_t direction, bool less, bool equal, bool greater) {
  switch ((tt_compare_t)direction) {
    case TT_EQ:
      return equal;
    case TT_NE:
      return !equal;
    case TT_GE:
      return greater || equal;
    case TT_GT:
      return greater;
    case TT_LE:
      return less || equal;
    case TT_LT:
      return less;
  }
  return false;
}

// A key whose integer order is IEEE's total order: -NaN < -inf < ... < -0 < +0 < ... < NaN.
static int64_t total_order_key(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

static void apply_compare_real(LANE_ARGS) {
  for (int64_t i = 0; i < n; i++) {
    double x = ((const double *)in[0])[i], y = ((const double *)in[1])[i];
    uint64_t *r = (uint64_t *)out + i;
    if (lane->total_order) {
      int64_t a = total_order_key(x), b = total_order_key(y);
      *r = decide(lane->parameter[0], a<b, a == b, a> b);
    } else {
      *r = decide(lane->parameter[0], x<y, x == y, x> y);
    }
  }
}

static void apply_compare_int(LANE_ARGS) {
  bool is_signed = tt_dtype_is_signed_int(lane->in[0]);
  for (int64_t i = 0; i < n; i++) {
    uint64_t x = ((const uint64_t *)in[0])[i], y = ((const uint64_t *)in[1])[i];
    bool less = is_signed ? (int64_t)x < (int64_t)y : x < y;
    ((uint64_t *)out)[i] = decide(lane->parameter[0], less, x == y, !less && x != y);
  }
}

static void apply_compare_complex(LANE_ARGS) {
  for (int64_t i = 0; i < n; i++) {
    tt_complex_t x = ((const tt_complex_t *)in[0])[i], y = ((const tt_complex_t *)in[1])[i];
    bool equal = x.re == y.re && x.im == y.im;
    ((uint64_t *)out)[i] = decide(lane->parameter[0], false, equal, false);
  }
}

bool tt__ref_lane_can(const tt_node_t *node) {
  return (tt_op_infos[node->op].traits & TT_TRAIT_ELEMENTWISE) || node->op == TT_OP_SELECT ||
         node->op == TT_OP_CLAMP;
}

static void prepare_compare(const tt_node_t *node, tt_wide_t wide, tt__ref_lane_t *lane) {
  lane->parameter[0] = tt_node_int(node, TT_ATTR_COMPARISON_DIRECTION, TT_EQ);
  lane->total_order = tt_node_int(node, TT_ATTR_COMPARE_TYPE, 0) == TT_COMPARE_TOTALORDER;
  lane->apply = wide == TT_WIDE_REAL      ? apply_compare_real
                : wide == TT_WIDE_COMPLEX ? apply_compare_complex
                                          : apply_compare_int;
}

// Ops that are not one function of a wide kind. False where `op` is none of them.
static bool prepare_special(const tt_node_t *node, tt_wide_t wide, tt__ref_lane_t *lane) {
  bool real = wide == TT_WIDE_REAL, fractional = real || wide == TT_WIDE_COMPLEX;
  switch (node->op) {
    case TT_OP_CONVERT:
      return true;
    case TT_OP_COMPARE:
      prepare_compare(node, wide, lane);
      return true;
    case TT_OP_SELECT:
      lane->apply = apply_select;
      return true;
    case TT_OP_CLAMP:
      lane->apply = real ? apply_clamp_real : apply_clamp_int;
      return wide != TT_WIDE_COMPLEX;
    case TT_OP_IS_FINITE:
      lane->apply = apply_is_finite;
      return real;
    case TT_OP_REAL:
      lane->apply = apply_real_part;
      return fractional;
    case TT_OP_IMAG:
      lane->apply = apply_imaginary_part;
      return fractional;
    case TT_OP_COMPLEX:
      lane->apply = apply_complex;
      return real;
    case TT_OP_ABS:
      lane->apply = apply_complex_abs;
      return wide == TT_WIDE_COMPLEX;
    case TT_OP_NEXT_AFTER:
      lane->apply = apply_next_after;
      return real;
    case TT_OP_REDUCE_PRECISION:
      lane->apply = apply_reduce_precision;
      lane->parameter[0] = tt_node_int(node, TT_ATTR_EXPONENT_BITS, 0);
      lane->parameter[1] = tt_node_int(node, TT_ATTR_MANTISSA_BITS, 0);
      return real;
    default:
      return false;
  }
}

// False where the op is not defined for the kind.
static bool prepare_function(const tt_node_t *node, tt_wide_t wide, tt__ref_lane_t *lane) {
  bool two = node->operand_count == 2;
  tt_op_t op = (tt_op_t)node->op;
  switch (wide) {
    case TT_WIDE_REAL:
      if (two) lane->fn.real2 = tt__ref_real2(op);
      if (!two) lane->fn.real1 = tt__ref_real1(op);
      lane->apply = two ? apply_real2 : apply_real1;
      return two ? lane->fn.real2 != NULL : lane->fn.real1 != NULL;
    case TT_WIDE_SIGNED:
    case TT_WIDE_UNSIGNED:
      if (two) lane->fn.int2 = tt__ref_int2(op, wide == TT_WIDE_SIGNED);
      if (!two) lane->fn.int1 = tt__ref_int1(op, wide == TT_WIDE_SIGNED);
      lane->apply = two ? apply_int2 : apply_int1;
      return two ? lane->fn.int2 != NULL : lane->fn.int1 != NULL;
    case TT_WIDE_COMPLEX:
      if (two) lane->fn.complex2 = tt__ref_complex2(op);
      if (!two) lane->fn.complex1 = tt__ref_complex1(op);
      lane->apply = two ? apply_complex2 : apply_complex1;
      return two ? lane->fn.complex2 != NULL : lane->fn.complex1 != NULL;
  }
  return false;
}

// The kind is operand 0's: for select that is the predicate's, and its function does not care.
tt_status_t tt__ref_lane_prepare(const tt_graph_t *graph, const tt_node_t *node,
                                 tt__ref_lane_t *out_lane) {
  memset(out_lane, 0, sizeof *out_lane);
  TT_CHECK(node->operand_count >= 1 && node->operand_count <= 3);
  out_lane->operand_count = (uint8_t)node->operand_count;
  for (uint32_t i = 0; i < node->operand_count; i++) {
    out_lane->in[i] = tt_graph_type(graph, node->operands[i])->dtype;
  }
  out_lane->out = tt_graph_type(graph, node->first_result)->dtype;
  out_lane->bits = tt_dtype_infos[out_lane->in[0]].bits;
  tt_wide_t wide = tt_element_wide(out_lane->in[0]);
  if (prepare_special(node, wide, out_lane)) return TT_OK_STATUS;
  if (prepare_function(node, wide, out_lane)) return TT_OK_STATUS;
  return tt__ref_unimplemented(graph, node, "not defined for this element type");
}

// A scalar operand is written out for the chunk.
static void load_operand(const tt__ref_lane_t *lane, uint32_t i, bool scalar, const void *data,
                         int64_t at, int64_t n, tt_element_t *wide) {
  tt_dtype_t dtype = lane->in[i];
  if (!scalar) {
    tt_element_load(dtype, (const char *)data + (size_t)at * tt_dtype_size(dtype), n, wide);
    return;
  }
  tt_element_load(dtype, data, 1, wide);
  tt__ref_fill(tt_element_wide_size(tt_element_wide(dtype)), n, wide, wide);
}

void tt__ref_lane_run(const tt__ref_lane_t *lane, int64_t count, const void *const *operands,
                      unsigned scalars, void *result) {
  if (!lane->apply) {
    tt_element_convert(lane->in[0], operands[0], count, lane->out, result);
    return;
  }
  tt_element_t wide[3][TT__REF_CHUNK], out[TT__REF_CHUNK];
  const void *const in[3] = {wide[0], wide[1], wide[2]};
  for (int64_t at = 0; at < count; at += TT__REF_CHUNK) {
    int64_t n = count - at < TT__REF_CHUNK ? count - at : TT__REF_CHUNK;
    for (uint32_t i = 0; i < lane->operand_count; i++) {
      load_operand(lane, i, scalars >> i & 1, operands[i], at, n, wide[i]);
    }
    lane->apply(lane, n, in, out);
    tt_element_store(lane->out, out, n, (char *)result + (size_t)at * tt_dtype_size(lane->out));
  }
}

tt_status_t tt__ref_elementwise(const tt__ref_call_t *call) {
  tt__ref_lane_t lane;
  TT_RETURN_IF_ERROR(tt__ref_lane_prepare(call->graph, call->node, &lane));
  int64_t count = tt_type_elements(tt__ref_out(call, 0));
  unsigned scalars = 0;
  for (uint32_t i = 0; i < call->node->operand_count; i++) {
    if (tt__ref_in(call, i)->rank == 0 && tt__ref_out(call, 0)->rank != 0) scalars |= 1u << i;
  }
  tt__ref_lane_run(&lane, count, call->operands, scalars, call->results[0]);
  return TT_OK_STATUS;
}
