// Running an op's rule, and what the rules share. The rules themselves: infer_<family>.c.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/internal.h"

// Ids like "c3" are the numbers of constraints in StableHLO's specification, op by op; what has
// none there (arity, missing attributes) is reported without one.
static const tt__infer_fn_t rules[TT_OP_COUNT] = {
#define OP(name, text, operands, results, regions, traits, infer) tt__infer_##infer,
#include "ir/ops.def"
#undef OP
};

// At most eight operands are listed: a concatenation may have thousands.
tt_status_t tt__infer_fail(const tt__infer_t *c, const char *id, const char *format, ...) {
  const char *name = tt_op_infos[c->node->op].text;
  char detail[512], types[768], label[96] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  if (id) snprintf(label, sizeof label, " (%s_%s)", name, id);
  size_t at = 0;
  types[0] = '\0';
  for (uint32_t i = 0; i < c->node->operand_count && at + 8 < sizeof types; i++) {
    if (i) at += (size_t)snprintf(types + at, sizeof types - at, ", ");
    if (i == 8 || at > sizeof types / 2) {
      snprintf(types + at, sizeof types - at, "... %u in all", c->node->operand_count);
      break;
    }
    at += (size_t)tt_type_format(tt__operand(c, i), types + at, sizeof types - at);
  }
  return TT_ERROR(INVALID_ARGUMENT, "%s%s: %s; operands (%s)", name, label, detail, types);
}

tt_status_t tt__infer_results(tt__infer_t *c, uint32_t count) {
  c->count = count;
  c->types = c->few;
  if (count > sizeof c->few / sizeof *c->few) {
    TT__REQUIRE(c, count <= UINT16_MAX, NULL, "more than 65535 results");
    c->types = TT_ARENA_ARRAY(c->arena, tt_type_t, count);
    if (!c->types) return tt__no_memory();
  }
  return TT_OK_STATUS;
}

tt_status_t tt__infer_dims(tt__infer_t *c, uint32_t i, tt_dtype_t dtype, uint32_t rank,
                           const int64_t *dims) {
  tt_type_t type = {dtype, rank, dims};
  tt_status_t s = tt__type_check(&type);
  if (s) return tt_status_annotate(s, "%s", tt_op_infos[c->node->op].text);
  int64_t *copy = tt_arena_copy(c->arena, dims, rank * sizeof *dims);
  if (!copy) return tt__no_memory();
  type.dims = copy;
  c->types[i] = type;
  return TT_OK_STATUS;
}

tt_status_t tt__infer_given(tt__infer_t *c) {
  int8_t results = tt_op_infos[c->node->op].results;
  TT__REQUIRE(c, results < 0 || c->given_count == (uint32_t)results, NULL,
              "%d result types are needed, %u are given", results, c->given_count);
  TT_RETURN_IF_ERROR(tt__infer_results(c, c->given_count));
  for (uint32_t i = 0; i < c->count; i++) {
    const tt_type_t *t = &c->given[i];
    TT_RETURN_IF_ERROR(tt__infer_dims(c, i, t->dtype, t->rank, t->dims));
  }
  return TT_OK_STATUS;
}

// Ops that are not typed derive their results alone; types that were written must then agree.
tt_status_t tt__infer(tt__infer_t *c) {
  TT_RETURN_IF_ERROR(rules[c->node->op](c));
  if (!c->given || (tt_op_infos[c->node->op].traits & TT_TRAIT_TYPED)) return TT_OK_STATUS;
  TT__REQUIRE(c, c->given_count == c->count, NULL, "gives %u results, %u types are written",
              c->count, c->given_count);
  for (uint32_t i = 0; i < c->count; i++) {
    if (tt_type_equal(&c->types[i], &c->given[i])) continue;
    char is[160], asked[160];
    tt_type_format(&c->types[i], is, sizeof is);
    tt_type_format(&c->given[i], asked, sizeof asked);
    return tt__infer_fail(c, NULL, "result %u is %s, not %s", i, is, asked);
  }
  return TT_OK_STATUS;
}

tt_status_t tt__infer_optional(const tt__infer_t *c, tt_attr_key_t key, uint32_t count,
                               const int64_t **out_list) {
  uint32_t n;
  *out_list = tt_node_ints(c->node, key, &n);
  TT__REQUIRE(c, !*out_list || n == count, NULL, "%s has %u elements, %u are needed",
              tt_attr_names[key], n, count);
  return TT_OK_STATUS;
}

tt_status_t tt__infer_list(const tt__infer_t *c, tt_attr_key_t key, uint32_t count,
                           const int64_t **out_list) {
  TT_RETURN_IF_ERROR(tt__infer_optional(c, key, count, out_list));
  TT__REQUIRE(c, *out_list || count == 0, NULL, "%s is missing", tt_attr_names[key]);
  return TT_OK_STATUS;
}

tt_status_t tt__infer_dimensions(const tt__infer_t *c, const char *id, const int64_t *list,
                                 uint32_t count, uint32_t rank) {
  uint64_t seen = 0;  // ranks go up to TT_MAX_RANK = 64
  for (uint32_t i = 0; i < count; i++) {
    TT__REQUIRE(c, list[i] >= 0 && list[i] < (int64_t)rank, id, "dimension %lld is outside [0, %u)",
                (long long)list[i], rank);
    TT__REQUIRE(c, !(seen >> list[i] & 1), id, "dimension %lld occurs twice", (long long)list[i]);
    seen |= UINT64_C(1) << list[i];
  }
  return TT_OK_STATUS;
}

// Regions of reductions, scatters and sorts work on single elements: 0-dimensional tensors of the
// given types, in and out.
tt_status_t tt__infer_scalar_region(const tt__infer_t *c, uint32_t r, const char *id,
                                    const tt_dtype_t *args, uint32_t arg_count,
                                    const tt_dtype_t *returns, uint32_t return_count) {
  const tt_block_t *block = c->node->regions[r];
  TT__REQUIRE(c, block->arg_count == arg_count, id, "region %u takes %u arguments, not %u", r,
              block->arg_count, arg_count);
  TT__REQUIRE(c, block->return_count == return_count, id, "region %u returns %u values, not %u", r,
              block->return_count, return_count);
  for (uint32_t i = 0; i < arg_count; i++) {
    const tt_type_t *t = tt_graph_type(c->graph, block->args[i]);
    TT__REQUIRE(c, t->rank == 0 && t->dtype == args[i], id,
                "argument %u of region %u is not a scalar %s", i, r, tt_dtype_text(args[i]));
  }
  for (uint32_t i = 0; i < return_count; i++) {
    const tt_type_t *t = tt_graph_type(c->graph, block->returns[i]);
    TT__REQUIRE(c, t->rank == 0 && t->dtype == returns[i], id,
                "value %u that region %u returns is not a scalar %s", i, r,
                tt_dtype_text(returns[i]));
  }
  return TT_OK_STATUS;
}

// size -> (size - 1) * dilation + 1, nothing for nothing; false on overflow.
static bool dilate(int64_t size, int64_t dilation, int64_t *out) {
  if (size == 0) {
    *out = 0;
    return true;
  }
  return !__builtin_mul_overflow(size - 1, dilation, out) && !__builtin_add_overflow(*out, 1, out);
}

// Negative padding may cut the whole input away: base is negative then and the result 0.
int64_t tt__window_output(int64_t size, int64_t window, int64_t stride, int64_t low, int64_t high,
                          int64_t base_dilation, int64_t window_dilation) {
  int64_t base, span;
  if (window < 1 || stride < 1 || base_dilation < 1 || window_dilation < 1) return -1;
  if (!dilate(size, base_dilation, &base) || !dilate(window, window_dilation, &span)) return -1;
  if (__builtin_add_overflow(base, low, &base) || __builtin_add_overflow(base, high, &base)) {
    return -1;
  }
  return base < span ? 0 : (base - span) / stride + 1;
}
