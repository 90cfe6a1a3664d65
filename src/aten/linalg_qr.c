// Householder QR: reflectors, products of reflectors.
#include "aten/linalg.h"

typedef struct qr_context_s {
  int64_t batch, rows, cols, k;
  bool complex;
  bool adjoint;  // apply H^H instead of H
  bool forward;  // ... in ascending order
} qr_context_t;

// The i-th reflector's vector [B, m, 1]: 1 at row i, the packed column below it, 0 above.
static tt_value_t reflector(tt_build_t *b, tt_value_t column, int64_t rows, tt_value_t i) {
  const tt_value_t at = tt__row_numbers(b, rows);
  const tt_value_t below =
      tt__select_wide(b, tt__gt(b, at, i), column, tt_emit_splat_like(b, column, 0));
  return tt__select_wide(b, tt__eq(b, at, i), tt_emit_splat_like(b, column, 1), below);
}

// a - tau v (v^H a)
static tt_value_t reflect(tt_build_t *b, tt_value_t a, tt_value_t v, tt_value_t tau) {
  const int64_t rows[] = {1};
  const tt_value_t dot = tt__sum_over(b, tt__mul(b, tt__conj(b, v), a), rows, 1, true);
  return tt__sub(b, a, tt__mul(b, v, tt__mul(b, tau, dot)));
}

// LAPACK's choice of the i-th reflector. State: packed matrix, tau [B, 1, k].
static void qr_step(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  const qr_context_t *c = context;
  const tt_value_t rows = tt__row_numbers(b, c->rows), cols = tt__col_numbers(b, c->cols);
  const tt_value_t column = tt__column_at(b, state[0], i), alpha = tt__row_at(b, column, i);
  const tt_value_t tail =
      tt__select_wide(b, tt__gt(b, rows, i), column, tt_emit_splat_like(b, column, 0));
  const tt_value_t tail_norm = tt__square_norm(b, tail, 1);
  const tt_value_t re = tt__real_part(b, alpha);
  const tt_value_t size = tt__sqrt(b, tt__add(b, tail_norm, tt__square_norm(b, alpha, 1)));
  const tt_value_t negative = tt__cmpc(b, TT_LT, re, 0);
  const tt_value_t beta_real = tt_emit_select(b, negative, size, tt__neg(b, size));
  tt_value_t trivial = tt__cmpc(b, TT_EQ, tail_norm, 0);
  if (c->complex) {
    trivial = tt__and(b, trivial, tt__cmpc(b, TT_EQ, tt_emit_unary(b, TT_OP_IMAG, alpha), 0));
  }
  const tt_value_t beta = tt__like_dtype(b, beta_real, alpha);
  const tt_value_t zero = tt_emit_splat_like(b, alpha, 0);
  const tt_value_t tau =
      tt_emit_select(b, trivial, zero, tt__div(b, tt__sub(b, beta, alpha), beta));
  const tt_value_t top = tt_emit_select(b, trivial, alpha, beta);
  const tt_value_t scale =
      tt_emit_select(b, trivial, tt_emit_splat_like(b, alpha, 1), tt__sub(b, alpha, beta));
  const tt_value_t packed = tt__div(b, tail, scale);
  const tt_value_t v = reflector(b, packed, c->rows, i);
  const tt_value_t rest = reflect(b, state[0], v, tt__conj(b, tau));
  const tt_value_t here = tt__select_wide(b, tt__eq(b, rows, i), top,
                                          tt__select_wide(b, tt__gt(b, rows, i), packed, column));
  state[0] = tt__select_wide(b, tt__gt(b, cols, i), rest,
                             tt__select_wide(b, tt__eq(b, cols, i), here, state[0]));
  state[1] = tt__select_wide(b, tt__eq(b, tt__col_numbers(b, c->k), i), tau, state[1]);
}

void tt__householder(tt_build_t *b, const tt__matrix_t *a, tt_value_t *out_packed,
                     tt_value_t *out_tau) {
  const int64_t k = a->rows < a->cols ? a->rows : a->cols;
  qr_context_t c = {a->batch, a->rows, a->cols, k, tt_dtype_is_complex(a->dtype), false, true};
  const int64_t tau_dims[] = {a->batch, 1, k}, flat[] = {a->batch, k};
  tt_value_t state[] = {a->v, tt_emit_splat(b, a->dtype, 3, tau_dims, 0)};
  tt__for_loop(b, tt_emit_splat_int(b, TT_S32, 0, NULL, k), state, 2, qr_step, &c);
  *out_packed = state[0];
  *out_tau = tt_emit_reshape(b, state[1], 2, flat);
}

// State: the matrix, then the packed reflectors and tau [B, 1, k], which do not change.
static void apply_step(tt_build_t *b, void *context, tt_value_t step, tt_value_t *state) {
  const qr_context_t *c = context;
  const tt_value_t i = c->forward ? step : tt__rsubc(b, (double)(c->k - 1), step);
  const tt_value_t v = reflector(b, tt__column_at(b, state[1], i), c->rows, i);
  tt_value_t tau = tt__column_at(b, state[2], i);
  if (c->adjoint) tau = tt__conj(b, tau);
  state[0] = reflect(b, state[0], v, tau);
}

// x multiplied from the left by Q = H_0 ... H_(k-1), or by Q^H.
static tt_value_t apply_reflectors(tt_build_t *b, tt_value_t x, const tt__matrix_t *packed,
                                   tt_value_t tau, int64_t k, bool adjoint) {
  qr_context_t c = {packed->batch, packed->rows, 0, k, false, adjoint, adjoint};
  const int64_t tau_dims[] = {packed->batch, 1, k};
  tt_value_t state[] = {x, packed->v, tt_emit_reshape(b, tau, 3, tau_dims)};
  if (k == 0) return x;
  tt__for_loop(b, tt_emit_splat_int(b, TT_S32, 0, NULL, k), state, 3, apply_step, &c);
  return state[0];
}

tt_value_t tt__householder_q(tt_build_t *b, const tt__matrix_t *packed, tt_value_t tau, int64_t k,
                             int64_t cols) {
  const tt_value_t eye = tt__identity(b, packed->dtype, packed->batch, packed->rows, cols);
  return apply_reflectors(b, eye, packed, tau, k, false);
}

// geqrf(A) -> (packed, tau)
TT_LOWER0(geqrf) {
  tt_value_t packed, tau;
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  tt__householder(L->b, &a, &packed, &tau);
  tt__matrix_return(L, 0, packed);
  tt__matrix_return(L, 1, tau);
}

// linalg_householder_product(A, tau)
TT_LOWER0(householder_product) {
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  const tt_tensor_t *tau = tt_lower_meta(L, 1);
  tt__matrix_return(
      L, 0, tt__householder_q(L->b, &a, tt_lower_tensor(L, 1), tau->sizes[tau->rank - 1], a.cols));
}

// linalg_qr(A, mode) -> (Q, R)
TT_LOWER0(linalg_qr) {
  tt_build_t *b = L->b;
  tt_value_t f, tau;
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  const int64_t k = a.rows < a.cols ? a.rows : a.cols;
  const tt_out_meta_t *q = &L->outs[0], *r = &L->outs[1];
  if (k == 0) {  // Q of "complete" alone is not empty
    tt__matrix_return(L, 0, tt__identity(b, a.dtype, a.batch, a.rows, a.rows));
    tt__matrix_return(L, 1, a.v);
    return;
  }
  tt__householder(b, &a, &f, &tau);
  const int64_t r_rows = r->sizes[r->rank - 2];
  tt__matrix_return(L, 1, tt__triangle(b, tt_emit_slice_dim(b, f, 1, 0, r_rows, 1), true, 0));
  if (q->rank < 2) {  // mode "r"
    tt__matrix_return(L, 0, f);
    return;
  }
  const tt__matrix_t packed = {f, a.batch, a.rows, a.cols, a.dtype};
  tt__matrix_return(L, 0, tt__householder_q(b, &packed, tau, k, q->sizes[q->rank - 1]));
}

// ormqr(packed, tau, C, left, transpose)
TT_LOWER0(ormqr) {
  tt_build_t *b = L->b;
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0), x = tt__matrix_arg(L, 2);
  const tt_tensor_t *tau = tt_lower_meta(L, 1);
  const bool left = tt_lower_int(L, 3, 1) != 0, adjoint = tt_lower_int(L, 4, 0) != 0;
  const int64_t k = tau->sizes[tau->rank - 1];
  // C Q = (Q^H C^H)^H
  tt_value_t v = left ? x.v : tt__matrix_adjoint(b, x.v);
  v = apply_reflectors(b, v, &a, tt_lower_tensor(L, 1), k, left ? adjoint : !adjoint);
  tt__matrix_return(L, 0, left ? v : tt__matrix_adjoint(b, v));
}
