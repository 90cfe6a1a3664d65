// Every value of each small float against a slow definition by its bits.
#include "base/half.h"
#include "test.h"

static double value_of(uint32_t bits, int e, int m, int ieee) {
  uint32_t mantissa = bits & ((1u << m) - 1), exponent = bits >> m & ((1u << e) - 1);
  double sign = bits >> (e + m) & 1 ? -1 : 1;
  if (ieee && exponent == (1u << e) - 1) return mantissa ? (double)NAN : sign * (double)INFINITY;
  if (!ieee && (bits & ((1u << (e + m)) - 1)) == (1u << (e + m)) - 1) return (double)NAN;
  int bias = (1 << (e - 1)) - 1;
  if (exponent == 0) return sign * ldexp((double)mantissa, 1 - bias - m);
  return sign * ldexp(1 + ldexp((double)mantissa, -m), (int)exponent - bias);
}

static int same(double a, double b) {
  return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

TEST(decoding_is_exact) {
  for (uint32_t i = 0; i < 65536; i++) {
    EXPECT(same((double)tt_f16_to_f32((uint16_t)i), value_of(i, 5, 10, 1)));
    EXPECT(same((double)tt_bf16_to_f32((uint16_t)i), value_of(i, 8, 7, 1)));
  }
  for (uint32_t i = 0; i < 256; i++) {
    EXPECT(same((double)tt_f8e4m3fn_to_f32((uint8_t)i), value_of(i, 4, 3, 0)));
    EXPECT(same((double)tt_f8e5m2_to_f32((uint8_t)i), value_of(i, 5, 2, 1)));
  }
}

TEST(encoding_inverts_decoding) {
  for (uint32_t i = 0; i < 65536; i++) {
    float f = tt_f16_to_f32((uint16_t)i), g = tt_bf16_to_f32((uint16_t)i);
    if (f == f) EXPECT_INT(tt_f32_to_f16(f), i);
    if (f == f) EXPECT_INT(tt_f64_to_f16((double)f), i);
    if (f != f) EXPECT(isnan(tt_f16_to_f32(tt_f32_to_f16(f))));
    if (g == g) EXPECT_INT(tt_f32_to_bf16(g), i);
    if (g == g) EXPECT_INT(tt_f64_to_bf16((double)g), i);
    if (g != g) EXPECT(isnan(tt_bf16_to_f32(tt_f32_to_bf16(g))));
  }
  for (uint32_t i = 0; i < 256; i++) {
    float f = tt_f8e4m3fn_to_f32((uint8_t)i), g = tt_f8e5m2_to_f32((uint8_t)i);
    if (f == f) EXPECT_INT(tt_f32_to_f8e4m3fn(f), i);
    if (g == g) EXPECT_INT(tt_f32_to_f8e5m2(g), i);
  }
}

// Between two neighbours: below the middle down, above up, the middle itself to the even one.
TEST(rounding_is_to_nearest_even) {
  for (uint32_t i = 0; i < 0x7bff; i++) {
    double a = value_of(i, 5, 10, 1), b = value_of(i + 1, 5, 10, 1), middle = (a + b) / 2;
    uint32_t even = i & 1 ? i + 1 : i;
    EXPECT_INT(tt_f32_to_f16((float)middle), even);
    EXPECT_INT(tt_f32_to_f16(nextafterf((float)middle, 0)), i);
    EXPECT_INT(tt_f32_to_f16(nextafterf((float)middle, INFINITY)), i + 1);
    EXPECT_INT(tt_f64_to_f16(nextafter(middle, INFINITY)), i + 1);
    EXPECT_INT(tt_f32_to_f16(-(float)middle), even | 0x8000);
  }
  for (uint32_t i = 0; i < 0x7e; i++) {
    double a = value_of(i, 4, 3, 0), b = value_of(i + 1, 4, 3, 0);
    if (i + 1 < 0x7f) EXPECT_INT(tt_f32_to_f8e4m3fn((float)((a + b) / 2)), i & 1 ? i + 1 : i);
  }
  for (uint32_t i = 0; i < 0x7f7f; i++) {
    double middle = (value_of(i, 8, 7, 1) + value_of(i + 1, 8, 7, 1)) / 2;
    EXPECT_INT(tt_f64_to_bf16(middle), i & 1 ? i + 1 : i);
    EXPECT_INT(tt_f64_to_bf16(nextafter(middle, INFINITY)), i + 1);
  }
}

TEST(overflow_follows_the_format) {
  EXPECT_INT(tt_f32_to_f16(65520.0f), 0x7c00);
  EXPECT_INT(tt_f32_to_f16(65519.0f), 0x7bff);
  EXPECT_INT(tt_f32_to_f8e4m3fn(464.0f), 0x7e);  // the middle of 448 and 480, 448 is even
  EXPECT_INT(tt_f32_to_f8e4m3fn(465.0f), 0x7f);
  EXPECT_INT(tt_f32_to_f8e4m3fn(INFINITY), 0x7f);
  EXPECT_INT(tt_f32_to_f8e5m2(1e9f), 0x7c);
  EXPECT_INT(tt_f64_to_bf16(1e300), 0x7f80);
  EXPECT_INT(tt_f64_to_bf16(5e-324), 0);
  EXPECT_INT(tt_f32_to_f16(1e-45f), 0);
}

TEST_MAIN(decoding_is_exact, encoding_inverts_decoding, rounding_is_to_nearest_even,
          overflow_follows_the_format)
