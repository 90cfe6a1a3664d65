// The emitter's core: state, any op, elementwise ops, regions. Families: build_<family>.c.
#include "ir/build.h"

#include <string.h>

#include "ir/internal.h"

// What a failed build says every value is: rank 0, so that no caller indexes dims.
static const tt_type_t failed_type = {TT_F32, 0, NULL};

tt_status_t tt_build_finish(tt_build_t *b) {
  tt_status_t s = b->status;
  b->status = TT_OK_STATUS;
  return s;
}

void tt_build_fail(tt_build_t *b, tt_status_t status) {
  b->status = tt_status_join(b->status, status);
}

const tt_type_t *tt_build_type(const tt_build_t *b, tt_value_t v) {
  if (b->status || v >= b->graph->value_count) return &failed_type;
  return &b->graph->values[v].type;
}

tt_type_t tt_build_make_type(tt_build_t *b, tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  int64_t *copy = tt_arena_copy(&b->graph->arena, dims, rank * sizeof *dims);
  if (!copy) {
    tt_build_fail(b, tt__no_memory());
    return failed_type;
  }
  return (tt_type_t){dtype, rank, copy};
}

tt_value_t tt_emit(tt_build_t *b, const tt_node_spec_t *spec) {
  tt_value_t v;
  if (b->status) return TT_NO_VALUE;
  b->status = tt_graph_append(b->graph, b->block, spec, &v);
  return v;
}

tt_value_t tt_emit_unary(tt_build_t *b, tt_op_t op, tt_value_t x) {
  tt_node_spec_t spec = {.op = op, .operands = &x, .operand_count = 1};
  return tt_emit(b, &spec);
}

// NumPy's rule: aligned at the end, sizes equal or 1.
static bool broadcast_shape(const tt_type_t *x, const tt_type_t *y, uint32_t *rank, int64_t *dims) {
  *rank = x->rank > y->rank ? x->rank : y->rank;
  for (uint32_t i = 0; i < *rank; i++) {
    int64_t a = i + x->rank < *rank ? 1 : x->dims[i + x->rank - *rank];
    int64_t c = i + y->rank < *rank ? 1 : y->dims[i + y->rank - *rank];
    if (a != c && a != 1 && c != 1) return false;
    dims[i] = a == 1 ? c : a;
  }
  return true;
}

// Makes both operands the shape of their broadcast. `op` is only for the message.
static void broadcast_both(tt_build_t *b, tt_op_t op, tt_value_t *x, tt_value_t *y) {
  const tt_type_t *p = tt_build_type(b, *x), *q = tt_build_type(b, *y);
  int64_t dims[TT_MAX_RANK];
  uint32_t rank;
  if (b->status || tt_type_same_shape(p, q)) return;
  if (!broadcast_shape(p, q, &rank, dims)) {
    char s[200], t[200];
    tt_type_format(p, s, sizeof s);
    tt_type_format(q, t, sizeof t);
    tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT, "%s: shapes %s and %s cannot be broadcast together",
                              tt_op_infos[op].text, s, t));
    return;
  }
  *x = tt_emit_broadcast_to(b, *x, rank, dims);
  *y = tt_emit_broadcast_to(b, *y, rank, dims);
}

tt_value_t tt_emit_binary(tt_build_t *b, tt_op_t op, tt_value_t x, tt_value_t y) {
  broadcast_both(b, op, &x, &y);
  const tt_value_t operands[] = {x, y};
  tt_node_spec_t spec = {.op = op, .operands = operands, .operand_count = 2};
  return tt_emit(b, &spec);
}

// compare_c3: the type that suits the element type.
static tt_compare_type_t compare_type_of(tt_dtype_t dtype) {
  if (tt_dtype_is_signed_int(dtype)) return TT_COMPARE_SIGNED;
  if (tt_dtype_is_float(dtype) || tt_dtype_is_complex(dtype)) return TT_COMPARE_FLOAT;
  return TT_COMPARE_UNSIGNED;
}

// The comparison type goes without saying, but XLA's plugins have a simplification that takes a
// comparison of integers that does not say it for an unsigned one.
tt_value_t tt_emit_compare(tt_build_t *b, tt_compare_t how, tt_value_t x, tt_value_t y) {
  broadcast_both(b, TT_OP_COMPARE, &x, &y);
  const tt_value_t operands[] = {x, y};
  const tt_attr_t attrs[] = {
      tt_attr_int(TT_ATTR_COMPARISON_DIRECTION, how),
      tt_attr_int(TT_ATTR_COMPARE_TYPE, compare_type_of(tt_build_type(b, x)->dtype))};
  tt_node_spec_t spec = {.op = TT_OP_COMPARE,
                         .operands = operands,
                         .operand_count = 2,
                         .attrs = attrs,
                         .attr_count = 2};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_select(tt_build_t *b, tt_value_t pred, tt_value_t yes, tt_value_t no) {
  broadcast_both(b, TT_OP_SELECT, &yes, &no);
  // A scalar predicate needs no broadcast.
  if (tt_build_type(b, pred)->rank != 0) {
    broadcast_both(b, TT_OP_SELECT, &pred, &yes);
    broadcast_both(b, TT_OP_SELECT, &yes, &no);
  }
  const tt_value_t operands[] = {pred, yes, no};
  tt_node_spec_t spec = {.op = TT_OP_SELECT, .operands = operands, .operand_count = 3};
  return tt_emit(b, &spec);
}

// The third line: `high` may have stretched x beyond the shape that `low` had been given.
tt_value_t tt_emit_clamp(tt_build_t *b, tt_value_t low, tt_value_t x, tt_value_t high) {
  if (tt_build_type(b, low)->rank != 0) broadcast_both(b, TT_OP_CLAMP, &low, &x);
  if (tt_build_type(b, high)->rank != 0) broadcast_both(b, TT_OP_CLAMP, &high, &x);
  if (tt_build_type(b, low)->rank != 0) broadcast_both(b, TT_OP_CLAMP, &low, &x);
  const tt_value_t operands[] = {low, x, high};
  tt_node_spec_t spec = {.op = TT_OP_CLAMP, .operands = operands, .operand_count = 3};
  return tt_emit(b, &spec);
}

// Integers to which C narrows a number instead of saturating, as StableHLO's convert would.
static bool wraps(tt_dtype_t dtype) {
  return tt_dtype_is_int(dtype) && dtype != TT_I1 && (tt_dtype_size(dtype) < 4 || dtype == TT_U32);
}

tt_value_t tt_emit_convert(tt_build_t *b, tt_value_t x, tt_dtype_t dtype) {
  const tt_type_t *t = tt_build_type(b, x);
  if (b->status || t->dtype == dtype) return x;
  if (dtype == TT_I1) return tt_emit_compare(b, TT_NE, x, tt_emit_scalar(b, t->dtype, 0));
  if (tt_dtype_is_complex(t->dtype) && !tt_dtype_is_complex(dtype)) {
    return tt_emit_convert(b, tt_emit_unary(b, TT_OP_REAL, x), dtype);
  }
  if (tt_dtype_is_float(t->dtype) && wraps(dtype)) {
    x = tt_emit_convert(b, x, dtype == TT_U32 ? TT_S64 : TT_S32);
    return tt_emit_convert(b, x, dtype);
  }
  if (dtype == TT_F8E4M3FN) {  // no infinity: PyTorch stops at the largest number
    if (!tt_dtype_is_float(t->dtype))
      return tt_emit_convert(b, tt_emit_convert(b, x, TT_F32), dtype);
    x = tt_emit_clamp(b, tt_emit_scalar(b, t->dtype, -448), x, tt_emit_scalar(b, t->dtype, 448));
  }
  const tt_type_t to = {dtype, t->rank, t->dims};
  tt_node_spec_t spec = {
      .op = TT_OP_CONVERT, .operands = &x, .operand_count = 1, .types = &to, .type_count = 1};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_bitcast(tt_build_t *b, tt_value_t x, tt_dtype_t dtype, uint32_t rank,
                           const int64_t *dims) {
  const tt_type_t to = {dtype, rank, dims};
  if (b->status || tt_type_equal(tt_build_type(b, x), &to)) return x;
  tt_node_spec_t spec = {.op = TT_OP_BITCAST_CONVERT,
                         .operands = &x,
                         .operand_count = 1,
                         .types = &to,
                         .type_count = 1};
  return tt_emit(b, &spec);
}

// Moves into the block even where an argument failed, so that end moves back out of it.
tt_block_t *tt_emit_region_begin(tt_build_t *b, const tt_type_t *arg_types, uint32_t arg_count,
                                 tt_value_t *out_args) {
  tt_block_t *block = NULL;
  for (uint32_t i = 0; i < arg_count; i++) out_args[i] = TT_NO_VALUE;
  if (b->status) return NULL;
  b->status = tt_graph_block(b->graph, b->block, &block);
  for (uint32_t i = 0; i < arg_count && !b->status; i++) {
    b->status = tt_graph_argument(b->graph, block, arg_types[i], &out_args[i]);
  }
  if (block) b->block = block;
  return block;
}

void tt_emit_region_end(tt_build_t *b, tt_block_t *region, const tt_value_t *returns,
                        uint32_t count) {
  if (!region) return;
  b->block = region->parent;
  if (!b->status) b->status = tt_graph_return(b->graph, region, returns, count);
}

void tt_emit_while(tt_build_t *b, const tt_value_t *init, uint32_t count, tt_block_t *condition,
                   tt_block_t *body, tt_value_t *out_values) {
  tt_block_t *regions[] = {condition, body};
  tt_node_spec_t spec = {.op = TT_OP_WHILE,
                         .operands = init,
                         .operand_count = count,
                         .regions = regions,
                         .region_count = 2};
  tt_value_t first = tt_emit(b, &spec);
  for (uint32_t i = 0; i < count; i++) out_values[i] = b->status ? TT_NO_VALUE : first + i;
}
