// PyTorch's type promotion.
#include "aten/lower.h"

static tt_dtype_t complex_of(tt_dtype_t real) { return real == TT_F64 ? TT_C128 : TT_C64; }

// Both are floating point and differ.
static tt_dtype_t wider_float(tt_dtype_t a, tt_dtype_t b) {
  if (tt_dtype_size(a) == tt_dtype_size(b)) return tt_dtype_size(a) == 1 ? TT_BF16 : TT_F32;
  return tt_dtype_size(a) > tt_dtype_size(b) ? a : b;
}

// Both are integers and differ.
static tt_dtype_t wider_int(tt_dtype_t a, tt_dtype_t b) {
  bool same_sign = tt_dtype_class(a) == tt_dtype_class(b);
  tt_dtype_t u = tt_dtype_is_unsigned(a) ? a : b, s = tt_dtype_is_unsigned(a) ? b : a;
  if (same_sign || tt_dtype_infos[a].bits == tt_dtype_infos[b].bits) {
    if (same_sign) return tt_dtype_infos[a].bits > tt_dtype_infos[b].bits ? a : b;
    switch (tt_dtype_size(s)) {
      case 1:
        return TT_S16;
      case 2:
        return TT_S32;
      default:
        return TT_S64;
    }
  }
  if (tt_dtype_infos[s].bits > tt_dtype_infos[u].bits) return s;
  return u == TT_U16 ? TT_S32 : TT_S64;
}

tt_dtype_t tt_promote_types(tt_dtype_t a, tt_dtype_t b) {
  if (a == b || b == TT_DTYPE_NONE) return a;
  if (a == TT_DTYPE_NONE || a == TT_I1) return b;
  if (b == TT_I1) return a;
  if (tt_dtype_is_complex(a) || tt_dtype_is_complex(b)) {
    return complex_of(tt_promote_types(tt_dtype_real(a), tt_dtype_real(b)));
  }
  if (tt_dtype_is_float(a)) return tt_dtype_is_float(b) ? wider_float(a, b) : a;
  return tt_dtype_is_float(b) ? b : wider_int(a, b);
}

tt_dtype_t tt_lower_opmath(tt_dtype_t dtype) {
  return dtype == TT_BF16 || dtype == TT_F16 ? TT_F32 : dtype;
}

// PyTorch's three ranks of operands: with dimensions, 0-d tensors, Python numbers.
typedef struct categories_s {
  tt_dtype_t dim, zero, wrapped;
} categories_t;

static void count_tensor(categories_t *c, const tt_tensor_t *t) {
  tt_dtype_t dtype = (tt_dtype_t)t->dtype;
  if (t->flags & TT_TENSOR_WRAPPED) {
    // A Python float is of the default dtype, whatever holds it.
    if (tt_dtype_is_complex(dtype))
      dtype = TT_C64;
    else if (tt_dtype_is_float(dtype))
      dtype = TT_F32;
  }
  tt_dtype_t *into = t->rank > 0 ? &c->dim : t->flags & TT_TENSOR_WRAPPED ? &c->wrapped : &c->zero;
  *into = tt_promote_types(*into, dtype);
}

static void count_argument(categories_t *c, const tt_arg_t *arg) {
  switch (arg->kind) {
    case TT_ARG_TENSOR:
      count_tensor(c, arg->u.tensor);
      break;
    case TT_ARG_TENSORS:
      for (uint32_t i = 0; i < arg->count; i++) {
        if (arg->u.tensors[i].rank != TT_NO_TENSOR) count_tensor(c, &arg->u.tensors[i]);
      }
      break;
    case TT_ARG_BOOL:
      c->wrapped = tt_promote_types(c->wrapped, TT_I1);
      break;
    case TT_ARG_INT:
      c->wrapped = tt_promote_types(c->wrapped, TT_S64);
      break;
    case TT_ARG_FLOAT:
      c->wrapped = tt_promote_types(c->wrapped, TT_F32);
      break;
    case TT_ARG_COMPLEX:
      c->wrapped = tt_promote_types(c->wrapped, TT_C64);
      break;
    default:
      break;
  }
}

// A lower rank changes the result only where it is of a higher kind (float over integer).
static tt_dtype_t combine(tt_dtype_t higher, tt_dtype_t lower) {
  if (higher == TT_DTYPE_NONE) return lower;
  if (lower == TT_DTYPE_NONE || tt_dtype_is_complex(higher)) return higher;
  if (tt_dtype_is_float(higher)) {
    return tt_dtype_is_complex(lower) ? complex_of(higher) : higher;
  }
  if (higher == TT_I1 || tt_dtype_is_float(lower) || tt_dtype_is_complex(lower)) {
    return tt_promote_types(higher, lower);
  }
  return higher;
}

tt_dtype_t tt_lower_promote(const tt_lower_t *L, uint32_t a, uint32_t b) {
  categories_t c = {TT_DTYPE_NONE, TT_DTYPE_NONE, TT_DTYPE_NONE};
  if (a < L->call->arg_count) count_argument(&c, &L->call->args[a]);
  if (b != a && b < L->call->arg_count) count_argument(&c, &L->call->args[b]);
  tt_dtype_t result = combine(c.dim, combine(c.zero, c.wrapped));
  return result == TT_DTYPE_NONE ? TT_F32 : result;
}
