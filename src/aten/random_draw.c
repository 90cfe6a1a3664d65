// The ops that fill a tensor with random numbers.
#include <math.h>

#include "aten/emit.h"
#include "aten/random.h"

static tt_dtype_t draw_dtype(tt_lower_t *L) {
  tt_dtype_t d = tt_dtype_real(tt_lower_out_dtype(L, 0));
  return d == TT_F64 ? TT_F64 : TT_F32;
}
// Can the result hold fractions? Fails the call where not.
static bool gives_fractions(tt_lower_t *L) {
  tt_dtype_t d = (tt_dtype_t)L->outs[0].dtype;
  bool can = tt_dtype_is_float(d) || tt_dtype_is_complex(d);
  if (!can) TT__FAIL(L, TYPE, "not implemented for %s", tt_dtype_text(d));
  return can;
}
static tt_value_t uniform(tt_lower_t *L, tt_dtype_t d) {
  return tt_lower_uniform(L, d, L->outs[0].rank, L->outs[0].sizes, 0);
}
// In (0, 1].
static tt_value_t uniform_above_zero(tt_lower_t *L) {
  return tt__rsubc(L->b, 1, uniform(L, draw_dtype(L)));
}

// uniform_(self, from, to)
TT_LOWER0(uniform) {
  tt_build_t *b = L->b;
  tt_dtype_t out = tt_lower_out_dtype(L, 0), d = draw_dtype(L);
  if (!gives_fractions(L)) return;
  tt_value_t low = tt_lower_scalar(L, 1, d), high = tt_lower_scalar(L, 2, d);
  tt_lower_check(L, tt__le(b, low, high), TT_INVALID_ARGUMENT,
                 "uniform_ expects to return a [from, to) range, but found from > to");
  tt_value_t u = uniform(L, out);
  tt_value_t x = tt__add(b, tt__mul(b, u, tt__sub(b, high, low)), low);
  tt_lower_return(L, 0, tt__select(b, tt__ge(b, x, high), low, x));
}

// Complex numbers have independent parts of half the variance.
static tt_value_t normal(tt_lower_t *L) {
  tt_build_t *b = L->b;
  const tt_out_meta_t *o = &L->outs[0];
  tt_dtype_t d = draw_dtype(L);
  tt__random_t r = tt__random_begin(L);
  tt_value_t x = tt__random_normal(b, &r, d, o->rank, o->sizes, 0);
  if (!tt_dtype_is_complex((tt_dtype_t)o->dtype)) return x;
  tt_value_t y = tt__random_normal(b, &r, d, o->rank, o->sizes, 4);
  return tt__complex(b, tt__mulc(b, x, M_SQRT1_2), tt__mulc(b, y, M_SQRT1_2));
}
static void check_std(tt_lower_t *L, tt_value_t std) {
  tt_build_t *b = L->b;
  if (tt_dtype_is_complex(tt_build_dtype(b, std))) return;
  tt_value_t bad = tt_emit_convert(b, tt__cmpc(b, TT_LT, std, 0), TT_S32);
  tt_value_t ok = tt__cmpc(b, TT_EQ, tt__sum(b, bad), 0);
  tt_lower_check(L, ok, TT_INVALID_ARGUMENT, "normal expects all elements of std >= 0.0");
}
// normal(mean, std), each a tensor or a number; the arguments start at `param`. param 1 is normal_.
TT_LOWER(normal) {
  tt_build_t *b = L->b;
  tt_dtype_t d = tt_lower_opmath(tt_lower_out_dtype(L, 0));
  uint32_t at = (uint32_t)param;
  if (!gives_fractions(L)) return;
  tt_value_t mean = tt_lower_operand(L, at, d), std = tt_lower_operand(L, at + 1, d);
  check_std(L, std);
  tt_lower_return(L, 0, tt__add(b, tt__mul(b, normal(L), std), mean));
}
TT_LOWER0(log_normal) {
  tt_build_t *b = L->b;
  tt_dtype_t d = draw_dtype(L);
  tt_value_t x = tt__mul(b, normal(L), tt_lower_scalar(L, 2, d));
  tt_lower_return(L, 0, tt__exp(b, tt__add(b, x, tt_lower_scalar(L, 1, d))));
}
TT_LOWER0(exponential) {
  tt_build_t *b = L->b;
  tt_value_t e = tt__neg(b, tt__log(b, uniform_above_zero(L)));
  tt_lower_return(L, 0, tt__div(b, e, tt_lower_scalar(L, 1, draw_dtype(L))));
}
TT_LOWER0(cauchy) {
  tt_build_t *b = L->b;
  tt_dtype_t d = draw_dtype(L);
  tt_value_t angle = tt__mulc(b, tt__addc(b, uniform(L, d), -0.5), M_PI);
  tt_value_t x = tt__mul(b, tt_emit_unary(b, TT_OP_TAN, angle), tt_lower_scalar(L, 2, d));
  tt_lower_return(L, 0, tt__add(b, x, tt_lower_scalar(L, 1, d)));
}
TT_LOWER0(geometric) {
  tt_build_t *b = L->b;
  tt_value_t u = uniform_above_zero(L), p = tt_lower_scalar(L, 1, draw_dtype(L));
  tt_value_t k = tt__ceil(b, tt__div(b, tt__log(b, u), tt__log1p(b, tt__neg(b, p))));
  tt_lower_return(L, 0, tt__max(b, k, tt__num(b, k, 1)));
}

static void check_probability(tt_lower_t *L, tt_value_t p) {
  tt_build_t *b = L->b;
  tt_value_t in = tt__and(b, tt__cmpc(b, TT_GE, p, 0), tt__cmpc(b, TT_LE, p, 1));
  tt_value_t bad = tt__sum(b, tt_emit_convert(b, tt__not(b, in), TT_S32));
  tt_lower_check(L, tt__cmpc(b, TT_EQ, bad, 0), TT_INVALID_ARGUMENT,
                 "bernoulli expects p to be in [0, 1]");
}
// param: where p stands, a tensor or a number. 0 is bernoulli(self).
TT_LOWER(bernoulli) {
  tt_build_t *b = L->b;
  tt_dtype_t d = draw_dtype(L);
  tt_value_t p = tt_lower_operand(L, (uint32_t)param, d);
  check_probability(L, p);
  tt_lower_return(L, 0, tt__lt(b, uniform(L, d), p));
}

// Numbers of [low, low + range); range 0 stands for 2^64.
static tt_value_t integers(tt_lower_t *L, int64_t low, uint64_t range) {
  tt_build_t *b = L->b;
  const tt_out_meta_t *o = &L->outs[0];
  tt__random_t r = tt__random_begin(L);
  tt_value_t x;
  if (range == 0 || range > UINT32_MAX) {
    x = tt__random_bits64(b, &r, o->rank, o->sizes, 0);
    if (range) x = tt__rem(b, x, tt_emit_splat_int(b, TT_U64, 0, NULL, (int64_t)range));
  } else {
    x = tt__random_bits(b, &r, o->rank, o->sizes, 0);
    x = tt__rem(b, x, tt_emit_splat_int(b, TT_U32, 0, NULL, (int64_t)range));
  }
  x = tt_emit_convert(b, x, TT_S64);
  return tt__add(b, x, tt_emit_splat_int(b, TT_S64, 0, NULL, low));
}
// The largest number that random_ gives in a dtype.
static int64_t largest(tt_dtype_t d) {
  if (tt_dtype_is_float(d)) return INT64_C(1) << (tt_dtype_infos[d].mantissa + 1);
  switch (d) {
    case TT_I1:
      return 1;
    case TT_S8:
      return INT8_MAX;
    case TT_U8:
      return UINT8_MAX;
    case TT_S16:
      return INT16_MAX;
    case TT_U16:
      return UINT16_MAX;
    case TT_S32:
      return INT32_MAX;
    case TT_U32:
      return UINT32_MAX;
    default:
      return INT64_MAX;
  }
}
// Narrow integers must hold every number of [low, end).
static bool holds(tt_lower_t *L, int64_t low, int64_t end) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  int64_t most = largest(d), least = tt_dtype_is_signed_int(d) ? -most - 1 : 0;
  if (tt_dtype_is_float(d) || tt_dtype_size(d) == 8) return true;
  const char *bound = low < least || low > most ? "from" : end - 1 > most ? "to - 1" : NULL;
  if (bound) TT__FAIL(L, INVALID_ARGUMENT, "%s is out of bounds for %s", bound, tt_dtype_text(d));
  return !bound;
}
// param: 0 (self), 1 (self, to), 2 (self, from, to?).
TT_LOWER(random) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  int64_t low = 0;
  uint64_t range;
  if (param == 2) {
    low = tt_lower_int(L, 1, 0);
    range = tt_lower_has(L, 2) ? (uint64_t)tt_lower_int(L, 2, 0) - (uint64_t)low
                               : (uint64_t)largest(d) - (uint64_t)low + 1;
  } else {
    range = param == 1 ? (uint64_t)tt_lower_int(L, 1, 0) : (uint64_t)largest(d) + 1;
  }
  bool empty =
      param != 0 && tt_lower_has(L, (uint32_t)param) && tt_lower_int(L, (uint32_t)param, 0) <= low;
  if (empty) {
    TT__FAIL(L, INVALID_ARGUMENT,
             "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
             (long long)low, (long long)tt_lower_int(L, (uint32_t)param, 0));
    return;
  }
  if (param != 0 && !holds(L, low, (int64_t)((uint64_t)low + range))) return;
  tt_lower_return(L, 0, integers(L, low, range));
}

// randperm(n, generator): positions sorted by random keys.
TT_LOWER0(randperm) {
  tt_build_t *b = L->b;
  int64_t n = L->outs[0].sizes[0];
  if (n > largest(tt_lower_out_dtype(L, 0))) {
    TT__FAIL(L, INVALID_ARGUMENT, "n = %lld is too large for %s", (long long)n,
             tt_dtype_text(tt_lower_out_dtype(L, 0)));
    return;
  }
  tt__random_t r = tt__random_begin(L);
  const tt_value_t xs[2] = {tt__random_bits64(b, &r, 1, &n, 0), tt_emit_iota(b, TT_S64, 1, &n, 0)};
  tt_value_t sorted[2];
  tt_emit_sort(b, xs, 2, 0, false, sorted);
  tt_lower_return(L, 0, sorted[1]);
}

// --- dropout -------------------------------------------------------------------------------------
// native_dropout(input, p, train) -> (output, mask)
TT_LOWER0(native_dropout) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__widen(b, tt_lower_tensor(L, 0));
  if (!tt_lower_int(L, 2, 1)) {
    tt_lower_return(L, 0, x);
    tt_lower_return(L, 1, tt_emit_splat_int(b, TT_I1, 0, NULL, 1));
    return;
  }
  tt_dtype_t d = draw_dtype(L);
  tt_value_t p = tt_lower_scalar(L, 1, d), keep = tt__ge(b, uniform(L, d), p);
  tt_value_t scale =
      tt__select_yes(b, tt__cmpc(b, TT_GE, p, 1), 0, tt__rdivc(b, 1, tt__rsubc(b, 1, p)));
  scale = tt_emit_convert(b, scale, tt_build_dtype(b, x));
  tt_lower_return(L, 0, tt__select_no(b, keep, tt__mul(b, x, scale), 0));
  tt_lower_return(L, 1, keep);
}
// native_dropout_backward(grad, mask, scale)
TT_LOWER0(native_dropout_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__widen(b, tt_lower_tensor(L, 0));
  tt_value_t mask = tt_lower_tensor_as(L, 1, tt_build_dtype(b, g));
  tt_lower_return(L, 0,
                  tt__mul(b, tt__mul(b, g, mask), tt_lower_scalar(L, 2, tt_build_dtype(b, g))));
}

// rrelu_with_noise(self, noise, lower, upper, training) -> (output, noise)
TT_LOWER0(rrelu) {
  tt_build_t *b = L->b;
  tt_dtype_t d = tt_lower_opmath(tt_lower_out_dtype(L, 0));
  tt_value_t x = tt__widen(b, tt_lower_tensor(L, 0));
  tt_value_t low = tt_lower_scalar(L, 2, d), high = tt_lower_scalar(L, 3, d);
  tt_value_t negative = tt__cmpc(b, TT_LE, x, 0), slope, noise;
  if (tt_lower_int(L, 4, 0)) {
    tt_value_t u = tt_emit_convert(b, uniform(L, draw_dtype(L)), d);
    slope = tt__add(b, tt__mul(b, u, tt__sub(b, high, low)), low);
    noise = tt__select(b, negative, slope, tt_emit_splat_like(b, x, 1));
  } else {
    slope = tt_emit_broadcast_to(b, tt__mulc(b, tt__add(b, low, high), 0.5), tt__rank(b, x),
                                 tt_build_type(b, x)->dims);
    noise = tt_lower_tensor(L, 1);
  }
  tt_lower_return(L, 0, tt__select(b, negative, tt__mul(b, x, slope), x));
  tt_lower_return(L, 1, noise);
}
