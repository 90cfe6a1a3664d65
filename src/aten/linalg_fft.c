// Fourier transforms over any dimensions, the cross product and the matrix exponential.
#include <math.h>

#include "aten/linalg.h"

// A transform of one dimension, which moves to the end and back. `length` is the logical size.
static tt_value_t transform(tt_build_t *b, tt_value_t x, int64_t dim, tt_fft_t type,
                            int64_t length) {
  const uint32_t rank = tt__rank(b, x);
  int64_t permutation[TT_MAX_RANK];
  tt__attrs_t attrs = {.count = 0};
  if (rank == 0) return x;
  for (uint32_t i = 0; i < rank; i++) permutation[i] = i;
  permutation[dim] = rank - 1;
  permutation[rank - 1] = dim;
  const tt_value_t moved = tt_emit_transpose(b, x, permutation);
  tt__attr_int(&attrs, TT_ATTR_FFT_TYPE, type);
  tt__attr_ints(&attrs, TT_ATTR_FFT_LENGTH, &length, 1);
  const tt_node_spec_t spec = {.op = TT_OP_FFT,
                               .operands = &moved,
                               .operand_count = 1,
                               .attrs = attrs.items,
                               .attr_count = attrs.count};
  return tt_emit_transpose(b, tt_emit(b, &spec), permutation);
}

// PyTorch's normalisation (0 none, 1 by the root of n, 2 by n) of transforms over n elements;
// StableHLO's inverse transforms divide by n already.
static tt_value_t normalise(tt_build_t *b, tt_value_t x, int64_t mode, double n, bool inverse) {
  double scale = mode == 0 ? 1 : mode == 1 ? 1 / sqrt(n) : 1 / n;
  if (inverse) scale *= n;
  return scale == 1 ? x : tt__mulc(b, x, scale);
}

// Transforms over the dimensions of argument 1, `sizes` long each: the last of them of kind `last`,
// the others of kind `rest`. An inverse one ends with the last, a forward one begins there.
static void return_transforms(tt_lower_t *L, tt_value_t v, const int64_t *sizes, tt_fft_t last,
                              tt_fft_t rest) {
  const bool inverse = rest == TT_IFFT;
  const uint32_t rank = tt__rank(L->b, v);
  uint32_t count;
  const int64_t *dims = tt_lower_ints(L, 1, &count);
  double n = 1;
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t i = inverse ? k : count - 1 - k;
    const int64_t dim = dims[i] < 0 ? dims[i] + rank : dims[i];
    v = transform(L->b, v, dim, i == count - 1 ? last : rest, sizes[dim]);
    n *= (double)sizes[dim];
  }
  tt_lower_return(L, 0, normalise(L->b, v, tt_lower_int(L, 2, 0), n, inverse));
}

// Whether the result has no elements; it is returned then.
static bool is_empty(tt_lower_t *L) {
  const tt_out_meta_t *o = &L->outs[0];
  if (tt__product(o->sizes, o->rank)) return false;
  tt_lower_return(L, 0, tt_emit_splat(L->b, (tt_dtype_t)o->dtype, o->rank, o->sizes, 0));
  return true;
}

// _fft_c2c(self, dim, normalization, forward)
TT_LOWER0(fft_c2c) {
  const tt_fft_t type = tt_lower_int(L, 3, 1) ? TT_FFT : TT_IFFT;
  if (is_empty(L)) return;
  return_transforms(L, tt_lower_tensor(L, 0), tt_lower_meta(L, 0)->sizes, type, type);
}

// _fft_r2c(self, dim, normalization, onesided)
TT_LOWER0(fft_r2c) {
  const bool onesided = tt_lower_int(L, 3, 1) != 0;
  if (is_empty(L)) return;
  tt_value_t v = tt_lower_tensor(L, 0);
  if (!onesided) v = tt_emit_convert(L->b, v, tt_lower_out_dtype(L, 0));
  return_transforms(L, v, tt_lower_meta(L, 0)->sizes, onesided ? TT_RFFT : TT_FFT, TT_FFT);
}

// _fft_c2r(self, dim, normalization, last_dim_size)
TT_LOWER0(fft_c2r) {
  uint32_t count;
  const int64_t *dims = tt_lower_ints(L, 1, &count), half = tt_lower_int(L, 3, 1) / 2 + 1;
  if (is_empty(L)) return;
  tt_value_t v = tt_lower_tensor(L, 0);
  const int64_t last = dims[count - 1] < 0 ? dims[count - 1] + tt__rank(L->b, v) : dims[count - 1];
  v = tt_emit_slice_dim(L->b, v, last, 0, half, 1);
  return_transforms(L, v, L->outs[0].sizes, TT_IRFFT, TT_IFFT);
}

// linalg_cross(self, other, dim)
TT_LOWER0(linalg_cross) {
  tt_build_t *b = L->b;
  const tt_out_meta_t *o = &L->outs[0];
  const tt_dtype_t d = tt_lower_opmath((tt_dtype_t)o->dtype);
  const int64_t dim = tt_lower_dim(L, 2, o->rank);
  tt_value_t x[3], y[3], parts[3];
  const tt_value_t xv = tt__to_out(L, 0, tt_lower_tensor_as(L, 0, d));
  const tt_value_t yv = tt__to_out(L, 0, tt_lower_tensor_as(L, 1, d));
  for (int64_t i = 0; i < 3; i++) {
    x[i] = tt_emit_slice_dim(b, xv, dim, i, i + 1, 1);
    y[i] = tt_emit_slice_dim(b, yv, dim, i, i + 1, 1);
  }
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    parts[i] = tt__sub(b, tt__mul(b, x[j], y[k]), tt__mul(b, x[k], y[j]));
  }
  tt_lower_return(L, 0, tt_emit_concat(b, parts, 3, dim));
}

// --- matrix exponential --------------------------------------------------------------------------

// Squares the matrices of the batch that still have squarings left. State: value, left [B, 1, 1].
static void square_step(tt_build_t *b, void *context, tt_value_t i, tt_value_t *state) {
  (void)context;
  (void)i;
  const tt_value_t squared = tt_emit_matmul(b, state[0], state[0], tt_build_dtype(b, state[0]));
  state[0] = tt__select_wide(b, tt__cmpc(b, TT_GT, state[1], 0), squared, state[0]);
  state[1] = tt__addc(b, state[1], -1);
}
static tt_value_t squares_left(tt_build_t *b, void *context, tt_value_t i,
                               const tt_value_t *state) {
  const int64_t all[] = {0, 1, 2};
  (void)context;
  const tt_value_t most = tt_emit_reduce(b, TT_OP_MAXIMUM, state[1], all, 3, false);
  return tt__and(b, tt__cmpc(b, TT_GT, most, 0), tt__cmpc(b, TT_LT, i, 1024));
}

// linalg_matrix_exp(A): scaled until the 1-norm is at most 2, Taylor's series, squared back.
TT_LOWER0(matrix_exp) {
  tt_build_t *b = L->b;
  const int64_t rows[] = {1}, cols[] = {2};
  if (tt__matrix_all_empty(L)) return;
  const tt__matrix_t a = tt__matrix_arg(L, 0);
  const tt_dtype_t d = tt_lower_opmath(a.dtype);
  const tt_value_t v = tt_emit_convert(b, a.v, d);
  const tt_value_t norm = tt_emit_reduce(
      b, TT_OP_MAXIMUM, tt__sum_over(b, tt__abs(b, v), rows, 1, true), cols, 1, true);
  const tt_value_t half = tt__max(b, tt__mulc(b, norm, 0.5), tt__num(b, norm, 1));
  tt_value_t s = tt__ceil(b, tt__mulc(b, tt__log(b, half), 1.4426950408889634));
  s = tt_emit_select(b, tt_emit_unary(b, TT_OP_IS_FINITE, s), s, tt_emit_splat_like(b, s, 0));
  const tt_value_t scale = tt__pow(b, tt_emit_splat_like(b, s, 0.5), s);
  const tt_value_t x = tt__mul(b, v, tt__like_dtype(b, scale, v));
  const tt_value_t eye = tt__identity(b, d, a.batch, a.rows, a.rows);
  const int degree = tt_dtype_real(d) == TT_F64 ? 24 : 16;
  tt_value_t sum = eye;
  for (int k = degree; k > 0; k--) {
    sum = tt__add(b, eye, tt__divc(b, tt_emit_matmul(b, x, sum, d), k));
  }
  tt_value_t state[] = {sum, tt_emit_convert(b, s, TT_S32)};
  tt__while_loop(b, state, 2, squares_left, square_step, NULL);
  tt__matrix_return(L, 0, state[0]);
}
