// Losses element by element, softmax, and their gradients.
#include <math.h>

#include "aten/emit.h"
#include "aten/pointwise_params.h"

static tt_value_t in(tt_lower_t *L, uint32_t i) {
  return tt__operand(L, i, tt_lower_out_dtype(L, 0));
}
// What one element of the input gets of the output's gradient.
static tt_value_t spread(tt_build_t *b, tt_value_t grad, tt_value_t d, int64_t reduction) {
  tt_value_t r = tt__mul(b, d, grad);
  return reduction == 1 ? tt__divc(b, r, (double)tt__elements(b, r)) : r;
}

// mse_loss(self, target, reduction)
TT_LOWER0(mse_loss) {
  tt_value_t d = tt__sub(L->b, in(L, 0), in(L, 1));
  tt_lower_return(L, 0, tt__apply_reduction(L->b, tt__square(L->b, d), tt_lower_int(L, 2, 1)));
}
// mse_loss_backward(grad, self, target, reduction)
TT_LOWER0(mse_loss_backward) {
  tt_build_t *b = L->b;
  tt_value_t d = tt__sub(b, in(L, 1), in(L, 2));
  tt_lower_return(L, 0, spread(b, in(L, 0), tt__mulc(b, d, 2), tt_lower_int(L, 3, 1)));
}

// param: 0 smooth_l1(self, target, reduction, beta), 1 huber(.., delta).
TT_LOWER(smooth_l1) {
  tt_build_t *b = L->b;
  tt_value_t z = tt__abs(b, tt__sub(b, in(L, 0), in(L, 1))), width = in(L, 3), near, far;
  tt_value_t half = tt__mulc(b, tt__square(b, z), 0.5);
  if (param) {
    near = half;
    far = tt__mul(b, width, tt__sub(b, z, tt__mulc(b, width, 0.5)));
  } else {
    near = tt__div(b, half, width);
    far = tt__sub(b, z, tt__mulc(b, width, 0.5));
  }
  tt_value_t inside = param ? tt__le(b, z, width) : tt__lt(b, z, width);
  tt_lower_return(L, 0,
                  tt__apply_reduction(b, tt__select(b, inside, near, far), tt_lower_int(L, 2, 1)));
}
// (grad, self, target, reduction, beta or delta)
TT_LOWER(smooth_l1_backward) {
  tt_build_t *b = L->b;
  tt_value_t d = tt__sub(b, in(L, 1), in(L, 2)), width = in(L, 4);
  tt_value_t sign = tt__unary(b, TT_U_SIGN, d, tt_build_dtype(b, d));
  tt_value_t far = param ? tt__mul(b, sign, width) : sign, near = param ? d : tt__div(b, d, width);
  tt_value_t size = tt__abs(b, d), inside = param ? tt__le(b, size, width) : tt__lt(b, size, width);
  tt_lower_return(L, 0,
                  spread(b, in(L, 0), tt__select(b, inside, near, far), tt_lower_int(L, 3, 1)));
}

// binary_cross_entropy(self, target, weight, reduction); logarithms stop at -100.
TT_LOWER0(bce) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 0), y = in(L, 1), low = tt__num(b, x, -100);
  tt_value_t inside = tt__and(b, tt__cmpc(b, TT_GE, x, 0), tt__cmpc(b, TT_LE, x, 1));
  tt_value_t bad = tt__sum(b, tt_emit_convert(b, tt__not(b, inside), TT_S32));
  tt_lower_check(L, tt__cmpc(b, TT_EQ, bad, 0), TT_INVALID_ARGUMENT,
                 "all elements of input should be between 0 and 1");
  tt_value_t yes = tt__max(b, tt__log(b, x), low),
             no = tt__max(b, tt__log1p(b, tt__neg(b, x)), low);
  tt_value_t r = tt__sub(b, tt__mul(b, tt__addc(b, y, -1), no), tt__mul(b, y, yes));
  if (tt_lower_has(L, 2)) r = tt__mul(b, r, in(L, 2));
  tt_lower_return(L, 0, tt__apply_reduction(b, r, tt_lower_int(L, 3, 1)));
}
// binary_cross_entropy_backward(grad, self, target, weight, reduction)
TT_LOWER0(bce_backward) {
  tt_build_t *b = L->b;
  tt_value_t x = in(L, 1), slope = tt__mul(b, tt__rsubc(b, 1, x), x);
  tt_value_t d = tt__div(b, tt__sub(b, x, in(L, 2)), tt__max(b, slope, tt__num(b, x, 1e-12)));
  if (tt_lower_has(L, 3)) d = tt__mul(b, d, in(L, 3));
  tt_lower_return(L, 0, spread(b, in(L, 0), d, tt_lower_int(L, 4, 1)));
}

// --- softmax -------------------------------------------------------------------------------------
static tt_value_t along(tt_build_t *b, tt_op_t op, tt_value_t x, int64_t dim) {
  return tt__rank(b, x) ? tt_emit_reduce(b, op, x, &dim, 1, true) : x;
}
static tt_value_t softmax(tt_build_t *b, tt_value_t x, int64_t dim, bool logarithm) {
  tt_value_t centered = tt__sub(b, x, along(b, TT_OP_MAXIMUM, x, dim)), e = tt__exp(b, centered);
  tt_value_t sum = along(b, TT_OP_ADD, e, dim);
  return logarithm ? tt__sub(b, centered, tt__log(b, sum)) : tt__div(b, e, sum);
}
// _softmax(self, dim, half_to_float); param 1: _log_softmax.
TT_LOWER(softmax) {
  tt_value_t x = tt__opmath_tensor(L, 0);
  if (tt__elements(L->b, x) == 0) {
    tt_lower_return(L, 0, x);
    return;
  }
  tt_lower_return(L, 0, softmax(L->b, x, tt_lower_dim(L, 1, tt__rank(L->b, x)), param));
}
// (grad, output, dim, input_dtype); param 1: of _log_softmax.
TT_LOWER(softmax_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), y = tt__opmath_tensor(L, 1);
  int64_t dim = tt_lower_dim(L, 2, tt__rank(b, y));
  if (tt__elements(b, y) == 0) {
    tt_lower_return(L, 0, y);
  } else if (param) {
    tt_lower_return(L, 0, tt__sub(b, g, tt__mul(b, tt__exp(b, y), along(b, TT_OP_ADD, g, dim))));
  } else {
    tt_value_t p = tt__mul(b, g, y);
    tt_lower_return(L, 0, tt__sub(b, p, tt__mul(b, y, along(b, TT_OP_ADD, p, dim))));
  }
}

// A [l, l] or [b, l] mask in the shape of [b, heads, l, l] scores.
static tt_value_t mask_like(tt_lower_t *L, uint32_t arg, tt_value_t x, int64_t type) {
  tt_build_t *b = L->b;
  const tt_type_t *t = tt_build_type(b, x);
  tt_value_t mask = tt_lower_tensor_as(L, arg, TT_I1);
  const tt_type_t *m = tt_build_type(b, mask);
  if (type == 1 && t->rank == 4 && m->rank == 2) {
    const int64_t dims[4] = {m->dims[0], 1, 1, m->dims[1]};
    mask = tt_emit_reshape(b, mask, 4, dims);
  }
  return tt_emit_broadcast_to(b, mask, t->rank, t->dims);
}
// _masked_softmax(self, mask, dim, mask_type): what is masked takes no part and gets 0.
TT_LOWER0(masked_softmax) {
  tt_build_t *b = L->b;
  tt_value_t x = tt__opmath_tensor(L, 0), mask = mask_like(L, 1, x, tt_lower_int(L, 3, 2));
  uint32_t rank = tt__rank(b, x);
  int64_t dim = tt_lower_has(L, 2) ? tt_lower_dim(L, 2, rank) : (int64_t)rank - 1;
  tt_value_t top = along(b, TT_OP_MAXIMUM, tt__select_yes(b, mask, -INFINITY, x), dim);
  top = tt__select_yes(b, tt__cmpc(b, TT_EQ, top, -INFINITY), 0, top);
  tt_value_t e = tt__select_yes(b, mask, 0, tt__exp(b, tt__sub(b, x, top))),
             sum = along(b, TT_OP_ADD, e, dim);
  tt_lower_return(L, 0, tt__div(b, e, tt__select_yes(b, tt__cmpc(b, TT_EQ, sum, 0), 1, sum)));
}
// _masked_softmax_backward(grad, output, mask, dim)
TT_LOWER0(masked_softmax_backward) {
  tt_build_t *b = L->b;
  tt_value_t g = tt__opmath_tensor(L, 0), y = tt__opmath_tensor(L, 1), mask = mask_like(L, 2, y, 2);
  uint32_t rank = tt__rank(b, y);
  int64_t dim = tt_lower_has(L, 3) ? tt_lower_dim(L, 3, rank) : (int64_t)rank - 1;
  tt_value_t p = tt__select_yes(b, mask, 0, tt__mul(b, g, y));
  tt_value_t r = tt__sub(b, p, tt__mul(b, y, along(b, TT_OP_ADD, p, dim)));
  tt_lower_return(L, 0, tt__select_yes(b, mask, 0, r));
}
