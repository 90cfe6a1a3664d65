// One encoder and one decoder for every small format, driven by its layout; the two directions of
// f16, which matter for speed, have a short way around them. tests/c/base_half_test.c goes through
// every pattern of every format and through every midpoint.
#include "base/half.h"

#include <stdbool.h>

// A small float's layout. Without infinity (f8E4M3FN) all ones is NaN and the rest is finite.
typedef struct format_s {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
} format_t;

static const format_t f16_format = {5, 10, true};
static const format_t bf16_format = {8, 7, true};
static const format_t e4m3_format = {4, 3, false};
static const format_t e5m2_format = {5, 2, true};

// Rounds a double once, half to even, into the low bits of the result. f32 inputs pass through
// double exactly, so the same code serves both. NaN keeps its sign and becomes quiet; the payload
// is lost.
static uint32_t encode(double d, format_t f) {
  uint64_t bits;
  memcpy(&bits, &d, 8);
  uint32_t sign = (uint32_t)(bits >> 63) << (f.exponent_bits + f.mantissa_bits);
  uint32_t all_ones = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  uint32_t nan = f.has_infinity ? infinity | 1u << (f.mantissa_bits - 1) : all_ones;
  uint32_t overflow = f.has_infinity ? infinity : all_ones;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
  if (exponent == 1024) return sign | (mantissa ? nan : overflow);
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  int shift = 52 - f.mantissa_bits;
  if (exponent >= 1 - bias) {
    mantissa |= (uint64_t)(exponent + bias) << 52;
  } else {  // subnormal in the target: the hidden bit moves down
    int extra = 1 - bias - exponent;
    // Less than half of the smallest subnormal rounds to zero, as do the double's own subnormals,
    // which no format here comes near.
    if (extra > f.mantissa_bits + 1 || exponent == -1023) return sign;
    mantissa |= UINT64_C(1) << 52;
    shift += extra;
  }
  // The carry of rounding up runs into the exponent, which is what it should do.
  // `rest` is what is cut off, `half` the middle between two neighbours.
  uint64_t half = UINT64_C(1) << (shift - 1), rest = mantissa & ((half << 1) - 1);
  uint64_t rounded = mantissa >> shift;
  rounded += rest > half || (rest == half && (rounded & 1));
  uint32_t largest = f.has_infinity ? infinity - 1 : all_ones - 1;
  return sign | (rounded > largest ? overflow : (uint32_t)rounded);
}

// Exact: f32 holds every value of every format above, its subnormals as normal numbers.
static float decode(uint32_t bits, format_t f) {
  uint32_t magnitude = bits & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  uint32_t sign = (bits >> (f.exponent_bits + f.mantissa_bits) & 1u) << 31;
  uint32_t exponent = magnitude >> f.mantissa_bits;
  uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  uint32_t top = (1u << f.exponent_bits) - 1;
  uint32_t mantissa_ones = (1u << f.mantissa_bits) - 1;
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  if (exponent == top && (f.has_infinity || mantissa == mantissa_ones)) {
    uint32_t payload = f.has_infinity ? mantissa << (23 - f.mantissa_bits) : 0x400000u;
    return tt_bits_to_f32(sign | 0x7f800000u | payload);
  }
  if (exponent == 0) {
    // mantissa * 2^(1 - bias - mantissa_bits), exact in f32 for the formats above
    float scale = tt_bits_to_f32((uint32_t)(127 + 1 - bias - f.mantissa_bits) << 23);
    float value = (float)mantissa * scale;
    return sign ? -value : value;
  }
  return tt_bits_to_f32(sign | (exponent + (uint32_t)(127 - bias)) << 23 |
                        mantissa << (23 - f.mantissa_bits));
}

// f16's exponent moves from bias 15 to bias 127, hence 112; zeros and subnormals take the general
// way.
float tt_f16_to_f32(uint16_t h) {
  uint32_t shifted = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t exponent = shifted & 0x0f800000u;
  if (exponent == 0x0f800000u) return tt_bits_to_f32(sign | shifted | 0x7f800000u);
  if (exponent == 0) return decode(h, f16_format);
  return tt_bits_to_f32(sign | (shifted + (112u << 23)));
}

// [2^-14, 2^16) in bits: the rounding increment runs into the exponent and, from 65520 on, to
// infinity's pattern. All else, subnormals and NaN included, takes the general way.
uint16_t tt_f32_to_f16(float f) {
  uint32_t u = tt_f32_to_bits(f), sign = u >> 16 & 0x8000u;
  u &= 0x7fffffffu;
  if (u - 0x38800000u < 0x47800000u - 0x38800000u) {  // a normal f16, or rounds up to infinity
    return (uint16_t)(sign | (u - 0x38000000u + 0xfffu + (u >> 13 & 1u)) >> 13);
  }
  return (uint16_t)encode((double)f, f16_format);
}

float tt_f8e4m3fn_to_f32(uint8_t h) { return decode(h, e4m3_format); }
uint8_t tt_f32_to_f8e4m3fn(float f) { return (uint8_t)encode((double)f, e4m3_format); }
float tt_f8e5m2_to_f32(uint8_t h) { return decode(h, e5m2_format); }
uint8_t tt_f32_to_f8e5m2(float f) { return (uint8_t)encode((double)f, e5m2_format); }
uint16_t tt_f64_to_bf16(double d) { return (uint16_t)encode(d, bf16_format); }
uint16_t tt_f64_to_f16(double d) { return (uint16_t)encode(d, f16_format); }
uint8_t tt_f64_to_f8e4m3fn(double d) { return (uint8_t)encode(d, e4m3_format); }
uint8_t tt_f64_to_f8e5m2(double d) { return (uint8_t)encode(d, e5m2_format); }
