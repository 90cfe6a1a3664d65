// Vector kernels, compiled once per instruction-set level: plain loops that the compiler vectorises
// for the level's machine, intrinsics only where it cannot. Each file fills its part of the table.
// All are pure functions over the arrays they are given: thread-safe, no allocation. No kernel's
// result depends on the level but where fused multiply-adds make a function or product more exact.
#ifndef TT_SOFTTPU_KERNELS_KERNELS_H_
#define TT_SOFTTPU_KERNELS_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

#include "ir/graph.h"

// What a register holds: storage types, but for the small floats, which compute as F32.
typedef enum tt__lane_e {
  TT__LANE_U8,  // also i1, as 0 and 1
  TT__LANE_S8,
  TT__LANE_U16,
  TT__LANE_S16,
  TT__LANE_U32,
  TT__LANE_S32,
  TT__LANE_U64,
  TT__LANE_S64,
  TT__LANE_F32,
  TT__LANE_F64,
  TT__LANE_C64,
  TT__LANE_C128,
  TT__LANE_COUNT,
} tt__lane_t;

// dst[i] = f(a[i], b[i], c[i]) for n elements. Operand k is one element where bit k of `mode` is
// set, never all of them. dst may equal an operand of the same element size.
enum { TT__MODE_A = 1, TT__MODE_B = 2, TT__MODE_C = 4 };
typedef void (*tt__map_fn_t)(int64_t n, void *dst, const void *a, const void *b, const void *c,
                             uint32_t mode);
// dst[i * stride] = src[i]; the stride in elements, any but zero. The arrays do not overlap.
typedef void (*tt__store_fn_t)(int64_t n, void *dst, const void *src, int64_t stride);
// dst[r * dst_row + i] = src[r * src_row + i * src_stride] for `rows` rows of n elements; strides
// in elements, any. The arrays do not overlap.
typedef void (*tt__rows_fn_t)(int64_t rows, int64_t n, void *dst, int64_t dst_row, const void *src,
                              int64_t src_row, int64_t src_stride);
// One row into a row of accumulators: acc[i] = acc[i] op src[i].
typedef void (*tt__fold_fn_t)(int64_t n, void *acc, const void *src);
// `rows` rows of n elements each, one after another, into acc[rows]: each accumulator takes its
// row.
typedef void (*tt__fold_rows_fn_t)(int64_t rows, int64_t n, void *acc, const void *src);

// The small floats, by storage: see tt__half_index.
enum { TT__HALF_BF16, TT__HALF_F16, TT__HALF_E4M3, TT__HALF_E5M2, TT__HALF_COUNT };
// Element sizes 1, 2, 4, 8, 16 as an index.
enum { TT__SIZE_COUNT = 5 };
// Reductions of one op.
enum {
  TT__FOLD_SUM,
  TT__FOLD_PRODUCT,
  TT__FOLD_MAX,
  TT__FOLD_MIN,
  TT__FOLD_AND,
  TT__FOLD_OR,
  TT__FOLD_COUNT
};

// c[m x n] = a[m x k] * b[k x n]; strides in elements, c's columns are dense. k = 0 gives zeros. a
// and b may be transposed views.
typedef struct tt__gemm_s {
  int64_t m, n, k;
  const void *a;
  int64_t a_row, a_col;
  const void *b;
  int64_t b_row, b_col;
  void *c;
  int64_t c_row;
  void *scratch;  // tt__gemm_scratch bytes
} tt__gemm_t;

// NULL: no kernel for that op and lane; the reference executor's function serves then.
typedef struct tt__kernels_s {
  const char *level;
  tt__map_fn_t op[TT_OP_COUNT][TT__LANE_COUNT];
  tt__map_fn_t compare[TT_LT + 1][TT__LANE_COUNT];  // EQ, NE, LE, LT; the others swap operands
  tt__map_fn_t select[TT__SIZE_COUNT];
  tt__map_fn_t convert[TT__LANE_COUNT][TT__LANE_COUNT];
  tt__map_fn_t to_pred[TT__LANE_COUNT];
  tt__map_fn_t widen[TT__HALF_COUNT], narrow[TT__HALF_COUNT], round[TT__HALF_COUNT];
  tt__store_fn_t store[TT__SIZE_COUNT];
  tt__rows_fn_t rows[TT__SIZE_COUNT];
  void (*count)(int64_t n, int64_t *dst, int64_t start, int64_t step);
  // Sums and products of floats accumulate in double, everything else in its own type.
  tt__fold_rows_fn_t fold_row[TT__FOLD_COUNT][TT__LANE_COUNT];
  tt__fold_fn_t fold_column[TT__FOLD_COUNT][TT__LANE_COUNT];
  // The first place in src that beats *best, which it replaces; [1] the largest, [0] the smallest.
  bool (*arg_row[2][TT__LANE_COUNT])(int64_t n, const void *src, void *best, int64_t *at);
  void (*arg_column[2][TT__LANE_COUNT])(int64_t n, const void *src, void *best, int64_t *at,
                                        int64_t row);
  void (*gemm_f32)(const tt__gemm_t *gemm);
  void (*gemm_f64)(const tt__gemm_t *gemm);
} tt__kernels_t;

// n elements `stride` apart (0: one of them n times), made dense.
static inline void tt__load(const tt__kernels_t *k, uint32_t size_log2, int64_t n, void *dst,
                            const void *src, int64_t stride) {
  k->rows[size_log2](1, n, dst, 0, src, 0, stride);
}

// Bytes of scratch that gemm_f32 and gemm_f64 need.
enum { TT__GEMM_SCRATCH = 1 << 20 };

// The table of the best level this machine runs. Thread-safe.
const tt__kernels_t *tt__kernels(void);

#define TT__KERNELS_LEVEL(level)                      \
  void tt__kernels_map_##level(tt__kernels_t *k);     \
  void tt__kernels_compare_##level(tt__kernels_t *k); \
  void tt__kernels_convert_##level(tt__kernels_t *k); \
  void tt__kernels_math_##level(tt__kernels_t *k);    \
  void tt__kernels_complex_##level(tt__kernels_t *k); \
  void tt__kernels_reduce_##level(tt__kernels_t *k);  \
  void tt__kernels_arg_##level(tt__kernels_t *k);     \
  void tt__kernels_gemm_##level(tt__kernels_t *k);
TT__KERNELS_LEVEL(portable)
TT__KERNELS_LEVEL(avx2)
TT__KERNELS_LEVEL(avx512)

#define TT__CAT2(a, b) a##_##b
#define TT__CAT(a, b) TT__CAT2(a, b)
#ifdef TT_LEVEL
#define TT__AT_LEVEL(name) TT__CAT(name, TT_LEVEL)
#endif

// Loops over possibly equal, never partly overlapping arrays: the promise that lets the compiler
// vectorise them without checking at run time.
#define TT__IVDEP _Pragma("GCC ivdep")

#define TT__UNUSED_BC \
  (void)b_;           \
  (void)c_;           \
  (void)mode

// A map kernel of one operand: `expr` in x, computed as T, stored as R. Unary kernels never see a
// splat: a program computes those once, with n = 1.
#define TT__UNARY(name, T, R, expr)                                                     \
  static void name(int64_t n, void *d_, const void *a_, const void *b_, const void *c_, \
                   uint32_t mode) {                                                     \
    R *d = d_;                                                                          \
    const T *a = a_;                                                                    \
    TT__UNUSED_BC;                                                                      \
    TT__IVDEP for (int64_t i = 0; i < n; i++) {                                         \
      T x = a[i];                                                                       \
      d[i] = (R)(expr);                                                                 \
    }                                                                                   \
  }

// The same of two operands, in x and y, with a loop for each way in which one may be a splat.
#define TT__BINARY(name, T, R, expr)                                                    \
  static void name(int64_t n, void *d_, const void *a_, const void *b_, const void *c_, \
                   uint32_t mode) {                                                     \
    R *d = d_;                                                                          \
    const T *a = a_, *b = b_;                                                           \
    (void)c_;                                                                           \
    if (mode == 0) {                                                                    \
      TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
        T x = a[i], y = b[i];                                                           \
        d[i] = (R)(expr);                                                               \
      }                                                                                 \
    } else if (mode == TT__MODE_A) {                                                    \
      T x = a[0];                                                                       \
      TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
        T y = b[i];                                                                     \
        d[i] = (R)(expr);                                                               \
      }                                                                                 \
    } else {                                                                            \
      T y = b[0];                                                                       \
      TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
        T x = a[i];                                                                     \
        d[i] = (R)(expr);                                                               \
      }                                                                                 \
    }                                                                                   \
  }

#endif  // TT_SOFTTPU_KERNELS_KERNELS_H_
