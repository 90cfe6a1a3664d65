// Running sums and extremes, sorting, searching in sorted sequences, histograms.
#include <math.h>

#include "aten/index.h"

// --- scans ---------------------------------------------------------------------------------------

// The reduction of every prefix along dim: a window over all elements so far.
static tt_value_t prefix(tt_build_t *b, tt_op_t op, tt_value_t x, int64_t dim) {
  const tt_type_t *t = tt_build_type(b, x);
  int64_t sizes[TT_MAX_RANK], padding[2 * TT_MAX_RANK] = {0};
  if (t->rank == 0 || t->dims[dim] < 2 || tt_type_elements(t) == 0) return x;
  for (uint32_t i = 0; i < t->rank; i++) sizes[i] = 1;
  sizes[dim] = t->dims[dim];
  padding[2 * dim] = t->dims[dim] - 1;
  const tt_window_t window = {.sizes = sizes, .padding = padding};
  return tt_emit_reduce_window(b, op, x, &window);
}

// cumsum and cumprod(self, dim, dtype); param: the op.
TT_LOWER(cumulative) {
  tt_value_t x = tt_lower_tensor_as(L, 0, tt_lower_out_dtype(L, 0));
  int64_t dim = tt_lower_dim(L, 1, tt__rank(L->b, x));
  tt_lower_return(L, 0, prefix(L->b, (tt_op_t)param, tt__widen(L->b, x), dim));
}

// cummax and cummin(self, dim): an element takes over where it equals the extreme so far, the later
// one of equals; once there is a NaN only a NaN does. Its place is the last takeover's.
TT_LOWER(cumulative_extreme) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  if (tt_build_dtype(b, x) == TT_I1) x = tt_emit_convert(b, x, TT_U8);
  const tt_type_t *t = tt_build_type(b, x);
  if (t->rank == 0) {
    tt_lower_return(L, 0, x);
    tt_lower_return(L, 1, tt_emit_splat_int(b, TT_S64, 0, NULL, 0));
    return;
  }
  int64_t dim = tt_lower_dim(L, 1, t->rank);
  tt_value_t extreme = prefix(b, (tt_op_t)param, x, dim), takes = tt__eq(b, x, extreme);
  if (tt_dtype_is_float(t->dtype)) takes = tt__or(b, takes, tt__isnan(b, x));
  tt_value_t place = tt_emit_iota(b, TT_S64, t->rank, t->dims, dim);
  tt_lower_return(L, 0, extreme);
  tt_lower_return(L, 1, prefix(b, TT_OP_MAXIMUM, tt__select_no(b, takes, place, 0), dim));
}

// logcumsumexp(self, dim): log2(n) steps of pairwise logaddexp.
TT_LOWER0(logcumsumexp) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__widen(b, tt_lower_tensor(L, 0));
  const tt_type_t *t = tt_build_type(b, x);
  int64_t dim = tt_lower_dim(L, 1, t->rank), low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0};
  for (int64_t shift = 1; t->rank && shift < t->dims[dim]; shift *= 2) {
    low[dim] = shift;
    high[dim] = -shift;
    tt_value_t before = tt_emit_pad(b, x, tt__num(b, x, -INFINITY), low, high, NULL);
    x = tt__logaddexp(b, x, before);
  }
  tt_lower_return(L, 0, x);
}

// --- sorting -------------------------------------------------------------------------------------
static void sort(tt_lower_t *L, int64_t dim, bool descending, int64_t keep) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0), sorted[2];
  const tt_type_t *t = tt_build_type(b, x);
  if (t->rank == 0) {
    tt_lower_return(L, 0, x);
    tt_lower_return(L, 1, tt_emit_splat_int(b, TT_S64, 0, NULL, 0));
    return;
  }
  bool pred = t->dtype == TT_I1;
  const tt_value_t xs[2] = {pred ? tt_emit_convert(b, x, TT_U8) : x,
                            tt_emit_iota(b, TT_S64, t->rank, t->dims, dim)};
  tt_emit_sort(b, xs, 2, dim, descending, sorted);
  for (uint32_t i = 0; i < 2; i++) {
    if (keep >= 0) sorted[i] = tt_emit_slice_dim(b, sorted[i], dim, 0, keep, 1);
    tt_lower_return(L, i, sorted[i]);
  }
}
// sort(self, dim, descending), sort.stable(self, stable, dim, descending); param: where dim stands.
TT_LOWER(sort) {
  uint32_t rank = tt_lower_meta(L, 0)->rank, at = (uint32_t)param;
  int64_t dim = tt_lower_has(L, at) ? tt_lower_dim(L, at, rank) : (int64_t)rank - 1;
  sort(L, dim, tt_lower_int(L, at + 1, 0), -1);
}
// topk(self, k, dim, largest, sorted)
TT_LOWER0(topk) {
  uint32_t rank = tt_lower_meta(L, 0)->rank;
  int64_t dim = tt_lower_has(L, 2) ? tt_lower_dim(L, 2, rank) : (int64_t)rank - 1;
  sort(L, dim, tt_lower_int(L, 3, 1), tt_lower_int(L, 1, 1));
}

// --- searching -----------------------------------------------------------------------------------

// How many elements of the sorted last dimension stand before each value: bisection, unrolled.
static tt_value_t bisect(tt_build_t *b, tt_value_t sequence, tt_value_t values, bool right) {
  const tt_type_t *t = tt_build_type(b, values);
  uint32_t rank = tt__rank(b, sequence);
  int64_t last = (int64_t)rank - 1, n = tt__dim(b, sequence, last);
  tt_value_t low = tt_emit_splat_int(b, TT_S64, t->rank, t->dims, 0);
  tt_value_t high = tt_emit_splat_int(b, TT_S64, t->rank, t->dims, n);
  tt_value_t two = tt_emit_scalar(b, TT_S64, 2), top = tt_emit_scalar(b, TT_S64, (double)(n - 1));
  for (int64_t left = n; left > 0; left /= 2) {
    tt_value_t active = tt__lt(b, low, high), middle = tt__div(b, tt__add(b, low, high), two);
    tt_value_t at = tt__min(b, middle, top);
    tt_value_t x =
        rank == 1 ? tt_emit_take(b, sequence, at, 0) : tt_emit_take_along(b, sequence, at, last);
    // Written so that a NaN value goes behind everything.
    tt_value_t stop = tt_emit_compare(b, right ? TT_GT : TT_GE, x, values);
    tt_value_t up = tt__and(b, active, tt__not(b, stop));
    low = tt__select(b, up, tt__addc(b, middle, 1), low);
    high = tt__select(b, tt__and(b, active, stop), middle, high);
  }
  return low;
}
static bool is_one_dimensional(tt_lower_t *L) {
  uint32_t rank = tt_lower_meta(L, 1)->rank;
  if (rank != 1)
    TT__FAIL(L, INVALID_ARGUMENT, "boundaries tensor must be 1 dimension, but got dim(%u)", rank);
  return rank == 1;
}
static bool is_side_known(tt_lower_t *L) {
  if (!tt_lower_has(L, 4)) return true;
  const tt_arg_t *side = tt_lower_arg(L, 4);
  bool known = tt__string_is(side, "left") || tt__string_is(side, "right");
  if (!known)
    TT__FAIL(L, INVALID_ARGUMENT, "side can only be 'left' or 'right' but got %.*s",
             (int)side->count, side->u.string);
  return known;
}
// searchsorted(sequence, values, out_int32, right, side, sorter); param 1: bucketize(values,
// sequence, out_int32, right).
TT_LOWER(searchsorted) {
  tt_build_t *b = L->b;
  uint32_t s = param ? 1 : 0, v = param ? 0 : 1;
  if (param ? !is_one_dimensional(L) : !is_side_known(L)) return;
  tt_dtype_t d = tt_lower_promote(L, s, v);
  tt_value_t sequence = tt_lower_operand(L, s, d), values = tt_lower_operand(L, v, d);
  bool right = tt_lower_int(L, 3, 0);
  if (!param && tt_lower_has(L, 4)) right = tt__string_is(tt_lower_arg(L, 4), "right");
  int64_t last = (int64_t)tt__rank(b, sequence) - 1;
  if (!param && tt_lower_has(L, 5)) {
    const tt_value_t order =
        tt__index_ready(L, tt_lower_tensor_as(L, 5, TT_S64), last, tt__dim(b, sequence, last),
                        false, TT_INVALID_ARGUMENT);
    sequence = tt_emit_take_along(b, sequence, order, last);
  }
  if (tt__dim(b, sequence, last) == 0 || tt__product(L->outs[0].sizes, L->outs[0].rank) == 0) {
    tt_lower_return(L, 0, tt_emit_splat_int(b, TT_S64, L->outs[0].rank, L->outs[0].sizes, 0));
    return;
  }
  tt_lower_return(L, 0, tt__reshape_out(L, 0, bisect(b, sequence, values, right)));
}

// histc(self, bins, min, max): equal limits mean those of the data.
TT_LOWER0(histc) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__flatten(b, tt__opmath_tensor(L, 0));
  tt_dtype_t d = tt_build_dtype(b, x);
  int64_t bins = tt_lower_int(L, 1, 100), zero = 0;
  if (tt__elements(b, x) == 0) {
    tt_lower_return(L, 0, tt_emit_scalar(b, d, 0));
    return;
  }
  tt_value_t low = tt_lower_scalar(L, 2, d), high = tt_lower_scalar(L, 3, d),
             same = tt__eq(b, low, high);
  low = tt__select(b, same, tt_emit_reduce(b, TT_OP_MINIMUM, x, &zero, 1, false), low);
  high = tt__select(b, same, tt_emit_reduce(b, TT_OP_MAXIMUM, x, &zero, 1, false), high);
  if (tt_dtype_is_float(d)) {
    tt_lower_check(L, tt__cmpc(b, TT_LT, tt__abs(b, tt__sub(b, high, low)), INFINITY),
                   TT_INVALID_ARGUMENT, "the range of the data is not finite");
  }
  same = tt__eq(b, low, high);
  low = tt__select(b, same, tt__addc(b, low, -1), low);
  high = tt__select(b, same, tt__addc(b, high, 1), high);
  tt_value_t in = tt__and(b, tt__ge(b, x, low), tt__le(b, x, high));
  tt_value_t place = tt__sub(b, x, low), range = tt__sub(b, high, low);
  if (tt_dtype_is_float(d)) {
    place = tt__mulc(b, tt__div(b, place, range), (double)bins);
  } else {
    // Whole numbers are divided last: a quotient below one would be none.
    place = tt__mulc(b, tt_emit_convert(b, place, TT_S64), (double)bins);
    place = tt__div(b, place, tt_emit_convert(b, range, TT_S64));
  }
  place = tt_emit_convert(b, tt__select_no(b, in, place, 0), TT_S32);
  place = tt__min(b, place, tt__num(b, place, (double)(bins - 1)));
  tt_value_t counts = tt_emit_splat(b, d, 1, &bins, 0);
  tt_lower_return(L, 0, tt_emit_put(b, counts, place, tt_emit_convert(b, in, d), 0, TT_OP_ADD));
}
