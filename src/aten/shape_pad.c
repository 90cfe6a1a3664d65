// Padding, and what is padding in reverse: the gradients of slices and selections.
#include "aten/emit.h"

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}
static int64_t positive(int64_t x) { return x > 0 ? x : 0; }

static tt_value_t pad_dim(tt_build_t *b, tt_value_t x, int64_t dim, int64_t low, int64_t high,
                          int64_t interior) {
  int64_t lows[TT_MAX_RANK] = {0}, highs[TT_MAX_RANK] = {0}, interiors[TT_MAX_RANK] = {0};
  lows[dim] = low, highs[dim] = high, interiors[dim] = interior;
  return tt_emit_pad(b, x, tt__num(b, x, 0), lows, highs, interiors);
}

// constant_pad_nd(self, pad, value): pairs from the last dimension on; negative ones crop.
TT_LOWER0(constant_pad) {
  tt_value_t x = tt_lower_tensor(L, 0);
  uint32_t rank = tt__rank(L->b, x), n;
  const int64_t *pad = tt_lower_ints(L, 1, &n);
  int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < n / 2; i++) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
  }
  tt_lower_return(
      L, 0, tt_emit_pad(L->b, x, tt_lower_scalar(L, 2, tt_build_dtype(L->b, x)), low, high, NULL));
}

// --- reflection and replication ------------------------------------------------------------------
static tt_value_t reversed(tt_build_t *b, tt_value_t x, int64_t dim) {
  return tt_emit_reverse(b, x, &dim, 1);
}
// `count` copies of the one element at `place` along dim.
static tt_value_t copies(tt_build_t *b, tt_value_t x, int64_t dim, int64_t place, int64_t count) {
  tt_value_t edge = tt_emit_slice_dim(b, x, dim, place, place + 1, 1);
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dims[TT_MAX_RANK];
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  dims[dim] = count;
  return tt_emit_broadcast_to(b, edge, t->rank, dims);
}
static tt_value_t pad_one(tt_build_t *b, tt_value_t x, int64_t dim, int64_t low, int64_t high,
                          bool reflect) {
  int64_t n = tt__dim(b, x, dim);
  tt_value_t parts[3];
  uint32_t count = 0;
  if (low > 0) {
    parts[count++] = reflect ? reversed(b, tt_emit_slice_dim(b, x, dim, 1, low + 1, 1), dim)
                             : copies(b, x, dim, 0, low);
  }
  parts[count++] = tt_emit_slice_dim(b, x, dim, positive(-low), n - positive(-high), 1);
  if (high > 0) {
    parts[count++] = reflect
                         ? reversed(b, tt_emit_slice_dim(b, x, dim, n - 1 - high, n - 1, 1), dim)
                         : copies(b, x, dim, n - 1, high);
  }
  return count == 1 ? parts[0] : tt_emit_concat(b, parts, count, dim);
}
// The gradient of pad_one: every padded element gives its part back to where it was read.
static tt_value_t unpad_one(tt_build_t *b, tt_value_t g, int64_t dim, int64_t n, int64_t low,
                            int64_t high, bool reflect) {
  int64_t size = tt__dim(b, g, dim), l = positive(low), h = positive(high);
  tt_value_t x = tt_emit_slice_dim(b, g, dim, l, size - h, 1);
  if (low < 0 || high < 0) x = pad_dim(b, x, dim, positive(-low), positive(-high), 0);
  if (l) {
    tt_value_t part = tt_emit_slice_dim(b, g, dim, 0, l, 1);
    part = reflect
               ? pad_dim(b, reversed(b, part, dim), dim, 1, n - 1 - l, 0)
               : pad_dim(b, tt_emit_reduce(b, TT_OP_ADD, part, &dim, 1, true), dim, 0, n - 1, 0);
    x = tt__add(b, x, part);
  }
  if (h) {
    tt_value_t part = tt_emit_slice_dim(b, g, dim, size - h, size, 1);
    part = reflect
               ? pad_dim(b, reversed(b, part, dim), dim, n - 1 - h, 1, 0)
               : pad_dim(b, tt_emit_reduce(b, TT_OP_ADD, part, &dim, 1, true), dim, n - 1, 0, 0);
    x = tt__add(b, x, part);
  }
  return x;
}
// param: 1 reflect, 0 replicate. (self, padding)
TT_LOWER(edge_pad) {
  tt_value_t x = tt_lower_tensor(L, 0);
  uint32_t rank = tt__rank(L->b, x), n;
  const int64_t *pad = tt_lower_ints(L, 1, &n);
  for (uint32_t i = 0; i < n / 2; i++) {
    x = pad_one(L->b, x, rank - 1 - i, pad[2 * i], pad[2 * i + 1], param);
  }
  tt_lower_return(L, 0, x);
}
// (grad, self, padding)
TT_LOWER(edge_pad_backward) {
  tt_value_t g = tt__widen(L->b, tt_lower_tensor(L, 0));
  uint32_t rank = L->outs[0].rank, n;
  const int64_t *pad = tt_lower_ints(L, 2, &n);
  for (uint32_t i = n / 2; i-- > 0;) {
    uint32_t dim = rank - 1 - i;
    g = unpad_one(L->b, g, dim, L->outs[0].sizes[dim], pad[2 * i], pad[2 * i + 1], param);
  }
  tt_lower_return(L, 0, g);
}

// --- slices the other way ------------------------------------------------------------------------

// x laid into a dimension of size n from `start` on with `step`, zeros elsewhere.
static tt_value_t lay(tt_build_t *b, tt_value_t x, int64_t dim, int64_t n, int64_t start,
                      int64_t step) {
  int64_t count = tt__dim(b, x, dim), used = count ? (count - 1) * step + 1 : 0;
  return pad_dim(b, x, dim, start, n - start - used, count ? step - 1 : 0);
}
static int64_t wrap(int64_t index, int64_t n) { return index < 0 ? index + n : index; }

// slice_backward(grad, sizes, dim, start, end, step)
TT_LOWER0(slice_backward) {
  int64_t dim = tt_lower_dim(L, 2, L->outs[0].rank), n = L->outs[0].sizes[dim];
  int64_t start = clamp(wrap(tt_lower_int(L, 3, 0), n), 0, n);
  tt_lower_return(L, 0, lay(L->b, tt_lower_tensor(L, 0), dim, n, start, tt_lower_int(L, 5, 1)));
}
static tt_value_t with_dim(tt_build_t *b, tt_value_t x, int64_t dim) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dims[TT_MAX_RANK + 1];
  for (uint32_t i = 0, j = 0; i <= t->rank; i++) dims[i] = i == dim ? 1 : t->dims[j++];
  return tt_emit_reshape(b, x, t->rank + 1, dims);
}
// select_backward(grad, sizes, dim, index)
TT_LOWER0(select_backward) {
  int64_t dim = tt_lower_dim(L, 2, L->outs[0].rank), n = L->outs[0].sizes[dim];
  tt_value_t g = with_dim(L->b, tt_lower_tensor(L, 0), dim);
  tt_lower_return(L, 0, lay(L->b, g, dim, n, wrap(tt_lower_int(L, 3, 0), n), 1));
}

static tt_value_t scatter(tt_build_t *b, tt_value_t x, tt_value_t src, int64_t dim, int64_t start,
                          int64_t step) {
  int64_t n = tt__dim(b, x, dim), count = tt__dim(b, src, dim);
  if (count == 0) return x;
  const tt_type_t *t = tt_build_type(b, src);
  tt_value_t here = lay(b, tt_emit_splat_int(b, TT_I1, t->rank, t->dims, 1), dim, n, start, step);
  return tt__select(b, here, lay(b, src, dim, n, start, step), x);
}
// slice_scatter(self, src, dim, start, end, step)
TT_LOWER0(slice_scatter) {
  tt_value_t x = tt_lower_tensor(L, 0);
  int64_t dim = tt_lower_dim(L, 2, tt__rank(L->b, x)), n = tt__dim(L->b, x, dim);
  int64_t start = clamp(wrap(tt_lower_int(L, 3, 0), n), 0, n);
  tt_value_t src = tt_lower_tensor_as(L, 1, tt_build_dtype(L->b, x));
  tt_lower_return(L, 0, scatter(L->b, x, src, dim, start, tt_lower_int(L, 5, 1)));
}
// select_scatter(self, src, dim, index)
TT_LOWER0(select_scatter) {
  tt_value_t x = tt_lower_tensor(L, 0);
  int64_t dim = tt_lower_dim(L, 2, tt__rank(L->b, x)), n = tt__dim(L->b, x, dim);
  tt_value_t src = with_dim(L->b, tt_lower_tensor_as(L, 1, tt_build_dtype(L->b, x)), dim);
  tt_lower_return(L, 0, scatter(L->b, x, src, dim, wrap(tt_lower_int(L, 3, 0), n), 1));
}

// unfold_backward(grad, sizes, dim, size, step): each place inside the window is a strided slice.
TT_LOWER0(unfold_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__widen(b, tt_lower_tensor(L, 0));
  if (L->outs[0].rank == 0) {
    tt_lower_return(L, 0, tt_emit_reshape(b, g, 0, NULL));
    return;
  }
  int64_t dim = tt_lower_dim(L, 2, L->outs[0].rank), n = L->outs[0].sizes[dim];
  int64_t size = tt_lower_int(L, 3, 1), step = tt_lower_int(L, 4, 1), last = L->outs[0].rank;
  const tt_type_t *t = tt_build_type(b, g);
  tt_value_t sum = tt_emit_splat(b, t->dtype, L->outs[0].rank, L->outs[0].sizes, 0);
  for (int64_t k = 0; k < size; k++) {
    tt_value_t part = tt_emit_slice_dim(b, g, last, k, k + 1, 1);
    part = tt_emit_reshape(b, part, t->rank - 1, t->dims);
    sum = tt__add(b, sum, lay(b, part, dim, n, k, step));
  }
  tt_lower_return(L, 0, sum);
}
