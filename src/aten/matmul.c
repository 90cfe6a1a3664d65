// Matrix products: mm and its batched, vector and accumulating relatives.
#include "aten/emit.h"

// The bare product of x and y in dtype `d`.
static tt_value_t product(tt_build_t *b, tt__matmul_t kind, tt_value_t x, tt_value_t y,
                          tt_dtype_t d) {
  const tt_type_t *xt = tt_build_type(b, x), *yt = tt_build_type(b, y);
  const uint32_t rank = xt->rank;
  static const int64_t batch[] = {0}, zero[] = {0}, one[] = {1}, two[] = {2};
  static const int64_t batch_k[] = {0, 2}, batch_row[] = {0, 1};
  switch (kind) {
    case TT__MM:
      return tt_emit_dot(b, x, y, &(tt_dot_t){NULL, NULL, one, zero, 0, 1}, d);
    case TT__BMM:
      return tt_emit_dot(b, x, y, &(tt_dot_t){batch, batch, two, one, 1, 1}, d);
    case TT__MV:
      return tt_emit_dot(b, x, y, &(tt_dot_t){NULL, NULL, one, zero, 0, 1}, d);
    case TT__DOT:
    case TT__VDOT:
      return tt_emit_dot(b, kind == TT__VDOT ? tt__conj(b, x) : x, y,
                         &(tt_dot_t){NULL, NULL, zero, zero, 0, 1}, d);
    case TT__BMM_SUM:
      return tt_emit_dot(b, x, y, &(tt_dot_t){NULL, NULL, batch_k, batch_row, 0, 2}, d);
    case TT__OUTER:
      if (rank != 1 || yt->rank != 1) return TT_NO_VALUE;
      return tt__mul(b, tt_emit_convert(b, tt__along(b, x, 2, 0), d),
                     tt_emit_convert(b, tt__along(b, y, 2, 1), d));
  }
  return TT_NO_VALUE;
}

// mm, bmm, mv, dot, vdot, _int_mm and the overloads with an out_dtype.
TT_LOWER(matmul) {
  const tt_dtype_t dtype = tt_lower_out_dtype(L, 0);
  const tt_value_t x = tt_lower_tensor(L, 0), y = tt_lower_tensor(L, 1);
  if (!tt_lower_same_dtype(L, 0, 1)) return;
  if (tt_build_dtype(L->b, x) == TT_I1) {
    tt_lower_unsupported(L, "a product of booleans");
    return;
  }
  tt_lower_return(L, 0, product(L->b, (tt__matmul_t)param, x, y, dtype));
}

// beta * self + alpha * product; beta == 0 ignores self, NaN and all.
static tt_value_t accumulate(tt_lower_t *L, tt_value_t p, uint32_t beta, tt_dtype_t d) {
  tt_build_t *b = L->b;
  if (!tt_lower_scalar_is(L, beta + 1, 1)) p = tt__mul(b, tt_lower_scalar(L, beta + 1, d), p);
  if (tt_lower_scalar_is(L, beta, 0)) return p;
  tt_value_t self = tt_lower_tensor_as(L, 0, d);
  if (!tt_lower_scalar_is(L, beta, 1)) self = tt__mul(b, tt_lower_scalar(L, beta, d), self);
  return tt__add(b, p, self);
}

// addmm, baddbmm, addbmm, addmv, addr: (self, x, y[, out_dtype], beta, alpha). Bit 8 of the
// parameter: an out_dtype stands before beta; bit 9: _addmm_activation.
TT_LOWER(addmm) {
  tt_build_t *b = L->b;
  const tt_dtype_t out = tt_lower_out_dtype(L, 0), d = tt_lower_opmath(out);
  const uint32_t beta = param & TT__MATMUL_DTYPE ? 4 : 3;
  const tt__matmul_t kind = (tt__matmul_t)(param & 0xff);
  const tt_value_t x = tt_lower_tensor(L, 1), y = tt_lower_tensor(L, 2);
  // addr is a sum of products of elements, which promotes.
  if (kind != TT__OUTER && !tt_lower_same_dtype(L, 1, 2)) return;
  if (out == TT_I1) {
    tt_lower_unsupported(L, "a product of booleans");
    return;
  }
  tt_value_t v = accumulate(L, product(b, kind, x, y, d), beta, d);
  if (param & TT__MATMUL_ACTIVATION) {
    if (tt_lower_int(L, 5, 0)) {
      const tt_value_t e = tt_emit_unary(b, TT_OP_ERF, tt__mulc(b, v, 0.70710678118654752440));
      v = tt__mul(b, tt__mulc(b, v, 0.5), tt__addc(b, e, 1));
    } else {
      v = tt__max(b, v, tt__num(b, v, 0));
    }
  }
  tt_lower_return(L, 0, v);
}

// linear_backward(self, grad, weight, mask) and linear are composites elsewhere; _trilinear's sums
// are plain products, so PyTorch's own decomposition serves.
