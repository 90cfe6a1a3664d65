// Adaptive and fractional pooling, and unpooling: windows that differ from place to place.
#include "aten/pool.h"

// One dimension's output windows as ranges [start, end) of the input, static.
typedef struct ranges_s {
  int64_t count, widest;
  const int64_t *start, *end;
} ranges_t;

// The windows of an adaptive pooling of `in` elements to `out`.
static ranges_t adaptive_ranges(tt_build_t *b, int64_t in, int64_t out) {
  int64_t *start = TT_SCRATCH(b, int64_t, out), *end = TT_SCRATCH(b, int64_t, out);
  ranges_t r = {out, 0, start, end};
  if (!start || !end) return (ranges_t){0, 0, NULL, NULL};
  for (int64_t i = 0; i < out; i++) {
    start[i] = i * in / out;
    end[i] = ((i + 1) * in + out - 1) / out;
    if (end[i] - start[i] > r.widest) r.widest = end[i] - start[i];
  }
  return r;
}

// The transpose of a relation with monotone ranges: for each of `in` inputs, the outputs whose
// range holds it.
static ranges_t transposed_ranges(tt_build_t *b, const ranges_t *ranges, int64_t in) {
  int64_t *start = TT_SCRATCH(b, int64_t, in), *end = TT_SCRATCH(b, int64_t, in);
  ranges_t r = {in, 0, start, end};
  if (!start || !end) return (ranges_t){0, 0, NULL, NULL};
  for (int64_t i = 0; i < in; i++) {
    start[i] = ranges->count;
    end[i] = 0;
  }
  for (int64_t o = 0; o < ranges->count; o++) {
    for (int64_t i = ranges->start[o]; i < ranges->end[o]; i++) {
      if (o < start[i]) start[i] = o;
      end[i] = o + 1;
    }
  }
  for (int64_t i = 0; i < in; i++) {
    if (end[i] < start[i]) start[i] = end[i] = 0;  // no output uses it
    if (end[i] - start[i] > r.widest) r.widest = end[i] - start[i];
  }
  return r;
}

// x with dimension `dim` replaced by [count, widest]: the elements of each range, `fill` (rank 0)
// past its end.
static tt_value_t gather_ranges(tt_build_t *b, tt_value_t x, uint32_t dim, const ranges_t *ranges,
                                tt_value_t fill) {
  const int64_t cells = ranges->count * ranges->widest, shape[] = {ranges->count, ranges->widest};
  int64_t *at = TT_SCRATCH(b, int64_t, cells);
  bool *inside = TT_SCRATCH(b, bool, cells);
  bool full = true;
  if (!at || !inside) return TT_NO_VALUE;
  for (int64_t i = 0; i < ranges->count; i++) {
    for (int64_t j = 0; j < ranges->widest; j++) {
      const bool in = ranges->start[i] + j < ranges->end[i];
      at[i * ranges->widest + j] = ranges->start[i] + (in ? j : 0);
      inside[i * ranges->widest + j] = in;
      full = full && in;
    }
  }
  const tt_value_t taken = tt_emit_take(b, x, tt__constant_s32(b, at, 2, shape), dim);
  if (full) return taken;
  const tt_type_t *t = tt_build_type(b, taken);
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++) dims[i] = i == dim || i == dim + 1 ? t->dims[i] : 1;
  tt_value_t mask = tt_emit_reshape(b, tt__constant_pred(b, inside, 2, shape), t->rank, dims);
  mask = tt_emit_broadcast_to(b, mask, t->rank, t->dims);
  return tt_emit_select(b, mask, taken, tt_emit_broadcast_to(b, fill, t->rank, t->dims));
}

// x with dimension `dim` replaced by the sums over the ranges.
static tt_value_t sum_ranges(tt_build_t *b, tt_value_t x, uint32_t dim, const ranges_t *ranges) {
  const int64_t across[] = {dim + 1};
  if (ranges->widest == 0) {
    const tt_type_t *t = tt_build_type(b, x);
    int64_t dims[TT_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) dims[i] = i == dim ? ranges->count : t->dims[i];
    return tt_emit_splat(b, t->dtype, t->rank, dims, 0);
  }
  return tt__sum_over(b, gather_ranges(b, x, dim, ranges, tt__num(b, x, 0)), across, 1, false);
}

// Planes [..., spatial...] flattened to [..., product].
static tt_value_t flatten_spatial(tt_build_t *b, tt_value_t x, uint32_t spatial) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dims[TT_MAX_RANK];
  if (t->rank < spatial) return x;
  const uint32_t lead = t->rank - spatial;
  for (uint32_t i = 0; i < lead; i++) dims[i] = t->dims[i];
  dims[lead] = tt__product(t->dims + lead, spatial);
  return tt_emit_reshape(b, x, lead + 1, dims);
}

tt_value_t tt__unpool(tt_lower_t *L, tt_value_t grad, tt_value_t indices, const tt_tensor_t *like,
                      uint32_t spatial, tt_dtype_t d) {
  tt_build_t *b = L->b;
  const uint32_t lead = like->rank - spatial;
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < lead; i++) dims[i] = like->sizes[i];
  dims[lead] = tt__product(like->sizes + lead, spatial);
  const tt_value_t r = tt_emit_put_along(b, tt_emit_splat(b, d, lead + 1, dims, 0),
                                         flatten_spatial(b, indices, spatial),
                                         flatten_spatial(b, grad, spatial), lead, TT_OP_ADD);
  return tt_emit_reshape(b, r, like->rank, like->sizes);
}

// The lengths of the ranges, along `dim` of a tensor of this rank.
static tt_value_t lengths(tt_build_t *b, tt_dtype_t d, const ranges_t *r, uint32_t rank,
                          uint32_t dim) {
  double *n = TT_SCRATCH(b, double, r->count);
  if (!n) return TT_NO_VALUE;
  for (int64_t i = 0; i < r->count; i++) n[i] = (double)(r->end[i] - r->start[i]);
  return tt__along(b, tt__constant_real(b, d, n, 1, &r->count), rank, dim);
}

// _adaptive_avg_pool{2,3}d(self, output_size)
TT_LOWER(adaptive_avg_pool) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  tt_value_t v = tt_lower_tensor_as(L, 0, d);
  if (tt__product(y->sizes, y->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, d, y->rank, y->sizes, 0));
    return;
  }
  for (uint32_t dim = x->rank; dim-- > x->rank - (uint32_t)param;) {
    const ranges_t r = adaptive_ranges(b, x->sizes[dim], y->sizes[dim]);
    if (y->sizes[dim] == 1) {
      const int64_t over[] = {dim};
      v = tt__divc(b, tt__sum_over(b, v, over, 1, true), (double)x->sizes[dim]);
    } else if (x->sizes[dim] != y->sizes[dim]) {
      v = tt__div(b, sum_ranges(b, v, dim, &r), lengths(b, d, &r, x->rank, dim));
    }
  }
  tt_lower_return(L, 0, v);
}

// _adaptive_avg_pool{2,3}d_backward(grad, self)
TT_LOWER(adaptive_avg_pool_backward) {
  tt_build_t *b = L->b;
  const tt_tensor_t *g = tt_lower_meta(L, 0), *x = tt_lower_meta(L, 1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  tt_value_t v = tt_lower_tensor_as(L, 0, d);
  if (tt__product(g->sizes, g->rank) == 0 || tt__product(x->sizes, x->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, d, x->rank, x->sizes, 0));
    return;
  }
  for (uint32_t dim = x->rank - (uint32_t)param; dim < x->rank; dim++) {
    const ranges_t r = adaptive_ranges(b, x->sizes[dim], g->sizes[dim]);
    if (x->sizes[dim] == g->sizes[dim]) continue;
    const ranges_t t = transposed_ranges(b, &r, x->sizes[dim]);
    v = sum_ranges(b, tt__div(b, v, lengths(b, d, &r, x->rank, dim)), dim, &t);
  }
  tt_lower_return(L, 0, v);
}

// adaptive_max_pool{2,3}d(self, output_size) -> (values, flat positions)
TT_LOWER(adaptive_max_pool) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  tt_value_t v = tt_lower_tensor(L, 0), index = TT_NO_VALUE;
  const tt_value_t lowest = tt_emit_lowest(b, (tt_dtype_t)x->dtype);
  int64_t unit = 1;
  if (tt__product(y->sizes, y->rank) == 0) {
    for (uint32_t i = 0; i < 2; i++) {
      tt_lower_return(L, i, tt_emit_splat(b, tt_lower_out_dtype(L, i), y->rank, y->sizes, 0));
    }
    return;
  }
  for (uint32_t dim = x->rank; dim-- > x->rank - (uint32_t)param; unit *= x->sizes[dim]) {
    const ranges_t r = adaptive_ranges(b, x->sizes[dim], y->sizes[dim]);
    int64_t *start = TT_SCRATCH(b, int64_t, r.count);
    tt_value_t at;
    if (!start) return;
    for (int64_t i = 0; i < r.count; i++) start[i] = r.start[i] * unit;
    const tt_value_t windows = gather_ranges(b, v, dim, &r, lowest);
    tt_emit_arg_reduce(b, true, windows, dim + 1, TT_S32, true, &v, &at);
    if (index != TT_NO_VALUE) {
      const tt_value_t below = gather_ranges(b, index, dim, &r, tt__num(b, index, 0));
      index = tt_emit_take_along(b, below, at, dim + 1);
    }
    int64_t dims[TT_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = i < dim ? x->sizes[i] : y->sizes[i];
    v = tt_emit_reshape(b, v, x->rank, dims);
    at = tt_emit_reshape(b, at, x->rank, dims);
    at = tt__add(b, tt__mulc(b, at, (double)unit),
                 tt__along(b, tt__constant_s32(b, start, 1, &r.count), x->rank, dim));
    index = index == TT_NO_VALUE ? at : tt__add(b, at, tt_emit_reshape(b, index, x->rank, dims));
  }
  tt_lower_return(L, 0, v);
  tt_lower_return(L, 1, index);
}

// adaptive_max_pool{2,3}d_backward(grad, self, indices); fractional_max_pool{2,3}d_backward with
// kernel and output sizes before the indices. param: spatial rank + 16 * the argument of indices.
TT_LOWER(max_pool_scatter) {
  const tt_tensor_t *g = tt_lower_meta(L, 0), *x = tt_lower_meta(L, 1);
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)x->dtype);
  if (tt__product(g->sizes, g->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat(L->b, d, x->rank, x->sizes, 0));
    return;
  }
  tt_lower_return(
      L, 0,
      tt__unpool(L, tt_lower_tensor_as(L, 0, d),
                 tt_lower_tensor_as(L, (uint32_t)param >> 4, TT_S32), x, (uint32_t)param & 15, d));
}

// max_unpool{2,3}d(self, indices, output_size, ...)
TT_LOWER(max_unpool) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  const uint32_t spatial = (uint32_t)param, lead = x->rank - spatial;
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < lead; i++) dims[i] = y->sizes[i];
  dims[lead] = tt__product(y->sizes + lead, spatial);
  const tt_value_t zero = tt_emit_splat(b, (tt_dtype_t)y->dtype, lead + 1, dims, 0);
  if (tt__product(x->sizes, x->rank) == 0) {
    tt_lower_return(L, 0, tt_emit_reshape(b, zero, y->rank, y->sizes));
    return;
  }
  const tt_value_t raw = flatten_spatial(b, tt_lower_tensor(L, 1), spatial);
  const tt_value_t inside =
      tt__and(b, tt__cmpc(b, TT_GE, raw, 0), tt__cmpc(b, TT_LT, raw, (double)dims[lead]));
  int64_t all[TT_MAX_RANK];
  for (uint32_t i = 0; i <= lead; i++) all[i] = i;
  tt_lower_check(L, tt_emit_reduce(b, TT_OP_AND, inside, all, lead + 1, false), TT_INVALID_ARGUMENT,
                 "Found an invalid max index (output volumes have %lld places)",
                 (long long)dims[lead]);
  const tt_value_t r =
      tt_emit_put_along(b, zero, tt_emit_convert(b, raw, TT_S32),
                        flatten_spatial(b, tt_lower_tensor(L, 0), spatial), lead, TT_OP_COUNT);
  tt_lower_return(L, 0, tt_emit_reshape(b, r, y->rank, y->sizes));
}

// The starts of a fractional pooling's windows along one dimension, [N, C, out] i32: steps of
// alpha = (in - kernel) / (out - 1) from a random sample [N, C], the last one at the end.
static tt_value_t fractional_starts(tt_build_t *b, tt_value_t sample, int64_t in, int64_t kernel,
                                    int64_t out) {
  const tt_type_t *t = tt_build_type(b, sample);
  if (t->rank != 2) return TT_NO_VALUE;
  const int64_t dims[] = {t->dims[0], t->dims[1], out}, column[] = {t->dims[0], t->dims[1], 1};
  const tt_value_t last = tt_emit_splat(b, TT_S32, 3, dims, (double)(in - kernel));
  if (out == 1) return last;
  const double alpha = (double)(in - kernel) / (double)(out - 1);
  const tt_value_t s = tt_emit_reshape(b, sample, 3, column);
  const tt_value_t i = tt_emit_iota(b, t->dtype, 3, dims, 2);
  const tt_value_t from = tt_emit_convert(b, tt__mulc(b, tt__add(b, i, s), alpha), TT_S32);
  const tt_value_t base = tt_emit_convert(b, tt__mulc(b, s, alpha), TT_S32);
  return tt_emit_select(b, tt__cmpc(b, TT_EQ, tt__iota(b, 3, dims, 2), (double)(out - 1)), last,
                        tt__sub(b, from, base));
}

// fractional_max_pool{2,3}d(self, kernel, output_size, random_samples [N, C, spatial])
TT_LOWER(fractional_max_pool) {
  tt_build_t *b = L->b;
  const tt_tensor_t *x = tt_lower_meta(L, 0);
  const tt_out_meta_t *y = &L->outs[0];
  const uint32_t spatial = (uint32_t)param, lead = x->rank - spatial;
  uint32_t n;
  const int64_t *kernel = tt_lower_ints(L, 1, &n);
  const int64_t *in = x->sizes + lead, *out = y->sizes + lead;
  const int64_t batch = lead == 2 ? x->sizes[0] : 1, channels = x->sizes[lead - 1];
  const int64_t nc[] = {batch, channels}, nc_flat[] = {batch, channels, tt__product(in, spatial)};
  if (tt__product(y->sizes, y->rank) == 0) {
    for (uint32_t i = 0; i < 2; i++) {
      tt_lower_return(L, i, tt_emit_splat(b, tt_lower_out_dtype(L, i), y->rank, y->sizes, 0));
    }
    return;
  }
  // Flat positions [N, C, out..., kernel...].
  int64_t dims[2 + 2 * TT_POOL_SPATIAL] = {batch, channels};
  for (uint32_t k = 0; k < spatial; k++) {
    dims[2 + k] = out[k];
    dims[2 + spatial + k] = kernel[n == 1 ? 0 : k];
  }
  const uint32_t rank = 2 + 2 * spatial;
  // An input without a batch uses the first of its samples.
  const tt_value_t samples = tt_emit_slice_dim(b, tt_lower_tensor(L, 3), 0, 0, batch, 1);
  tt_value_t place = TT_NO_VALUE;
  int64_t unit = 1;
  for (uint32_t k = spatial; k-- > 0; unit *= in[k]) {
    // Planes store their samples last dimension first, volumes in order.
    const int64_t slot = spatial == 2 ? 1 - (int64_t)k : (int64_t)k;
    tt_value_t s = tt_emit_slice_dim(b, samples, 2, slot, slot + 1, 1);
    s = tt_emit_reshape(b, s, 2, nc);
    int64_t shape[2 + 2 * TT_POOL_SPATIAL] = {batch, channels};
    for (uint32_t i = 2; i < rank; i++) shape[i] = i == 2 + k ? out[k] : 1;
    tt_value_t p = tt_emit_reshape(b, fractional_starts(b, s, in[k], dims[2 + spatial + k], out[k]),
                                   rank, shape);
    p = tt__add(b, tt_emit_broadcast_to(b, p, rank, dims),
                tt__iota(b, rank, dims, 2 + spatial + k));
    p = tt__mulc(b, p, (double)unit);
    place = place == TT_NO_VALUE ? p : tt__add(b, place, p);
  }
  const int64_t outs = tt__product(out, spatial), cells = tt__product(dims + 2 + spatial, spatial);
  const int64_t flat[] = {batch, channels, outs * cells};
  const int64_t grouped[] = {batch, channels, outs, cells};
  const tt_value_t at = tt_emit_reshape(b, place, 3, flat);
  tt_value_t values =
      tt_emit_take_along(b, tt_emit_reshape(b, tt_lower_tensor(L, 0), 3, nc_flat), at, 2);
  tt_value_t best, which;
  tt_emit_arg_reduce(b, true, tt_emit_reshape(b, values, 4, grouped), 3, TT_S32, true, &best,
                     &which);
  const tt_value_t index = tt_emit_take_along(b, tt_emit_reshape(b, at, 4, grouped), which, 3);
  tt_lower_return(L, 0, tt_emit_reshape(b, best, y->rank, y->sizes));
  tt_lower_return(L, 1, tt_emit_reshape(b, index, y->rank, y->sizes));
}
