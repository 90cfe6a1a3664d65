// Reductions of one op. Floats add and multiply in double, over several accumulators combined in a
// fixed order, so that a sum is as good as exact before its one rounding.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "softtpu/kernels/kernels.h"

typedef double v8d __attribute__((vector_size(64), aligned(8)));
typedef float v8f __attribute__((vector_size(32), aligned(4)));
typedef double v8d_mem __attribute__((vector_size(64), aligned(8), may_alias));
typedef float v8f_mem __attribute__((vector_size(32), aligned(4), may_alias));

// Eight elements as doubles, from any alignment.
#define LOAD8_float(p) __builtin_convertvector(*(const v8f_mem *)(const void *)(p), v8d)
#define LOAD8_double(p) ((v8d)(*(const v8d_mem *)(const void *)(p)))

// A row is cut by its length alone: 32 accumulators from 64 elements on, 16 from 16 on, then one.
// -0 is the sum's identity: a row of negative zeros sums to -0.
#define FLOAT_ROW(name, T, OP, identity)                                                 \
  static double name##_line_##T(int64_t n, const T *s) {                                 \
    double tail = identity;                                                              \
    int64_t i = 0;                                                                       \
    if (n >= 16) {                                                                       \
      v8d a = LOAD8_##T(s), b = LOAD8_##T(s + 8);                                        \
      i = 16;                                                                            \
      if (n >= 64) {                                                                     \
        v8d c = LOAD8_##T(s + 16), d = LOAD8_##T(s + 24);                                \
        for (i = 32; i + 32 <= n; i += 32) {                                             \
          a = a OP LOAD8_##T(s + i);                                                     \
          b = b OP LOAD8_##T(s + i + 8);                                                 \
          c = c OP LOAD8_##T(s + i + 16);                                                \
          d = d OP LOAD8_##T(s + i + 24);                                                \
        }                                                                                \
        a = a OP c;                                                                      \
        b = b OP d;                                                                      \
      }                                                                                  \
      for (; i + 16 <= n; i += 16) {                                                     \
        a = a OP LOAD8_##T(s + i);                                                       \
        b = b OP LOAD8_##T(s + i + 8);                                                   \
      }                                                                                  \
      a = a OP b;                                                                        \
      tail = ((a[0] OP a[1])OP(a[2] OP a[3]))OP((a[4] OP a[5])OP(a[6] OP a[7]));         \
    }                                                                                    \
    for (; i < n; i++) tail = tail OP(double) s[i];                                      \
    return tail;                                                                         \
  }                                                                                      \
  static void name##_row_##T(int64_t rows, int64_t n, void *acc_, const void *src_) {    \
    double *acc = acc_;                                                                  \
    const T *s = src_;                                                                   \
    for (int64_t r = 0; r < rows; r++, s += n) acc[r] = acc[r] OP name##_line_##T(n, s); \
  }                                                                                      \
  static void name##_column_##T(int64_t n, void *acc_, const void *src_) {               \
    double *acc = acc_;                                                                  \
    const T *s = src_;                                                                   \
    TT__IVDEP for (int64_t i = 0; i < n; i++) acc[i] = acc[i] OP(double) s[i];           \
  }

FLOAT_ROW(sum, float, +, -0.0)
FLOAT_ROW(sum, double, +, -0.0)
FLOAT_ROW(product, float, *, 1.0)
FLOAT_ROW(product, double, *, 1.0)

// Extremes of floats compare keys whose integer order is the floats' with -0 < +0: the magnitude's
// bits of negative numbers are complemented. The map is its own inverse. NaN is looked for on the
// side.
static inline int32_t key_float(float x) {
  int32_t b = (int32_t)tt_f32_to_bits(x);
  return b ^ (int32_t)((uint32_t)(b >> 31) >> 1);
}
static inline float from_key_float(int32_t k) {
  return tt_bits_to_f32((uint32_t)(k ^ (int32_t)((uint32_t)(k >> 31) >> 1)));
}
static inline int64_t key_double(double x) {
  int64_t b;
  memcpy(&b, &x, 8);
  return b ^ (int64_t)((uint64_t)(b >> 63) >> 1);
}
static inline double from_key_double(int64_t k) {
  k ^= (int64_t)((uint64_t)(k >> 63) >> 1);
  double x;
  memcpy(&x, &k, 8);
  return x;
}

// Rows use keys, one integer comparison an element; columns select among floats, since their
// accumulators are floats in memory.
#define FLOAT_EXTREME(name, T, K, CMP)                                                \
  static inline T name##_of_##T(T x, T y) {                                           \
    T r = x CMP y ? x : y;                                                            \
    r = x == y ? (key_##T(x) CMP key_##T(y) ? x : y) : r;                             \
    return x != x ? x : y != y ? y : r;                                               \
  }                                                                                   \
  static void name##_row_##T(int64_t rows, int64_t n, void *acc_, const void *src_) { \
    T *acc = acc_;                                                                    \
    const T *s = src_;                                                                \
    for (int64_t r = 0; r < rows; r++, s += n) {                                      \
      K best = key_##T(acc[r]);                                                       \
      K nan = acc[r] != acc[r];                                                       \
      for (int64_t i = 0; i < n; i++) {                                               \
        K k = key_##T(s[i]);                                                          \
        best = k CMP best ? k : best;                                                 \
        nan |= s[i] != s[i];                                                          \
      }                                                                               \
      acc[r] = nan ? (T)NAN : from_key_##T(best);                                     \
    }                                                                                 \
  }                                                                                   \
  static void name##_column_##T(int64_t n, void *acc_, const void *src_) {            \
    T *acc = acc_;                                                                    \
    const T *s = src_;                                                                \
    TT__IVDEP for (int64_t i = 0; i < n; i++) acc[i] = name##_of_##T(acc[i], s[i]);   \
  }

FLOAT_EXTREME(max, float, int32_t, >)
FLOAT_EXTREME(max, double, int64_t, >)
FLOAT_EXTREME(min, float, int32_t, <)
FLOAT_EXTREME(min, double, int64_t, <)

// Integers wrap, so their order of addition does not matter to the result; compilers vectorise it.
#define INT_FOLD(name, T, expr)                                                       \
  static void name##_row_##T(int64_t rows, int64_t n, void *acc_, const void *src_) { \
    T *acc = acc_;                                                                    \
    const T *s = src_;                                                                \
    for (int64_t r = 0; r < rows; r++, s += n) {                                      \
      T x = acc[r];                                                                   \
      for (int64_t i = 0; i < n; i++) {                                               \
        T y = s[i];                                                                   \
        x = (T)(expr);                                                                \
      }                                                                               \
      acc[r] = x;                                                                     \
    }                                                                                 \
  }                                                                                   \
  static void name##_column_##T(int64_t n, void *acc_, const void *src_) {            \
    T *acc = acc_;                                                                    \
    const T *s = src_;                                                                \
    TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
      T x = acc[i], y = s[i];                                                         \
      acc[i] = (T)(expr);                                                             \
    }                                                                                 \
  }
#define SIGNLESS(T)                              \
  INT_FOLD(sum, T, x + y)                        \
  INT_FOLD(product, T, (uint64_t)x *(uint64_t)y) \
  INT_FOLD(and, T, x &y)                         \
  INT_FOLD(or, T, x | y)
#define EXTREMES(T)               \
  INT_FOLD(max, T, x > y ? x : y) \
  INT_FOLD(min, T, x < y ? x : y)
SIGNLESS(uint8_t)
SIGNLESS(uint16_t)
SIGNLESS(uint32_t)
SIGNLESS(uint64_t)
EXTREMES(uint8_t)
EXTREMES(uint16_t)
EXTREMES(uint32_t)
EXTREMES(uint64_t)
EXTREMES(int8_t)
EXTREMES(int16_t)
EXTREMES(int32_t)
EXTREMES(int64_t)

// Complex sums: accumulators are pairs of doubles.
#define COMPLEX_SUM(F)                                                                 \
  static void complex_row_##F(int64_t rows, int64_t n, void *acc_, const void *src_) { \
    double *acc = acc_;                                                                \
    const F *s = src_;                                                                 \
    for (int64_t r = 0; r < rows; r++, s += 2 * n) {                                   \
      double re = -0.0, im = -0.0;                                                     \
      for (int64_t i = 0; i < n; i++) {                                                \
        re += (double)s[2 * i];                                                        \
        im += (double)s[2 * i + 1];                                                    \
      }                                                                                \
      acc[2 * r] += re;                                                                \
      acc[2 * r + 1] += im;                                                            \
    }                                                                                  \
  }                                                                                    \
  static void complex_column_##F(int64_t n, void *acc_, const void *src_) {            \
    double *acc = acc_;                                                                \
    const F *s = src_;                                                                 \
    TT__IVDEP for (int64_t i = 0; i < 2 * n; i++) acc[i] += (double)s[i];              \
  }
COMPLEX_SUM(float)
COMPLEX_SUM(double)

// Signed lanes share the unsigned kernels but for extremes.
#define SET(KIND, name, L, T)                       \
  k->fold_row[TT__FOLD_##KIND][L] = name##_row_##T; \
  k->fold_column[TT__FOLD_##KIND][L] = name##_column_##T;
#define SET_FLOAT(L, T)       \
  SET(SUM, sum, L, T)         \
  SET(PRODUCT, product, L, T) \
  SET(MAX, max, L, T)         \
  SET(MIN, min, L, T)
#define SET_INT(L, T, U)      \
  SET(SUM, sum, L, U)         \
  SET(PRODUCT, product, L, U) \
  SET(AND, and, L, U)         \
  SET(OR, or, L, U)           \
  SET(MAX, max, L, T)         \
  SET(MIN, min, L, T)

void TT__AT_LEVEL(tt__kernels_reduce)(tt__kernels_t *k) {
  SET_FLOAT(TT__LANE_F32, float)
  SET_FLOAT(TT__LANE_F64, double)
  SET_INT(TT__LANE_U8, uint8_t, uint8_t)
  SET_INT(TT__LANE_S8, int8_t, uint8_t)
  SET_INT(TT__LANE_U16, uint16_t, uint16_t)
  SET_INT(TT__LANE_S16, int16_t, uint16_t)
  SET_INT(TT__LANE_U32, uint32_t, uint32_t)
  SET_INT(TT__LANE_S32, int32_t, uint32_t)
  SET_INT(TT__LANE_U64, uint64_t, uint64_t)
  SET_INT(TT__LANE_S64, int64_t, uint64_t)
  SET(SUM, complex, TT__LANE_C64, float)
  SET(SUM, complex, TT__LANE_C128, double)
}
