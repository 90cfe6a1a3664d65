// Short forms of the emitter that the tensor families (matmul, conv, pool, norm, index, linalg,
// rnn, attention, resample) share.
#ifndef TT_ATEN_EMIT_H_
#define TT_ATEN_EMIT_H_

#include <string.h>

#include "aten/math.h"

static inline tt_value_t tt__divc(tt_build_t *b, tt_value_t x, double value) {
  return tt__div(b, x, tt__num(b, x, value));
}
// Zero where `keep` is false, also over NaN.
static inline tt_value_t tt__zero_unless(tt_build_t *b, tt_value_t keep, tt_value_t x) {
  return tt_emit_select(b, keep, x, tt_emit_splat_like(b, x, 0));
}

// Sum over `dims`.
static inline tt_value_t tt__sum_over(tt_build_t *b, tt_value_t x, const int64_t *dims,
                                      uint32_t count, bool keepdim) {
  return count ? tt_emit_reduce(b, TT_OP_ADD, x, dims, count, keepdim) : x;
}
// A rank-1 value laid along dimension `dim` of a shape of this rank, other dimensions of size 1.
tt_value_t tt__along(tt_build_t *b, tt_value_t vector, uint32_t rank, uint32_t dim);
// The dimensions [0, rank) without `dim`; returns their count.
uint32_t tt__other_dims(uint32_t rank, uint32_t dim, int64_t *out_dims);
// Swaps the last two dimensions, conjugating where asked.
tt_value_t tt__transpose_last(tt_build_t *b, tt_value_t x, bool conjugate);
tt_value_t tt__conj(tt_build_t *b, tt_value_t x);  // identity for real values
// iota over `dims` along `dim`, i32.
static inline tt_value_t tt__iota(tt_build_t *b, uint32_t rank, const int64_t *dims, uint32_t dim) {
  return tt_emit_iota(b, TT_S32, rank, dims, dim);
}
tt_value_t tt__constant_s32(tt_build_t *b, const int64_t *values, uint32_t rank,
                            const int64_t *dims);
tt_value_t tt__constant_real(tt_build_t *b, tt_dtype_t dtype, const double *values, uint32_t rank,
                             const int64_t *dims);
tt_value_t tt__constant_pred(tt_build_t *b, const bool *values, uint32_t rank, const int64_t *dims);
// Arena memory of the graph under construction; NULL marks the build failed.
void *tt__scratch(tt_build_t *b, size_t size);
#define TT_SCRATCH(b, type, count) ((type *)tt__scratch((b), sizeof(type) * (size_t)((count) + 1)))

static inline int64_t tt__product(const int64_t *dims, uint32_t count) {
  int64_t n = 1;
  for (uint32_t i = 0; i < count; i++) n *= dims[i];
  return n;
}
static inline bool tt__string_is(const tt_arg_t *arg, const char *text) {
  return arg->count == strlen(text) && memcmp(arg->u.string, text, arg->count) == 0;
}
static inline bool tt__wanted(const tt_lower_t *L, uint32_t mask_arg, uint32_t i) {
  return L->call->args[mask_arg].u.bools[i] != 0;
}
// The argument in the dtype that its kernel computes in.
static inline tt_value_t tt__opmath_tensor(tt_lower_t *L, uint32_t i) {
  return tt_lower_tensor_as(L, i, tt_lower_opmath((tt_dtype_t)tt_lower_meta(L, i)->dtype));
}
// Inclusive prefix sum along `dim` in log2(n) steps of shifted adds.
tt_value_t tt__prefix_sum(tt_build_t *b, tt_value_t x, int64_t dim);

// Ops with their attributes as a list.
typedef struct tt__attrs_s {
  tt_attr_t items[16];
  uint32_t count;
} tt__attrs_t;
static inline void tt__attr_int(tt__attrs_t *a, tt_attr_key_t key, int64_t value) {
  a->items[a->count++] = (tt_attr_t){.key = (uint16_t)key, .kind = TT_ATTR_KIND_INT, .u.i = value};
}
static inline void tt__attr_ints(tt__attrs_t *a, tt_attr_key_t key, const int64_t *values,
                                 uint32_t count) {
  a->items[a->count++] = (tt_attr_t){
      .key = (uint16_t)key, .kind = TT_ATTR_KIND_INTS, .count = count, .u.ints = values};
}

#endif  // TT_ATEN_EMIT_H_
