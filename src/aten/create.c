// Tensors made from numbers: ranges, identity, index triangles.
#include <math.h>

#include "aten/emit.h"

static bool is_int(tt_dtype_t d) { return tt_dtype_is_int(d) || d == TT_I1; }

// start + i step. As on the CPU: integers in s64, everything else in f64 with one rounding.
static tt_value_t progression(tt_lower_t *L, tt_dtype_t d) {
  tt_build_t *b = L->b;
  tt_dtype_t wide = is_int(d) ? TT_S64 : TT_F64;
  tt_value_t i = tt_emit_iota(b, wide, 1, L->outs[0].sizes, 0);
  return tt__add(b, tt_lower_scalar(L, 0, wide), tt__mul(b, i, tt_lower_scalar(L, 2, wide)));
}
// arange(start, end, step) and range(start, end, step).
TT_LOWER0(arange) {
  tt_dtype_t d = tt_lower_out_dtype(L, 0);
  if (d == TT_I1 || tt_dtype_is_complex(d)) {
    TT__FAIL(L, TYPE, "not implemented for %s", tt_dtype_text(d));
    return;
  }
  tt_lower_return(L, 0, progression(L, d));
}

// From the nearer end, so that both ends are exact.
static tt_value_t evenly_spaced(tt_lower_t *L, tt_dtype_t d) {
  tt_build_t *b = L->b;
  int64_t n = L->outs[0].sizes[0];
  tt_value_t start = tt_lower_operand(L, 0, d), end = tt_lower_operand(L, 1, d);
  start = tt_emit_reshape(b, start, 0, NULL);
  end = tt_emit_reshape(b, end, 0, NULL);
  if (n < 2) return tt_emit_broadcast_to(b, start, 1, &n);
  tt_value_t step = tt__divc(b, tt__sub(b, end, start), (double)(n - 1));
  tt_value_t i = tt_emit_iota(b, TT_S64, 1, &n, 0), back = tt__rsubc(b, (double)(n - 1), i);
  tt_value_t up = tt__add(b, start, tt__mul(b, step, tt_emit_convert(b, i, d)));
  tt_value_t down = tt__sub(b, end, tt__mul(b, step, tt_emit_convert(b, back, d)));
  return tt__select(b, tt__cmpc(b, TT_LT, i, (double)(n / 2)), up, down);
}
static tt_dtype_t spacing_dtype(tt_dtype_t d) { return is_int(d) ? TT_F64 : tt_lower_opmath(d); }

// linspace(start, end, steps); each end a number or a 0-d tensor.
TT_LOWER0(linspace) {
  tt_lower_return(L, 0, evenly_spaced(L, spacing_dtype(tt_lower_out_dtype(L, 0))));
}
// logspace(start, end, steps, base)
TT_LOWER0(logspace) {
  tt_dtype_t d = spacing_dtype(tt_lower_out_dtype(L, 0));
  tt_value_t e = evenly_spaced(L, d);
  tt_value_t base = tt_emit_broadcast_to(L->b, tt_lower_scalar(L, 3, d), 1, L->outs[0].sizes);
  tt_lower_return(L, 0, tt__pow(L->b, base, e));
}

TT_LOWER0(eye) {
  const int64_t *dims = L->outs[0].sizes;
  tt_lower_return(L, 0, tt__eq(L->b, tt__iota(L->b, 2, dims, 0), tt__iota(L->b, 2, dims, 1)));
}

// tril_indices(row, col, offset), triu_indices: param 0, 1. The result is static.
TT_LOWER(triangle_indices) {
  int64_t rows = tt_lower_int(L, 0, 0), cols = tt_lower_int(L, 1, 0),
          offset = tt_lower_int(L, 2, 0);
  int64_t n = L->outs[0].sizes[1], k = 0;
  int64_t *values = TT_SCRATCH(L->b, int64_t, 2 * n);
  if (!values) return;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < cols; c++) {
      bool in = param ? c - r >= offset : c - r <= offset;
      if (in && k < n) values[k] = r, values[n + k] = c, k++;
    }
  }
  tt_type_t type = {TT_S64, 2, L->outs[0].sizes};
  tt_lower_return(L, 0, tt_emit_constant(L->b, type, values));
}

// tril(self, diagonal), triu: param 0, 1.
TT_LOWER(triangle) {
  tt_build_t *b = L->b;
  tt_value_t x = tt_lower_tensor(L, 0);
  const tt_type_t *t = tt_build_type(b, x);
  if (t->rank < 2) {
    tt_lower_return(L, 0, x);
    return;
  }
  tt_value_t row = tt__iota(b, 2, t->dims + t->rank - 2, 0),
             col = tt__iota(b, 2, t->dims + t->rank - 2, 1);
  int64_t offset = tt_lower_int(L, 1, 0), most = INT32_MAX / 2;
  if (offset > most) offset = most;
  if (offset < -most) offset = -most;
  tt_value_t edge = tt__addc(b, row, (double)offset);
  tt_value_t keep = tt_emit_compare(b, param ? TT_GE : TT_LE, col, edge);
  keep = tt_emit_broadcast_to(b, keep, t->rank, t->dims);
  tt_lower_return(L, 0, tt__zero_unless(b, keep, x));
}
