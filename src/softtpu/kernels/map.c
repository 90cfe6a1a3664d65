// Arithmetic of integers and floats, selection, and moves with a stride. StableHLO leaves division
// by zero and shifts past the width to the implementation; reference.h says what they are here.
#include <math.h>
#include <string.h>

#include "softtpu/kernels/kernels.h"

// Two's complement makes most integer arithmetic the same for both signs. C promotes small integers
// to int: results are cut back, and nothing overflows but multiply, whose product of two 16-bit
// numbers may pass INT_MAX: it is done in 64 bits.
#define SIGNLESS(U)                                                                               \
  TT__BINARY(add_##U, U, U, x + y)                                                                \
  TT__BINARY(subtract_##U, U, U, x - y)                                                           \
  TT__BINARY(multiply_##U, U, U, (uint64_t)x *(uint64_t)y)                                        \
  TT__BINARY(and_##U, U, U, x &y)                                                                 \
  TT__BINARY(or_##U, U, U, x | y)                                                                 \
  TT__BINARY(xor_##U, U, U, x ^ y)                                                                \
  TT__BINARY(shift_left_##U, U, U, y >= sizeof(U) * 8 ? 0 : (U)(x << (y & (sizeof(U) * 8 - 1))))  \
  TT__BINARY(shift_right_##U, U, U, y >= sizeof(U) * 8 ? 0 : (U)(x >> (y & (sizeof(U) * 8 - 1)))) \
  TT__UNARY(negate_##U, U, U, 0u - x)                                                             \
  TT__UNARY(not_##U, U, U, ~x)

#define ORDERED(T)                             \
  TT__BINARY(maximum_##T, T, T, x > y ? x : y) \
  TT__BINARY(minimum_##T, T, T, x < y ? x : y)

#define UNSIGNED(U)                                        \
  SIGNLESS(U)                                              \
  ORDERED(U)                                               \
  TT__BINARY(divide_##U, U, U, y == 0 ? (U) ~(U)0 : x / y) \
  TT__BINARY(remainder_##U, U, U, y == 0 ? x : x % y)      \
  TT__UNARY(sign_##U, U, U, x != 0)

// INT_MIN / -1 and its remainder would trap: they are computed without dividing.
#define SIGNED(T, U)                                                           \
  ORDERED(T)                                                                   \
  TT__BINARY(divide_##T, T, T, y == 0 ? -1 : y == -1 ? (T)(0u - (U)x) : x / y) \
  TT__BINARY(remainder_##T, T, T, y == 0 ? x : y == -1 ? 0 : x % y)            \
  TT__BINARY(shift_right_##T, T, T,                                            \
             x >> ((U)y >= sizeof(T) * 8 ? (int)sizeof(T) * 8 - 1 : (int)y))   \
  TT__UNARY(abs_##T, T, T, x < 0 ? (T)(0u - (U)x) : x)                         \
  TT__UNARY(sign_##T, T, T, (x > 0) - (x < 0))

UNSIGNED(uint8_t)
UNSIGNED(uint16_t)
UNSIGNED(uint32_t)
UNSIGNED(uint64_t)
SIGNED(int8_t, uint8_t)
SIGNED(int16_t, uint16_t)
SIGNED(int32_t, uint32_t)
SIGNED(int64_t, uint64_t)

// NaN wins; +0 is larger than -0 (the sum and the bits of equal operands decide that).
#define FLOATS(T, B)                                               \
  static inline T max_of_##T(T x, T y) {                           \
    T r = x > y ? x : y;                                           \
    r = x == y ? (signbit(x) ? y : x) : r;                         \
    return x != x ? x : y != y ? y : r;                            \
  }                                                                \
  static inline T min_of_##T(T x, T y) {                           \
    T r = x < y ? x : y;                                           \
    r = x == y ? (signbit(x) ? x : y) : r;                         \
    return x != x ? x : y != y ? y : r;                            \
  }                                                                \
  TT__BINARY(add_##T, T, T, x + y)                                 \
  TT__BINARY(subtract_##T, T, T, x - y)                            \
  TT__BINARY(multiply_##T, T, T, x *y)                             \
  TT__BINARY(divide_##T, T, T, x / y)                              \
  TT__BINARY(maximum_##T, T, T, max_of_##T(x, y))                  \
  TT__BINARY(minimum_##T, T, T, min_of_##T(x, y))                  \
  TT__UNARY(negate_##T, T, T, -x)                                  \
  TT__UNARY(sign_##T, T, T, x != x || x == 0 ? x : x > 0 ? 1 : -1) \
  TT__UNARY(is_finite_##T, T, uint8_t, x - x == 0)

FLOATS(float, uint32_t)
FLOATS(double, uint64_t)

TT__UNARY(abs_float, float, float, __builtin_fabsf(x))
TT__UNARY(abs_double, double, double, __builtin_fabs(x))
TT__UNARY(ceil_float, float, float, __builtin_ceilf(x))
TT__UNARY(ceil_double, double, double, __builtin_ceil(x))
TT__UNARY(floor_float, float, float, __builtin_floorf(x))
TT__UNARY(floor_double, double, double, __builtin_floor(x))
TT__UNARY(even_float, float, float, __builtin_rintf(x))
TT__UNARY(even_double, double, double, __builtin_rint(x))
TT__UNARY(sqrt_float, float, float, __builtin_sqrtf(x))
TT__UNARY(sqrt_double, double, double, __builtin_sqrt(x))

// By size, not by type: bytes are moved. Operand a of the map signature is the predicate; `mode`
// may make each of the three a splat. A splat predicate is a copy of one side.
#define SELECT(name, T)                                                                 \
  static void name(int64_t n, void *d_, const void *p_, const void *a_, const void *b_, \
                   uint32_t mode) {                                                     \
    T *d = d_;                                                                          \
    const uint8_t *p = p_;                                                              \
    const T *a = a_, *b = b_;                                                           \
    if (mode & TT__MODE_A) {                                                            \
      const T *from = *p ? a : b;                                                       \
      if (mode & (*p ? TT__MODE_B : TT__MODE_C)) {                                      \
        T x = *from;                                                                    \
        for (int64_t i = 0; i < n; i++) d[i] = x;                                       \
      } else if (d != from) {                                                           \
        memcpy(d, from, sizeof(T) * (size_t)n);                                         \
      }                                                                                 \
    } else if ((mode & (TT__MODE_B | TT__MODE_C)) == 0) {                               \
      TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
        T x = a[i], y = b[i];                                                           \
        d[i] = p[i] ? x : y;                                                            \
      }                                                                                 \
    } else if ((mode & (TT__MODE_B | TT__MODE_C)) == TT__MODE_B) {                      \
      T x = a[0];                                                                       \
      TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
        T y = b[i];                                                                     \
        d[i] = p[i] ? x : y;                                                            \
      }                                                                                 \
    } else if ((mode & (TT__MODE_B | TT__MODE_C)) == TT__MODE_C) {                      \
      T y = b[0];                                                                       \
      TT__IVDEP for (int64_t i = 0; i < n; i++) {                                       \
        T x = a[i];                                                                     \
        d[i] = p[i] ? x : y;                                                            \
      }                                                                                 \
    } else {                                                                            \
      T x = a[0], y = b[0];                                                             \
      TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = p[i] ? x : y;                    \
    }                                                                                   \
  }

__extension__ typedef unsigned __int128 tt__u128_t;
// 16-byte elements need no more than 8-byte alignment.
typedef tt__u128_t wide_t __attribute__((aligned(8), may_alias));
typedef uint8_t raw8_t __attribute__((may_alias));
typedef uint16_t raw16_t __attribute__((may_alias));
typedef uint32_t raw32_t __attribute__((may_alias));
typedef uint64_t raw64_t __attribute__((may_alias));

// From here on a call of memcpy costs less than a loop.
enum { CALL_BYTES = 1024 };

// may_alias types: the arrays hold whatever has that size.
#define MOVES(size, T)                                                                      \
  SELECT(select_##size, T)                                                                  \
  static void store_##size(int64_t n, void *d_, const void *s_, int64_t stride) {           \
    T *d = d_;                                                                              \
    const T *s = s_;                                                                        \
    for (int64_t i = 0; i < n; i++) d[i * stride] = s[i];                                   \
  }                                                                                         \
  static void rows_##size(int64_t rows, int64_t n, void *d_, int64_t d_row, const void *s_, \
                          int64_t s_row, int64_t stride) {                                  \
    for (int64_t r = 0; r < rows; r++) {                                                    \
      T *d = (T *)d_ + r * d_row;                                                           \
      const T *s = (const T *)s_ + r * s_row;                                               \
      if (stride == 1 && n * (int64_t)sizeof(T) >= CALL_BYTES) {                            \
        memcpy(d, s, sizeof(T) * (size_t)n);                                                \
      } else if (stride == 1) {                                                             \
        TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = s[i];                              \
      } else if (stride == 0) {                                                             \
        T x = *s;                                                                           \
        for (int64_t i = 0; i < n; i++) d[i] = x;                                           \
      } else {                                                                              \
        TT__IVDEP for (int64_t i = 0; i < n; i++) d[i] = s[i * stride];                     \
      }                                                                                     \
    }                                                                                       \
  }

MOVES(0, raw8_t)
MOVES(1, raw16_t)
MOVES(2, raw32_t)
MOVES(3, raw64_t)
MOVES(4, wide_t)

// iota's numbers.
static void count(int64_t n, int64_t *dst, int64_t start, int64_t step) {
  for (int64_t i = 0; i < n; i++) dst[i] = start + i * step;
}

#define SET_SIGNLESS(U, LU, LS)                                               \
  k->op[TT_OP_ADD][LU] = k->op[TT_OP_ADD][LS] = add_##U;                      \
  k->op[TT_OP_SUBTRACT][LU] = k->op[TT_OP_SUBTRACT][LS] = subtract_##U;       \
  k->op[TT_OP_MULTIPLY][LU] = k->op[TT_OP_MULTIPLY][LS] = multiply_##U;       \
  k->op[TT_OP_AND][LU] = k->op[TT_OP_AND][LS] = and_##U;                      \
  k->op[TT_OP_OR][LU] = k->op[TT_OP_OR][LS] = or_##U;                         \
  k->op[TT_OP_XOR][LU] = k->op[TT_OP_XOR][LS] = xor_##U;                      \
  k->op[TT_OP_SHIFT_LEFT][LU] = k->op[TT_OP_SHIFT_LEFT][LS] = shift_left_##U; \
  k->op[TT_OP_SHIFT_RIGHT_LOGICAL][LU] = shift_right_##U;                     \
  k->op[TT_OP_SHIFT_RIGHT_LOGICAL][LS] = shift_right_##U;                     \
  k->op[TT_OP_NEGATE][LU] = k->op[TT_OP_NEGATE][LS] = negate_##U;             \
  k->op[TT_OP_NOT][LU] = k->op[TT_OP_NOT][LS] = not_##U;
#define SET_COMMON(T, L)                 \
  k->op[TT_OP_DIVIDE][L] = divide_##T;   \
  k->op[TT_OP_MAXIMUM][L] = maximum_##T; \
  k->op[TT_OP_MINIMUM][L] = minimum_##T; \
  k->op[TT_OP_SIGN][L] = sign_##T;
#define SET_SIGNED(T, L)         \
  k->op[TT_OP_ABS][L] = abs_##T; \
  k->op[TT_OP_SHIFT_RIGHT_ARITHMETIC][L] = shift_right_##T;
#define SET_INTS(U, T, LU, LS)                               \
  SET_SIGNLESS(U, LU, LS)                                    \
  SET_COMMON(U, LU)                                          \
  SET_COMMON(T, LS)                                          \
  SET_SIGNED(T, LS)                                          \
  k->op[TT_OP_SHIFT_RIGHT_ARITHMETIC][LU] = shift_right_##T; \
  k->op[TT_OP_REMAINDER][LU] = remainder_##U;                \
  k->op[TT_OP_REMAINDER][LS] = remainder_##T;
#define SET_FLOATS(T, L)                         \
  SET_COMMON(T, L)                               \
  k->op[TT_OP_ADD][L] = add_##T;                 \
  k->op[TT_OP_SUBTRACT][L] = subtract_##T;       \
  k->op[TT_OP_MULTIPLY][L] = multiply_##T;       \
  k->op[TT_OP_NEGATE][L] = negate_##T;           \
  k->op[TT_OP_ABS][L] = abs_##T;                 \
  k->op[TT_OP_CEIL][L] = ceil_##T;               \
  k->op[TT_OP_FLOOR][L] = floor_##T;             \
  k->op[TT_OP_ROUND_NEAREST_EVEN][L] = even_##T; \
  k->op[TT_OP_SQRT][L] = sqrt_##T;               \
  k->op[TT_OP_IS_FINITE][L] = is_finite_##T;
#define SET_MOVES(size)            \
  k->select[size] = select_##size; \
  k->store[size] = store_##size;   \
  k->rows[size] = rows_##size;

void TT__AT_LEVEL(tt__kernels_map)(tt__kernels_t *k) {
  SET_INTS(uint8_t, int8_t, TT__LANE_U8, TT__LANE_S8)
  SET_INTS(uint16_t, int16_t, TT__LANE_U16, TT__LANE_S16)
  SET_INTS(uint32_t, int32_t, TT__LANE_U32, TT__LANE_S32)
  SET_INTS(uint64_t, int64_t, TT__LANE_U64, TT__LANE_S64)
  SET_FLOATS(float, TT__LANE_F32)
  SET_FLOATS(double, TT__LANE_F64)
  SET_MOVES(0)
  SET_MOVES(1)
  SET_MOVES(2)
  SET_MOVES(3)
  SET_MOVES(4)
  k->count = count;
}
