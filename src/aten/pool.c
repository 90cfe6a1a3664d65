// Max and average pooling with fixed windows.
//
// The maximum and its position are found dimension by dimension from shifted slices: sums of window
// sizes instead of their product, all elementwise. The position is the flat one in the input's
// plane.
#include "aten/pool.h"

typedef struct window_s {
  uint32_t spatial, rank;  // of the window, of the tensor
  int64_t kernel[TT_POOL_SPATIAL], stride[TT_POOL_SPATIAL], padding[TT_POOL_SPATIAL],
      dilation[TT_POOL_SPATIAL];
} window_t;

static void spread(const tt_lower_t *L, uint32_t arg, uint32_t spatial, int64_t *out,
                   const int64_t *otherwise, int64_t fallback) {
  uint32_t n;
  const int64_t *v = tt_lower_ints(L, arg, &n);
  for (uint32_t i = 0; i < spatial; i++) {
    out[i] = n ? v[n == 1 ? 0 : i] : otherwise ? otherwise[i] : fallback;
  }
}

// kernel, stride, padding from argument `first` on; dilation follows where `dilated`.
static window_t window_read(const tt_lower_t *L, uint32_t first, uint32_t spatial, uint32_t rank,
                            bool dilated) {
  window_t w = {.spatial = spatial, .rank = rank};
  spread(L, first, spatial, w.kernel, NULL, 1);
  spread(L, first + 1, spatial, w.stride, w.kernel, 1);
  spread(L, first + 2, spatial, w.padding, NULL, 0);
  for (uint32_t i = 0; i < spatial; i++) w.dilation[i] = 1;
  if (dilated) spread(L, first + 3, spatial, w.dilation, NULL, 1);
  return w;
}

// --- max -----------------------------------------------------------------------------------------
typedef struct best_s {
  tt_value_t value, index;
} best_t;

// For each window along `dim` (spatial dimension k), the first position inside the input, times
// `unit`, as [.., out, ..] i32.
static tt_value_t first_inside(tt_build_t *b, const window_t *w, uint32_t k, int64_t out,
                               int64_t unit) {
  const uint32_t dim = w->rank - w->spatial + k;
  int64_t *at = TT_SCRATCH(b, int64_t, out);
  if (!at) return TT_NO_VALUE;
  for (int64_t i = 0; i < out; i++) {
    int64_t p = i * w->stride[k] - w->padding[k];
    while (p < 0) p += w->dilation[k];
    at[i] = p * unit;
  }
  return tt__along(b, tt__constant_s32(b, at, 1, &out), w->rank, dim);
}

// Keeps `now` where it beats `best`: larger or NaN (PyTorch's CPU kernel takes the last NaN).
static best_t better(tt_build_t *b, best_t best, best_t now) {
  tt_value_t wins = tt__gt(b, now.value, best.value);
  if (tt_dtype_is_float(tt_build_dtype(b, now.value))) {
    wins = tt__or(b, wins, tt__isnan(b, now.value));
  }
  return (best_t){tt_emit_select(b, wins, now.value, best.value),
                  tt_emit_select(b, wins, now.index, best.index)};
}

// Reduces spatial dimension k of `x`; `unit` is the flat distance of its neighbours.
static best_t max_along(tt_build_t *b, const window_t *w, uint32_t k, best_t x, int64_t in,
                        int64_t out, int64_t unit, tt_value_t start) {
  const uint32_t dim = w->rank - w->spatial + k;
  int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0}, dims[TT_MAX_RANK];
  const int64_t span = (out - 1) * w->stride[k] + w->dilation[k] * (w->kernel[k] - 1) + 1;
  const tt_value_t lowest = tt_emit_lowest(b, tt_build_dtype(b, x.value));
  low[dim] = w->padding[k];
  high[dim] = span - in - w->padding[k];
  const tt_value_t padded = tt_emit_pad(b, x.value, lowest, low, high, NULL);
  // The position along this dimension joins the one found in the dimensions after it.
  const int64_t size[] = {span};
  tt_value_t place = tt_emit_iota(b, TT_S32, 1, size, 0);
  place = tt__mulc(b, tt__addc(b, place, (double)-w->padding[k]), (double)unit);
  place = tt__along(b, place, w->rank, dim);
  tt_value_t index = place;
  if (x.index != TT_NO_VALUE) {
    index = tt__add(b, tt_emit_pad(b, x.index, tt__num(b, x.index, 0), low, high, NULL), place);
  }
  const tt_type_t *t = tt_build_type(b, padded);
  for (uint32_t i = 0; i < w->rank && i < t->rank; i++) dims[i] = t->dims[i];
  index = tt_emit_broadcast_to(b, index, w->rank, dims);
  dims[dim] = out;
  best_t best = {tt_emit_broadcast_to(b, lowest, w->rank, dims),
                 tt_emit_broadcast_to(b, start, w->rank, dims)};
  for (int64_t j = 0; j < w->kernel[k]; j++) {
    const int64_t from = j * w->dilation[k], to = from + (out - 1) * w->stride[k] + 1;
    const best_t now = {tt_emit_slice_dim(b, padded, dim, from, to, w->stride[k]),
                        tt_emit_slice_dim(b, index, dim, from, to, w->stride[k])};
    best = better(b, best, now);
  }
  return best;
}

// max_pool{2,3}d_with_indices(self, kernel, stride, padding, dilation, ceil_mode); param: 2 or 3.
TT_LOWER(max_pool) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const uint32_t spatial = (uint32_t)param;
  const window_t w = window_read(L, 1, spatial, x->rank, true);
  const int64_t *in = x->sizes + x->rank - spatial;
  const int64_t *out = L->outs[0].sizes + x->rank - spatial;
  if (tt__product(L->outs[0].sizes, x->rank) == 0) {
    for (uint32_t i = 0; i < 2; i++) {
      tt_lower_return(L, i,
                      tt_emit_splat(b, tt_lower_out_dtype(L, i), x->rank, L->outs[i].sizes, 0));
    }
    return;
  }
  best_t best = {tt_lower_tensor(L, 0), TT_NO_VALUE};
  tt_value_t start = TT_NO_VALUE;
  int64_t unit = 1;
  for (uint32_t k = spatial; k-- > 0; unit *= in[k]) {
    const tt_value_t here = first_inside(b, &w, k, out[k], unit);
    start = start == TT_NO_VALUE ? here : tt__add(b, start, here);
    best = max_along(b, &w, k, best, in[k], out[k], unit, start);
  }
  tt_lower_return(L, 0, best.value);
  tt_lower_return(L, 1, best.index);
}

// Every place a window offset can put its gradient: where the winner's index is that place.
static tt_value_t scatter_windows(tt_build_t *b, const window_t *w, tt_value_t g, tt_value_t index,
                                  const int64_t *in, const int64_t *out) {
  const uint32_t lead = w->rank - w->spatial;
  int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0}, interior[TT_MAX_RANK] = {0};
  int64_t at[TT_POOL_SPATIAL] = {0};
  tt_value_t base = TT_NO_VALUE, sum = TT_NO_VALUE;
  int64_t unit[TT_POOL_SPATIAL];
  for (int64_t k = w->spatial - 1, u = 1; k >= 0; u *= in[k], k--) {
    const tt_value_t i = tt_emit_iota(b, TT_S32, 1, &out[k], 0);
    const tt_value_t p = tt__mulc(
        b, tt__addc(b, tt__mulc(b, i, (double)w->stride[k]), (double)-w->padding[k]), (double)u);
    const tt_value_t along = tt__along(b, p, w->rank, lead + (uint32_t)k);
    base = base == TT_NO_VALUE ? along : tt__add(b, base, along);
    unit[k] = u;
    interior[lead + (uint32_t)k] = w->stride[k] - 1;
  }
  const int64_t total = tt__product(w->kernel, w->spatial);
  for (int64_t n = 0; n < total; n++) {
    int64_t offset = 0;
    for (uint32_t k = 0; k < w->spatial; k++) {
      const int64_t shift = at[k] * w->dilation[k];
      offset += shift * unit[k];
      low[lead + k] = shift - w->padding[k];
      high[lead + k] = in[k] - ((out[k] - 1) * w->stride[k] + 1) - low[lead + k];
    }
    const tt_value_t mine = tt__eq(b, index, tt__addc(b, base, (double)offset));
    const tt_value_t part =
        tt_emit_pad(b, tt__zero_unless(b, mine, g), tt__num(b, g, 0), low, high, interior);
    sum = sum == TT_NO_VALUE ? part : tt__add(b, sum, part);
    for (uint32_t k = w->spatial; k-- > 0;) {
      if (++at[k] < w->kernel[k]) break;
      at[k] = 0;
    }
  }
  return sum;
}

// max_pool{2,3}d_with_indices_backward(grad, self, kernel, stride, padding, dilation, ceil_mode,
// indices)
TT_LOWER(max_pool_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *g = tt_lower_meta(L, 0), *x = tt_lower_meta(L, 1);
  const uint32_t spatial = (uint32_t)param;
  const window_t w = window_read(L, 2, spatial, x->rank, true);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  const tt_value_t gv = tt_lower_tensor_as(L, 0, d), index = tt_lower_tensor_as(L, 7, TT_S32);
  // Many offsets make a long program: scatter then.
  enum { UNROLLED = 64 };
  if (tt__product(g->sizes, g->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, d, x->rank, x->sizes, 0));
  } else if (tt__product(w.kernel, spatial) <= UNROLLED) {
    tt_lower_return(L, 0,
                    scatter_windows(b, &w, gv, index, x->sizes + x->rank - spatial,
                                    g->sizes + x->rank - spatial));
  } else {
    tt_lower_return(L, 0, tt__unpool(L, gv, index, x, spatial, d));
  }
}

// --- average -------------------------------------------------------------------------------------

// What each window is divided by: the override, or the product over dimensions of the window's
// length, cut at the padded input (count_include_pad) or at the input.
static tt_value_t divide(tt_lower_t *L, const window_t *w, tt_value_t x, const int64_t *in,
                         const int64_t *out, bool include_pad, uint32_t override_arg) {
  tt_build_t *b = L->b;
  const tt_dtype_t d = tt_build_dtype(b, x);
  if (tt_lower_has(L, override_arg)) {
    return tt__divc(b, x, (double)tt_lower_int(L, override_arg, 1));
  }
  double uniform = 1;
  tt_value_t divisor = TT_NO_VALUE;
  for (uint32_t k = 0; k < w->spatial; k++) {
    double *length = TT_SCRATCH(b, double, out[k]);
    bool same = true;
    if (!length) return x;
    for (int64_t i = 0; i < out[k]; i++) {
      int64_t from = i * w->stride[k] - w->padding[k], to = from + w->kernel[k];
      if (to > in[k] + w->padding[k]) to = in[k] + w->padding[k];
      if (!include_pad && from < 0) from = 0;
      if (!include_pad && to > in[k]) to = in[k];
      length[i] = (double)(to - from);
      same = same && length[i] == length[0];
    }
    if (same) {
      uniform *= length[0];
      continue;
    }
    const tt_value_t along = tt__along(b, tt__constant_real(b, d, length, 1, &out[k]), w->rank,
                                       w->rank - w->spatial + k);
    divisor = divisor == TT_NO_VALUE ? along : tt__mul(b, divisor, along);
  }
  if (divisor == TT_NO_VALUE) return tt__divc(b, x, uniform);
  if (uniform != 1) divisor = tt__mulc(b, divisor, uniform);
  return tt__div(b, x, divisor);
}

static tt_value_t window_sum(tt_build_t *b, const window_t *w, tt_value_t x, const int64_t *low,
                             const int64_t *high, const int64_t *stride, const int64_t *base) {
  const uint32_t lead = w->rank - w->spatial;
  int64_t sizes[TT_MAX_RANK], strides[TT_MAX_RANK], dilations[TT_MAX_RANK],
      padding[2 * TT_MAX_RANK];
  for (uint32_t i = 0; i < w->rank; i++) {
    const bool inside = i >= lead;
    sizes[i] = inside ? w->kernel[i - lead] : 1;
    strides[i] = inside && stride ? stride[i - lead] : 1;
    dilations[i] = inside && base ? base[i - lead] : 1;
    padding[2 * i] = inside ? low[i - lead] : 0;
    padding[2 * i + 1] = inside ? high[i - lead] : 0;
  }
  const tt_window_t window = {sizes, strides, dilations, NULL, padding};
  return tt_emit_reduce_window(b, TT_OP_ADD, x, &window);
}

// avg_pool{2,3}d(self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
TT_LOWER(avg_pool) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  const uint32_t spatial = (uint32_t)param;
  const window_t w = window_read(L, 1, spatial, x->rank, false);
  const int64_t *in = x->sizes + x->rank - spatial, *out = y->sizes + x->rank - spatial;
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  int64_t high[TT_POOL_SPATIAL];
  if (tt__product(y->sizes, y->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, d, y->rank, y->sizes, 0));
    return;
  }
  for (uint32_t k = 0; k < spatial; k++) {
    high[k] = (out[k] - 1) * w.stride[k] + w.kernel[k] - in[k] - w.padding[k];
  }
  const tt_value_t sum =
      window_sum(b, &w, tt_lower_tensor_as(L, 0, d), w.padding, high, w.stride, NULL);
  tt_lower_return(L, 0, divide(L, &w, sum, in, out, tt_lower_int(L, 5, 1) != 0, 6));
}

// avg_pool{2,3}d_backward(grad, self, kernel, stride, padding, ceil_mode, count_include_pad,
// divisor_override): the windows that hold an input, summed over the grad spread by the stride.
TT_LOWER(avg_pool_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *g = tt_lower_meta(L, 0), *x = tt_lower_meta(L, 1);
  const uint32_t spatial = (uint32_t)param;
  const window_t w = window_read(L, 2, spatial, x->rank, false);
  const int64_t *in = x->sizes + x->rank - spatial, *out = g->sizes + x->rank - spatial;
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  int64_t low[TT_POOL_SPATIAL], high[TT_POOL_SPATIAL];
  if (tt__product(g->sizes, g->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, d, x->rank, x->sizes, 0));
    return;
  }
  for (uint32_t k = 0; k < spatial; k++) {
    low[k] = w.kernel[k] - 1 - w.padding[k];
    high[k] = in[k] + w.kernel[k] - 1 - ((out[k] - 1) * w.stride[k] + 1) - low[k];
  }
  const tt_value_t each =
      divide(L, &w, tt_lower_tensor_as(L, 0, d), in, out, tt_lower_int(L, 6, 1) != 0, 7);
  tt_lower_return(L, 0, window_sum(b, &w, each, low, high, NULL, w.stride));
}
