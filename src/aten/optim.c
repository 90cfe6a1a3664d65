// The fused optimizers: every parameter's step in one program. The step's own numbers (learning
// rate, bias corrections) are worked out in f64 once a parameter, the elements in the parameter's
// opmath.
//
// Results, as the mutated lists stand in the schema: parameters, gradients, then the state.
#include <math.h>

#include "aten/emit.h"

// What the lists have in common: one element's values, and what found_inf says.
typedef struct step_s {
  tt_lower_t *L;
  uint32_t n;             // parameters
  tt_value_t skip;        // i1: nothing changes; TT_NO_VALUE where found_inf is not given
  tt_value_t grad_scale;  // f64 or TT_NO_VALUE
  bool maximize;
  tt_dtype_t d;  // of the element at hand
  tt_value_t param, grad, raw_grad;
} step_t;

static tt_value_t optional(tt_lower_t *L, uint32_t arg) {
  if (!tt_lower_has(L, arg)) return TT_NO_VALUE;
  return tt_emit_reshape(L->b, tt_lower_tensor_as(L, arg, TT_F64), 0, NULL);
}
// grad_scale and found_inf stand from `scale_arg` on.
static step_t begin(tt_lower_t *L, uint32_t maximize_arg, uint32_t scale_arg) {
  step_t s = {.L = L, .n = tt_lower_list_count(L, 0), .skip = TT_NO_VALUE};
  s.grad_scale = optional(L, scale_arg);
  tt_value_t found = optional(L, scale_arg + 1);
  if (found != TT_NO_VALUE) s.skip = tt__cmpc(L->b, TT_EQ, found, 1);
  s.maximize = tt_lower_int(L, maximize_arg, 0);
  return s;
}
static tt_value_t number(step_t *s, uint32_t arg) { return tt_lower_operand(s->L, arg, TT_F64); }
// A rank-0 f64 value for arithmetic with elements.
static tt_value_t plain(step_t *s, tt_value_t x) {
  return tt_emit_convert(s->L->b, tt_emit_reshape(s->L->b, x, 0, NULL), s->d);
}
static tt_value_t state(step_t *s, uint32_t arg, uint32_t i) {
  return tt_emit_convert(s->L->b, tt_lower_list_tensor(s->L, arg, i), s->d);
}
// Loads parameter and gradient i; the gradient unscaled (that is also what is stored) and signed.
static void load(step_t *s, uint32_t i) {
  tt_build_t *b = s->L->b;
  tt_value_t p = tt_lower_list_tensor(s->L, 0, i), g = tt_lower_list_tensor(s->L, 1, i);
  s->d = tt_lower_opmath(tt_build_dtype(b, p));
  s->param = tt_emit_convert(b, p, s->d);
  s->raw_grad = g;
  s->grad = tt_emit_convert(b, g, s->d);
  if (s->grad_scale != TT_NO_VALUE)
    s->raw_grad = s->grad = tt__div(b, s->grad, plain(s, s->grad_scale));
  if (s->maximize) s->grad = tt__neg(b, s->grad);
}
// Gives result `list` of element i, or what was there before where the step is skipped.
static void give(step_t *s, uint32_t list, uint32_t i, tt_value_t value, uint32_t arg) {
  tt_build_t *b = s->L->b;
  uint32_t at = list * s->n + i;
  if (at >= s->L->out_count) return;
  value = tt_emit_convert(b, value, tt_lower_out_dtype(s->L, at));
  if (s->skip != TT_NO_VALUE) {
    tt_value_t before =
        tt_emit_convert(b, tt_lower_list_tensor(s->L, arg, i), tt_lower_out_dtype(s->L, at));
    value = tt__select(b, s->skip, before, value);
  }
  tt_lower_return(s->L, at, value);
}
static void give_grad(step_t *s, uint32_t i) { give(s, 1, i, s->raw_grad, 1); }
// L2 decay joins the gradient.
static void decay(step_t *s, uint32_t arg) {
  tt_build_t *b = s->L->b;
  if (tt_lower_scalar_is(s->L, arg, 0)) return;
  s->grad = tt__add(b, s->grad, tt__mul(b, s->param, plain(s, number(s, arg))));
}
static tt_value_t step_count(step_t *s, uint32_t arg, uint32_t i) {
  tt_value_t t = tt_emit_convert(s->L->b, tt_lower_list_tensor(s->L, arg, i), TT_F64);
  return tt_emit_reshape(s->L->b, t, 0, NULL);
}

// (params, grads, m, v, v_max, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
// grad_scale, found_inf); param 1: AdamW, whose decay shrinks the parameter itself.
TT_LOWER(fused_adam) {
  tt_build_t *b = L->b;
  step_t s = begin(L, 12, 13);
  bool amsgrad = tt_lower_int(L, 11, 0);
  tt_value_t lr = number(&s, 6), beta1 = number(&s, 7), beta2 = number(&s, 8);
  lr = tt_emit_reshape(b, lr, 0, NULL);
  for (uint32_t i = 0; i < s.n; i++) {
    load(&s, i);
    if (param == 0) {
      decay(&s, 9);
    } else if (!tt_lower_scalar_is(L, 9, 0)) {
      tt_value_t keep = tt__rsubc(b, 1, tt__mul(b, lr, number(&s, 9)));
      s.param = tt__mul(b, s.param, plain(&s, keep));
    }
    tt_value_t t = step_count(&s, 5, i), m = state(&s, 2, i), v = state(&s, 3, i);
    tt_value_t c1 = tt__rsubc(b, 1, tt__pow(b, beta1, t)),
               c2 = tt__rsubc(b, 1, tt__pow(b, beta2, t));
    m = tt__add(b, m, tt__mul(b, tt__sub(b, s.grad, m), plain(&s, tt__rsubc(b, 1, beta1))));
    tt_value_t fresh = tt__mul(b, tt__square(b, s.grad), plain(&s, tt__rsubc(b, 1, beta2)));
    v = tt__add(b, tt__mul(b, v, plain(&s, beta2)), fresh);
    tt_value_t most = v;
    if (amsgrad) {
      most = tt__max(b, state(&s, 4, i), v);
      give(&s, 4, i, most, 4);
    }
    tt_value_t root = tt__div(b, tt__sqrt(b, most), plain(&s, tt__sqrt(b, c2)));
    tt_value_t ratio = tt__div(b, m, tt__add(b, root, plain(&s, number(&s, 10))));
    tt_value_t moved = tt__sub(b, s.param, tt__mul(b, plain(&s, tt__div(b, lr, c1)), ratio));
    give(&s, 0, i, moved, 0);
    give_grad(&s, i);
    give(&s, 2, i, m, 2);
    give(&s, 3, i, v, 3);
  }
}

// (params, grads, momentum buffers, weight_decay, momentum, lr, dampening, nesterov, maximize,
// is_first_step, grad_scale, found_inf)
TT_LOWER0(fused_sgd) {
  tt_build_t *b = L->b;
  step_t s = begin(L, 8, 10);
  bool momentum = tt_lower_list_count(L, 2) > 0, first = tt_lower_int(L, 9, 0);
  for (uint32_t i = 0; i < s.n; i++) {
    load(&s, i);
    decay(&s, 3);
    tt_value_t g = s.grad;
    if (momentum) {
      tt_value_t m = g, factor = plain(&s, number(&s, 4));
      if (!first) {
        tt_value_t fresh = tt__mul(b, g, plain(&s, tt__rsubc(b, 1, number(&s, 6))));
        m = tt__add(b, tt__mul(b, state(&s, 2, i), factor), fresh);
      }
      give(&s, 2, i, m, 2);
      g = tt_lower_int(L, 7, 0) ? tt__add(b, g, tt__mul(b, m, factor)) : m;
    }
    give(&s, 0, i, tt__sub(b, s.param, tt__mul(b, g, plain(&s, number(&s, 5)))), 0);
    give_grad(&s, i);
  }
}

// (params, grads, sums, steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf)
TT_LOWER0(fused_adagrad) {
  tt_build_t *b = L->b;
  step_t s = begin(L, 8, 9);
  tt_value_t lr = tt_emit_reshape(b, number(&s, 4), 0, NULL);
  for (uint32_t i = 0; i < s.n; i++) {
    load(&s, i);
    decay(&s, 6);
    tt_value_t t = tt__addc(b, step_count(&s, 3, i), -1);
    tt_value_t rate = tt__div(b, lr, tt__addc(b, tt__mul(b, t, number(&s, 5)), 1));
    tt_value_t sum = tt__add(b, state(&s, 2, i), tt__square(b, s.grad));
    tt_value_t root = tt__add(b, tt__sqrt(b, sum), plain(&s, number(&s, 7)));
    tt_value_t change = tt__div(b, tt__mul(b, plain(&s, rate), s.grad), root);
    give(&s, 0, i, tt__sub(b, s.param, change), 0);
    give_grad(&s, i);
    give(&s, 2, i, sum, 2);
    give(&s, 3, i, tt_lower_list_tensor(L, 3, i), 3);
  }
}
