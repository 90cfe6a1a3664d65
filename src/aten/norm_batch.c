// Batch normalisation, forward and backward. Statistics are per channel (dimension 1).
#include "aten/norm.h"

typedef struct stats_s {
  tt_dtype_t d;
  uint32_t rank, count;  // reduced dimensions
  int64_t dims[TT_MAX_RANK];
  int64_t channels[1];
  int64_t n;  // elements a channel
} stats_t;

static stats_t stats_of(const tt_tensor_t *x) {
  stats_t s = {.d = tt_lower_opmath((tt_dtype_t)x->dtype), .rank = x->rank, .n = 1};
  s.count = tt__other_dims(x->rank, 1, s.dims);
  for (uint32_t i = 0; i < s.count; i++) s.n *= x->sizes[s.dims[i]];
  s.channels[0] = x->sizes[1];
  return s;
}

static tt_value_t channel(tt_lower_t *L, const stats_t *s, uint32_t arg) {
  return tt__along(L->b, tt_lower_tensor_as(L, arg, s->d), s->rank, 1);
}
static tt_value_t flat(tt_lower_t *L, const stats_t *s, tt_value_t v) {
  return tt_emit_reshape(L->b, v, 1, s->channels);
}

// A saved statistic; the inferred result is empty where PyTorch saves none (evaluation on the CPU).
static void give_saved(tt_lower_t *L, const stats_t *s, uint32_t i, tt_value_t v) {
  const tt_out_meta_t *out = &L->outs[i];
  if (out->rank == 1 && out->sizes[0] == 0) {
    tt_lower_return(L, i, tt_emit_splat(L->b, s->d, 1, out->sizes, 0));
  } else {
    tt_lower_return(L, i, flat(L, s, v));
  }
}

// running = (1 - momentum) * running + momentum * now
static tt_value_t moved(tt_lower_t *L, const stats_t *s, uint32_t arg, tt_value_t momentum,
                        tt_value_t now) {
  tt_build_t *b = L->b;
  const tt_value_t keep = tt__sub(b, tt__num(b, momentum, 1), momentum);
  return tt__add(b, tt__mul(b, tt_lower_tensor_as(L, arg, s->d), keep),
                 tt__mul(b, flat(L, s, now), momentum));
}

// native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) and
// _native_batch_norm_legit. param: TT__NORM_NO_STATS has no arguments 3 and 4; TT__NORM_UPDATE has
// no `training` (true) and a reserve result; TT__NORM_FROZEN has neither `training` (false) nor
// reserve.
TT_LOWER(batch_norm) {
  tt_build_t *b = L->b;
  const stats_t s = stats_of(tt_lower_meta(L, 0));
  const bool no_stats = param == TT__NORM_NO_STATS, update = param == TT__NORM_UPDATE;
  const uint32_t training_arg = no_stats ? 3 : 5;
  const uint32_t momentum_arg = no_stats ? 4 : update || param == TT__NORM_FROZEN ? 5 : 6;
  const bool tracked = !no_stats && tt_lower_has(L, 3) && tt_lower_has(L, 4);
  const bool training = param != TT__NORM_FROZEN && (update || tt_lower_int(L, training_arg, 0));
  const tt_value_t x = tt_lower_tensor_as(L, 0, s.d);
  const tt_value_t eps = tt_lower_scalar(L, momentum_arg + 1, s.d);
  tt__moments_t m;
  if (training || !tracked) {
    m = tt__moments(b, x, s.dims, s.count, s.n);
  } else {
    m.mean = channel(L, &s, 3);
    m.centered = tt__sub(b, x, m.mean);
    m.variance = channel(L, &s, 4);
  }
  const tt_value_t rstd = tt__rsqrt(b, tt__add(b, m.variance, eps));
  tt_value_t scale = rstd;
  if (tt_lower_has(L, 1)) scale = tt__mul(b, scale, channel(L, &s, 1));
  tt_value_t y = tt__mul(b, m.centered, scale);
  if (tt_lower_has(L, 2)) y = tt__add(b, y, channel(L, &s, 2));
  tt_lower_return(L, 0, y);
  give_saved(L, &s, 1, m.mean);
  give_saved(L, &s, 2, rstd);
  uint32_t next = 3;
  if (update) {
    tt_lower_return(L, next,
                    tt_emit_splat(b, (tt_dtype_t)L->outs[next].dtype, 1, L->outs[next].sizes, 0));
    next++;
  }
  if (tracked && training) {
    const tt_value_t momentum = tt_lower_scalar(L, momentum_arg, s.d);
    const tt_value_t unbiased = tt__mulc(b, m.variance, (double)s.n / (double)(s.n - 1));
    tt_lower_return(L, next, moved(L, &s, 3, momentum, m.mean));
    tt_lower_return(L, next + 1, moved(L, &s, 4, momentum, unbiased));
  } else if (tracked && next + 1 < L->out_count) {
    tt_lower_return(L, next, tt_lower_tensor(L, 3));
    tt_lower_return(L, next + 1, tt_lower_tensor(L, 4));
  }
}

// native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean,
// save_invstd, train, eps, mask[3]); batch_norm_backward takes the same arguments and a reserve.
TT_LOWER0(batch_norm_backward) {
  tt_build_t *b = L->b;
  const stats_t s = stats_of(tt_lower_meta(L, 1));
  const bool train = tt_lower_int(L, 7, 0) != 0;
  const tt_value_t g = tt_lower_tensor_as(L, 0, s.d);
  const tt_value_t mean = channel(L, &s, train ? 5 : 3);
  const tt_value_t rstd =
      train ? channel(L, &s, 6)
            : tt__rsqrt(b, tt__add(b, channel(L, &s, 4), tt_lower_scalar(L, 8, s.d)));
  const tt_value_t centered = tt__sub(b, tt_lower_tensor_as(L, 1, s.d), mean);
  const tt_value_t sum_g = tt__sum_over(b, g, s.dims, s.count, true);
  const tt_value_t dot = tt__sum_over(b, tt__mul(b, g, centered), s.dims, s.count, true);
  // PyTorch's meta kernel gives the first result whether it is wanted or not.
  if (tt__wanted(L, 9, 0) || L->outs[0].rank != TT_NO_TENSOR) {
    tt_value_t gx = g;
    if (train) {
      const tt_value_t slope = tt__divc(b, tt__mul(b, dot, tt__square(b, rstd)), (double)s.n);
      gx = tt__sub(b, tt__sub(b, g, tt__divc(b, sum_g, (double)s.n)), tt__mul(b, centered, slope));
    }
    tt_value_t scale = rstd;
    if (tt_lower_has(L, 2)) scale = tt__mul(b, scale, channel(L, &s, 2));
    tt_lower_return(L, 0, tt__mul(b, gx, scale));
  }
  if (tt__wanted(L, 9, 1)) tt_lower_return(L, 1, flat(L, &s, tt__mul(b, dot, rstd)));
  if (tt__wanted(L, 9, 2)) tt_lower_return(L, 2, flat(L, &s, sum_g));
}
