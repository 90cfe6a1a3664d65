// Embedding tables and bags.
#include "aten/index.h"

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
TT_LOWER0(embedding) {
  tt_build_t *b = L->b;
  const tt_tensor_t *weight = tt_lower_meta(L, 0);
  const tt_value_t index =
      tt__index_ready(L, tt_lower_tensor(L, 1), 0, weight->sizes[0], false, TT_INDEX);
  tt_lower_return(L, 0, tt_emit_take(b, tt_lower_tensor(L, 0), index, 0));
}

// How often each of `rows` rows is named, as `d`.
static tt_value_t counts(tt_build_t *b, tt_value_t index, int64_t rows, tt_dtype_t d) {
  const int64_t dims[] = {rows}, n[] = {tt__dim(b, index, 0)};
  return tt_emit_put(b, tt_emit_splat(b, d, 1, dims, 0), index, tt_emit_splat(b, d, 1, n, 1), 0,
                     TT_OP_ADD);
}

// grad rows [n, D] added into a zero table [rows, D] at index [n].
static tt_value_t add_rows(tt_build_t *b, tt_value_t rows, tt_value_t index, int64_t count,
                           int64_t width, tt_dtype_t d) {
  const int64_t dims[] = {count, width};
  return tt_emit_put(b, tt_emit_splat(b, d, 2, dims, 0), index, rows, 0, TT_OP_ADD);
}

// False where index names the padding row, along rows.
static tt_value_t keep_unless_padding(tt_build_t *b, tt_value_t index, int64_t padding) {
  return tt__cmpc(b, TT_NE, index, (double)padding);
}
static tt_value_t scale_rows(tt_build_t *b, tt_value_t rows, tt_value_t scale) {
  return tt__mul(b, rows, tt__along(b, scale, 2, 0));
}
static tt_value_t mask_rows(tt_build_t *b, tt_value_t keep, tt_value_t rows) {
  const tt_type_t *t = tt_build_type(b, rows);
  return tt__zero_unless(b, tt_emit_broadcast_to(b, tt__along(b, keep, 2, 0), t->rank, t->dims),
                         rows);
}

// embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
TT_LOWER0(embedding_dense_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *g = tt_lower_meta(L, 0), *indices = tt_lower_meta(L, 1);
  const int64_t rows = tt_lower_int(L, 2, 0), padding = tt_lower_int(L, 3, -1);
  const int64_t n = tt__product(indices->sizes, indices->rank), width = g->sizes[g->rank - 1];
  const int64_t dims[] = {n, width};
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)g->dtype);
  const tt_value_t index =
      tt__flatten(b, tt__index_ready(L, tt_lower_tensor(L, 1), 0, rows, false, TT_INDEX));
  tt_value_t grad = tt_emit_reshape(b, tt_lower_tensor_as(L, 0, d), 2, dims);
  if (padding >= 0) grad = mask_rows(b, keep_unless_padding(b, index, padding), grad);
  if (tt_lower_int(L, 4, 0)) {
    const tt_value_t often = tt_emit_take(b, counts(b, index, rows, d), index, 0);
    grad = tt__div(b, grad, tt__along(b, often, 2, 0));
  }
  tt_lower_return(L, 0, add_rows(b, grad, index, rows, width, d));
}

// embedding_renorm_(self, indices, max_norm, norm_type); both floats are static.
TT_LOWER0(embedding_renorm) {
  tt_build_t *b = L->b;
  const tt_tensor_t *self = tt_lower_meta(L, 0);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)self->dtype);
  const double max_norm = tt_lower_static_float(L, 2, 0), p = tt_lower_static_float(L, 3, 2);
  static const int64_t last[] = {1};
  const tt_value_t table = tt_lower_tensor_as(L, 0, d);
  const tt_value_t index =
      tt__flatten(b, tt__index_ready(L, tt_lower_tensor(L, 1), 0, self->sizes[0], false, TT_INDEX));
  const tt_value_t rows = tt_emit_take(b, table, index, 0);
  const tt_value_t norm = tt__norm(b, rows, p, last, 1, true);
  const tt_value_t scale = tt__div(b, tt__num(b, norm, max_norm), tt__addc(b, norm, 1e-7));
  const tt_value_t factor =
      tt_emit_select(b, tt__cmpc(b, TT_GT, norm, max_norm), scale, tt_emit_splat_like(b, norm, 1));
  tt_lower_return(L, 0, tt_emit_put(b, table, index, tt__mul(b, rows, factor), 0, TT_OP_COUNT));
}

// --- bags ----------------------------------------------------------------------------------------
typedef enum bag_mode_e { BAG_SUM, BAG_MEAN, BAG_MAX } bag_mode_t;

// The bag of each of n entries: how many offsets (but the first) are not past it. Several offsets
// may be equal (empty bags).
static tt_value_t bags_of(tt_build_t *b, tt_value_t offsets, int64_t bags, int64_t n) {
  const int64_t dims[] = {n + 1}, zero[] = {0}, end[] = {n};
  const int64_t marks[] = {bags};
  const tt_value_t starts =
      tt_emit_convert(b, tt_emit_slice(b, offsets, zero, marks, NULL), TT_S32);
  const tt_value_t hits = tt_emit_put(b, tt_emit_splat(b, TT_S32, 1, dims, 0), starts,
                                      tt_emit_splat(b, TT_S32, 1, marks, 1), 0, TT_OP_ADD);
  const tt_value_t seen = tt__prefix_sum(b, tt_emit_slice(b, hits, zero, end, NULL), 0);
  return tt__addc(b, seen, -1);
}

// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
// include_last_offset, padding_idx) -> (output, offset2bag, bag_size, max_indices)
TT_LOWER0(embedding_bag) {
  tt_build_t *b = L->b;
  const tt_tensor_t *weight = tt_lower_meta(L, 0), *indices = tt_lower_meta(L, 1);
  const bag_mode_t mode = (bag_mode_t)tt_lower_int(L, 4, 0);
  const int64_t n = indices->sizes[0], bags = L->outs[0].sizes[0], width = weight->sizes[1];
  const int64_t rows = weight->sizes[0], bag_dims[] = {bags};
  const int64_t padding = tt_lower_int(L, 8, -1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)weight->dtype);
  const tt_value_t index =
      tt__index_ready(L, tt_lower_tensor(L, 1), 0, rows, false, TT_INVALID_ARGUMENT);
  const tt_value_t bag = bags_of(b, tt_lower_tensor(L, 2), bags, n);
  const tt_value_t keep = keep_unless_padding(
      b, index, padding < 0 && padding >= -rows && padding != -1 ? padding + rows : padding);
  const tt_value_t size = tt_emit_put(b, tt_emit_splat(b, TT_S32, 1, bag_dims, 0), bag,
                                      tt_emit_convert(b, keep, TT_S32), 0, TT_OP_ADD);
  tt_value_t entries = tt_emit_take(b, tt_lower_tensor_as(L, 0, d), index, 0);
  if (tt_lower_has(L, 6)) entries = scale_rows(b, entries, tt_lower_tensor_as(L, 6, d));
  const tt_value_t size_column = tt__along(b, size, 2, 0);
  if (mode == BAG_MAX) {
    const int64_t out_dims[] = {bags, width}, entry_dims[] = {n, width};
    const tt_value_t lowest = tt_emit_lowest(b, d);
    const tt_value_t wide_keep = tt_emit_broadcast_to(b, tt__along(b, keep, 2, 0), 2, entry_dims);
    const tt_value_t masked =
        tt_emit_select(b, wide_keep, entries, tt__fill_like(b, entries, lowest));
    const tt_value_t most =
        tt_emit_put(b, tt_emit_broadcast_to(b, lowest, 2, out_dims), bag, masked, 0, TT_OP_MAXIMUM);
    // The first entry of the bag that equals the maximum names the row.
    const tt_value_t equal =
        tt__and(b, wide_keep, tt_emit_compare(b, TT_EQ, masked, tt_emit_take(b, most, bag, 0)));
    const tt_value_t at = tt_emit_select(b, equal, tt__iota(b, 2, entry_dims, 0),
                                         tt_emit_splat(b, TT_S32, 2, entry_dims, (double)n));
    tt_value_t first =
        tt_emit_put(b, tt_emit_splat(b, TT_S32, 2, out_dims, (double)n), bag, at, 0, TT_OP_MINIMUM);
    const tt_value_t any = tt_emit_broadcast_to(b, tt__cmpc(b, TT_GT, size_column, 0), 2, out_dims);
    first = tt__min(b, first, tt__num(b, first, n > 0 ? (double)(n - 1) : 0));
    tt_lower_return(L, 0, tt__zero_unless(b, any, most));
    tt_lower_return(L, 3,
                    n ? tt__zero_unless(b, any, tt_emit_take(b, index, first, 0))
                      : tt_emit_splat(b, TT_S32, 2, out_dims, 0));
  } else {
    tt_value_t sum = add_rows(b, mask_rows(b, keep, entries), bag, bags, width, d);
    if (mode == BAG_MEAN) {
      const tt_value_t divisor = tt__max(b, size_column, tt__num(b, size_column, 1));
      sum = tt__div(b, sum, tt_emit_convert(b, divisor, d));
    }
    tt_lower_return(L, 0, sum);
    const tt_out_meta_t *most = &L->outs[3];
    tt_lower_return(L, 3, tt_emit_splat(b, (tt_dtype_t)most->dtype, most->rank, most->sizes, 0));
  }
  // PyTorch leaves offset2bag empty where its fast path needs none, and gives bag_size one entry
  // more under include_last_offset.
  const tt_out_meta_t *o2b = &L->outs[1], *sizes = &L->outs[2];
  tt_lower_return(L, 1, o2b->sizes[0] == n ? bag : tt_emit_splat(b, TT_S32, 1, o2b->sizes, 0));
  const int64_t low[] = {0}, high[] = {sizes->sizes[0] - bags};
  tt_lower_return(L, 2, tt_emit_pad(b, size, tt__num(b, size, 0), low, high, NULL));
}

// _embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
// scale_grad_by_freq, mode, per_sample_weights, padding_idx)
TT_LOWER0(embedding_bag_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *g = tt_lower_meta(L, 0), *indices = tt_lower_meta(L, 1);
  const int64_t n = indices->sizes[0], width = g->sizes[1], rows = tt_lower_int(L, 5, 0);
  const bag_mode_t mode = (bag_mode_t)tt_lower_int(L, 7, 0);
  const int64_t padding = tt_lower_int(L, 9, -1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)g->dtype);
  const tt_value_t grad = tt_lower_tensor_as(L, 0, d);
  if (mode == BAG_MAX) {
    // Every (bag, column) adds to the row that won there; empty bags add nothing.
    const int64_t dims[] = {rows, width};
    const int64_t bags[] = {g->sizes[0]}, zero[] = {0};
    const tt_value_t size = tt_emit_slice(b, tt_lower_tensor_as(L, 3, TT_S32), zero, bags, NULL);
    const tt_value_t masked = mask_rows(b, tt__cmpc(b, TT_GT, size, 0), grad);
    tt_lower_return(L, 0,
                    tt_emit_put_along(b, tt_emit_splat(b, d, 2, dims, 0),
                                      tt_lower_tensor_as(L, 4, TT_S32), masked, 0, TT_OP_ADD));
    return;
  }
  const tt_value_t index = tt_lower_tensor_as(L, 1, TT_S32);
  const tt_value_t bag = tt_lower_tensor_as(L, 2, TT_S32);
  tt_value_t entries = tt_emit_take(b, grad, bag, 0);
  if (tt_lower_has(L, 8)) entries = scale_rows(b, entries, tt_lower_tensor_as(L, 8, d));
  if (mode == BAG_MEAN) {
    const tt_value_t size = tt_emit_take(b, tt_lower_tensor_as(L, 3, d), bag, 0);
    entries = tt__div(b, entries, tt__along(b, size, 2, 0));
  }
  if (tt_lower_int(L, 6, 0)) {
    const tt_value_t often = tt_emit_take(b, counts(b, index, rows, d), index, 0);
    entries = tt__div(b, entries, tt__along(b, often, 2, 0));
  }
  if (padding >= 0) entries = mask_rows(b, keep_unless_padding(b, index, padding), entries);
  if (n == 0) entries = tt_emit_splat_like(b, entries, 0);
  tt_lower_return(L, 0, add_rows(b, entries, index, rows, width, d));
}

// _embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode,
// padding_idx)
TT_LOWER0(embedding_bag_per_sample_weights_backward) {
  tt_build_t *b = L->b;
  static const int64_t columns[] = {1};
  const int64_t padding = tt_lower_int(L, 6, -1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)tt_lower_meta(L, 0)->dtype);
  const tt_value_t index = tt_lower_tensor_as(L, 2, TT_S32);
  const tt_value_t grad =
      tt_emit_take(b, tt_lower_tensor_as(L, 0, d), tt_lower_tensor_as(L, 4, TT_S32), 0);
  const tt_value_t rows = tt_emit_take(b, tt_lower_tensor_as(L, 1, d), index, 0);
  tt_value_t dot = tt__sum_over(b, tt__mul(b, grad, rows), columns, 1, false);
  if (padding >= 0) dot = tt__zero_unless(b, keep_unless_padding(b, index, padding), dot);
  tt_lower_return(L, 0, dot);
}
