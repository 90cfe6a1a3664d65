// The _foreach_ ops: one elementwise function over the elements of tensor lists; and the gradient
// scaler's two ops.
#include <math.h>

#include "aten/emit.h"
#include "aten/pointwise_params.h"
#include "aten/reduce_params.h"

static tt_dtype_t out_opmath(const tt_lower_t *L, uint32_t i) {
  return tt_lower_opmath(tt_lower_out_dtype(L, i));
}

// Element i of an operand, whatever its form: a list of tensors or numbers, one tensor, one number.
static tt_value_t element(tt_lower_t *L, uint32_t arg, uint32_t i, tt_dtype_t d) {
  switch (tt_lower_arg(L, arg)->kind) {
    case TT_ARG_TENSORS:
      return tt_emit_convert(L->b, tt_lower_list_tensor(L, arg, i), d);
    case TT_ARG_SCALARS:
    case TT_ARG_FLOATS:
      return tt_lower_list_scalar(L, arg, i, d);
    default:
      return tt_lower_operand(L, arg, d);
  }
}

TT_LOWER(foreach_unary) {
  for (uint32_t i = 0; i < L->out_count; i++) {
    tt_value_t x = tt_lower_list_tensor(L, 0, i);
    tt_lower_return(L, i, tt__unary(L->b, param, x, tt_lower_out_dtype(L, i)));
  }
}

// (self, other, alpha?); param: TT_B_*, TT__REVERSED where self is the number.
TT_LOWER(foreach_binary) {
  tt_build_t *b = L->b;
  int kind = param & 0xff;
  bool reversed = param & TT__REVERSED;
  for (uint32_t i = 0; i < L->out_count; i++) {
    // Only products and quotients take a number as it is; the others round it first.
    bool exact = kind == TT_B_MUL || kind == TT_B_DIV;
    tt_dtype_t d = out_opmath(L, i), read_as = exact ? d : tt_lower_out_dtype(L, i);
    tt_value_t x = tt_emit_convert(b, element(L, 0, i, read_as), d);
    tt_value_t y = tt_emit_convert(b, element(L, 1, i, read_as), d);
    if (!reversed && tt_lower_has(L, 2) && !tt_lower_scalar_is(L, 2, 1)) {
      y = tt__mul(b, y, tt_lower_scalar(L, 2, d));
    }
    tt_lower_return(L, i, tt__binary(b, kind, x, y));
  }
}

// (self, tensor1, tensor2, value); param: TT_B_MUL or TT_B_DIV. The values may be one 1-d tensor.
TT_LOWER(foreach_addc) {
  tt_build_t *b = L->b;
  for (uint32_t i = 0; i < L->out_count; i++) {
    tt_dtype_t d = out_opmath(L, i);
    tt_value_t t1 = element(L, 1, i, d), value = element(L, 3, i, d);
    if (tt__rank(b, value) == 1) {
      value = tt_emit_reshape(b, tt_emit_slice_dim(b, value, 0, i, i + 1, 1), 0, NULL);
    }
    t1 = tt__binary(b, param, tt__mul(b, value, t1), element(L, 2, i, d));
    tt_lower_return(L, i, tt__add(b, element(L, 0, i, d), t1));
  }
}

// (self, end, weight)
TT_LOWER0(foreach_lerp) {
  for (uint32_t i = 0; i < L->out_count; i++) {
    tt_dtype_t d = out_opmath(L, i);
    tt_lower_return(L, i,
                    tt__lerp(L->b, element(L, 0, i, d), element(L, 1, i, d), element(L, 2, i, d)));
  }
}

// _foreach_norm(self, ord): static order. param: TT_R_MAX is _foreach_max(self).
TT_LOWER(foreach_reduce) {
  for (uint32_t i = 0; i < L->out_count; i++) {
    tt_value_t x = tt_lower_list_tensor(L, 0, i);
    int64_t dims[TT_MAX_RANK];
    uint32_t rank = tt__rank(L->b, x);
    for (uint32_t k = 0; k < rank; k++) dims[k] = k;
    if (param == TT_R_MAX) {
      x = rank ? tt_emit_reduce(L->b, TT_OP_MAXIMUM, x, dims, rank, false) : x;
    } else {
      if (!tt_dtype_is_complex(tt_build_dtype(L->b, x)))
        x = tt_emit_convert(L->b, x, out_opmath(L, i));
      x = tt__norm(L->b, x, tt_lower_static_float(L, 1, 2), dims, rank, false);
    }
    tt_lower_return(L, i, x);
  }
}

// _foreach_copy_(self, src)
TT_LOWER0(foreach_copy) {
  for (uint32_t i = 0; i < L->out_count; i++) {
    tt_lower_return(L, i, tt_lower_list_tensor(L, 1, i));
  }
}

// _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale)
TT_LOWER0(amp_unscale) {
  tt_build_t *b = L->b;
  uint32_t n = tt_lower_list_count(L, 0);
  tt_value_t found = tt_lower_tensor_as(L, 1, TT_F32), scale = tt_lower_tensor_as(L, 2, TT_F32);
  found = tt_emit_reshape(b, found, 0, NULL);
  scale = tt_emit_reshape(b, scale, 0, NULL);
  for (uint32_t i = 0; i < n; i++) {
    tt_value_t x = tt__widen(b, tt_lower_list_tensor(L, 0, i));
    tt_value_t wrong = tt__not(b, tt_emit_unary(b, TT_OP_IS_FINITE, x));
    wrong = tt__cmpc(b, TT_GT, tt__sum(b, tt_emit_convert(b, wrong, TT_S32)), 0);
    found = tt__select_yes(b, wrong, 1, found);
    tt_lower_return(L, i, tt__mul(b, x, tt_emit_convert(b, scale, tt_build_dtype(b, x))));
  }
  tt_lower_return(L, n, tt__reshape_out(L, n, found));
}

// _amp_update_scale_(self, growth_tracker, found_inf, growth, backoff, interval)
TT_LOWER0(amp_update) {
  tt_build_t *b = L->b;
  tt_value_t scale = tt_lower_tensor_as(L, 0, TT_F32), tracker = tt_lower_tensor_as(L, 1, TT_S32);
  tt_value_t found = tt__cmpc(b, TT_NE, tt_lower_tensor_as(L, 2, TT_F32), 0);
  tt_value_t next = tt__addc(b, tracker, 1),
             due = tt__cmpc(b, TT_EQ, next, (double)tt_lower_int(L, 5, 2000));
  tt_value_t grown = tt__mul(b, scale, tt_lower_scalar(L, 3, TT_F32));
  grown = tt__select(b, tt_emit_unary(b, TT_OP_IS_FINITE, grown), grown, scale);
  tt_value_t kept = tt__select(b, due, grown, scale);
  tt_lower_return(L, 0,
                  tt__select(b, found, tt__mul(b, scale, tt_lower_scalar(L, 4, TT_F32)), kept));
  tt_lower_return(L, 1, tt__select_yes(b, tt__or(b, found, due), 0, next));
}
