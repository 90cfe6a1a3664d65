// Singular values and eigenvalues by one-sided Jacobi rotations.
//
// Columns of A are made orthogonal by rotating pairs of them; all n/2 pairs of a round-robin round
// rotate at once, and n - 1 rounds meet every pair. V collects the rotations, so A V has orthogonal
// columns of length the singular values. A Hermitian A becomes positive semidefinite by a shift,
// and V then holds its eigenvectors.
#include <float.h>

#include "aten/linalg.h"

typedef struct jacobi_s {
  int64_t batch, rows, half;  // rows: of A alone; A V and V are stacked
  tt_dtype_t dtype, real;
  double tolerance;
  int64_t sweeps;
} jacobi_t;

// Columns [from, to) of [B, m, h].
static tt_value_t columns(tt_build_t *b, tt_value_t x, int64_t from, int64_t to) {
  return tt_emit_slice_dim(b, x, 2, from, to, 1);
}

// One round: state is left columns, right columns, the largest relative product seen [].
static void rotate_round(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  const jacobi_t *c = context;
  const int64_t rows[] = {1}, all[] = {0, 1, 2};
  (void)i;
  const tt_value_t l = state[0], r = state[1];
  const tt_value_t lt = tt_emit_slice_dim(b, l, 1, 0, c->rows, 1);
  const tt_value_t rt = tt_emit_slice_dim(b, r, 1, 0, c->rows, 1);
  const tt_value_t p = tt__square_norm(b, lt, 1), q = tt__square_norm(b, rt, 1);
  const tt_value_t g = tt__sum_over(b, tt__mul(b, tt__conj(b, lt), rt), rows, 1, true);
  const tt_value_t size = tt__abs(b, g);
  const tt_value_t bound = tt__mul(b, tt__sqrt(b, p), tt__sqrt(b, q));
  const tt_value_t idle = tt__le(b, size, tt__mulc(b, bound, c->tolerance));
  const tt_value_t one = tt_emit_splat_like(b, size, 1), zero = tt_emit_splat_like(b, size, 0);
  // tan of the angle that makes the pair orthogonal, the smaller of the two.
  const tt_value_t safe = tt_emit_select(b, idle, one, size);
  const tt_value_t zeta = tt__div(b, tt__sub(b, q, p), tt__mulc(b, safe, 2));
  const tt_value_t length =
      tt__add(b, tt__abs(b, zeta), tt__sqrt(b, tt__addc(b, tt__square(b, zeta), 1)));
  const tt_value_t t0 = tt__rdivc(b, 1, length);
  tt_value_t t = tt_emit_select(b, tt__cmpc(b, TT_LT, zeta, 0), tt__neg(b, t0), t0);
  t = tt_emit_select(b, idle, zero, t);
  const tt_value_t cosine = tt__rsqrt(b, tt__addc(b, tt__square(b, t), 1));
  const tt_value_t sine = tt__mul(b, cosine, t);
  // r is turned by the phase of the product, which becomes real then.
  const tt_value_t phase = tt_emit_select(b, idle, tt_emit_splat_like(b, g, 1),
                                          tt__div(b, tt__conj(b, g), tt__like_dtype(b, safe, g)));
  const tt_value_t turned = tt__mul(b, r, phase);
  const tt_value_t cs = tt__like_dtype(b, cosine, l), sn = tt__like_dtype(b, sine, l);
  const tt_value_t nl = tt__sub(b, tt__mul(b, cs, l), tt__mul(b, sn, turned));
  const tt_value_t nr = tt__add(b, tt__mul(b, sn, l), tt__mul(b, cs, turned));
  const tt_value_t relative = tt_emit_select(b, idle, zero, tt__div(b, size, bound));
  state[2] = tt__max(b, state[2], tt_emit_reduce(b, TT_OP_MAXIMUM, relative, all, 3, false));
  if (c->half == 1) {
    state[0] = nl;
    state[1] = nr;
    return;
  }
  // The circle method: the first column stays, the others move on by one place.
  const int64_t h = c->half;
  const tt_value_t left[] = {columns(b, nl, 0, 1), columns(b, nr, 0, 1), columns(b, nl, 1, h - 1)};
  const tt_value_t right[] = {columns(b, nr, 1, h), columns(b, nl, h - 1, h)};
  state[0] = tt_emit_concat(b, left, h == 2 ? 2 : 3, 2);
  state[1] = tt_emit_concat(b, right, 2, 2);
}

static void sweep(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  const jacobi_t *c = context;
  (void)i;
  state[2] = tt_emit_splat_like(b, state[2], 0);
  tt__for_loop(b, tt_emit_splat_int(b, TT_S32, 0, NULL, 2 * c->half - 1), state, 3, rotate_round,
               context);
}

static tt_value_t unfinished(tt_build_t *b, void *context, tt_value_t i, const tt_value_t *state) {
  const jacobi_t *c = context;
  return tt__and(b, tt__cmpc(b, TT_LT, i, (double)c->sweeps), tt__cmpc(b, TT_GT, state[2], 0));
}

// A [B, m, n] -> A V and V [B, n, n].
static void orthogonalise(tt_build_t *b, const tt__matrix_t *a, tt_value_t *out_av,
                          tt_value_t *out_v) {
  const int64_t n = a->cols, half = (n + 1) / 2;
  const tt_dtype_t real = tt_dtype_real(a->dtype);
  jacobi_t c = {a->batch,
                a->rows,
                half,
                a->dtype,
                real,
                real == TT_F64 ? DBL_EPSILON : (double)FLT_EPSILON / 2,
                real == TT_F64 ? 24 : 16};
  const tt_value_t parts[] = {a->v, tt__identity(b, a->dtype, a->batch, n, n)};
  tt_value_t stacked = tt_emit_concat(b, parts, 2, 1);
  if (n % 2) {  // a column of zeros, which no rotation changes
    const int64_t low[] = {0, 0, 0}, high[] = {0, 0, 1};
    stacked = tt_emit_pad(b, stacked, tt__num(b, stacked, 0), low, high, NULL);
  }
  tt_value_t state[] = {columns(b, stacked, 0, half), columns(b, stacked, half, 2 * half),
                        tt_emit_scalar(b, real, 1)};
  if (n > 1) tt__while_loop(b, state, 3, unfinished, sweep, &c);
  const tt_value_t whole = columns(b, tt_emit_concat(b, state, 2, 2), 0, n);
  *out_av = tt_emit_slice_dim(b, whole, 1, 0, a->rows, 1);
  *out_v = tt_emit_slice_dim(b, whole, 1, a->rows, a->rows + n, 1);
}

// Columns of x [B, m, n] in the order `at` [B, n].
static tt_value_t take_columns(tt_build_t *b, tt_value_t x, tt_value_t at) {
  return tt__transpose_last(b, tt__take_rows(b, tt__transpose_last(b, x, false), at), false);
}

// keys [B, n] sorted, and where each came from.
static void sort_keys(tt_build_t *b, tt_value_t keys, int64_t batch, int64_t n, bool descending,
                      tt_value_t *out_sorted, tt_value_t *out_order) {
  const int64_t dims[] = {batch, n};
  const tt_value_t xs[] = {keys, tt__iota(b, 2, dims, 1)};
  tt_value_t sorted[2];
  tt_emit_sort(b, xs, 2, 1, descending, sorted);
  *out_sorted = sorted[0];
  *out_order = sorted[1];
}

// One triangle of A mirrored onto the other; the diagonal made real.
static tt_value_t hermitian(tt_build_t *b, const tt__matrix_t *a, bool upper) {
  const tt_value_t strict = tt__triangle(b, a->v, upper, upper ? 1 : -1);
  const tt_value_t eye = tt__identity(b, TT_I1, a->batch, a->rows, a->rows);
  const tt_value_t d = tt__like_dtype(b, tt__real_part(b, a->v), a->v);
  return tt__add(b, tt__add(b, strict, tt__matrix_adjoint(b, strict)), tt__zero_unless(b, eye, d));
}

// _linalg_eigh(A, UPLO, compute_v) -> (eigenvalues ascending, eigenvectors)
TT_LOWER0(linalg_eigh) {
  tt_build_t *b = L->b;
  const int64_t cols[] = {2}, rows[] = {1};
  if (tt__matrix_all_empty(L)) return;
  tt__matrix_t a = tt__matrix_arg(L, 0);
  const int64_t flat[] = {a.batch, a.rows};
  const bool upper =
      tt_lower_arg(L, 1)->u.string[0] == 'U' || tt_lower_arg(L, 1)->u.string[0] == 'u';
  const tt_value_t h = hermitian(b, &a, upper);
  // Shifted by its largest row sum, which bounds every eigenvalue.
  const tt_value_t sums = tt__sum_over(b, tt__abs(b, h), cols, 1, true);
  const tt_value_t shift = tt_emit_reduce(b, TT_OP_MAXIMUM, sums, rows, 1, true);
  const tt_value_t eye = tt__identity(b, a.dtype, a.batch, a.rows, a.rows);
  a.v = tt__add(b, h, tt__mul(b, eye, tt__like_dtype(b, shift, h)));
  tt_value_t av, v, values, order;
  orthogonalise(b, &a, &av, &v);
  // Rayleigh quotients of the unshifted matrix: no cancellation of the shift.
  const tt_value_t hv = tt_emit_matmul(b, h, v, a.dtype);
  const tt_value_t q =
      tt__real_part(b, tt__sum_over(b, tt__mul(b, tt__conj(b, v), hv), rows, 1, false));
  sort_keys(b, tt_emit_reshape(b, q, 2, flat), a.batch, a.rows, false, &values, &order);
  tt__matrix_return(L, 0, values);
  tt__matrix_return(L, 1, take_columns(b, v, order));
}

// _linalg_svd(A, full_matrices, compute_uv, driver) -> (U, S, Vh)
TT_LOWER0(linalg_svd) {
  tt_build_t *b = L->b;
  if (tt__matrix_all_empty(L)) return;
  tt__matrix_t a = tt__matrix_arg(L, 0);
  const bool full = tt_lower_int(L, 1, 0) != 0, vectors = tt_lower_int(L, 2, 1) != 0;
  if (a.rows == 0 || a.cols == 0) {  // only the full square factors are not empty
    for (uint32_t i = 0; i < 3; i++) {
      const tt_out_meta_t *o = &L->outs[i];
      const int64_t n = o->rank >= 2 ? o->sizes[o->rank - 1] : 0;
      tt__matrix_return(L, i, tt__identity(b, a.dtype, a.batch, n, n));
    }
    return;
  }
  const bool wide = a.rows < a.cols;
  if (wide) {
    a.v = tt__matrix_adjoint(b, a.v);
    const int64_t rows = a.rows;
    a.rows = a.cols;
    a.cols = rows;
  }
  tt_value_t av, v, values, order;
  const int64_t flat[] = {a.batch, a.cols}, phase_dims[] = {a.batch, 1, a.cols};
  orthogonalise(b, &a, &av, &v);
  const tt_value_t norms = tt__sqrt(b, tt__square_norm(b, av, 1));
  sort_keys(b, tt_emit_reshape(b, norms, 2, flat), a.batch, a.cols, true, &values, &order);
  tt__matrix_return(L, 1, values);
  if (!vectors) {
    tt__matrix_return(L, 0, TT_NO_VALUE);
    tt__matrix_return(L, 2, TT_NO_VALUE);
    return;
  }
  // QR of the orthogonal columns: R is diagonal up to phases, and Q completes the columns of length
  // zero (and beyond the n-th) to an orthonormal basis.
  tt_value_t packed, tau;
  tt__matrix_t sorted = a;
  sorted.v = take_columns(b, av, order);
  tt__householder(b, &sorted, &packed, &tau);
  const tt_value_t diagonal = tt_emit_reshape(b, tt__diagonal(b, packed), 3, phase_dims);
  const tt_value_t size = tt__abs(b, diagonal);
  const tt_value_t none = tt__cmpc(b, TT_EQ, size, 0);
  tt_value_t phase = tt__div(
      b, diagonal,
      tt__like_dtype(b, tt_emit_select(b, none, tt_emit_splat_like(b, size, 1), size), diagonal));
  phase = tt_emit_select(b, none, tt_emit_splat_like(b, diagonal, 1), phase);
  const int64_t u_cols = full ? a.rows : a.cols;
  if (u_cols > a.cols) {
    const int64_t low[] = {0, 0, 0}, high[] = {0, 0, u_cols - a.cols};
    phase = tt_emit_pad(b, phase, tt__num(b, phase, 1), low, high, NULL);
  }
  const tt__matrix_t reflectors = {packed, a.batch, a.rows, a.cols, a.dtype};
  const tt_value_t u = tt__mul(b, tt__householder_q(b, &reflectors, tau, a.cols, u_cols), phase);
  v = take_columns(b, v, order);
  tt__matrix_return(L, 0, wide ? v : u);
  tt__matrix_return(L, 2, tt__matrix_adjoint(b, wide ? u : v));
}
