// Cholesky factors and triangular systems.
#include "aten/linalg.h"

static tt_value_t cholesky(tt_build_t *b, tt_value_t a, bool upper) {
  tt__attrs_t attrs = {.count = 0};
  tt__attr_int(&attrs, TT_ATTR_LOWER, !upper);
  const tt_node_spec_t spec = {.op = TT_OP_CHOLESKY,
                               .operands = &a,
                               .operand_count = 1,
                               .attrs = attrs.items,
                               .attr_count = attrs.count};
  return tt__triangle(b, tt_emit(b, &spec), upper, 0);
}

// The order of the first leading minor that is not positive (a factor's diagonal entry that is not
// a positive number), 0 where all are.
static tt_value_t failed_minor(tt_build_t *b, tt_value_t factor, int64_t n) {
  const int64_t cols[] = {1}, dims[] = {1, n};
  const tt_value_t d = tt__real_part(b, tt__diagonal(b, factor));
  const tt_type_t *t = tt_build_type(b, d);
  const tt_value_t at =
      tt_emit_broadcast_to(b, tt__addc(b, tt__iota(b, 2, dims, 1), 1), t->rank, t->dims);
  const tt_value_t good = tt__cmpc(b, TT_GT, d, 0);
  const tt_value_t none = tt_emit_splat(b, TT_S32, t->rank, t->dims, (double)(n + 1));
  const tt_value_t first =
      tt_emit_reduce(b, TT_OP_MINIMUM, tt_emit_select(b, good, none, at), cols, 1, false);
  return tt_emit_select(b, tt__cmpc(b, TT_GT, first, (double)n), tt_emit_splat_like(b, first, 0),
                        first);
}

// linalg_cholesky_ex(A, upper, check_errors) -> (L, info); param 1: cholesky(A, upper), which
// raises.
TT_LOWER(linalg_cholesky) {
  tt_build_t *b = L->b;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  if (a.rows == 0 || a.batch == 0) {
    tt__matrix_return(L, 0, a.v);
    if (!param) {
      tt_lower_return(L, 1, tt_emit_splat(b, TT_S32, L->outs[1].rank, L->outs[1].sizes, 0));
    }
    return;
  }
  const tt_value_t f = cholesky(b, a.v, tt_lower_int(L, 1, 0) != 0);
  const tt_value_t info = failed_minor(b, f, a.rows);
  tt__matrix_return(L, 0, f);
  if (!param) {
    tt__matrix_return(L, 1, info);
    return;
  }
  const int64_t batch[] = {0};
  tt_lower_check(L, tt_emit_reduce(b, TT_OP_AND, tt__cmpc(b, TT_EQ, info, 0), batch, 1, false),
                 TT_LINALG,
                 "cholesky: The factorization could not be completed because the input is not "
                 "positive-definite");
}

// X with A X = B from the factor of A.
static tt_value_t cholesky_solve(tt_build_t *b, tt_value_t f, tt_value_t x, bool upper) {
  // A = L L^H = U^H U: the lower one of the pair first.
  x = tt__triangular_solve(b, f, x, true, !upper, false, upper ? TT_ADJOINT : TT_NO_TRANSPOSE);
  return tt__triangular_solve(b, f, x, true, !upper, false, upper ? TT_NO_TRANSPOSE : TT_ADJOINT);
}

// _cholesky_solve_helper(B, factor, upper)
TT_LOWER0(cholesky_solve) {
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t x = tt__matrix_arg(L, 0), f = tt__matrix_arg(L, 1);
  tt__matrix_return(L, 0, cholesky_solve(L->b, f.v, x.v, tt_lower_int(L, 2, 0) != 0));
}

// cholesky_inverse(factor, upper)
TT_LOWER0(cholesky_inverse) {
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t f = tt__matrix_arg(L, 0);
  const tt_value_t eye = tt__identity(L->b, f.dtype, f.batch, f.rows, f.rows);
  tt__matrix_return(L, 0, cholesky_solve(L->b, f.v, eye, tt_lower_int(L, 1, 0) != 0));
}

// v [..., m, n] with its leading dimensions broadcast to those of the result `out`, then flattened.
static tt_value_t matrix_like(tt_lower_t *L, uint32_t arg, const tt_out_meta_t *out) {
  const tt_tensor_t *t = tt_lower_meta(L, arg);
  int64_t dims[TT_MAX_RANK];
  if (t->rank < 2 || out->rank < 2) return TT_NO_VALUE;
  const uint32_t lead = out->rank - 2;
  for (uint32_t i = 0; i < lead; i++) dims[i] = out->sizes[i];
  for (uint32_t i = 0; i < 2; i++) dims[lead + i] = t->sizes[t->rank - 2 + i];
  const int64_t flat[] = {tt__product(out->sizes, lead), dims[lead], dims[lead + 1]};
  const tt_value_t v = tt_emit_broadcast_to(L->b, tt_lower_tensor(L, arg), out->rank, dims);
  return tt_emit_reshape(L->b, v, 3, flat);
}

// triangular_solve(B, A, upper, transpose, unitriangular) -> (X, copy of A)
TT_LOWER0(triangular_solve) {
  tt_build_t *b = L->b;
  if (tt__matrix_all_empty(L)) return;
  const tt_value_t x = matrix_like(L, 0, &L->outs[0]), a = matrix_like(L, 1, &L->outs[0]);
  tt__matrix_return(
      L, 0,
      tt__triangular_solve(b, a, x, true, tt_lower_int(L, 2, 1) == 0, tt_lower_int(L, 4, 0) != 0,
                           tt_lower_int(L, 3, 0) ? TT_TRANSPOSE : TT_NO_TRANSPOSE));
  tt__matrix_return(L, 1, a);
}

// linalg_solve_triangular(A, B, upper, left, unitriangular)
TT_LOWER0(linalg_solve_triangular) {
  if (tt__matrix_all_empty(L)) return;
  const tt_value_t a = matrix_like(L, 0, &L->outs[0]), x = matrix_like(L, 1, &L->outs[0]);
  tt__matrix_return(
      L, 0,
      tt__triangular_solve(L->b, a, x, tt_lower_int(L, 3, 1) != 0, tt_lower_int(L, 2, 0) == 0,
                           tt_lower_int(L, 4, 0) != 0, TT_NO_TRANSPOSE));
}
