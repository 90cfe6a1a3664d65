// Emitters of gathers, scatters and sorts.
#include <string.h>

#include "ir/build.h"
#include "ir/internal.h"

static tt_value_t gather(tt_build_t *b, tt_value_t x, tt_value_t indices, const tt_attr_t *attrs,
                         uint32_t attr_count) {
  const tt_value_t operands[] = {x, indices};
  tt_node_spec_t spec = {.op = TT_OP_GATHER,
                         .operands = operands,
                         .operand_count = 2,
                         .attrs = attrs,
                         .attr_count = attr_count};
  return tt_emit(b, &spec);
}

// The dimensions of a take's result that come from x: all but [dim, dim + index_rank).
static uint32_t window_dims(uint32_t x_rank, uint32_t index_rank, int64_t dim, int64_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x_rank; i++) {
    if (i != (uint64_t)dim) out[n++] = i < (uint64_t)dim ? i : i + index_rank - 1;
  }
  return n;
}

// One index a window (index_vector_dim is the indices' rank: there is no vector dimension); windows
// are whole but for `dim`, which collapses.
tt_value_t tt_emit_take(tt_build_t *b, tt_value_t x, tt_value_t indices, int64_t dim) {
  const tt_type_t *t = tt_build_type(b, x), *i = tt_build_type(b, indices);
  int64_t offsets[TT_MAX_RANK], sizes[TT_MAX_RANK];
  if (b->status) return TT_NO_VALUE;
  uint32_t n = window_dims(t->rank, i->rank, dim, offsets);
  memcpy(sizes, t->dims, t->rank * sizeof *sizes);
  sizes[dim] = 1;
  const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_OFFSET_DIMS, offsets, n),
                             tt_attr_ints(TT_ATTR_COLLAPSED_SLICE_DIMS, &dim, 1),
                             tt_attr_ints(TT_ATTR_START_INDEX_MAP, &dim, 1),
                             tt_attr_int(TT_ATTR_INDEX_VECTOR_DIM, i->rank),
                             tt_attr_ints(TT_ATTR_SLICE_SIZES, sizes, t->rank)};
  if (t->dims[dim] == 0) {  // nothing to take from: right only where nothing is taken
    int64_t dims[2 * TT_MAX_RANK];
    uint32_t rank = 0;
    for (int64_t k = 0; k < dim; k++) dims[rank++] = t->dims[k];
    for (uint32_t k = 0; k < i->rank; k++) dims[rank++] = i->dims[k];
    for (uint32_t k = (uint32_t)dim + 1; k < t->rank; k++) dims[rank++] = t->dims[k];
    const tt_type_t empty = {t->dtype, rank, dims};
    if (tt_type_elements(&empty) == 0) return tt_emit_splat(b, t->dtype, rank, dims, 0);
  }
  return gather(b, x, indices, attrs, 5);
}

// All dimensions but `dim`.
static uint32_t other_dims(uint32_t rank, int64_t dim, int64_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (i != (uint64_t)dim) out[n++] = i;
  }
  return n;
}

// What gather and scatter along a dimension want of their operands; false: failed.
static bool check_along(tt_build_t *b, const char *what, const tt_type_t *x, const tt_type_t *i) {
  if (b->status) return false;
  if (x->rank == i->rank && x->rank > 0) return true;
  tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT, "%s: operand of rank %u, indices of rank %u", what,
                            x->rank, i->rank));
  return false;
}

// Every dimension but `dim` is a batching dimension, whose sizes must agree (gather_c17): where the
// indices are smaller than x, x is cut to their size first.
tt_value_t tt_emit_take_along(tt_build_t *b, tt_value_t x, tt_value_t indices, int64_t dim) {
  const tt_type_t *t = tt_build_type(b, x), *i = tt_build_type(b, indices);
  int64_t batch[TT_MAX_RANK], sizes[TT_MAX_RANK], zeros[TT_MAX_RANK] = {0}, limits[TT_MAX_RANK];
  if (!check_along(b, "gather", t, i)) return TT_NO_VALUE;
  if (tt_type_elements(i) == 0) return tt_emit_splat(b, t->dtype, i->rank, i->dims, 0);
  for (uint32_t k = 0; k < t->rank; k++) {
    sizes[k] = 1;
    limits[k] = k == (uint64_t)dim ? t->dims[k] : i->dims[k];
  }
  x = tt_emit_slice(b, x, zeros, limits, NULL);
  uint32_t n = other_dims(t->rank, dim, batch);
  const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_COLLAPSED_SLICE_DIMS, &dim, 1),
                             tt_attr_ints(TT_ATTR_START_INDEX_MAP, &dim, 1),
                             tt_attr_int(TT_ATTR_INDEX_VECTOR_DIM, t->rank),
                             tt_attr_ints(TT_ATTR_SLICE_SIZES, sizes, t->rank),
                             tt_attr_ints(TT_ATTR_OPERAND_BATCHING_DIMS, batch, n),
                             tt_attr_ints(TT_ATTR_START_INDICES_BATCHING_DIMS, batch, n)};
  return gather(b, x, indices, attrs, n ? 6 : 4);
}

// (old, update) -> op(old, update), or the update alone for "replace".
static tt_block_t *put_body(tt_build_t *b, tt_op_t op, tt_dtype_t dtype) {
  const tt_type_t scalar = {dtype, 0, NULL}, types[] = {scalar, scalar};
  tt_value_t args[2];
  tt_block_t *body = tt_emit_region_begin(b, types, 2, args);
  tt_value_t r = op == TT_OP_COUNT ? args[1] : tt_emit_binary(b, op, args[0], args[1]);
  tt_emit_region_end(b, body, &r, 1);
  return body;
}

static tt_value_t scatter(tt_build_t *b, tt_value_t x, tt_value_t indices, tt_value_t updates,
                          tt_op_t op, const tt_attr_t *attrs, uint32_t attr_count) {
  tt_block_t *body = put_body(b, op, tt_build_dtype(b, x));
  const tt_value_t operands[] = {x, indices, updates};
  tt_node_spec_t spec = {.op = TT_OP_SCATTER,
                         .operands = operands,
                         .operand_count = 3,
                         .attrs = attrs,
                         .attr_count = attr_count,
                         .regions = &body,
                         .region_count = 1};
  return tt_emit(b, &spec);
}

tt_value_t tt_emit_put(tt_build_t *b, tt_value_t x, tt_value_t indices, tt_value_t updates,
                       int64_t dim, tt_op_t op) {
  const tt_type_t *t = tt_build_type(b, x), *i = tt_build_type(b, indices);
  int64_t window[TT_MAX_RANK];
  if (b->status) return TT_NO_VALUE;
  uint32_t n = window_dims(t->rank, i->rank, dim, window);
  const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_UPDATE_WINDOW_DIMS, window, n),
                             tt_attr_ints(TT_ATTR_INSERTED_WINDOW_DIMS, &dim, 1),
                             tt_attr_ints(TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &dim, 1),
                             tt_attr_int(TT_ATTR_INDEX_VECTOR_DIM, i->rank)};
  return scatter(b, x, indices, updates, op, attrs, 4);
}

// Full coordinates [dims..., rank]: `indices` at dim, the position itself elsewhere. They cost
// `rank` times the memory of the indices, so this is the way only where batching dimensions do not
// do.
static tt_value_t coordinates(tt_build_t *b, tt_value_t indices, int64_t dim) {
  const tt_type_t *i = tt_build_type(b, indices);
  int64_t dims[TT_MAX_RANK + 1];
  tt_value_t columns[TT_MAX_RANK];
  memcpy(dims, i->dims, i->rank * sizeof *dims);
  dims[i->rank] = 1;
  for (uint32_t k = 0; k < i->rank; k++) {
    tt_value_t column =
        k == (uint64_t)dim ? indices : tt_emit_iota(b, i->dtype, i->rank, i->dims, k);
    columns[k] = tt_emit_reshape(b, column, i->rank + 1, dims);
  }
  return tt_emit_concat(b, columns, i->rank, i->rank);
}

tt_value_t tt_emit_put_along(tt_build_t *b, tt_value_t x, tt_value_t indices, tt_value_t updates,
                             int64_t dim, tt_op_t op) {
  const tt_type_t *t = tt_build_type(b, x), *i = tt_build_type(b, indices);
  int64_t others[TT_MAX_RANK], all[TT_MAX_RANK];
  if (!check_along(b, "scatter", t, i)) return TT_NO_VALUE;
  uint32_t n = other_dims(t->rank, dim, others);
  bool covers = true;
  for (uint32_t k = 0; k < n; k++) covers = covers && t->dims[others[k]] == i->dims[others[k]];
  for (uint32_t k = 0; k < t->rank; k++) all[k] = k;
  if (!covers) {  // batching dimensions must have equal sizes; coordinates need not
    const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_INSERTED_WINDOW_DIMS, all, t->rank),
                               tt_attr_ints(TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, all, t->rank),
                               tt_attr_int(TT_ATTR_INDEX_VECTOR_DIM, t->rank)};
    return scatter(b, x, coordinates(b, indices, dim), updates, op, attrs, 3);
  }
  const tt_attr_t attrs[] = {tt_attr_ints(TT_ATTR_INSERTED_WINDOW_DIMS, &dim, 1),
                             tt_attr_ints(TT_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &dim, 1),
                             tt_attr_int(TT_ATTR_INDEX_VECTOR_DIM, t->rank),
                             tt_attr_ints(TT_ATTR_INPUT_BATCHING_DIMS, others, n),
                             tt_attr_ints(TT_ATTR_SCATTER_INDICES_BATCHING_DIMS, others, n)};
  return scatter(b, x, indices, updates, op, attrs, n ? 5 : 3);
}

// True where x comes strictly before y; NaN is above every number.
static tt_value_t comes_before(tt_build_t *b, tt_value_t x, tt_value_t y, bool descending) {
  tt_value_t before = tt_emit_compare(b, descending ? TT_GT : TT_LT, x, y);
  if (!tt_dtype_is_float(tt_build_dtype(b, x))) return before;
  tt_value_t x_nan = tt_emit_compare(b, TT_NE, x, x), y_nan = tt_emit_compare(b, TT_NE, y, y);
  tt_value_t above = descending ? x_nan : y_nan, below = descending ? y_nan : x_nan;
  tt_value_t only = tt_emit_binary(b, TT_OP_AND, above, tt_emit_unary(b, TT_OP_NOT, below));
  return tt_emit_binary(b, TT_OP_OR, before, only);
}

// Sorts all operands by the first one's order. Stable, as torch.sort(stable=True) asks; the
// region's arguments come in pairs, one pair an operand.
void tt_emit_sort(tt_build_t *b, const tt_value_t *xs, uint32_t count, int64_t dim, bool descending,
                  tt_value_t *out_values) {
  enum { MOST = 16 };
  tt_type_t types[2 * MOST];
  tt_value_t args[2 * MOST];
  for (uint32_t i = 0; i < count; i++) out_values[i] = TT_NO_VALUE;
  if (count > MOST) {
    tt_build_fail(b, TT_ERROR(UNIMPLEMENTED, "sort: %u operands, at most %d", count, MOST));
  }
  if (b->status) return;
  for (uint32_t i = 0; i < count; i++) {
    types[2 * i] = types[2 * i + 1] = (tt_type_t){tt_build_dtype(b, xs[i]), 0, NULL};
  }
  tt_block_t *body = tt_emit_region_begin(b, types, 2 * count, args);
  tt_value_t before = comes_before(b, args[0], args[1], descending);
  tt_emit_region_end(b, body, &before, 1);
  const tt_attr_t attrs[] = {tt_attr_int(TT_ATTR_DIMENSION, dim),
                             tt_attr_int(TT_ATTR_IS_STABLE, 1)};
  tt_node_spec_t spec = {.op = TT_OP_SORT,
                         .operands = xs,
                         .operand_count = count,
                         .attrs = attrs,
                         .attr_count = 2,
                         .regions = &body,
                         .region_count = 1};
  tt_value_t first = tt_emit(b, &spec);
  for (uint32_t i = 0; i < count && !b->status; i++) out_values[i] = first + i;
}
