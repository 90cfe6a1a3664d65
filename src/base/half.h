// Conversions between f32 and the small floats. Round to nearest, ties to even; NaN stays NaN.
#ifndef TT_BASE_HALF_H_
#define TT_BASE_HALF_H_

#include <stdint.h>
#include <string.h>

// By memcpy, which compilers turn into a register move; a cast of pointers would break aliasing.
static inline float tt_bits_to_f32(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
static inline uint32_t tt_f32_to_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
// The same for f64.
static inline double tt_bits_to_f64(uint64_t bits) {
  double d;
  memcpy(&d, &bits, 8);
  return d;
}
static inline uint64_t tt_f64_to_bits(double d) {
  uint64_t bits;
  memcpy(&bits, &d, 8);
  return bits;
}
// bf16 is f32's upper half: widening is exact, narrowing adds just under half a unit plus the last
// bit kept (ties to even). A NaN is made quiet first, or the carry could turn it to infinity.
static inline float tt_bf16_to_f32(uint16_t h) { return tt_bits_to_f32((uint32_t)h << 16); }
static inline uint16_t tt_f32_to_bf16(float f) {
  uint32_t u = tt_f32_to_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

// From bits to the number that they stand for, exactly; to bits rounding to nearest even once.
float tt_f16_to_f32(uint16_t h);
uint16_t tt_f32_to_f16(float f);
float tt_f8e4m3fn_to_f32(uint8_t h);
uint8_t tt_f32_to_f8e4m3fn(float f);  // overflow gives NaN, as StableHLO and PyTorch do
float tt_f8e5m2_to_f32(uint8_t h);
uint8_t tt_f32_to_f8e5m2(float f);  // overflow gives infinity
// From f64 with one rounding, never by way of f32's own rounding.
uint16_t tt_f64_to_bf16(double d);
uint16_t tt_f64_to_f16(double d);
uint8_t tt_f64_to_f8e4m3fn(double d);
uint8_t tt_f64_to_f8e5m2(double d);

#endif  // TT_BASE_HALF_H_
