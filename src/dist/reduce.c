#include "dist/reduce.h"

#include <complex.h>

#include "base/half.h"

#define BLOCK 512  // elements accumulated at a time: the accumulators stay in L1

const char *tt_reduce_op_name(tt_reduce_op_t op) {
  static const char *const names[] = {
#define X(name, text) text,
      TT_REDUCE_OPS(X)
#undef X
  };
  return op < TT_REDUCE_OP_COUNT ? names[op] : "unknown";
}

tt_status_t tt_reduce_check(tt_dtype_t dtype, tt_reduce_op_t op) {
  if (op >= TT_REDUCE_OP_COUNT) return TT_ERROR(INVALID_ARGUMENT, "unknown reduce op %d", (int)op);
  bool bitwise = op == TT_REDUCE_BAND || op == TT_REDUCE_BOR || op == TT_REDUCE_BXOR;
  bool ordered = op == TT_REDUCE_MIN || op == TT_REDUCE_MAX;
  bool integral = tt_dtype_is_int(dtype) || dtype == TT_I1;
  if ((bitwise && !integral) || (ordered && tt_dtype_is_complex(dtype)) ||
      (op == TT_REDUCE_AVG && dtype == TT_I1)) {
    return TT_ERROR(INVALID_ARGUMENT, "reduce op %s is not defined for %s", tt_reduce_op_name(op),
                    tt_dtype_text(dtype));
  }
  return TT_OK_STATUS;
}

// One pass over a block for each op: acc = acc OP x. NaN wins in min and max, as in PyTorch.
#define ACCUMULATE_ARITHMETIC(acc_t, acc, x, n)                             \
  case TT_REDUCE_SUM:                                                       \
  case TT_REDUCE_AVG:                                                       \
    for (size_t j = 0; j < (n); j++) (acc)[j] = (acc_t)((acc)[j] + (x)[j]); \
    break;                                                                  \
  case TT_REDUCE_PRODUCT:                                                   \
    for (size_t j = 0; j < (n); j++) (acc)[j] = (acc_t)((acc)[j] * (x)[j]); \
    break;

#define ACCUMULATE_ORDERED(acc, x, n)                                       \
  case TT_REDUCE_MIN:                                                       \
    for (size_t j = 0; j < (n); j++)                                        \
      (acc)[j] = (x)[j] < (acc)[j] || (x)[j] != (x)[j] ? (x)[j] : (acc)[j]; \
    break;                                                                  \
  case TT_REDUCE_MAX:                                                       \
    for (size_t j = 0; j < (n); j++)                                        \
      (acc)[j] = (x)[j] > (acc)[j] || (x)[j] != (x)[j] ? (x)[j] : (acc)[j]; \
    break;

#define ACCUMULATE_BITWISE(acc_t, acc, x, n)                                \
  case TT_REDUCE_BAND:                                                      \
    for (size_t j = 0; j < (n); j++) (acc)[j] = (acc_t)((acc)[j] & (x)[j]); \
    break;                                                                  \
  case TT_REDUCE_BOR:                                                       \
    for (size_t j = 0; j < (n); j++) (acc)[j] = (acc_t)((acc)[j] | (x)[j]); \
    break;                                                                  \
  case TT_REDUCE_BXOR:                                                      \
    for (size_t j = 0; j < (n); j++) (acc)[j] = (acc_t)((acc)[j] ^ (x)[j]); \
    break;

#define FINISH(acc_t, acc, n, k)                                                \
  if (op == TT_REDUCE_AVG) {                                                    \
    for (size_t j = 0; j < (n); j++) (acc)[j] = (acc_t)((acc)[j] / (acc_t)(k)); \
  }

// type: in memory; acc_t: accumulator; LOAD, STORE convert; cases: the op switch's body.
#define DEFINE_REDUCE(name, type, acc_t, LOAD, STORE, ...)                                    \
  static void reduce_##name(tt_reduce_op_t op, void *out, const void *const *ins, uint32_t k, \
                            size_t elements) {                                                \
    acc_t acc[BLOCK], x[BLOCK];                                                               \
    for (size_t at = 0; at < elements; at += BLOCK) {                                         \
      size_t n = elements - at < BLOCK ? elements - at : BLOCK;                               \
      const type *first = (const type *)ins[0] + at;                                          \
      for (size_t j = 0; j < n; j++) acc[j] = (acc_t)LOAD(first[j]);                          \
      for (uint32_t i = 1; i < k; i++) {                                                      \
        const type *in = (const type *)ins[i] + at;                                           \
        for (size_t j = 0; j < n; j++) x[j] = (acc_t)LOAD(in[j]);                             \
        switch ((int)op) { __VA_ARGS__ }                                                      \
      }                                                                                       \
      FINISH(acc_t, acc, n, k)                                                                \
      type *to = (type *)out + at;                                                            \
      for (size_t j = 0; j < n; j++) to[j] = (type)STORE(acc[j]);                             \
    }                                                                                         \
  }                                                                                           \
  static void widen_##name(void *out, const void *in, size_t n) {                             \
    for (size_t j = 0; j < n; j++) ((acc_t *)out)[j] = (acc_t)LOAD(((const type *)in)[j]);    \
  }                                                                                           \
  static void finish_##name(tt_reduce_op_t op, void *out, const void *in, uint32_t k,         \
                            size_t elements) {                                                \
    acc_t acc[BLOCK];                                                                         \
    for (size_t at = 0; at < elements; at += BLOCK) {                                         \
      size_t n = elements - at < BLOCK ? elements - at : BLOCK;                               \
      for (size_t j = 0; j < n; j++) acc[j] = ((const acc_t *)in)[at + j];                    \
      FINISH(acc_t, acc, n, k)                                                                \
      for (size_t j = 0; j < n; j++) ((type *)out)[at + j] = (type)STORE(acc[j]);             \
    }                                                                                         \
  }

#define SAME(v) (v)
#define FLOAT_CASES(acc_t) ACCUMULATE_ARITHMETIC(acc_t, acc, x, n) ACCUMULATE_ORDERED(acc, x, n)
#define INT_CASES(acc_t) FLOAT_CASES(acc_t) ACCUMULATE_BITWISE(acc_t, acc, x, n)
#define DEFINE_INT(name, type, acc_t) DEFINE_REDUCE(name, type, acc_t, SAME, SAME, INT_CASES(acc_t))

// Signed sums wrap like the unsigned ones: they are computed as unsigned where order does not
// matter.
DEFINE_INT(s8, int8_t, int32_t)
DEFINE_INT(s16, int16_t, int32_t)
DEFINE_INT(s32, int32_t, int64_t)
DEFINE_INT(s64, int64_t, int64_t)
DEFINE_INT(u8, uint8_t, uint32_t)
DEFINE_INT(u16, uint16_t, uint32_t)
DEFINE_INT(u32, uint32_t, uint64_t)
DEFINE_INT(u64, uint64_t, uint64_t)
DEFINE_REDUCE(f32, float, float, SAME, SAME, FLOAT_CASES(float))
DEFINE_REDUCE(f64, double, double, SAME, SAME, FLOAT_CASES(double))
DEFINE_REDUCE(bf16, uint16_t, float, tt_bf16_to_f32, tt_f32_to_bf16, FLOAT_CASES(float))
DEFINE_REDUCE(f16, uint16_t, float, tt_f16_to_f32, tt_f32_to_f16, FLOAT_CASES(float))
DEFINE_REDUCE(e4m3, uint8_t, float, tt_f8e4m3fn_to_f32, tt_f32_to_f8e4m3fn, FLOAT_CASES(float))
DEFINE_REDUCE(e5m2, uint8_t, float, tt_f8e5m2_to_f32, tt_f32_to_f8e5m2, FLOAT_CASES(float))
DEFINE_REDUCE(c64, float complex, float complex, SAME, SAME,
              ACCUMULATE_ARITHMETIC(float complex, acc, x, n))
DEFINE_REDUCE(c128, double complex, double complex, SAME, SAME,
              ACCUMULATE_ARITHMETIC(double complex, acc, x, n))

// The gradients of two ranks: as fast as memory is, without a pass through accumulators.
static void add_f32(float *out, const float *a, const float *b, size_t elements) {
  for (size_t i = 0; i < elements; i++) out[i] = a[i] + b[i];
}

typedef struct kind_s {
  void (*reduce)(tt_reduce_op_t, void *, const void *const *, uint32_t, size_t);
  void (*widen)(void *, const void *, size_t);
  void (*finish)(tt_reduce_op_t, void *, const void *, uint32_t, size_t);
  tt_dtype_t wide;  // the accumulators'
} kind_t;

#define KIND(name, wide) {reduce_##name, widen_##name, finish_##name, wide}
static const kind_t kinds[TT_DTYPE_COUNT] = {
    [TT_I1] = KIND(u8, TT_U32),       [TT_S4] = KIND(s8, TT_S32),
    [TT_S8] = KIND(s8, TT_S32),       [TT_S16] = KIND(s16, TT_S32),
    [TT_S32] = KIND(s32, TT_S64),     [TT_S64] = KIND(s64, TT_S64),
    [TT_U4] = KIND(u8, TT_U32),       [TT_U8] = KIND(u8, TT_U32),
    [TT_U16] = KIND(u16, TT_U32),     [TT_U32] = KIND(u32, TT_U64),
    [TT_U64] = KIND(u64, TT_U64),     [TT_F8E4M3FN] = KIND(e4m3, TT_F32),
    [TT_F8E5M2] = KIND(e5m2, TT_F32), [TT_BF16] = KIND(bf16, TT_F32),
    [TT_F16] = KIND(f16, TT_F32),     [TT_F32] = KIND(f32, TT_F32),
    [TT_F64] = KIND(f64, TT_F64),     [TT_C64] = KIND(c64, TT_C64),
    [TT_C128] = KIND(c128, TT_C128),
};

void tt_reduce(tt_dtype_t dtype, tt_reduce_op_t op, void *out, const void *const *ins,
               uint32_t count_in, size_t elements) {
  if (dtype == TT_F32 && op == TT_REDUCE_SUM && count_in == 2) {
    add_f32(out, ins[0], ins[1], elements);
    return;
  }
  if (dtype == TT_I1) {  // booleans: sum is or, product is and
    op = op == TT_REDUCE_SUM ? TT_REDUCE_BOR : op == TT_REDUCE_PRODUCT ? TT_REDUCE_BAND : op;
  }
  kinds[dtype].reduce(op, out, ins, count_in, elements);
}

tt_dtype_t tt_reduce_wide(tt_dtype_t dtype, tt_reduce_op_t op) {
  bool rounds = tt_dtype_is_float(dtype) && (op == TT_REDUCE_SUM || op == TT_REDUCE_PRODUCT);
  return rounds || op == TT_REDUCE_AVG ? kinds[dtype].wide : dtype;
}

void tt_reduce_widen(tt_dtype_t dtype, void *out, const void *in, size_t elements) {
  kinds[dtype].widen(out, in, elements);
}

void tt_reduce_finish(tt_dtype_t dtype, tt_reduce_op_t op, void *out, const void *in,
                      uint32_t count_in, size_t elements) {
  kinds[dtype].finish(op, out, in, count_in, elements);
}
