// Batches of matrices [B, m, n], and loops over them.
#ifndef TT_ATEN_LINALG_H_
#define TT_ATEN_LINALG_H_

#include "aten/emit.h"

// A matrix argument with its leading dimensions flattened.
typedef struct tt__matrix_s {
  tt_value_t v;  // [batch, rows, cols]
  int64_t batch, rows, cols;
  tt_dtype_t dtype;
} tt__matrix_t;

// Tensor argument `arg` as such a batch; what has no leading dimensions is a batch of one.
tt__matrix_t tt__matrix_arg(tt_lower_t *L, uint32_t arg);
// Gives result i from a value with flattened batch.
void tt__matrix_return(tt_lower_t *L, uint32_t i, tt_value_t v);
// Every result is empty: gives them all and says so.
bool tt__matrix_all_empty(tt_lower_t *L);
tt_value_t tt__matrix_adjoint(tt_build_t *b, tt_value_t v);  // conjugate transpose
// Does the call's matrix argument lie in memory as PyTorch's LU ops test it, so that they factor
// the transpose (real and contiguous)?
bool tt__matrix_uses_transpose(const tt_tensor_t *t);

// i32 [1, rows, 1] and [1, 1, cols] positions.
tt_value_t tt__row_numbers(tt_build_t *b, int64_t rows);
tt_value_t tt__col_numbers(tt_build_t *b, int64_t cols);
tt_value_t tt__identity(tt_build_t *b, tt_dtype_t dtype, int64_t batch, int64_t rows, int64_t cols);
// Keeps col - row >= k (upper) or <= k, zero elsewhere.
tt_value_t tt__triangle(tt_build_t *b, tt_value_t v, bool upper, int64_t k);
tt_value_t tt__diagonal(tt_build_t *b, tt_value_t v);  // [B, min(m, n)]
// v [B, m, n] with the row (column) numbers `at` [B, k] taken.
tt_value_t tt__take_rows(tt_build_t *b, tt_value_t v, tt_value_t at);
static inline tt_value_t tt__real_part(tt_build_t *b, tt_value_t x) {
  return tt_emit_convert(b, x, tt_dtype_real(tt_build_dtype(b, x)));
}
static inline tt_value_t tt__like_dtype(tt_build_t *b, tt_value_t x, tt_value_t like) {
  return tt_emit_convert(b, x, tt_build_dtype(b, like));
}
// Sum of |x|^2 over `dim`, kept.
tt_value_t tt__square_norm(tt_build_t *b, tt_value_t x, int64_t dim);
// x [B, m, n] column i (a rank-0 i32) as [B, m, 1], or row i as [B, 1, n].
tt_value_t tt__column_at(tt_build_t *b, tt_value_t x, tt_value_t i);
tt_value_t tt__row_at(tt_build_t *b, tt_value_t x, tt_value_t i);
// y of op(a) y = x (left) or y op(a) = x, op being `transpose`. Only the triangle of `a` that
// `lower` names is read; `unit`: its diagonal is ones, whatever is stored.
tt_value_t tt__triangular_solve(tt_build_t *b, tt_value_t a, tt_value_t x, bool left, bool lower,
                                bool unit, tt_transpose_t transpose);
// select over rank 3 with all three operands broadcast to one shape.
tt_value_t tt__select_wide(tt_build_t *b, tt_value_t pred, tt_value_t yes, tt_value_t no);

// for (i = 0; i < n; i++) body(i, state): `state` values are replaced by the body and hold the
// final ones afterwards. Types must not change.
typedef void (*tt__loop_fn_t)(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state);
void tt__for_loop(tt_build_t *b, tt_value_t n, tt_value_t *state, uint32_t count,
                  tt__loop_fn_t body, void *context);
// while (condition(state)) body(state), with a counter i.
typedef tt_value_t (*tt__condition_fn_t)(tt_build_t *b, void *context, tt_value_t i,
                                         const tt_value_t *state);
void tt__while_loop(tt_build_t *b, tt_value_t *state, uint32_t count, tt__condition_fn_t condition,
                    tt__loop_fn_t body, void *context);

// Householder QR (linalg_qr.c): packed reflectors and tau [B, k].
void tt__householder(tt_build_t *b, const tt__matrix_t *a, tt_value_t *out_packed,
                     tt_value_t *out_tau);
// The first `cols` columns of H_0 H_1 ... H_(k-1).
tt_value_t tt__householder_q(tt_build_t *b, const tt__matrix_t *packed, tt_value_t tau, int64_t k,
                             int64_t cols);

#endif  // TT_ATEN_LINALG_H_
