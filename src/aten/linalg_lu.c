// LU factorisation with partial pivoting, and what is made of it: solve, inverse, determinant.
#include "aten/linalg.h"

typedef struct lu_context_s {
  int64_t batch, rows, cols, k;
} lu_context_t;

static tt_value_t number_of(tt_build_t *b, int64_t n) {
  return tt_emit_splat_int(b, TT_S32, 0, NULL, n);
}

// LAPACK's size of a pivot: |re| + |im|.
static tt_value_t pivot_size(tt_build_t *b, tt_value_t x) {
  if (!tt_dtype_is_complex(tt_build_dtype(b, x))) return tt__abs(b, x);
  return tt__add(b, tt__abs(b, tt_emit_unary(b, TT_OP_REAL, x)),
                 tt__abs(b, tt_emit_unary(b, TT_OP_IMAG, x)));
}

// One column. State: matrix, permutation [B, m, 1], pivots [B, 1, k].
static void lu_step(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  const lu_context_t *c = context;
  const tt_value_t rows = tt__row_numbers(b, c->rows), cols = tt__col_numbers(b, c->cols);
  const tt_value_t a = state[0], order = state[1];
  const int64_t flat[] = {c->batch, 1, 1};
  const tt_value_t size = pivot_size(b, tt__column_at(b, a, i));
  const tt_value_t open =
      tt_emit_broadcast_to(b, tt__ge(b, rows, i), 3, (int64_t[]){c->batch, c->rows, 1});
  const tt_value_t candidates = tt_emit_select(b, open, size, tt_emit_splat_like(b, size, -1));
  tt_value_t most, p;
  tt_emit_arg_reduce(b, true, candidates, 1, TT_S32, true, &most, &p);
  p = tt_emit_reshape(b, p, 3, flat);
  // Swap rows i and p of the matrix and of the permutation.
  const tt_value_t is_p = tt__eq(b, rows, p), is_i = tt__eq(b, rows, i);
  const int64_t row_dim[] = {1};
  const tt_value_t zero = tt_emit_splat_like(b, a, 0), zero_order = tt_emit_splat_like(b, order, 0);
  const tt_value_t row_p = tt__sum_over(b, tt__select_wide(b, is_p, a, zero), row_dim, 1, true);
  const tt_value_t order_p =
      tt__sum_over(b, tt__select_wide(b, is_p, order, zero_order), row_dim, 1, true);
  const tt_value_t swapped =
      tt__select_wide(b, is_i, row_p, tt__select_wide(b, is_p, tt__row_at(b, a, i), a));
  state[1] =
      tt__select_wide(b, is_i, order_p, tt__select_wide(b, is_p, tt__row_at(b, order, i), order));
  state[2] =
      tt__select_wide(b, tt__eq(b, tt__col_numbers(b, c->k), i), tt__addc(b, p, 1), state[2]);
  // Eliminate below; a zero pivot leaves the column as it is (all zeros).
  const tt_value_t pivot = tt__column_at(b, row_p, i), column = tt__column_at(b, swapped, i);
  const tt_value_t quotient = tt__div(b, column, pivot);
  const tt_value_t factor = tt__select_wide(b, tt__cmpc(b, TT_EQ, pivot, 0),
                                            tt_emit_splat_like(b, quotient, 0), quotient);
  const tt_value_t below = tt__gt(b, rows, i), right = tt__gt(b, cols, i);
  const tt_value_t reduced = tt__sub(b, swapped, tt__mul(b, factor, row_p));
  const tt_value_t at_column = tt__and(b, below, tt__eq(b, cols, i));
  state[0] = tt__select_wide(b, tt__and(b, below, right), reduced,
                             tt__select_wide(b, at_column, factor, swapped));
}

// The first k with a zero on the diagonal, 1-based; 0 where there is none.
static tt_value_t first_zero(tt_build_t *b, tt_value_t lu, int64_t k) {
  const int64_t cols[] = {1}, dims[] = {1, k};
  const tt_value_t d = tt__diagonal(b, lu);
  const tt_value_t at = tt__addc(b, tt__iota(b, 2, dims, 1), 1);
  const tt_type_t *t = tt_build_type(b, d);
  const tt_value_t none = tt_emit_splat(b, TT_S32, t->rank, t->dims, (double)(k + 1));
  const tt_value_t hit = tt_emit_select(b, tt__cmpc(b, TT_EQ, d, 0),
                                        tt_emit_broadcast_to(b, at, t->rank, t->dims), none);
  const tt_value_t first = tt_emit_reduce(b, TT_OP_MINIMUM, hit, cols, 1, false);
  return tt_emit_select(b, tt__cmpc(b, TT_GT, first, (double)k), tt_emit_splat_like(b, first, 0),
                        first);
}

// The matrices' factors with partial pivoting: lu packed, pivots 1-based [B, k] i32, permutation
// [B, m]: row r of P^T A is row permutation[r] of A; info [B] i32, 0 or the first zero pivot's
// place.
typedef struct lu_s {
  tt_value_t lu, pivots, permutation, info;
} lu_t;

static lu_t lu_factor(tt_build_t *b, const tt__matrix_t *a) {
  const int64_t k = a->rows < a->cols ? a->rows : a->cols;
  lu_context_t c = {a->batch, a->rows, a->cols, k};
  const int64_t order_dims[] = {a->batch, a->rows, 1}, pivot_dims[] = {a->batch, 1, k};
  const int64_t order_flat[] = {a->batch, a->rows}, pivot_flat[] = {a->batch, k};
  tt_value_t state[] = {a->v, tt__iota(b, 3, order_dims, 1),
                        tt_emit_splat(b, TT_S32, 3, pivot_dims, 0)};
  tt__for_loop(b, number_of(b, k), state, 3, lu_step, &c);
  lu_t r = {.lu = state[0]};
  r.permutation = tt_emit_reshape(b, state[1], 2, order_flat);
  r.pivots = tt_emit_reshape(b, state[2], 2, pivot_flat);
  r.info = first_zero(b, state[0], k);
  return r;
}

static void swap_step(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  const lu_context_t *c = context;
  const int64_t row_dim[] = {1};
  const tt_value_t rows = tt__row_numbers(b, c->rows), order = state[0];
  const tt_value_t p = tt__addc(b, tt__row_at(b, state[1], i), -1);
  const tt_value_t is_p = tt__eq(b, rows, p), is_i = tt__eq(b, rows, i);
  const tt_value_t order_p = tt__sum_over(
      b, tt__select_wide(b, is_p, order, tt_emit_splat_like(b, order, 0)), row_dim, 1, true);
  state[0] =
      tt__select_wide(b, is_i, order_p, tt__select_wide(b, is_p, tt__row_at(b, order, i), order));
}

// The permutation [B, m] that 1-based pivots [B, k] make.
static tt_value_t permutation_of(tt_build_t *b, tt_value_t pivots, int64_t batch, int64_t rows,
                                 int64_t k) {
  lu_context_t c = {batch, rows, 0, k};
  const int64_t order_dims[] = {batch, rows, 1}, pivot_dims[] = {batch, k, 1};
  const int64_t flat[] = {batch, rows};
  tt_value_t state[] = {tt__iota(b, 3, order_dims, 1),
                        tt_emit_reshape(b, tt_emit_convert(b, pivots, TT_S32), 3, pivot_dims)};
  tt__for_loop(b, number_of(b, k), state, 2, swap_step, &c);
  return tt_emit_reshape(b, state[0], 2, flat);
}

// P with P[permutation[j], j] = 1.
static tt_value_t permutation_matrix(tt_build_t *b, tt_value_t permutation, int64_t batch,
                                     int64_t rows, tt_dtype_t d) {
  const int64_t row[] = {batch, 1, rows}, dims[] = {batch, rows, rows};
  const tt_value_t on =
      tt__eq(b, tt__row_numbers(b, rows), tt_emit_reshape(b, permutation, 3, row));
  return tt_emit_broadcast_to(b, tt_emit_convert(b, on, d), 3, dims);
}

static tt_value_t inverse_permutation(tt_build_t *b, tt_value_t permutation, int64_t batch,
                                      int64_t rows) {
  const int64_t dims[] = {batch, rows};
  return tt_emit_put_along(b, tt_emit_splat(b, TT_S32, 2, dims, 0), permutation,
                           tt__iota(b, 2, dims, 1), 1, TT_OP_COUNT);
}

static tt_value_t unit_lower(tt_build_t *b, tt_value_t lu, int64_t batch, int64_t rows, int64_t k,
                             tt_dtype_t d) {
  const tt_value_t l = tt__triangle(b, tt_emit_slice_dim(b, lu, 2, 0, k, 1), false, -1);
  return tt__add(b, l, tt__identity(b, d, batch, rows, k));
}

// X with A X = B, or A^H X = B, where P^T A = L U.
static tt_value_t lu_solve(tt_build_t *b, tt_value_t lu, tt_value_t permutation, tt_value_t x,
                           bool adjoint, int64_t batch, int64_t rows) {
  if (!adjoint) {
    x = tt__take_rows(b, x, permutation);
    x = tt__triangular_solve(b, lu, x, true, true, true, TT_NO_TRANSPOSE);
    return tt__triangular_solve(b, lu, x, true, false, false, TT_NO_TRANSPOSE);
  }
  x = tt__triangular_solve(b, lu, x, true, false, false, TT_ADJOINT);
  x = tt__triangular_solve(b, lu, x, true, true, true, TT_ADJOINT);
  return tt__take_rows(b, x, inverse_permutation(b, permutation, batch, rows));
}

// linalg_lu_factor_ex(A, pivot, check_errors) -> (LU, pivots, info)
TT_LOWER0(linalg_lu_factor) {
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  if (!tt_lower_int(L, 1, 1)) {
    tt_lower_unsupported(L, "LU without pivoting");
    return;
  }
  if (a.rows == 0 || a.cols == 0) {
    tt__matrix_return(L, 0, a.v);
    tt__matrix_return(L, 1, a.v);
    const tt_out_meta_t *info = &L->outs[2];
    tt_lower_return(L, 2, tt_emit_splat(L->b, TT_S32, info->rank, info->sizes, 0));
    return;
  }
  const lu_t f = lu_factor(L->b, &a);
  tt__matrix_return(L, 0, f.lu);
  tt__matrix_return(L, 1, f.pivots);
  tt__matrix_return(L, 2, f.info);
}

// P, L, U as results 0, 1, 2 from a packed factorisation.
static void return_plu(tt_lower_t *L, tt_value_t lu, tt_value_t permutation, const tt__matrix_t *a,
                       bool data, bool pivots) {
  tt_build_t *b = L->b;
  const int64_t k = a->rows < a->cols ? a->rows : a->cols;
  if (pivots) {
    tt__matrix_return(L, 0, permutation_matrix(b, permutation, a->batch, a->rows, a->dtype));
  } else {
    tt__matrix_return(L, 0, lu);
  }
  if (!data) {
    tt__matrix_return(L, 1, lu);
    tt__matrix_return(L, 2, lu);
    return;
  }
  tt__matrix_return(L, 1, unit_lower(b, lu, a->batch, a->rows, k, a->dtype));
  tt__matrix_return(L, 2, tt__triangle(b, tt_emit_slice_dim(b, lu, 1, 0, k, 1), true, 0));
}

// linalg_lu(A, pivot) -> (P, L, U)
TT_LOWER0(linalg_lu) {
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  if (!tt_lower_int(L, 1, 1)) {
    tt_lower_unsupported(L, "LU without pivoting");
    return;
  }
  if (a.rows == 0 || a.cols == 0) {  // P alone is not empty
    const int64_t dims[] = {a.batch, a.rows};
    return_plu(L, a.v, tt__iota(L->b, 2, dims, 1), &a, false, true);
    return;
  }
  const lu_t f = lu_factor(L->b, &a);
  return_plu(L, f.lu, f.permutation, &a, true, true);
}

// lu_unpack(LU, pivots, unpack_data, unpack_pivots) -> (P, L, U)
TT_LOWER0(lu_unpack) {
  tt_build_t *b = L->b;
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  const int64_t k = a.rows < a.cols ? a.rows : a.cols;
  const bool pivots = tt_lower_int(L, 3, 1) != 0;
  const int64_t dims[] = {a.batch, a.rows};
  tt_value_t permutation = TT_NO_VALUE;
  if (pivots) {
    permutation =
        k ? permutation_of(b, tt_lower_tensor(L, 1), a.batch, a.rows, k) : tt__iota(b, 2, dims, 1);
  }
  return_plu(L, a.v, permutation, &a, tt_lower_int(L, 2, 1) != 0 && k != 0, pivots);
}

// v [..., m, n] broadcast to the leading dimensions of result 0 and flattened.
static tt_value_t spread_batch(tt_lower_t *L, tt_value_t v, uint32_t rank, const int64_t *lead,
                               uint32_t lead_rank, uint32_t own) {
  const tt_type_t *t = tt_build_type(L->b, v);
  int64_t dims[TT_MAX_RANK], flat[3] = {1};
  if (t->rank != rank || rank < own) return v;
  for (uint32_t i = 0; i < lead_rank; i++) dims[i] = lead[i];
  for (uint32_t i = 0; i < own; i++) dims[lead_rank + i] = flat[1 + i] = t->dims[rank - own + i];
  flat[0] = tt__product(lead, lead_rank);
  v = tt_emit_broadcast_to(L->b, v, lead_rank + own, dims);
  return tt_emit_reshape(L->b, v, own + 1, flat);
}

// X A = B as A^H X^H = B^H.
static tt_value_t solve_side(tt_build_t *b, tt_value_t lu, tt_value_t permutation, tt_value_t x,
                             bool left, bool adjoint, int64_t batch, int64_t rows) {
  if (left) return lu_solve(b, lu, permutation, x, adjoint, batch, rows);
  x = lu_solve(b, lu, permutation, tt__matrix_adjoint(b, x), !adjoint, batch, rows);
  return tt__matrix_adjoint(b, x);
}

// linalg_lu_solve(LU, pivots, B, left, adjoint)
TT_LOWER0(linalg_lu_solve) {
  tt_build_t *b = L->b;
  const tt_out_meta_t *out = &L->outs[0];
  const tt_tensor_t *lu = tt_lower_meta(L, 0), *pivots = tt_lower_meta(L, 1);
  if (tt__matrix_all_empty(L)) return;
  const uint32_t lead = out->rank - 2;
  const int64_t batch = tt__product(out->sizes, lead), n = lu->sizes[lu->rank - 1];
  const tt_value_t f = spread_batch(L, tt_lower_tensor(L, 0), lu->rank, out->sizes, lead, 2);
  const tt_value_t p = spread_batch(L, tt_lower_tensor(L, 1), pivots->rank, out->sizes, lead, 1);
  const tt_value_t x =
      spread_batch(L, tt_lower_tensor(L, 2), tt_lower_meta(L, 2)->rank, out->sizes, lead, 2);
  const tt_value_t permutation = permutation_of(b, p, batch, n, n);
  tt__matrix_return(L, 0,
                    solve_side(b, f, permutation, x, tt_lower_int(L, 3, 1) != 0,
                               tt_lower_int(L, 4, 0) != 0, batch, n));
}

// _linalg_solve_ex(A, B, left, check_errors) -> (X, LU, pivots, info)
TT_LOWER0(linalg_solve) {
  tt_build_t *b = L->b;
  const tt_tensor_t *at = tt_lower_meta(L, 0), *bt = tt_lower_meta(L, 1);
  const bool left = tt_lower_int(L, 2, 1) != 0;
  if (tt__matrix_all_empty(L)) return;
  tt__matrix_t a = tt__matrix_arg(L, 0);
  if (a.rows == 0) {
    for (uint32_t i = 0; i < 3; i++) tt__matrix_return(L, i, a.v);
    tt_lower_return(L, 3, tt_emit_splat(b, TT_S32, L->outs[3].rank, L->outs[3].sizes, 0));
    return;
  }
  const lu_t f = lu_factor(b, &a);
  tt__matrix_return(L, 1, f.lu);
  tt__matrix_return(L, 2, f.pivots);
  tt__matrix_return(L, 3, f.info);
  // B is a batch of vectors where its shape is A's without the last dimension.
  const tt_out_meta_t *out = &L->outs[0];
  bool vectors = bt->rank == 1 || bt->rank + 1 == at->rank;
  for (uint32_t i = 0; vectors && bt->rank > 1 && i < bt->rank; i++) {
    vectors = bt->sizes[i] == at->sizes[i];
  }
  int64_t dims[TT_MAX_RANK];
  for (uint32_t i = 0; i < bt->rank; i++) dims[i] = bt->sizes[i];
  tt_value_t x = tt_lower_tensor(L, 1);
  uint32_t rank = bt->rank;
  if (vectors) {
    dims[rank] = 1;
    x = tt_emit_reshape(b, x, ++rank, dims);
  }
  const uint32_t lead = vectors ? out->rank - 1 : out->rank - 2;
  const int64_t batch = tt__product(out->sizes, lead);
  x = spread_batch(L, x, rank, out->sizes, lead, 2);
  tt_value_t lu = tt_emit_reshape(b, f.lu, at->rank, at->sizes);
  lu = spread_batch(L, lu, at->rank, out->sizes, lead, 2);
  int64_t order_dims[TT_MAX_RANK];
  for (uint32_t i = 0; i + 1 < at->rank; i++) order_dims[i] = at->sizes[i];
  tt_value_t order = tt_emit_reshape(b, f.permutation, at->rank - 1, order_dims);
  order = spread_batch(L, order, at->rank - 1, out->sizes, lead, 1);
  tt__matrix_return(L, 0, solve_side(b, lu, order, x, left, false, batch, a.rows));
}

// linalg_inv_ex(A, check_errors) -> (inverse, info)
TT_LOWER0(linalg_inv) {
  tt_build_t *b = L->b;
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  if (a.rows == 0) {
    tt__matrix_return(L, 0, a.v);
    tt_lower_return(L, 1, tt_emit_splat(b, TT_S32, L->outs[1].rank, L->outs[1].sizes, 0));
    return;
  }
  const lu_t f = lu_factor(b, &a);
  const tt_value_t eye = tt__identity(b, a.dtype, a.batch, a.rows, a.rows);
  tt__matrix_return(L, 0, lu_solve(b, f.lu, f.permutation, eye, false, a.batch, a.rows));
  tt__matrix_return(L, 1, f.info);
}

// +1 or -1 [B]: the sign of the row exchanges.
static tt_value_t parity(tt_build_t *b, tt_value_t pivots, int64_t batch, int64_t k, tt_dtype_t d) {
  const int64_t dims[] = {batch, k}, cols[] = {1};
  const tt_value_t own = tt__addc(b, tt__iota(b, 2, dims, 1), 1);
  const tt_value_t moved = tt__ne(b, pivots, own);
  const tt_value_t sign =
      tt_emit_select(b, moved, tt_emit_splat(b, d, 2, dims, -1), tt_emit_splat(b, d, 2, dims, 1));
  return tt_emit_reduce(b, TT_OP_MULTIPLY, sign, cols, 1, false);
}

// _linalg_det(A) -> (det, LU, pivots)
TT_LOWER0(linalg_det) {
  tt_build_t *b = L->b;
  const int64_t cols[] = {1};
  tt__matrix_t a = tt__matrix_arg(L, 0);
  const tt_out_meta_t *out = &L->outs[0];
  if (a.rows == 0 || a.batch == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, a.dtype, out->rank, out->sizes, 1));
    tt__matrix_return(L, 1, a.v);
    tt__matrix_return(L, 2, a.v);
    return;
  }
  if (tt__matrix_uses_transpose(tt_lower_meta(L, 0))) a.v = tt__transpose_last(b, a.v, false);
  const lu_t f = lu_factor(b, &a);
  const tt_value_t product =
      tt_emit_reduce(b, TT_OP_MULTIPLY, tt__diagonal(b, f.lu), cols, 1, false);
  tt__matrix_return(L, 0, tt__mul(b, product, parity(b, f.pivots, a.batch, a.rows, a.dtype)));
  tt__matrix_return(L, 1, f.lu);
  tt__matrix_return(L, 2, f.pivots);
}

// _linalg_slogdet(A) -> (sign, logabsdet, LU, pivots)
TT_LOWER0(linalg_slogdet) {
  tt_build_t *b = L->b;
  const int64_t cols[] = {1};
  tt__matrix_t a = tt__matrix_arg(L, 0);
  if (a.rows == 0 || a.batch == 0) {
    tt_lower_return(L, 0, tt_emit_splat(b, a.dtype, L->outs[0].rank, L->outs[0].sizes, 1));
    tt_lower_return(L, 1,
                    tt_emit_splat(b, tt_dtype_real(a.dtype), L->outs[1].rank, L->outs[1].sizes, 0));
    tt__matrix_return(L, 2, a.v);
    tt__matrix_return(L, 3, a.v);
    return;
  }
  if (tt__matrix_uses_transpose(tt_lower_meta(L, 0))) a.v = tt__transpose_last(b, a.v, false);
  const lu_t f = lu_factor(b, &a);
  const tt_value_t d = tt__diagonal(b, f.lu);
  const tt_value_t sign =
      tt_emit_reduce(b, TT_OP_MULTIPLY, tt_emit_unary(b, TT_OP_SIGN, d), cols, 1, false);
  const tt_value_t logs = tt__sum_over(b, tt__log(b, tt__abs(b, d)), cols, 1, false);
  tt__matrix_return(L, 0, tt__mul(b, sign, parity(b, f.pivots, a.batch, a.rows, a.dtype)));
  tt__matrix_return(L, 1, logs);
  tt__matrix_return(L, 2, f.lu);
  tt__matrix_return(L, 3, f.pivots);
}
