// Conversions between registers' types, and the small floats to and from f32. Integer to integer
// keeps the low bits, so a conversion to a signed type is the one to the unsigned type of its
// width.
#include "base/half.h"
#include "softtpu/kernels/kernels.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

#define TO(T, R) TT__UNARY(T##_to_##R, T, R, x)
#define FROM_INT(T) \
  TO(T, uint8_t)    \
  TO(T, uint16_t)   \
  TO(T, uint32_t)   \
  TO(T, uint64_t)   \
  TO(T, float)      \
  TO(T, double)
FROM_INT(uint8_t)
FROM_INT(uint16_t)
FROM_INT(uint32_t)
FROM_INT(uint64_t)
FROM_INT(int8_t)
FROM_INT(int16_t)
FROM_INT(int32_t)
FROM_INT(int64_t)
TO(float, double)
TO(double, float)

// Truncates, saturates, NaN is 0. `below` is the first float above the range: unlike the largest
// integer it is a float of every width, so the comparison is exact.
#define SATURATE(T, R, low, below, highest)  \
  TT__UNARY(T##_to_##R, T, R,                \
            x != x            ? 0            \
            : x <= (T)(low)   ? (R)(low)     \
            : x >= (T)(below) ? (R)(highest) \
                              : (R)x)
#define FROM_FLOAT(T)                                          \
  SATURATE(T, uint8_t, 0, 256.0, UINT8_MAX)                    \
  SATURATE(T, uint16_t, 0, 65536.0, UINT16_MAX)                \
  SATURATE(T, uint32_t, 0, 4294967296.0, UINT32_MAX)           \
  SATURATE(T, uint64_t, 0, 18446744073709551616.0, UINT64_MAX) \
  SATURATE(T, int8_t, INT8_MIN, 128.0, INT8_MAX)               \
  SATURATE(T, int16_t, INT16_MIN, 32768.0, INT16_MAX)          \
  SATURATE(T, int32_t, INT32_MIN, 2147483648.0, INT32_MAX)     \
  SATURATE(T, int64_t, INT64_MIN, 9223372036854775808.0, INT64_MAX)
FROM_FLOAT(float)
FROM_FLOAT(double)

// As tt_f32_to_bf16, with a choice instead of a branch, which vectorises.
static inline uint16_t narrow_bf16(float x) {
  uint32_t u = tt_f32_to_bits(x);
  uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return (uint16_t)(x != x ? (u >> 16 | 0x40u) : rounded);
}
TT__UNARY(bf16_widen, uint16_t, float, tt_bits_to_f32((uint32_t)x << 16))
TT__UNARY(bf16_narrow, float, uint16_t, narrow_bf16(x))
TT__UNARY(bf16_round, float, float, tt_bits_to_f32((uint32_t)narrow_bf16(x) << 16))

TT__UNARY(e4m3_widen, uint8_t, float, tt_f8e4m3fn_to_f32(x))
TT__UNARY(e4m3_narrow, float, uint8_t, tt_f32_to_f8e4m3fn(x))
TT__UNARY(e4m3_round, float, float, tt_f8e4m3fn_to_f32(tt_f32_to_f8e4m3fn(x)))
TT__UNARY(e5m2_widen, uint8_t, float, tt_f8e5m2_to_f32(x))
TT__UNARY(e5m2_narrow, float, uint8_t, tt_f32_to_f8e5m2(x))
TT__UNARY(e5m2_round, float, float, tt_f8e5m2_to_f32(tt_f32_to_f8e5m2(x)))

#ifdef __F16C__
// With F16C eight at a time; it rounds to nearest even and keeps NaN, as half.c does.
#define F16_TAIL(T, R, expr) \
  for (; i < n; i++) {       \
    T x = a[i];              \
    d[i] = (R)(expr);        \
  }
#define F16_LOOP(name, T, R, body, expr)                                                \
  static void name(int64_t n, void *d_, const void *a_, const void *b_, const void *c_, \
                   uint32_t mode) {                                                     \
    R *d = d_;                                                                          \
    const T *a = a_;                                                                    \
    TT__UNUSED_BC;                                                                      \
    int64_t i = 0;                                                                      \
    for (; i + 8 <= n; i += 8) body;                                                    \
    F16_TAIL(T, R, expr)                                                                \
  }
#define LOAD_F16 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(a + i)))
#define TO_F16 _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT)
F16_LOOP(f16_widen, uint16_t, float, _mm256_storeu_ps(d + i, LOAD_F16), _cvtsh_ss(x))
F16_LOOP(f16_narrow, float, uint16_t, _mm_storeu_si128((__m128i *)(void *)(d + i), TO_F16),
         _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))
F16_LOOP(f16_round, float, float, _mm256_storeu_ps(d + i, _mm256_cvtph_ps(TO_F16)),
         _cvtsh_ss(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)))
#else
TT__UNARY(f16_widen, uint16_t, float, tt_f16_to_f32(x))
TT__UNARY(f16_narrow, float, uint16_t, tt_f32_to_f16(x))
TT__UNARY(f16_round, float, float, tt_f16_to_f32(tt_f32_to_f16(x)))
#endif

#define SET_INT(T, L)                                                          \
  k->convert[L][TT__LANE_U8] = k->convert[L][TT__LANE_S8] = T##_to_uint8_t;    \
  k->convert[L][TT__LANE_U16] = k->convert[L][TT__LANE_S16] = T##_to_uint16_t; \
  k->convert[L][TT__LANE_U32] = k->convert[L][TT__LANE_S32] = T##_to_uint32_t; \
  k->convert[L][TT__LANE_U64] = k->convert[L][TT__LANE_S64] = T##_to_uint64_t; \
  k->convert[L][TT__LANE_F32] = T##_to_float;                                  \
  k->convert[L][TT__LANE_F64] = T##_to_double;
#define SET_FLOAT(T, L)                          \
  k->convert[L][TT__LANE_U8] = T##_to_uint8_t;   \
  k->convert[L][TT__LANE_U16] = T##_to_uint16_t; \
  k->convert[L][TT__LANE_U32] = T##_to_uint32_t; \
  k->convert[L][TT__LANE_U64] = T##_to_uint64_t; \
  k->convert[L][TT__LANE_S8] = T##_to_int8_t;    \
  k->convert[L][TT__LANE_S16] = T##_to_int16_t;  \
  k->convert[L][TT__LANE_S32] = T##_to_int32_t;  \
  k->convert[L][TT__LANE_S64] = T##_to_int64_t;
#define SET_HALF(name, H)       \
  k->widen[H] = name##_widen;   \
  k->narrow[H] = name##_narrow; \
  k->round[H] = name##_round;

void TT__AT_LEVEL(tt__kernels_convert)(tt__kernels_t *k) {
  SET_INT(uint8_t, TT__LANE_U8)
  SET_INT(uint16_t, TT__LANE_U16)
  SET_INT(uint32_t, TT__LANE_U32)
  SET_INT(uint64_t, TT__LANE_U64)
  SET_INT(int8_t, TT__LANE_S8)
  SET_INT(int16_t, TT__LANE_S16)
  SET_INT(int32_t, TT__LANE_S32)
  SET_INT(int64_t, TT__LANE_S64)
  SET_FLOAT(float, TT__LANE_F32)
  SET_FLOAT(double, TT__LANE_F64)
  k->convert[TT__LANE_F32][TT__LANE_F64] = float_to_double;
  k->convert[TT__LANE_F64][TT__LANE_F32] = double_to_float;
  SET_HALF(bf16, TT__HALF_BF16)
  SET_HALF(f16, TT__HALF_F16)
  SET_HALF(e4m3, TT__HALF_E4M3)
  SET_HALF(e5m2, TT__HALF_E5M2)
}
