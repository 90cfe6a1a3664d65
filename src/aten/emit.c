#include "aten/emit.h"

#include "base/alloc.h"

void *tt__scratch(tt_build_t *b, size_t size) {
  void *p = tt_arena_zeroed(&b->graph->arena, size);
  if (!p) tt_build_fail(b, TT_ERROR(OUT_OF_MEMORY, "no host memory for %zu bytes", size));
  return p;
}

tt_value_t tt__along(tt_build_t *b, tt_value_t vector, uint32_t rank, uint32_t dim) {
  const tt_type_t *t = tt_build_type(b, vector);
  int64_t dims[TT_MAX_RANK];
  if (t->rank != 1) return vector;
  for (uint32_t i = 0; i < rank; i++) dims[i] = i == dim ? t->dims[0] : 1;
  return tt_emit_reshape(b, vector, rank, dims);
}

uint32_t tt__other_dims(uint32_t rank, uint32_t dim, int64_t *out_dims) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (i != dim) out_dims[n++] = i;
  }
  return n;
}

tt_value_t tt__conj(tt_build_t *b, tt_value_t x) {
  if (!tt_dtype_is_complex(tt_build_dtype(b, x))) return x;
  return tt_emit_binary(b, TT_OP_COMPLEX, tt_emit_unary(b, TT_OP_REAL, x),
                        tt__neg(b, tt_emit_unary(b, TT_OP_IMAG, x)));
}

tt_value_t tt__transpose_last(tt_build_t *b, tt_value_t x, bool conjugate) {
  const uint32_t rank = tt_build_type(b, x)->rank;
  int64_t permutation[TT_MAX_RANK];
  if (rank < 2) return x;
  for (uint32_t i = 0; i < rank; i++) permutation[i] = i;
  permutation[rank - 2] = rank - 1;
  permutation[rank - 1] = rank - 2;
  x = tt_emit_transpose(b, x, permutation);
  return conjugate ? tt__conj(b, x) : x;
}

tt_value_t tt__constant_s32(tt_build_t *b, const int64_t *values, uint32_t rank,
                            const int64_t *dims) {
  const int64_t n = tt__product(dims, rank);
  int32_t *data = TT_SCRATCH(b, int32_t, n);
  if (!data) return TT_NO_VALUE;
  for (int64_t i = 0; i < n; i++) data[i] = (int32_t)values[i];
  return tt_emit_constant(b, tt_build_make_type(b, TT_S32, rank, dims), data);
}

tt_value_t tt__constant_real(tt_build_t *b, tt_dtype_t dtype, const double *values, uint32_t rank,
                             const int64_t *dims) {
  const int64_t n = tt__product(dims, rank);
  if (dtype == TT_F64) {
    return tt_emit_constant(b, tt_build_make_type(b, TT_F64, rank, dims), values);
  }
  float *data = TT_SCRATCH(b, float, n);
  if (!data) return TT_NO_VALUE;
  for (int64_t i = 0; i < n; i++) data[i] = (float)values[i];
  const tt_value_t v = tt_emit_constant(b, tt_build_make_type(b, TT_F32, rank, dims), data);
  return tt_emit_convert(b, v, dtype);
}

tt_value_t tt__constant_pred(tt_build_t *b, const bool *values, uint32_t rank,
                             const int64_t *dims) {
  return tt_emit_constant(b, tt_build_make_type(b, TT_I1, rank, dims), values);
}

tt_value_t tt__prefix_sum(tt_build_t *b, tt_value_t x, int64_t dim) {
  const tt_type_t *t = tt_build_type(b, x);
  if (t->rank <= dim) return x;
  const int64_t n = t->dims[dim];
  int64_t low[TT_MAX_RANK] = {0}, high[TT_MAX_RANK] = {0};
  for (int64_t shift = 1; shift < n; shift *= 2) {
    low[dim] = shift;
    high[dim] = -shift;
    x = tt__add(b, x, tt_emit_pad(b, x, tt__num(b, x, 0), low, high, NULL));
  }
  return x;
}
