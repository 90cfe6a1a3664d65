// Draws from discrete and gamma distributions. Rejection runs all elements together: a loop goes on
// until every element has accepted, and each round draws from a sequence of its own.
#include <math.h>

#include "aten/emit.h"
#include "aten/random.h"

enum { MAX_ROUNDS = 256, MAX_STATES = 6 };

// One round: new state values; `s[0]` is the round's number, `s[1]` what is still pending (i1).
typedef struct rejection_s {
  tt__random_t random;
  const tt_value_t *params;
  uint32_t rank;
  const int64_t *dims;
} rejection_t;
typedef void (*round_t)(tt_build_t *b, const rejection_t *r, tt_value_t *state);

static tt_value_t any(tt_build_t *b, tt_value_t p) {
  int64_t dims[TT_MAX_RANK];
  uint32_t rank = tt__rank(b, p);
  for (uint32_t i = 0; i < rank; i++) dims[i] = i;
  return tt_emit_reduce(b, TT_OP_OR, p, dims, rank, false);
}

static void repeat(tt_build_t *b, const rejection_t *r, tt_value_t *state, uint32_t count,
                   round_t fn) {
  tt_type_t types[MAX_STATES];
  tt_value_t args[MAX_STATES], out[MAX_STATES];
  for (uint32_t i = 0; i < count; i++) types[i] = *tt_build_type(b, state[i]);
  tt_block_t *condition = tt_emit_region_begin(b, types, count, args);
  tt_value_t go = tt__and(b, any(b, args[1]), tt__cmpc(b, TT_LT, args[0], MAX_ROUNDS));
  tt_emit_region_end(b, condition, &go, 1);
  tt_block_t *body = tt_emit_region_begin(b, types, count, args);
  rejection_t salted = *r;
  salted.random = tt__random_salt(b, &r->random, args[0]);
  fn(b, &salted, args);
  args[0] = tt__addc(b, args[0], 1);
  tt_emit_region_end(b, body, args, count);
  tt_emit_while(b, state, count, condition, body, out);
  for (uint32_t i = 0; i < count; i++) state[i] = out[i];
}
static tt_value_t uniform(tt_build_t *b, const rejection_t *r, tt_dtype_t d, uint32_t stream) {
  return tt__random_uniform(b, &r->random, d, r->rank, r->dims, stream);
}
// Elements that are pending and accepted take the value.
static void accept(tt_build_t *b, tt_value_t *s, tt_value_t accepted, tt_value_t value) {
  s[2] = tt__select(b, tt__and(b, s[1], accepted), value, s[2]);
  s[1] = tt__and(b, s[1], tt__not(b, accepted));
}
static tt_value_t round_zero(tt_build_t *b) { return tt_emit_splat_int(b, TT_S32, 0, NULL, 0); }

// --- gamma: Marsaglia and Tsang ------------------------------------------------------------------
static void gamma_round(tt_build_t *b, const rejection_t *r, tt_value_t *s) {
  tt_value_t d = r->params[0], c = r->params[1];
  tt_dtype_t type = tt_build_dtype(b, d);
  tt_value_t x = tt__random_normal(b, &r->random, type, r->rank, r->dims, 0);
  tt_value_t u = tt__rsubc(b, 1, uniform(b, r, type, 4));
  tt_value_t v = tt__addc(b, tt__mul(b, c, x), 1);
  v = tt__mul(b, tt__square(b, v), v);
  tt_value_t positive = tt__cmpc(b, TT_GT, v, 0), safe = tt__select_no(b, positive, v, 1);
  tt_value_t log_v = tt__mul(b, d, tt__log(b, safe));
  tt_value_t bound =
      tt__add(b, tt__mulc(b, tt__square(b, x), 0.5), tt__sub(b, d, tt__mul(b, d, safe)));
  tt_value_t in = tt__lt(b, tt__log(b, u), tt__add(b, bound, log_v));
  accept(b, s, tt__and(b, positive, in), tt__mul(b, d, safe));
}
// Shapes below one are raised by one and scaled back by a power of a uniform number.
static tt_value_t gamma_draw(tt_lower_t *L, tt_value_t alpha) {
  tt_build_t *b = L->b;
  const tt_type_t *t = tt_build_type(b, alpha);
  tt_value_t small = tt__cmpc(b, TT_LT, alpha, 1), one = tt_emit_splat_like(b, alpha, 1);
  tt_value_t shape = tt__select(b, small, tt__addc(b, alpha, 1), alpha);
  tt_value_t params[2];
  params[0] = tt__addc(b, shape, -1.0 / 3);
  params[1] = tt__rdivc(b, 1, tt__sqrt(b, tt__mulc(b, params[0], 9)));
  rejection_t r = {tt__random_begin(L), params, t->rank, t->dims};
  tt_value_t s[3] = {round_zero(b), tt__cmpc(b, TT_GT, alpha, 0), tt_emit_splat_like(b, alpha, 0)};
  repeat(b, &r, s, 3, gamma_round);
  tt_value_t u = tt__rsubc(b, 1, uniform(b, &r, t->dtype, 6));
  tt_value_t power = tt__pow(b, u, tt__div(b, one, tt__select(b, small, alpha, one)));
  return tt__select(b, small, tt__mul(b, s[2], power), s[2]);
}
TT_LOWER0(standard_gamma) {
  tt_value_t x = gamma_draw(L, tt__widen(L->b, tt_lower_tensor(L, 0)));
  double tiny = tt_build_dtype(L->b, x) == TT_F64 ? 0x1p-1022 : 0x1p-126;
  tt_lower_return(L, 0, tt__max(L->b, x, tt__num(L->b, x, tiny)));
}
TT_LOWER0(dirichlet) {
  tt_build_t *b = L->b;
  tt_value_t x = gamma_draw(L, tt_lower_tensor_as(L, 0, TT_F64));
  int64_t last = (int64_t)tt__rank(b, x) - 1;
  tt_lower_return(L, 0, tt__div(b, x, tt_emit_reduce(b, TT_OP_ADD, x, &last, 1, true)));
}

// --- poisson -------------------------------------------------------------------------------------
// Small rates: walk up the distribution. States: round, pending, k, probability of k, what is left
// of u.
static void poisson_walk(tt_build_t *b, const rejection_t *r, tt_value_t *s) {
  tt_value_t here = tt__lt(b, s[4], s[3]);
  s[1] = tt__and(b, s[1], tt__not(b, here));
  s[4] = tt__sub(b, s[4], s[3]);
  s[2] = tt__select(b, s[1], tt__addc(b, s[2], 1), s[2]);
  s[3] =
      tt__div(b, tt__mul(b, s[3], r->params[0]), tt__addc(b, tt_emit_convert(b, s[0], TT_F64), 1));
}
// Large rates: Hoermann's transformed rejection. Params: rate, a, b, log(1/alpha), v_r.
static void poisson_round(tt_build_t *b, const rejection_t *r, tt_value_t *s) {
  const tt_value_t *p = r->params;
  tt_value_t u = tt__addc(b, uniform(b, r, TT_F64, 0), -0.5),
             v = tt__rsubc(b, 1, uniform(b, r, TT_F64, 2));
  tt_value_t us = tt__rsubc(b, 0.5, tt__abs(b, u));
  tt_value_t slope = tt__add(b, tt__div(b, tt__mulc(b, p[1], 2), us), p[2]);
  tt_value_t k = tt__floor(b, tt__addc(b, tt__add(b, tt__mul(b, slope, u), p[0]), 0.43));
  tt_value_t quick = tt__and(b, tt__cmpc(b, TT_GE, us, 0.07), tt__le(b, v, p[4]));
  tt_value_t out = tt__or(b, tt__cmpc(b, TT_LT, k, 0),
                          tt__and(b, tt__cmpc(b, TT_LT, us, 0.013), tt__gt(b, v, us)));
  tt_value_t hat = tt__log(b, tt__add(b, tt__div(b, p[1], tt__square(b, us)), p[2]));
  tt_value_t left = tt__sub(b, tt__add(b, tt__log(b, v), p[3]), hat);
  tt_value_t safe = tt__max(b, k, tt__num(b, k, 0));
  tt_value_t right = tt__sub(b, tt__sub(b, tt__mul(b, safe, tt__log(b, p[0])), p[0]),
                             tt_emit_unary(b, TT_OP_LGAMMA, tt__addc(b, safe, 1)));
  tt_value_t fine = tt__and(b, tt__not(b, out), tt__le(b, left, right));
  accept(b, s, tt__or(b, quick, fine), k);
}
TT_LOWER0(poisson) {
  tt_build_t *b = L->b;
  tt_value_t rate = tt_lower_tensor_as(L, 0, TT_F64), p[5];
  const tt_type_t *t = tt_build_type(b, rate);
  tt_lower_check(L, tt__not(b, any(b, tt__cmpc(b, TT_LT, rate, 0))), TT_INVALID_ARGUMENT,
                 "invalid Poisson rate, expected rate to be non-negative");
  tt_value_t zero = tt_emit_splat_like(b, rate, 0), large = tt__cmpc(b, TT_GE, rate, 10);
  rejection_t r = {tt__random_begin(L), p, t->rank, t->dims};
  p[0] = tt__select(b, large, zero, rate);
  tt_value_t walk[5] = {round_zero(b), tt__not(b, large), zero, tt__exp(b, tt__neg(b, p[0])),
                        uniform(b, &r, TT_F64, 4)};
  repeat(b, &r, walk, 5, poisson_walk);
  p[0] = tt__select_no(b, large, rate, 10);
  p[2] = tt__addc(b, tt__mulc(b, tt__sqrt(b, p[0]), 2.53), 0.931);
  p[1] = tt__addc(b, tt__mulc(b, p[2], 0.02483), -0.059);
  p[3] = tt__log(b, tt__addc(b, tt__rdivc(b, 1.1328, tt__addc(b, p[2], -3.4)), 1.1239));
  p[4] = tt__rsubc(b, 0.9277, tt__rdivc(b, 3.6224, tt__addc(b, p[2], -2)));
  tt_value_t s[3] = {round_zero(b), large, zero};
  repeat(b, &r, s, 3, poisson_round);
  tt_lower_return(L, 0, tt__select(b, large, s[2], walk[2]));
}

// --- binomial ------------------------------------------------------------------------------------
// Few expected successes: walk up. States as for poisson; params: (n + 1) p / q, p / q.
static void binomial_walk(tt_build_t *b, const rejection_t *r, tt_value_t *s) {
  tt_value_t here = tt__lt(b, s[4], s[3]);
  s[1] = tt__and(b, s[1], tt__not(b, here));
  s[4] = tt__sub(b, s[4], s[3]);
  s[2] = tt__select(b, s[1], tt__addc(b, s[2], 1), s[2]);
  tt_value_t k = tt__addc(b, tt_emit_convert(b, s[0], TT_F64), 1);
  s[3] = tt__mul(b, s[3], tt__sub(b, tt__div(b, r->params[0], k), r->params[1]));
  s[3] = tt__max(b, s[3], tt__num(b, s[3], 0));
}
static tt_value_t log_choose(tt_build_t *b, tt_value_t n, tt_value_t k) {
  return tt__neg(b, tt__add(b, tt_emit_unary(b, TT_OP_LGAMMA, tt__addc(b, k, 1)),
                            tt_emit_unary(b, TT_OP_LGAMMA, tt__addc(b, tt__sub(b, n, k), 1))));
}
// Hoermann's BTRS. Params: n, n p + 0.5, a, b, v_r, alpha, log(p / q), mode.
static void binomial_round(tt_build_t *b, const rejection_t *r, tt_value_t *s) {
  const tt_value_t *p = r->params;
  tt_value_t u = tt__addc(b, uniform(b, r, TT_F64, 0), -0.5),
             v = tt__rsubc(b, 1, uniform(b, r, TT_F64, 2));
  tt_value_t us = tt__rsubc(b, 0.5, tt__abs(b, u));
  tt_value_t slope = tt__add(b, tt__div(b, tt__mulc(b, p[2], 2), us), p[3]);
  tt_value_t k = tt__floor(b, tt__add(b, tt__mul(b, slope, u), p[1]));
  tt_value_t quick = tt__and(b, tt__cmpc(b, TT_GE, us, 0.07), tt__le(b, v, p[4]));
  tt_value_t in = tt__and(b, tt__cmpc(b, TT_GE, k, 0), tt__le(b, k, p[0]));
  tt_value_t hat = tt__add(b, tt__div(b, p[2], tt__square(b, us)), p[3]);
  tt_value_t left = tt__log(b, tt__div(b, tt__mul(b, v, p[5]), hat));
  tt_value_t safe = tt__select(b, in, k, p[7]);
  tt_value_t right = tt__sub(b, log_choose(b, p[0], safe), log_choose(b, p[0], p[7]));
  right = tt__add(b, right, tt__mul(b, tt__sub(b, safe, p[7]), p[6]));
  accept(b, s, tt__and(b, in, tt__or(b, quick, tt__le(b, left, right))), k);
}
// binomial(count, prob)
TT_LOWER0(binomial) {
  tt_build_t *b = L->b;
  tt_value_t n = tt_lower_tensor_as(L, 0, TT_F64), given = tt_lower_tensor_as(L, 1, TT_F64), p[8];
  n = tt__to_out(L, 0, n);
  given = tt__to_out(L, 0, given);
  const tt_type_t *t = tt_build_type(b, n);
  tt_value_t flipped = tt__cmpc(b, TT_GT, given, 0.5);
  tt_value_t prob = tt__select(b, flipped, tt__rsubc(b, 1, given), given),
             q = tt__rsubc(b, 1, prob);
  tt_value_t zero = tt_emit_splat_like(b, n, 0),
             large = tt__cmpc(b, TT_GE, tt__mul(b, n, prob), 10);
  tt_value_t active = tt__and(b, tt__cmpc(b, TT_GT, n, 0), tt__cmpc(b, TT_GT, prob, 0));
  rejection_t r = {tt__random_begin(L), p, t->rank, t->dims};
  p[1] = tt__div(b, prob, q);
  p[0] = tt__mul(b, tt__addc(b, n, 1), p[1]);
  tt_value_t small = tt__and(b, active, tt__not(b, large));
  tt_value_t walk[5] = {round_zero(b), small, zero,
                        tt__exp(b, tt__mul(b, n, tt__log1p(b, tt__neg(b, prob)))),
                        uniform(b, &r, TT_F64, 4)};
  repeat(b, &r, walk, 5, binomial_walk);
  p[0] = tt__select_no(b, large, n, 40);
  tt_value_t bp = tt__select_no(b, large, prob, 0.5), bq = tt__rsubc(b, 1, bp),
             np = tt__mul(b, p[0], bp);
  tt_value_t deviation = tt__sqrt(b, tt__mul(b, np, bq));
  p[1] = tt__addc(b, np, 0.5);
  p[3] = tt__addc(b, tt__mulc(b, deviation, 2.53), 1.15);
  p[2] = tt__add(b, tt__addc(b, tt__mulc(b, p[3], 0.0248), -0.0873), tt__mulc(b, bp, 0.01));
  p[4] = tt__rsubc(b, 0.92, tt__rdivc(b, 4.2, p[3]));
  p[5] = tt__mul(b, tt__addc(b, tt__rdivc(b, 5.1, p[3]), 2.83), deviation);
  p[6] = tt__log(b, tt__div(b, bp, bq));
  p[7] = tt__floor(b, tt__mul(b, tt__addc(b, p[0], 1), bp));
  tt_value_t s[3] = {round_zero(b), tt__and(b, active, large), zero};
  repeat(b, &r, s, 3, binomial_round);
  tt_value_t k = tt__min(b, tt__select(b, large, s[2], walk[2]), n);
  tt_lower_return(L, 0, tt__select(b, flipped, tt__sub(b, n, k), k));
}

// --- multinomial ---------------------------------------------------------------------------------

// Without replacement, and for one sample: the largest p / e with e exponential. With replacement:
// how many cumulative sums a uniform number passes.
static tt_value_t choose_largest(tt_build_t *b, const tt__random_t *r, tt_value_t p,
                                 int64_t samples) {
  const tt_type_t *t = tt_build_type(b, p);
  int64_t last = (int64_t)t->rank - 1;
  tt_value_t u = tt__rsubc(b, 1, tt__random_uniform(b, r, TT_F64, t->rank, t->dims, 0));
  tt_value_t e = tt__max(b, tt__neg(b, tt__log(b, u)), tt_emit_scalar(b, TT_F64, 0x1p-200));
  const tt_value_t xs[2] = {tt__div(b, p, e), tt_emit_iota(b, TT_S64, t->rank, t->dims, last)};
  tt_value_t sorted[2], value, index;
  if (samples == 1) {
    tt_emit_arg_reduce(b, true, xs[0], last, TT_S64, true, &value, &index);
    return index;
  }
  tt_emit_sort(b, xs, 2, last, true, sorted);
  return tt_emit_slice_dim(b, sorted[1], last, 0, samples, 1);
}
static tt_value_t choose_again(tt_lower_t *L, const tt__random_t *r, tt_value_t p) {
  tt_build_t *b = L->b;
  const tt_out_meta_t *o = &L->outs[0];
  uint32_t rank = o->rank;
  int64_t last = (int64_t)rank - 1, n = tt__dim(b, p, last), dims[3];
  tt_value_t sums = tt__prefix_sum(b, p, last),
             total = tt_emit_slice_dim(b, sums, last, n - 1, n, 1);
  tt_value_t u = tt__random_uniform(b, r, TT_F64, rank, o->sizes, 0);
  tt_value_t target = tt__mul(b, u, total);
  for (uint32_t i = 0; i < rank; i++) dims[i] = o->sizes[i];
  dims[rank] = 1;
  target = tt_emit_reshape(b, target, rank + 1, dims);
  dims[rank] = n, dims[last] = 1;
  tt_value_t passed = tt__le(b, tt_emit_reshape(b, sums, rank + 1, dims), target);
  int64_t axis = rank;
  tt_value_t index =
      tt_emit_reduce(b, TT_OP_ADD, tt_emit_convert(b, passed, TT_S64), &axis, 1, false);
  return tt__min(b, index, tt__num(b, index, (double)(n - 1)));
}
// multinomial(self, num_samples, replacement)
TT_LOWER0(multinomial) {
  tt_build_t *b = L->b;
  tt_value_t p = tt_lower_tensor_as(L, 0, TT_F64);
  tt_value_t valid = tt__and(b, tt__cmpc(b, TT_GE, p, 0), tt_emit_unary(b, TT_OP_IS_FINITE, p));
  tt_lower_check(L, tt__not(b, any(b, tt__not(b, valid))), TT_INVALID_ARGUMENT,
                 "probability tensor contains either `inf`, `nan` or element < 0");
  int64_t last = (int64_t)tt__rank(b, p) - 1, samples = tt_lower_int(L, 1, 1);
  tt_value_t total = tt_emit_reduce(b, TT_OP_ADD, p, &last, 1, false);
  tt_lower_check(L, tt__not(b, any(b, tt__cmpc(b, TT_LE, total, 0))), TT_INVALID_ARGUMENT,
                 "invalid multinomial distribution (sum of probabilities <= 0)");
  tt__random_t r = tt__random_begin(L);
  bool again = tt_lower_int(L, 2, 0) && samples > 1;
  tt_lower_return(L, 0, again ? choose_again(L, &r, p) : choose_largest(b, &r, p, samples));
}
