// Moving elements about: concatenation, repetition, rotation, shuffles, diagonals.
#include "aten/emit.h"

// The legacy empty vector that cat ignores whatever the other tensors' rank.
static bool is_skipped(const tt_tensor_t *t, uint32_t rank) {
  return t->rank == 1 && t->sizes[0] == 0 && rank != 1;
}

// cat(tensors, dim)
TT_LOWER0(cat) {
  tt_build_t *b = L->b;
  uint32_t n = tt_lower_list_count(L, 0), kept = 0;
  const tt_tensor_t *tensors = tt_lower_arg(L, 0)->u.tensors;
  tt_value_t *xs = TT_SCRATCH(b, tt_value_t, n);
  if (!xs) return;
  for (uint32_t i = 0; i < n; i++) {
    if (is_skipped(&tensors[i], L->outs[0].rank)) continue;
    xs[kept++] = tt_emit_convert(b, tt_lower_list_tensor(L, 0, i), tt_lower_out_dtype(L, 0));
  }
  if (kept == 0) {
    tt_lower_return(
        L, 0, tt_emit_splat(b, tt_lower_out_dtype(L, 0), L->outs[0].rank, L->outs[0].sizes, 0));
    return;
  }
  int64_t dim = tt_lower_dim(L, 1, L->outs[0].rank);
  tt_lower_return(L, 0, kept == 1 ? xs[0] : tt_emit_concat(b, xs, kept, dim));
}

// x with a dimension of size 1 inserted.
static tt_value_t unsqueeze(tt_build_t *b, tt_value_t x, int64_t dim) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dims[TT_MAX_RANK + 1];
  for (uint32_t i = 0, j = 0; i <= t->rank; i++) dims[i] = i == dim ? 1 : t->dims[j++];
  return tt_emit_reshape(b, x, t->rank + 1, dims);
}

// stack(tensors, dim)
TT_LOWER0(stack) {
  tt_build_t *b = L->b;
  uint32_t n = tt_lower_list_count(L, 0);
  tt_value_t *xs = TT_SCRATCH(b, tt_value_t, n);
  if (!xs) return;
  int64_t dim = tt_lower_dim(L, 1, L->outs[0].rank);
  for (uint32_t i = 0; i < n; i++) {
    tt_value_t x = tt_emit_convert(b, tt_lower_list_tensor(L, 0, i), tt_lower_out_dtype(L, 0));
    xs[i] = unsqueeze(b, x, dim);
  }
  tt_lower_return(L, 0, n == 1 ? xs[0] : tt_emit_concat(b, xs, n, dim));
}

TT_LOWER0(flip) {
  tt_value_t x = tt_lower_tensor(L, 0);
  uint32_t rank = tt__rank(L->b, x), n;
  const int64_t *list = tt_lower_ints(L, 1, &n);
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) dims[i] = list[i] < 0 ? list[i] + rank : list[i];
  tt_lower_return(L, 0, n && rank ? tt_emit_reverse(L->b, x, dims, n) : x);
}

static tt_value_t roll_one(tt_build_t *b, tt_value_t x, int64_t shift, int64_t dim) {
  int64_t n = tt__dim(b, x, dim);
  shift = n ? ((shift % n) + n) % n : 0;
  if (shift == 0) return x;
  const tt_value_t parts[2] = {tt_emit_slice_dim(b, x, dim, n - shift, n, 1),
                               tt_emit_slice_dim(b, x, dim, 0, n - shift, 1)};
  return tt_emit_concat(b, parts, 2, dim);
}
// roll(self, shifts, dims); without dims the elements in memory order roll.
TT_LOWER0(roll) {
  tt_value_t x = tt_lower_tensor(L, 0);
  uint32_t rank = tt__rank(L->b, x), shift_count, n;
  const int64_t *shifts = tt_lower_ints(L, 1, &shift_count), *dims = tt_lower_ints(L, 2, &n);
  if (n == 0) {
    x = tt__reshape_out(L, 0, roll_one(L->b, tt__flatten(L->b, x), shifts[0], 0));
  }
  for (uint32_t i = 0; i < n && rank; i++) {
    x = roll_one(L->b, x, shifts[i], dims[i] < 0 ? dims[i] + rank : dims[i]);
  }
  tt_lower_return(L, 0, x);
}

// repeat(self, repeats): a broadcast along new dimensions, folded into the old ones.
TT_LOWER0(repeat) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  const tt_type_t *t = tt_build_type(b, x);
  uint32_t n;
  const int64_t *repeats = tt_lower_ints(L, 1, &n);
  if (n > TT_MAX_RANK / 2) {
    tt_lower_unsupported(L, "repeat of %u dimensions", n);
    return;
  }
  int64_t dims[TT_MAX_RANK], places[TT_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) {
    uint32_t lead = n - t->rank;
    dims[2 * i] = repeats[i];
    dims[2 * i + 1] = i < lead ? 1 : t->dims[i - lead];
    if (i >= lead) places[i - lead] = 2 * i + 1;
  }
  tt_lower_return(L, 0, tt__reshape_out(L, 0, tt_emit_broadcast_in_dim(b, x, 2 * n, dims, places)));
}

// pixel_shuffle(self, r): [.., c r r, h, w] -> [.., c, h r, w r]; param 1 is the inverse.
TT_LOWER(pixel_shuffle) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  const tt_type_t *t = tt_build_type(b, x);
  int64_t r = tt_lower_int(L, 1, 1), n = tt__product(t->dims, t->rank - 3);
  int64_t c = t->dims[t->rank - 3], h = t->dims[t->rank - 2], w = t->dims[t->rank - 1];
  const int64_t apart[6] = {n, c / (r * r), r, r, h, w}, together[6] = {n, c, h / r, r, w / r, r};
  static const int64_t shuffle[6] = {0, 1, 4, 2, 5, 3}, unshuffle[6] = {0, 1, 3, 5, 2, 4};
  x = tt_emit_reshape(b, x, 6, param ? together : apart);
  tt_lower_return(L, 0,
                  tt__reshape_out(L, 0, tt_emit_transpose(b, x, param ? unshuffle : shuffle)));
}

// channel_shuffle(self, groups)
TT_LOWER0(channel_shuffle) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  const tt_type_t *t = tt_build_type(b, x);
  int64_t groups = tt_lower_int(L, 1, 1);
  const int64_t dims[4] = {t->dims[0], groups, t->dims[1] / groups,
                           tt__product(t->dims + 2, t->rank - 2)};
  static const int64_t swap[4] = {0, 2, 1, 3};
  x = tt_emit_transpose(b, tt_emit_reshape(b, x, 4, dims), swap);
  tt_lower_return(L, 0, tt__reshape_out(L, 0, x));
}

// narrow_copy(self, dim, start, length)
TT_LOWER0(narrow_copy) {
  tt_value_t x = tt_lower_tensor(L, 0);
  int64_t dim = tt_lower_dim(L, 1, tt__rank(L->b, x)), start = tt_lower_int(L, 2, 0);
  if (start < 0) start += tt__dim(L->b, x, dim);
  tt_lower_return(L, 0, tt_emit_slice_dim(L->b, x, dim, start, start + tt_lower_int(L, 3, 0), 1));
}

// --- diagonals -----------------------------------------------------------------------------------

// The diagonal (its elements along the last dimension of `g`, other dimensions in order) laid into
// a shape; *out_mask says where it lies.
static tt_value_t place_diagonal(tt_build_t *b, tt_value_t g, uint32_t rank, const int64_t *dims,
                                 int64_t offset, int64_t dim1, int64_t dim2, tt_value_t *out_mask) {
  int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0}, places[TT_MAX_RANK];
  uint32_t last = rank - 2, j = 0;
  low[last] = offset < 0 ? -offset : 0;
  high[last] = dims[dim1] - low[last] - tt__dim(b, g, last);
  g = tt_emit_pad(b, g, tt__num(b, g, 0), low, high, NULL);
  for (uint32_t i = 0; i < rank; i++) {
    if (i != dim1 && i != dim2) places[j++] = i;
  }
  places[last] = dim1;
  tt_value_t row = tt__iota(b, rank, dims, (uint32_t)dim1),
             col = tt__iota(b, rank, dims, (uint32_t)dim2);
  *out_mask = tt__eq(b, tt__addc(b, row, (double)offset), col);
  return tt_emit_broadcast_in_dim(b, g, rank, dims, places);
}
// diag_embed(self, offset, dim1, dim2): param 0. diagonal_backward(grad, sizes, offset, dim1,
// dim2): 1. diagonal_scatter(self, src, offset, dim1, dim2): 2.
TT_LOWER(diagonal) {
  tt_build_t *b = L->b;
  uint32_t rank = L->outs[0].rank, at = param ? 2 : 1;
  tt_value_t mask, g = tt_lower_tensor(L, param == 2 ? 1 : 0);
  g = tt_emit_convert(b, g, tt_lower_out_dtype(L, 0));
  int64_t dim1 = tt_lower_int(L, at + 1, param ? 0 : -2),
          dim2 = tt_lower_int(L, at + 2, param ? 1 : -1);
  dim1 += dim1 < 0 ? rank : 0;
  dim2 += dim2 < 0 ? rank : 0;
  g = place_diagonal(b, g, rank, L->outs[0].sizes, tt_lower_int(L, at, 0), dim1, dim2, &mask);
  tt_lower_return(
      L, 0,
      param == 2 ? tt__select(b, mask, g, tt_lower_tensor(L, 0)) : tt__zero_unless(b, mask, g));
}
