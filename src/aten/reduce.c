// Reductions: sums, extremes, logic, variances, norms.
#include <math.h>

#include "aten/emit.h"
#include "aten/reduce_params.h"

// Static list of dimensions, wrapped; an absent or empty list means all.
static uint32_t list_dims(tt_lower_t *L, uint32_t arg, uint32_t rank, int64_t *out_dims) {
  uint32_t count = 0;
  const int64_t *dims = tt_lower_ints(L, arg, &count);
  if (count == 0) {
    for (uint32_t i = 0; i < rank; i++) out_dims[i] = i;
    return rank;
  }
  if (rank == 0) return 0;
  for (uint32_t i = 0; i < count; i++) out_dims[i] = dims[i] < 0 ? dims[i] + rank : dims[i];
  return count;
}

// The reduced dimensions and keepdim of a call, by the form in `param`.
static uint32_t form_dims(tt_lower_t *L, int param, uint32_t rank, int64_t *out_dims,
                          bool *out_keepdim) {
  *out_keepdim = false;
  for (uint32_t i = 0; i < rank; i++) out_dims[i] = i;
  if ((param & 0x300) == TT__FULL) return rank;
  *out_keepdim = tt_lower_arg(L, 2)->kind == TT_ARG_BOOL && tt_lower_int(L, 2, 0);
  if ((param & 0x300) == TT__DIMS) return list_dims(L, 1, rank, out_dims);
  out_dims[0] = tt_lower_dim(L, 1, rank);
  return rank ? 1 : 0;
}

static tt_value_t reduce(tt_build_t *b, tt_op_t op, tt_value_t x, const int64_t *dims,
                         uint32_t count, bool keepdim) {
  return count ? tt_emit_reduce(b, op, x, dims, count, keepdim) : x;
}
tt_value_t tt__sum(tt_build_t *b, tt_value_t x) {
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = tt__rank(b, x);
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  return reduce(b, TT_OP_ADD, x, dims, rank, false);
}
static int64_t reduced_elements(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count) {
  int64_t n = 1;
  for (uint32_t i = 0; i < count; i++) n *= tt__dim(b, x, dims[i]);
  return n;
}
static tt_value_t mean(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count,
                       bool keepdim) {
  tt_value_t sum = reduce(b, TT_OP_ADD, x, dims, count, keepdim);
  return tt__divc(b, sum, (double)reduced_elements(b, x, dims, count));
}
tt_value_t tt__apply_reduction(tt_build_t *b, tt_value_t x, int64_t reduction) {
  if (reduction == 0) return x;
  tt_value_t sum = tt__sum(b, x);
  return reduction == 2 ? sum : tt__divc(b, sum, (double)tt__elements(b, x));
}

static tt_value_t logsumexp(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count,
                            bool keepdim) {
  bool is_complex = tt_dtype_is_complex(tt_build_dtype(b, x));
  if (count == 0 && !is_complex) return x;
  tt_value_t real = is_complex ? tt_emit_unary(b, TT_OP_REAL, x) : x;
  tt_value_t top = reduce(b, TT_OP_MAXIMUM, real, dims, count, true);
  top = tt__select_yes(b, tt__isinf(b, top), 0, top);
  top = tt_emit_convert(b, top, tt_build_dtype(b, x));
  tt_value_t e = tt__exp(b, tt__sub(b, x, top));
  tt_value_t r = tt__log(b, reduce(b, TT_OP_ADD, e, dims, count, keepdim));
  const tt_type_t *t = tt_build_type(b, r);
  return tt__add(b, r, tt_emit_reshape(b, top, t->rank, t->dims));
}

// all.dims and any.dims: an empty list is no reduction, None is all.
static bool is_elementwise(tt_lower_t *L, int param) {
  int kind = param & 0xff;
  if ((kind != TT_R_ALL && kind != TT_R_ANY) || (param & 0x300) != TT__DIMS) return false;
  return tt_lower_has(L, 1) && tt_lower_list_count(L, 1) == 0 &&
         tt_lower_arg(L, 1)->kind == TT_ARG_INTS;
}

// all and any compute in i1, counts in s64, extremes in their own type, the others in PyTorch's
// accumulation type; what is complex becomes real only at the end.
TT_LOWER(reduce) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  tt_dtype_t out = tt_lower_out_dtype(L, 0), d = tt_build_dtype(b, x);
  int64_t dims[TT_MAX_RANK];
  bool keepdim;
  uint32_t n = form_dims(L, param, tt__rank(b, x), dims, &keepdim);
  if (is_elementwise(L, param)) n = 0;
  int kind = param & 0xff;
  if (kind == TT_R_ALL || kind == TT_R_ANY || kind == TT_R_COUNT) {
    x = tt_emit_convert(b, x, TT_I1);
    if (kind == TT_R_COUNT) x = tt_emit_convert(b, x, TT_S64);
  } else if (kind != TT_R_MAX && kind != TT_R_MIN) {
    x = tt__widen(
        b, tt_dtype_is_complex(d) && !tt_dtype_is_complex(out) ? x : tt_emit_convert(b, x, out));
  }
  if ((kind == TT_R_MAX || kind == TT_R_MIN) && n && reduced_elements(b, x, dims, n) == 0 &&
      tt__product(L->outs[0].sizes, L->outs[0].rank) > 0) {
    TT__FAIL(L, INVALID_ARGUMENT,
             "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
             "reduction "
             "dim with the 'dim' argument.",
             L->op_name);
    return;
  }
  static const tt_op_t ops[] = {
      [TT_R_SUM] = TT_OP_ADD,       [TT_R_NANSUM] = TT_OP_ADD,  [TT_R_MEAN] = TT_OP_ADD,
      [TT_R_PROD] = TT_OP_MULTIPLY, [TT_R_MAX] = TT_OP_MAXIMUM, [TT_R_MIN] = TT_OP_MINIMUM,
      [TT_R_ALL] = TT_OP_AND,       [TT_R_ANY] = TT_OP_OR,      [TT_R_COUNT] = TT_OP_ADD};
  if (kind == TT_R_NANSUM && tt_dtype_is_float(tt_build_dtype(b, x))) {
    x = tt__select_yes(b, tt__isnan(b, x), 0, x);
  }
  if (kind == TT_R_MEAN) {
    x = mean(b, x, dims, n, keepdim);
  } else if (kind == TT_R_LOGSUMEXP) {
    x = logsumexp(b, x, dims, n, keepdim);
  } else {
    x = reduce(b, ops[kind], x, dims, n, keepdim);
  }
  tt_lower_return(L, 0, x);
}

// --- variance ------------------------------------------------------------------------------------
// (self, dims, correction, keepdim). Two passes: the mean first, then the squares around it.
TT_LOWER(var) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__widen(b, tt_lower_tensor(L, 0));
  tt_dtype_t d = tt_dtype_real(tt_build_dtype(b, x));
  if (!tt_dtype_is_float(d)) {
    return tt_build_fail(b, TT_ERROR(INVALID_ARGUMENT,
                                     "std and var only support floating point and complex dtypes"));
  }
  int64_t dims[TT_MAX_RANK];
  uint32_t n = list_dims(L, 1, tt__rank(b, x), dims);
  bool keepdim = tt_lower_int(L, 3, 0);
  tt_value_t center = mean(b, x, dims, n, true), delta = tt__sub(b, x, center);
  if (tt_dtype_is_complex(tt_build_dtype(b, x))) delta = tt__abs(b, delta);
  tt_value_t sum = reduce(b, TT_OP_ADD, tt__square(b, delta), dims, n, keepdim);
  tt_value_t correction = tt_lower_has(L, 2) ? tt_lower_scalar(L, 2, d) : tt_emit_scalar(b, d, 1);
  tt_value_t divisor = tt__rsubc(b, (double)reduced_elements(b, x, dims, n), correction);
  tt_value_t r = tt__div(b, sum, tt__max(b, divisor, tt__num(b, divisor, 0)));
  tt_lower_return(L, 0, param & TT__STD ? tt__sqrt(b, r) : r);
  if (param & TT__WITH_MEAN) tt_lower_return(L, 1, tt__reshape_out(L, 1, center));
}

// --- norms ---------------------------------------------------------------------------------------
tt_value_t tt__norm(tt_build_t *b, tt_value_t x, double p, const int64_t *dims, uint32_t count,
                    bool keepdim) {
  if (tt_dtype_is_complex(tt_build_dtype(b, x)) || p != 2) x = tt__abs(b, x);
  if (p == INFINITY) return reduce(b, TT_OP_MAXIMUM, x, dims, count, keepdim);
  if (p == -INFINITY) return reduce(b, TT_OP_MINIMUM, x, dims, count, keepdim);
  if (p == 1) return reduce(b, TT_OP_ADD, x, dims, count, keepdim);
  if (p == 0) {
    x = tt_emit_convert(b, tt__cmpc(b, TT_NE, x, 0), tt_build_dtype(b, x));
    return reduce(b, TT_OP_ADD, x, dims, count, keepdim);
  }
  tt_value_t sum = reduce(b, TT_OP_ADD, tt__power_static(b, x, p), dims, count, keepdim);
  return p == 2 ? tt__sqrt(b, sum) : tt__power_static(b, sum, 1 / p);
}

// (self, p, dims, keepdim) or, TT__FULL, (self, p): static p, default 2.
TT_LOWER(vector_norm) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  tt_dtype_t out = tt_lower_out_dtype(L, 0);
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = tt__rank(b, x), n = rank;
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  if (param != TT__FULL) n = list_dims(L, 2, rank, dims);
  bool keepdim = param != TT__FULL && tt_lower_int(L, 3, 0);
  if (!tt_dtype_is_complex(tt_build_dtype(b, x))) x = tt_emit_convert(b, x, out);
  double p = tt_lower_static_float(L, 1, 2);
  tt_lower_return(L, 0, tt__norm(b, tt__widen(b, x), p, dims, n, keepdim));
}

// --- extremes with their place -------------------------------------------------------------------
static void extreme(tt_lower_t *L, bool largest, tt_value_t x, int64_t dim, bool keepdim,
                    tt_value_t *out_value, tt_value_t *out_index) {
  tt_build_t *b = L->b;
  if (tt__rank(b, x) == 0) {
    *out_value = x;
    *out_index = tt_emit_splat_int(b, TT_S64, 0, NULL, 0);
    return;
  }
  if (tt_build_dtype(b, x) == TT_I1) x = tt_emit_convert(b, x, TT_U8);
  tt_emit_arg_reduce(b, largest, x, dim, TT_S64, keepdim, out_value, out_index);
}

// (self, dim, keepdim) -> (values, indices); param: TT_R_MAX or TT_R_MIN.
TT_LOWER(extreme_dim) {
  tt_value_t x = tt_lower_tensor(L, 0), value, index;
  int64_t dim = tt_lower_dim(L, 1, tt__rank(L->b, x));
  extreme(L, param == TT_R_MAX, x, dim, tt_lower_int(L, 2, 0), &value, &index);
  tt_lower_return(L, 0, value);
  tt_lower_return(L, 1, index);
}

// argmax and argmin(self, dim?, keepdim).
TT_LOWER(arg_extreme) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0), value, index;
  bool all = !tt_lower_has(L, 1);
  int64_t dim = all ? 0 : tt_lower_dim(L, 1, tt__rank(b, x));
  if (all && tt__elements(b, x) == 0) {
    TT__FAIL(L, INDEX,
             "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify "
             "the reduction dim with the 'dim' argument.",
             L->op_name);
    return;
  }
  if (all) x = tt__flatten(b, x);
  extreme(L, param == TT_R_MAX, x, dim, !all && tt_lower_int(L, 2, 0), &value, &index);
  tt_lower_return(L, 0, all ? tt__reshape_out(L, 0, index) : index);
}

// aminmax(self, *, dim, keepdim), _aminmax.dim(self, dim, keepdim), _aminmax(self).
TT_LOWER(aminmax) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = tt__rank(b, x), n = rank;
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  bool keepdim = false;
  if (param != TT__FULL) {
    if (tt_lower_has(L, 1) && rank) dims[0] = tt_lower_dim(L, 1, rank), n = 1;
    keepdim = tt_lower_int(L, 2, 0);
  }
  tt_lower_return(L, 0, reduce(b, TT_OP_MINIMUM, x, dims, n, keepdim));
  tt_lower_return(L, 1, reduce(b, TT_OP_MAXIMUM, x, dims, n, keepdim));
}

TT_LOWER0(trace) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_emit_convert(b, tt_lower_tensor(L, 0), tt_lower_out_dtype(L, 0));
  x = tt__widen(b, x);
  const tt_type_t *t = tt_build_type(b, x);
  tt_value_t on = tt__eq(b, tt__iota(b, 2, t->dims, 0), tt__iota(b, 2, t->dims, 1));
  tt_lower_return(L, 0, tt__sum(b, tt__select_no(b, on, x, 0)));
}
