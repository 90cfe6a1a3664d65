// The printer's types and dense data.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/half.h"
#include "ir/print.h"

void tt__print_type(tt_text_t *t, const tt_type_t *type) {
  tt_text_put(t, "tensor<", 7);
  for (uint32_t i = 0; i < type->rank; i++) {
    tt_text_int(t, type->dims[i]);
    tt_text_put(t, "x", 1);
  }
  tt_text_str(t, tt_dtype_text(type->dtype));
  tt_text_put(t, ">", 1);
}

// MLIR's float literals need a point: 1 -> 1.0, 1e-05 -> 1.0e-05.
static void put_decimal(tt_text_t *t, const char *digits) {
  const char *exponent = strchr(digits, 'e');
  if (strchr(digits, '.')) {
    tt_text_str(t, digits);
    return;
  }
  tt_text_put(t, digits, exponent ? (size_t)(exponent - digits) : strlen(digits));
  tt_text_put(t, ".0", 2);
  if (exponent) tt_text_str(t, exponent);
}

// The shortest of a few precisions that reads back as the same number; NaN and infinity as bits.
static void put_float(tt_text_t *t, tt_dtype_t dtype, double value, uint64_t bits) {
  static const int narrow[] = {6, 9}, wide[] = {6, 15, 17};
  const int *digits = dtype == TT_F64 ? wide : narrow;
  char text[40];
  if (!isfinite(value)) {
    snprintf(text, sizeof text, "0x%0*" PRIX64, tt_dtype_infos[dtype].bits / 4, bits);
    tt_text_str(t, text);
    return;
  }
  for (int i = 0, n = dtype == TT_F64 ? 3 : 2; i < n; i++) {
    snprintf(text, sizeof text, "%.*g", digits[i], value);
    double back = strtod(text, NULL);
    if (back == value || (dtype != TT_F64 && (float)back == (float)value)) break;
  }
  put_decimal(t, text);
}

// Every narrow float is exact in double, so its digits are those of the double.
static void put_real(tt_text_t *t, tt_dtype_t dtype, const unsigned char *p) {
  double d = 0;
  uint64_t bits = 0;
  memcpy(&bits, p, tt_dtype_size(dtype));
  switch (dtype) {
    case TT_F64:
      memcpy(&d, p, 8);
      break;
    case TT_F32:
      d = (double)tt_bits_to_f32((uint32_t)bits);
      break;
    case TT_BF16:
      d = (double)tt_bf16_to_f32((uint16_t)bits);
      break;
    case TT_F16:
      d = (double)tt_f16_to_f32((uint16_t)bits);
      break;
    case TT_F8E4M3FN:
      d = (double)tt_f8e4m3fn_to_f32((uint8_t)bits);
      break;
    default:
      d = (double)tt_f8e5m2_to_f32((uint8_t)bits);
  }
  put_float(t, dtype, d, bits);
}

// Shifting a signed element to the top and back extends its sign.
static void put_element(tt_text_t *t, tt_dtype_t dtype, const unsigned char *p) {
  size_t size = tt_dtype_size(dtype);
  uint64_t bits = 0;
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_PRED:
      tt_text_str(t, *p ? "true" : "false");
      return;
    case TT_CLASS_SIGNED:
      memcpy(&bits, p, size);
      tt_text_int(t, (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
      return;
    case TT_CLASS_UNSIGNED: {
      char text[24];
      memcpy(&bits, p, size);
      snprintf(text, sizeof text, "%" PRIu64, bits);
      tt_text_str(t, text);
      return;
    }
    case TT_CLASS_FLOAT:
      put_real(t, dtype, p);
      return;
    case TT_CLASS_COMPLEX:
      tt_text_put(t, "(", 1);
      put_real(t, tt_dtype_real(dtype), p);
      tt_text_put(t, ",", 1);
      put_real(t, tt_dtype_real(dtype), p + size / 2);
      tt_text_put(t, ")", 1);
      return;
  }
}

static void put_nested(tt_text_t *t, const tt_type_t *type, uint32_t dim, const unsigned char **p) {
  if (dim == type->rank) {
    put_element(t, type->dtype, *p);
    *p += tt_dtype_size(type->dtype);
    return;
  }
  tt_text_put(t, "[", 1);
  for (int64_t i = 0; i < type->dims[dim]; i++) {
    if (i) tt_text_put(t, ", ", 2);
    put_nested(t, type, dim + 1, p);
  }
  tt_text_put(t, "]", 1);
}

static void put_hex(tt_text_t *t, const unsigned char *bytes, size_t size) {
  static const char digits[] = "0123456789ABCDEF";
  tt_text_put(t, "\"0x", 3);
  for (size_t i = 0; i < size; i++) {
    const char pair[] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
    tt_text_put(t, pair, 2);
  }
  tt_text_put(t, "\"", 1);
}

// A splat as one element, a few elements as lists, many as hexadecimal bytes: those are read
// fastest and are exact. Types below a byte stay lists, whose packing in bytes nobody has to know.
void tt__print_dense(tt_text_t *t, const tt_type_t *type, const void *bytes, size_t size) {
  enum { READABLE = 32 };  // more elements than this go out as raw bytes
  const unsigned char *p = bytes;
  int64_t elements = tt_type_elements(type);
  size_t one = tt_dtype_size(type->dtype);
  tt_text_put(t, "dense<", 6);
  if (elements > 0 && size == one) {
    put_element(t, type->dtype, p);
  } else if (elements > READABLE && tt_dtype_infos[type->dtype].bits >= 8) {
    put_hex(t, p, size);
  } else if (elements > 0) {
    put_nested(t, type, 0, &p);
  }
  tt_text_put(t, ">", 1);
}
