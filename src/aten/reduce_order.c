// Reductions by order: median, kthvalue, mode. All sort along the dimension.
#include <math.h>

#include "aten/emit.h"

// x sorted ascending along dim (NaN last) and where each element came from.
static void sort_with_index(tt_build_t *b, tt_value_t x, int64_t dim, tt_value_t *out_sorted) {
  const tt_type_t *t = tt_build_type(b, x);
  const tt_value_t xs[2] = {x, tt_emit_iota(b, TT_S64, t->rank, t->dims, dim)};
  tt_emit_sort(b, xs, 2, dim, false, out_sorted);
}
static bool is_float(tt_build_t *b, tt_value_t x) {
  return tt_dtype_is_float(tt_build_dtype(b, x));
}

// How many NaN each line along dim holds (s64, dim kept with size 1); 0 for integers.
static tt_value_t nan_count(tt_build_t *b, tt_value_t x, int64_t dim) {
  tt_value_t nan = is_float(b, x) ? tt_emit_convert(b, tt__isnan(b, x), TT_S64)
                                  : tt_emit_convert(b, tt__sub(b, x, x), TT_S64);
  return tt_emit_reduce(b, TT_OP_ADD, nan, &dim, 1, true);
}
// Element `at` (dim of size 1) of each line of sorted[0] and sorted[1], as results 0 and 1.
static void give_at(tt_lower_t *L, const tt_value_t *sorted, tt_value_t at, int64_t dim) {
  for (uint32_t i = 0; i < L->out_count; i++) {
    tt_lower_return(L, i, tt__reshape_out(L, i, tt_emit_take_along(L->b, sorted[i], at, dim)));
  }
}

// Is there an element to choose along dim? Fails the call where not.
static bool has_elements(tt_lower_t *L, tt_value_t x, int64_t dim, const char *name) {
  if (tt__rank(L->b, x) == 0 || tt__dim(L->b, x, dim) > 0) return true;
  TT__FAIL(L, INDEX, "%s(): Expected reduction dim %d to have non-zero size.", name, (int)dim);
  return false;
}

// median: the lower middle, or the first NaN. nanmedian (param 1): of what is not NaN.
// (self) alone, or (self, dim, keepdim) with two results.
TT_LOWER(median) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0), sorted[2];
  bool full = L->out_count == 1;
  if (full) x = tt__flatten(b, x);
  if (full && tt__elements(b, x) == 0) {
    double none = is_float(b, x) ? NAN : -INFINITY;
    tt_lower_return(L, 0,
                    is_float(b, x) ? tt__num(b, x, none) : tt_emit_lowest(b, tt_build_dtype(b, x)));
    return;
  }
  uint32_t rank = tt__rank(b, x);
  if (rank == 0) {
    tt_lower_return(L, 0, x);
    tt_lower_return(L, 1, tt_emit_splat_int(b, TT_S64, 0, NULL, 0));
    return;
  }
  int64_t dim = full ? 0 : tt_lower_dim(L, 1, rank);
  if (!has_elements(L, x, dim, "median")) return;
  sort_with_index(b, x, dim, sorted);
  tt_value_t nans = nan_count(b, x, dim), size = tt__num(b, nans, (double)tt__dim(b, x, dim));
  tt_value_t numbers = tt__sub(b, size, nans), at;
  tt_value_t one = tt__num(b, nans, 1), two = tt__num(b, nans, 2), zero = tt__num(b, nans, 0);
  if (param == 1) {
    at = tt__max(b, tt__div(b, tt__sub(b, numbers, one), two), zero);
  } else {
    tt_value_t middle = tt__div(b, tt__sub(b, size, one), two);
    at = tt__select(b, tt__gt(b, nans, zero), numbers, middle);
  }
  give_at(L, sorted, at, dim);
}

// kthvalue(self, k, dim, keepdim)
TT_LOWER0(kthvalue) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0), sorted[2];
  uint32_t rank = tt__rank(b, x);
  int64_t k = tt_lower_int(L, 1, 1), dim = tt_lower_dim(L, 2, rank);
  int64_t n = rank ? tt__dim(b, x, dim) : 1;
  if (!has_elements(L, x, dim, "kthvalue")) return;
  if (k < 1 || k > n) {
    TT__FAIL(L, INVALID_ARGUMENT, "kthvalue(): selected number k out of range for dimension %lld",
             (long long)dim);
    return;
  }
  if (rank == 0) {
    tt_lower_return(L, 0, x);
    tt_lower_return(L, 1, tt_emit_splat_int(b, TT_S64, 0, NULL, 0));
    return;
  }
  sort_with_index(b, x, dim, sorted);
  for (uint32_t i = 0; i < 2; i++) {
    tt_value_t at = tt_emit_slice_dim(b, sorted[i], dim, k - 1, k, 1);
    tt_lower_return(L, i, tt__reshape_out(L, i, at));
  }
}

// mode(self, dim, keepdim): the end of the longest run of equal elements, the first of several.
TT_LOWER0(mode) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0), sorted[2], best, at;
  uint32_t rank = tt__rank(b, x);
  if (rank == 0) {
    tt_lower_return(L, 0, x);
    tt_lower_return(L, 1, tt_emit_splat_int(b, TT_S64, 0, NULL, 0));
    return;
  }
  int64_t dim = tt_lower_dim(L, 1, rank), n = tt__dim(b, x, dim);
  if (!has_elements(L, x, dim, "mode")) return;
  int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0};
  low[dim] = 1, high[dim] = -1;
  bool pred = tt_build_dtype(b, x) == TT_I1;
  sort_with_index(b, pred ? tt_emit_convert(b, x, TT_U8) : x, dim, sorted);
  tt_value_t before = tt_emit_pad(b, sorted[0], tt__num(b, sorted[0], 0), low, high, NULL);
  tt_value_t place = tt_emit_iota(b, TT_S64, rank, tt_build_type(b, x)->dims, dim);
  // A run starts where an element differs from the one before it; its start carries on to its end.
  tt_value_t starts = tt__or(b, tt__ne(b, sorted[0], before), tt__cmpc(b, TT_EQ, place, 0));
  tt_value_t start = tt__select_no(b, starts, place, 0);
  int64_t sizes[TT_MAX_RANK], padding[2 * TT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank; i++) sizes[i] = 1;
  sizes[dim] = n, padding[2 * dim] = n - 1;
  const tt_window_t window = {.sizes = sizes, .padding = padding};
  start = tt_emit_reduce_window(b, TT_OP_MAXIMUM, start, &window);
  tt_emit_arg_reduce(b, true, tt__sub(b, place, start), dim, TT_S64, true, &best, &at);
  give_at(L, sorted, at, dim);
}
