// Elementwise ops: the corners that an implementation gets wrong.
#include "softtpu/element.h"
#include "softtpu_reference.h"

static tt_status_t unary(tt_op_t op, tt_dtype_t dtype, int64_t n, const void *x, void *r) {
  tt_type_t type = VECTOR(dtype, n);
  return run_op(op, NULL, 0, &type, 1, &x, NULL, 0, &r);
}

static tt_status_t binary(tt_op_t op, tt_dtype_t dtype, int64_t n, const void *x, const void *y,
                          void *r) {
  tt_type_t types[2] = {VECTOR(dtype, n), VECTOR(dtype, n)};
  const void *in[2] = {x, y};
  return run_op(op, NULL, 0, types, 2, in, NULL, 0, &r);
}

static tt_status_t convert(tt_dtype_t from, tt_dtype_t to, int64_t n, const void *x, void *r) {
  tt_type_t type = VECTOR(from, n), result = VECTOR(to, n);
  return run_op(TT_OP_CONVERT, NULL, 0, &type, 1, &x, &result, 1, &r);
}

TEST(integer_division) {
  const int32_t x[] = {7, -7, 7, -7, 5, -5, INT32_MIN, INT32_MIN, 0};
  const int32_t y[] = {2, 2, -2, -2, 0, 0, -1, 0, 0};
  const int32_t quotient[] = {3, -3, -3, 3, -1, -1, INT32_MIN, -1, -1};
  const int32_t rest[] = {1, -1, 1, -1, 5, -5, 0, INT32_MIN, 0};
  int32_t r[9];
  EXPECT_OK(binary(TT_OP_DIVIDE, TT_S32, 9, x, y, r));
  EXPECT(SAME(r, quotient));
  EXPECT_OK(binary(TT_OP_REMAINDER, TT_S32, 9, x, y, r));
  EXPECT(SAME(r, rest));
  const uint8_t ux[] = {200, 200, 0}, uy[] = {7, 0, 0}, uq[] = {28, 255, 255}, ur[] = {4, 200, 0};
  uint8_t u[3];
  EXPECT_OK(binary(TT_OP_DIVIDE, TT_U8, 3, ux, uy, u));
  EXPECT(SAME(u, uq));
  EXPECT_OK(binary(TT_OP_REMAINDER, TT_U8, 3, ux, uy, u));
  EXPECT(SAME(u, ur));
  const int64_t lx[] = {INT64_MIN, INT64_MIN}, ly[] = {-1, 0}, lq[] = {INT64_MIN, -1};
  int64_t l[2];
  EXPECT_OK(binary(TT_OP_DIVIDE, TT_S64, 2, lx, ly, l));
  EXPECT(SAME(l, lq));
}

TEST(integer_wraps) {
  const int8_t x[] = {127, -128, -128, 100}, y[] = {1, 1, -1, 100};
  const int8_t sum[] = {-128, -127, 127, -56}, product[] = {127, -128, -128, 16};
  int8_t r[4];
  EXPECT_OK(binary(TT_OP_ADD, TT_S8, 4, x, y, r));
  EXPECT(SAME(r, sum));
  EXPECT_OK(binary(TT_OP_MULTIPLY, TT_S8, 4, x, y, r));
  EXPECT(SAME(r, product));
  const int8_t negated[] = {-127, -128, -128, -100}, absolute[] = {127, -128, -128, 100};
  EXPECT_OK(unary(TT_OP_NEGATE, TT_S8, 4, x, r));
  EXPECT(SAME(r, negated));
  EXPECT_OK(unary(TT_OP_ABS, TT_S8, 4, x, r));
  EXPECT(SAME(r, absolute));
}

TEST(integer_power) {
  const int32_t x[] = {2, 3, -2, 0, 0, 1, -1, -1, 2, 0, 10};
  const int32_t y[] = {10, 0, 3, 0, 5, -3, -3, -2, -1, -1, 10};
  const int32_t power[] = {1024, 1, -8, 1, 0, 1, -1, 1, 0, 0, 1410065408};
  int32_t r[11];
  EXPECT_OK(binary(TT_OP_POWER, TT_S32, 11, x, y, r));
  EXPECT(SAME(r, power));
}

TEST(shifts) {
  const int8_t x[] = {-128, -1, 1, 64, 1, -2}, y[] = {7, 8, 8, 1, -1, 1};
  const int8_t left[] = {0, 0, 0, -128, 0, -4}, arithmetic[] = {-1, -1, 0, 32, 0, -1};
  const int8_t logical[] = {1, 0, 0, 32, 0, 127};
  int8_t r[6];
  EXPECT_OK(binary(TT_OP_SHIFT_LEFT, TT_S8, 6, x, y, r));
  EXPECT(SAME(r, left));
  EXPECT_OK(binary(TT_OP_SHIFT_RIGHT_ARITHMETIC, TT_S8, 6, x, y, r));
  EXPECT(SAME(r, arithmetic));
  EXPECT_OK(binary(TT_OP_SHIFT_RIGHT_LOGICAL, TT_S8, 6, x, y, r));
  EXPECT(SAME(r, logical));
  const uint64_t ux[] = {UINT64_MAX, 1, 1}, uy[] = {63, 64, 63}, ul[] = {1, 0, 0};
  uint64_t u[3];
  EXPECT_OK(binary(TT_OP_SHIFT_RIGHT_LOGICAL, TT_U64, 3, ux, uy, u));
  EXPECT(SAME(u, ul));
}

TEST(bits) {
  const uint16_t x[] = {0, 1, 0x8000, 0xffff};
  const uint16_t zeros[] = {16, 15, 0, 0}, ones[] = {0, 1, 1, 16},
                 inverted[] = {65535, 65534, 32767, 0};
  uint16_t r[4];
  EXPECT_OK(unary(TT_OP_COUNT_LEADING_ZEROS, TT_U16, 4, x, r));
  EXPECT(SAME(r, zeros));
  EXPECT_OK(unary(TT_OP_POPCNT, TT_U16, 4, x, r));
  EXPECT(SAME(r, ones));
  EXPECT_OK(unary(TT_OP_NOT, TT_U16, 4, x, r));
  EXPECT(SAME(r, inverted));
  const int8_t s[] = {-1, 0, 1, -128}, s_zeros[] = {0, 8, 7, 0}, s_ones[] = {8, 0, 1, 1};
  int8_t q[4];
  EXPECT_OK(unary(TT_OP_COUNT_LEADING_ZEROS, TT_S8, 4, s, q));
  EXPECT(SAME(q, s_zeros));
  EXPECT_OK(unary(TT_OP_POPCNT, TT_S8, 4, s, q));
  EXPECT(SAME(q, s_ones));
}

TEST(predicates) {
  const uint8_t x[] = {0, 0, 1, 1}, y[] = {0, 1, 0, 1};
  const uint8_t both[] = {0, 0, 0, 1}, any[] = {0, 1, 1, 1}, one[] = {0, 1, 1, 0},
                not_x[] = {1, 1, 0, 0};
  uint8_t r[4];
  EXPECT_OK(binary(TT_OP_AND, TT_I1, 4, x, y, r));
  EXPECT(SAME(r, both));
  EXPECT_OK(binary(TT_OP_ADD, TT_I1, 4, x, y, r));
  EXPECT(SAME(r, any));
  EXPECT_OK(binary(TT_OP_MULTIPLY, TT_I1, 4, x, y, r));
  EXPECT(SAME(r, both));
  EXPECT_OK(binary(TT_OP_XOR, TT_I1, 4, x, y, r));
  EXPECT(SAME(r, one));
  EXPECT_OK(unary(TT_OP_NOT, TT_I1, 4, x, r));
  EXPECT(SAME(r, not_x));
}

TEST(nibbles) {
  const int8_t x[] = {7, -8, -8, 3}, y[] = {1, 1, -1, 3}, sum[] = {-8, -7, 7, 6};
  int8_t r[4];
  EXPECT_OK(binary(TT_OP_ADD, TT_S4, 4, x, y, r));
  EXPECT(SAME(r, sum));
  const uint8_t ux[] = {15, 9}, uy[] = {1, 9}, product[] = {15, 1};
  uint8_t u[2];
  EXPECT_OK(binary(TT_OP_MULTIPLY, TT_U4, 2, ux, uy, u));
  EXPECT(SAME(u, product));
}

TEST(float_extremes) {
  const float nan = NAN, inf = INFINITY;
  const float x[] = {0.0f, -0.0f, nan, 1, 1}, y[] = {-0.0f, 0.0f, 1, nan, 2};
  const float larger[] = {0.0f, 0.0f, nan, nan, 2}, smaller[] = {-0.0f, -0.0f, nan, nan, 1};
  float r[5];
  EXPECT_OK(binary(TT_OP_MAXIMUM, TT_F32, 5, x, y, r));
  EXPECT(same_f32(r, larger, 5));
  EXPECT_OK(binary(TT_OP_MINIMUM, TT_F32, 5, x, y, r));
  EXPECT(same_f32(r, smaller, 5));
  const float s[] = {-0.0f, 0.0f, nan, -3, inf}, signs[] = {-0.0f, 0.0f, nan, -1, 1};
  EXPECT_OK(unary(TT_OP_SIGN, TT_F32, 5, s, r));
  EXPECT(same_f32(r, signs, 5));
  const float a[] = {5.5f, -5.5f, 5, -0.0f, inf}, b[] = {2, 2, 0, 3, 2};
  const float rest[] = {1.5f, -1.5f, nan, -0.0f, nan};
  EXPECT_OK(binary(TT_OP_REMAINDER, TT_F32, 5, a, b, r));
  EXPECT(same_f32(r, rest, 5));
  uint8_t finite[5];
  tt_type_t type = VECTOR(TT_F32, 5);
  const void *in = s;
  void *out = finite;
  EXPECT_OK(run_op(TT_OP_IS_FINITE, NULL, 0, &type, 1, &in, NULL, 0, &out));
  EXPECT(SAME(finite, ((uint8_t[]){1, 1, 0, 1, 0})));
}

TEST(float_rounding) {
  const float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -2.5f}, even[] = {0, 2, 2, -0.0f, -2};
  const float away[] = {1, 2, 3, -1, -3};
  float r[5];
  EXPECT_OK(unary(TT_OP_ROUND_NEAREST_EVEN, TT_F32, 5, x, r));
  EXPECT(same_f32(r, even, 5));
  EXPECT_OK(unary(TT_OP_ROUND_NEAREST_AFZ, TT_F32, 5, x, r));
  EXPECT(same_f32(r, away, 5));
  // Sums and products of f32 are exactly rounded, also among denormals.
  const float a[] = {16777216, 1e-45f, 0.1f, 3e38f, 1.17549435e-38f};
  const float b[] = {1, 0.5f, 0.2f, 3, 0.75f},
              product[] = {16777216, 0, 0.1f * 0.2f, INFINITY, 1.17549435e-38f * 0.75f};
  EXPECT_OK(binary(TT_OP_MULTIPLY, TT_F32, 5, a, b, r));
  EXPECT(same_f32(r, product, 5));
  EXPECT_OK(binary(TT_OP_ADD, TT_F32, 1, a, b, r));
  EXPECT(same_f32(r, a, 1));
}

TEST(conversions) {
  const float x[] = {NAN, 1e10f, -1e10f, 127.9f, -128.9f, -0.9f, INFINITY};
  const int8_t s8[] = {0, 127, -128, 127, -128, 0, 127};
  const uint8_t u8[] = {0, 255, 0, 127, 0, 0, 255}, truth[] = {1, 1, 1, 1, 1, 1, 1};
  int8_t a[7];
  uint8_t b[7];
  EXPECT_OK(convert(TT_F32, TT_S8, 7, x, a));
  EXPECT(SAME(a, s8));
  EXPECT_OK(convert(TT_F32, TT_U8, 7, x, b));
  EXPECT(SAME(b, u8));
  EXPECT_OK(convert(TT_F32, TT_I1, 7, x, b));
  EXPECT(SAME(b, truth));
  int64_t wide[7];
  const double d[] = {9.3e18, -9.3e18, NAN, 9223372036854774784.0, 0.5, -1.5, 3};
  EXPECT_OK(convert(TT_F64, TT_S64, 7, d, wide));
  EXPECT(
      SAME(wide, ((int64_t[]){INT64_MAX, INT64_MIN, 0, INT64_C(9223372036854774784), 0, -1, 3})));
  // Integers wrap to fewer bits.
  const int32_t i[] = {300, -1, 128, 255, 16, 9, -9};
  EXPECT_OK(convert(TT_S32, TT_S8, 7, i, a));
  EXPECT(SAME(a, ((int8_t[]){44, -1, -128, -1, 16, 9, -9})));
  EXPECT_OK(convert(TT_S32, TT_S4, 7, i, a));
  EXPECT(SAME(a, ((int8_t[]){-4, -1, 0, -1, 0, -7, 7})));
}

TEST(conversions_round_once) {
  // 2^24 + 1 and 2^25 + 3 tie in f32; s64 values beyond 2^53 must not round twice.
  const int64_t i[] = {16777217, 33554435, (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1};
  float f[3];
  EXPECT_OK(convert(TT_S64, TT_F32, 3, i, f));
  EXPECT(same_f32(f, ((float[]){16777216, 33554436, 0x1.000002p60f}), 3));
  // Just above the tie between two bf16 (f16) values: by way of f32 it would round down.
  const double d[] = {1.00390625 + 0x1p-40, 1.00390625};
  uint16_t h[2];
  EXPECT_OK(convert(TT_F64, TT_BF16, 2, d, h));
  EXPECT(SAME(h, ((uint16_t[]){0x3f81, 0x3f80})));
  const double e[] = {1.0625 + 0x1p-40, 1.0625, 448, 465, 1e9};
  uint8_t q[5];
  EXPECT_OK(convert(TT_F64, TT_F8E4M3FN, 5, e, q));
  EXPECT(SAME(q, ((uint8_t[]){0x39, 0x38, 0x7e, 0x7f, 0x7f})));
  const uint64_t u[] = {UINT64_MAX, (UINT64_C(1) << 63) + (UINT64_C(1) << 39), 3};
  EXPECT_OK(convert(TT_U64, TT_F32, 3, u, f));
  EXPECT(same_f32(f, ((float[]){0x1p64f, 0x1p63f, 3}), 3));
}

TEST(compares) {
  const float x[] = {NAN, -0.0f, 1, -NAN}, y[] = {NAN, 0.0f, 2, 1};
  tt_type_t types[2] = {VECTOR(TT_F32, 4), VECTOR(TT_F32, 4)};
  const void *in[2] = {x, y};
  uint8_t r[4];
  void *out = r;
  tt_attr_t attrs[2] = {
      {.key = TT_ATTR_COMPARISON_DIRECTION, .kind = TT_ATTR_KIND_INT, .u.i = TT_LE},
      {.key = TT_ATTR_COMPARE_TYPE, .kind = TT_ATTR_KIND_INT, .u.i = TT_COMPARE_FLOAT}};
  EXPECT_OK(run_op(TT_OP_COMPARE, attrs, 2, types, 2, in, NULL, 0, &out));
  EXPECT(SAME(r, ((uint8_t[]){0, 1, 1, 0})));
  attrs[0].u.i = TT_NE;
  EXPECT_OK(run_op(TT_OP_COMPARE, attrs, 2, types, 2, in, NULL, 0, &out));
  EXPECT(SAME(r, ((uint8_t[]){1, 0, 1, 1})));
  attrs[0].u.i = TT_LT;
  attrs[1].u.i = TT_COMPARE_TOTALORDER;
  EXPECT_OK(run_op(TT_OP_COMPARE, attrs, 2, types, 2, in, NULL, 0, &out));
  EXPECT(SAME(r, ((uint8_t[]){0, 1, 1, 1})));
}

TEST(select_and_clamp) {
  tt_type_t types[3] = {SCALAR(TT_I1), VECTOR(TT_F32, 2), VECTOR(TT_F32, 2)};
  const uint8_t no = 0;
  const float x[] = {1, 2}, y[] = {3, 4}, low = 1.5f, high = 1.75f;
  const void *in[3] = {&no, x, y};
  float r[2];
  void *out = r;
  EXPECT_OK(run_op(TT_OP_SELECT, NULL, 0, types, 3, in, NULL, 0, &out));
  EXPECT(same_f32(r, y, 2));
  tt_type_t clamp[3] = {SCALAR(TT_F32), VECTOR(TT_F32, 2), SCALAR(TT_F32)};
  const void *bounds[3] = {&low, x, &high};
  EXPECT_OK(run_op(TT_OP_CLAMP, NULL, 0, clamp, 3, bounds, NULL, 0, &out));
  EXPECT(same_f32(r, ((float[]){1.5f, 1.75f}), 2));
}

TEST(reduce_precision) {
  const float x[] = {1.00390625f, 1.01171875f, 1e-39f, 3.4e38f, NAN};
  tt_type_t type = VECTOR(TT_F32, 5);
  const void *in = x;
  float r[5];
  void *out = r;
  tt_attr_t attrs[2] = {{.key = TT_ATTR_EXPONENT_BITS, .kind = TT_ATTR_KIND_INT, .u.i = 8},
                        {.key = TT_ATTR_MANTISSA_BITS, .kind = TT_ATTR_KIND_INT, .u.i = 7}};
  EXPECT_OK(run_op(TT_OP_REDUCE_PRECISION, attrs, 2, &type, 1, &in, NULL, 0, &out));
  EXPECT(same_f32(r, ((float[]){1, 1.015625f, 0, INFINITY, NAN}), 5));
  attrs[0].u.i = 5;
  attrs[1].u.i = 10;
  const float h[] = {65519, 65520, 1e-5f, 6.103515625e-5f, -1.0f / 3};
  in = h;
  EXPECT_OK(run_op(TT_OP_REDUCE_PRECISION, attrs, 2, &type, 1, &in, NULL, 0, &out));
  EXPECT(same_f32(r, ((float[]){65504, INFINITY, 0, 6.103515625e-5f, -0.333251953125f}), 5));
}

TEST(special_functions) {
  const double x[] = {0.5, -0.25, 0.999999999, 1e-10, 1, -1, 2, 0};
  const double inverse[] = {0.476936276204469873,
                            -0.225312055012178105,
                            4.320005384913444,
                            8.86226925452758e-11,
                            INFINITY,
                            -INFINITY,
                            NAN,
                            0};
  double r[8];
  EXPECT_OK(unary(TT_OP_ERF_INV, TT_F64, 8, x, r));
  EXPECT(near_f64(r, inverse, 8, 1e-9));
  EXPECT(near_f64(r, inverse, 2, 1e-15));
  const double d[] = {1, 0.5, -0.5, 10, 0, -3, INFINITY, 1e-3};
  const double psi[] = {-0.577215664901532861,
                        -1.963510026021423479,
                        0.036489973978576520,
                        2.251752589066721108,
                        NAN,
                        NAN,
                        INFINITY,
                        -1000.5755719318103};
  EXPECT_OK(unary(TT_OP_DIGAMMA, TT_F64, 8, d, r));
  EXPECT(near_f64(r, psi, 8, 4e-15));
  const float from[] = {1, 0, -0.0f, 1, NAN}, to[] = {2, 1, -1, 1, 0};
  float next[5];
  EXPECT_OK(binary(TT_OP_NEXT_AFTER, TT_F32, 5, from, to, next));
  EXPECT(same_f32(next, ((float[]){0x1.000002p0f, 1e-45f, -1e-45f, 1, NAN}), 5));
}

TEST(complex_numbers) {
  const double x[] = {3, 4, 0, 0, 1, 1}, y[] = {1, -2, 0, 0, 0, 2};
  double r[6];
  EXPECT_OK(binary(TT_OP_MULTIPLY, TT_C128, 3, x, y, r));
  EXPECT(near_f64(r, ((double[]){11, -2, 0, 0, -2, 2}), 6, 0));
  EXPECT_OK(binary(TT_OP_POWER, TT_C128, 3, x, y, r));
  EXPECT(near_f64(r + 2, ((double[]){1, 0}), 2, 0));
  tt_type_t type = VECTOR(TT_C128, 3);
  const void *in = x;
  void *out = r;
  EXPECT_OK(run_op(TT_OP_ABS, NULL, 0, &type, 1, &in, NULL, 0, &out));
  EXPECT(near_f64(r, ((double[]){5, 0, sqrt(2)}), 3, 0));
  EXPECT_OK(unary(TT_OP_LOG_PLUS_ONE, TT_C128, 3, ((double[]){1e-20, 0, 0, 1, -1, 0}), r));
  EXPECT(near_f64(r, ((double[]){1e-20, 0, 0.5 * log(2), M_PI / 4, -INFINITY, 0}), 6, 1e-16));
}

TEST(undefined_types_fail) {
  const uint8_t x[] = {1};
  uint8_t r[1];
  tt_status_t status = unary(TT_OP_TANH, TT_I1, 1, x, r);
  EXPECT(status != TT_OK_STATUS);  // by the shape rules or the executor, never by a crash
  tt_status_release(status);
}

TEST(element_widths) {
  int64_t wide[3] = {-1, 200, 7};
  uint8_t bytes[3];
  tt_element_store(TT_S4, wide, 3, bytes);
  EXPECT(SAME(bytes, ((uint8_t[]){0xff, 0xf8, 7})));
  tt_element_load(TT_S4, bytes, 3, wide);
  EXPECT(SAME(wide, ((int64_t[]){-1, -8, 7})));
  EXPECT(tt_element_index(TT_U64, &(uint64_t){UINT64_MAX}, 0) == INT64_MAX);
  EXPECT(tt_element_round(TT_F16, 65520) == (double)INFINITY);
}

TEST_MAIN(integer_division, integer_wraps, integer_power, shifts, bits, predicates, nibbles,
          float_extremes, float_rounding, conversions, conversions_round_once, compares,
          select_and_clamp, reduce_precision, special_functions, complex_numbers,
          undefined_types_fail, element_widths)
