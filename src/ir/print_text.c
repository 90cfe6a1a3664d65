// The printer's sink, types and dense data.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/half.h"
#include "ir/print.h"

// A failure is remembered, not returned: printers go on writing to nowhere and ask once, at the
// end.
bool tt__text_reserve(tt__text_t *t, size_t more) {
  if (t->failed) {
    t->size = 0;  // what is written from here on is thrown away; keep it from growing
    if (more <= t->capacity) return true;
  }
  size_t wanted = t->capacity < 2048 ? 4096 : t->capacity * 2;
  if (wanted < t->size + more) wanted = t->size + more;
  char *data = tt_realloc(t->data, wanted);
  if (!data) {
    t->failed = true;
    return false;
  }
  t->data = data;
  t->capacity = wanted;
  return true;
}

// By hand: most of a program's text is numbers, and snprintf is slow at them.
void tt__text_int(tt__text_t *t, int64_t value) {
  char digits[24], *p = digits + sizeof digits;
  uint64_t u = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do {
    *--p = (char)('0' + u % 10);
    u /= 10;
  } while (u);
  if (value < 0) *--p = '-';
  tt__text_put(t, p, (size_t)(digits + sizeof digits - p));
}

// MLIR's escapes: everything but printable ASCII as two hexadecimal digits.
void tt__text_quoted(tt__text_t *t, const char *s, size_t size) {
  tt__text_put(t, "\"", 1);
  for (size_t i = 0; i < size; i++) {
    unsigned char ch = (unsigned char)s[i];
    if (ch == '"' || ch == '\\') {
      const char escaped[] = {'\\', (char)ch};
      tt__text_put(t, escaped, 2);
    } else if (ch < 32 || ch >= 127) {
      char hex[4];
      snprintf(hex, sizeof hex, "\\%02X", ch);
      tt__text_put(t, hex, 3);
    } else {
      tt__text_put(t, &s[i], 1);
    }
  }
  tt__text_put(t, "\"", 1);
}

void tt__text_ints(tt__text_t *t, const int64_t *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) tt__text_put(t, ", ", 2);
    tt__text_int(t, list[i]);
  }
}

void tt__text_type(tt__text_t *t, const tt_type_t *type) {
  tt__text_put(t, "tensor<", 7);
  for (uint32_t i = 0; i < type->rank; i++) {
    tt__text_int(t, type->dims[i]);
    tt__text_put(t, "x", 1);
  }
  tt__text_str(t, tt_dtype_text(type->dtype));
  tt__text_put(t, ">", 1);
}

// MLIR's float literals need a point: 1 -> 1.0, 1e-05 -> 1.0e-05.
static void put_decimal(tt__text_t *t, const char *digits) {
  const char *exponent = strchr(digits, 'e');
  if (strchr(digits, '.')) {
    tt__text_str(t, digits);
    return;
  }
  tt__text_put(t, digits, exponent ? (size_t)(exponent - digits) : strlen(digits));
  tt__text_put(t, ".0", 2);
  if (exponent) tt__text_str(t, exponent);
}

// The shortest of a few precisions that reads back as the same number; NaN and infinity as bits.
static void put_float(tt__text_t *t, tt_dtype_t dtype, double value, uint64_t bits) {
  static const int narrow[] = {6, 9}, wide[] = {6, 15, 17};
  const int *digits = dtype == TT_F64 ? wide : narrow;
  char text[40];
  if (!isfinite(value)) {
    snprintf(text, sizeof text, "0x%0*" PRIX64, tt_dtype_infos[dtype].bits / 4, bits);
    tt__text_str(t, text);
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
static void put_real(tt__text_t *t, tt_dtype_t dtype, const unsigned char *p) {
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
static void put_element(tt__text_t *t, tt_dtype_t dtype, const unsigned char *p) {
  size_t size = tt_dtype_size(dtype);
  uint64_t bits = 0;
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_PRED:
      tt__text_str(t, *p ? "true" : "false");
      return;
    case TT_CLASS_SIGNED:
      memcpy(&bits, p, size);
      tt__text_int(t, (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
      return;
    case TT_CLASS_UNSIGNED: {
      char text[24];
      memcpy(&bits, p, size);
      snprintf(text, sizeof text, "%" PRIu64, bits);
      tt__text_str(t, text);
      return;
    }
    case TT_CLASS_FLOAT:
      put_real(t, dtype, p);
      return;
    case TT_CLASS_COMPLEX:
      tt__text_put(t, "(", 1);
      put_real(t, tt_dtype_real(dtype), p);
      tt__text_put(t, ",", 1);
      put_real(t, tt_dtype_real(dtype), p + size / 2);
      tt__text_put(t, ")", 1);
      return;
  }
}

static void put_nested(tt__text_t *t, const tt_type_t *type, uint32_t dim,
                       const unsigned char **p) {
  if (dim == type->rank) {
    put_element(t, type->dtype, *p);
    *p += tt_dtype_size(type->dtype);
    return;
  }
  tt__text_put(t, "[", 1);
  for (int64_t i = 0; i < type->dims[dim]; i++) {
    if (i) tt__text_put(t, ", ", 2);
    put_nested(t, type, dim + 1, p);
  }
  tt__text_put(t, "]", 1);
}

static void put_hex(tt__text_t *t, const unsigned char *bytes, size_t size) {
  static const char digits[] = "0123456789ABCDEF";
  tt__text_put(t, "\"0x", 3);
  for (size_t i = 0; i < size; i++) {
    const char pair[] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
    tt__text_put(t, pair, 2);
  }
  tt__text_put(t, "\"", 1);
}

// A splat as one element, a few elements as lists, many as hexadecimal bytes: those are read
// fastest and are exact. Types below a byte stay lists, whose packing in bytes nobody has to know.
void tt__print_dense(tt__text_t *t, const tt_type_t *type, const void *bytes, size_t size) {
  enum { READABLE = 32 };  // more elements than this go out as raw bytes
  const unsigned char *p = bytes;
  int64_t elements = tt_type_elements(type);
  size_t one = tt_dtype_size(type->dtype);
  tt__text_put(t, "dense<", 6);
  if (elements > 0 && size == one) {
    put_element(t, type->dtype, p);
  } else if (elements > READABLE && tt_dtype_infos[type->dtype].bits >= 8) {
    put_hex(t, p, size);
  } else if (elements > 0) {
    put_nested(t, type, 0, &p);
  }
  tt__text_put(t, ">", 1);
}
