// Numbers as bytes of an element type.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "ir/internal.h"

static void store_int(tt_dtype_t dtype, uint64_t bits, void *out) {
  if (dtype == TT_S4) bits = (uint64_t)((int64_t)(bits << 60) >> 60);
  if (dtype == TT_U4) bits &= 15;
  memcpy(out, &bits, tt_dtype_size(dtype));  // little-endian hosts only, as PJRT is
}

// The largest value of the type's width: 2^(bits - 1) - 1, and 2^bits - 1 below.
static int64_t signed_limit(tt_dtype_t dtype) {
  return (int64_t)(UINT64_MAX >> (65 - tt_dtype_infos[dtype].bits));
}

static uint64_t unsigned_limit(tt_dtype_t dtype) {
  return UINT64_MAX >> (64 - tt_dtype_infos[dtype].bits);
}

// One rounding, to nearest even, straight from the double.
static void store_real(tt_dtype_t dtype, double value, void *out) {
  float f = (float)value;
  uint16_t h;
  switch (dtype) {
    case TT_F64:
      memcpy(out, &value, 8);
      return;
    case TT_F32:
      memcpy(out, &f, 4);
      return;
    case TT_BF16:
      h = tt_f64_to_bf16(value);
      memcpy(out, &h, 2);
      return;
    case TT_F16:
      h = tt_f64_to_f16(value);
      memcpy(out, &h, 2);
      return;
    case TT_F8E4M3FN:
      *(uint8_t *)out = tt_f64_to_f8e4m3fn(value);
      return;
    default:
      *(uint8_t *)out = tt_f64_to_f8e5m2(value);
  }
}

// Integers truncate towards zero and saturate, NaN gives 0, as StableHLO's convert does on our
// device.
void tt__element_double(tt_dtype_t dtype, double value, void *out) {
  double truncated = isnan(value) ? 0 : trunc(value);
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_PRED:
      *(uint8_t *)out = value != 0;
      return;
    case TT_CLASS_SIGNED: {
      int64_t limit = signed_limit(dtype);
      double edge = (double)limit;  // for s64 this is 2^63, itself out of range
      int64_t i = truncated >= edge        ? limit
                  : truncated <= -edge - 1 ? -limit - 1
                                           : (int64_t)truncated;
      store_int(dtype, (uint64_t)i, out);
      return;
    }
    case TT_CLASS_UNSIGNED: {
      uint64_t limit = unsigned_limit(dtype);
      uint64_t u = truncated >= (double)limit ? limit : truncated <= 0 ? 0 : (uint64_t)truncated;
      store_int(dtype, u, out);
      return;
    }
    case TT_CLASS_FLOAT:
      store_real(dtype, value, out);
      return;
    case TT_CLASS_COMPLEX: {
      tt_dtype_t part = tt_dtype_real(dtype);
      store_real(part, value, out);
      store_real(part, 0, (char *)out + tt_dtype_size(part));
      return;
    }
  }
}

// Exact where the type holds the value; an int64 does not always fit a double.
void tt__element_int(tt_dtype_t dtype, int64_t value, void *out) {
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_SIGNED: {
      int64_t limit = signed_limit(dtype);
      store_int(dtype,
                (uint64_t)(value > limit        ? limit
                           : value < -limit - 1 ? -limit - 1
                                                : value),
                out);
      return;
    }
    case TT_CLASS_UNSIGNED: {
      uint64_t limit = unsigned_limit(dtype);
      store_int(dtype, value < 0 ? 0 : (uint64_t)value > limit ? limit : (uint64_t)value, out);
      return;
    }
    case TT_CLASS_PRED:
      *(uint8_t *)out = value != 0;
      return;
    default:
      break;
  }
  double d = (double)value;
  if ((dtype == TT_F32 || dtype == TT_C64) && (int64_t)d != value) {
    // Two roundings could differ from one: go to f32 at once.
    float parts[2] = {(float)value, 0};
    memcpy(out, parts, tt_dtype_size(dtype));
    return;
  }
  tt__element_double(dtype, d, out);
}

// What a maximum [minimum] over nothing is. Complex numbers have no order.
bool tt__element_extreme(tt_dtype_t dtype, bool highest, void *out) {
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_PRED:
      *(uint8_t *)out = highest;
      return true;
    case TT_CLASS_SIGNED:
      tt__element_int(dtype, highest ? INT64_MAX : INT64_MIN, out);
      return true;
    case TT_CLASS_UNSIGNED:
      store_int(dtype, highest ? unsigned_limit(dtype) : 0, out);
      return true;
    case TT_CLASS_FLOAT: {
      // f8E4M3FN has no infinity; 448 is its largest number.
      double limit = dtype == TT_F8E4M3FN ? 448 : (double)INFINITY;
      store_real(dtype, highest ? limit : -limit, out);
      return true;
    }
    default:
      return false;
  }
}

// The value that a reduction by `op` may start from without changing its result.
bool tt__element_identity(tt_op_t op, tt_dtype_t dtype, void *out) {
  switch (op) {
    case TT_OP_ADD:
    case TT_OP_OR:
    case TT_OP_XOR:
      tt__element_double(dtype, 0, out);
      return true;
    case TT_OP_MULTIPLY:
      tt__element_double(dtype, 1, out);
      return true;
    case TT_OP_AND:
      memset(out, 0xff, tt_dtype_size(dtype));
      if (dtype == TT_I1) *(uint8_t *)out = 1;
      if (dtype == TT_U4) *(uint8_t *)out = 15;
      return true;
    case TT_OP_MAXIMUM:
    case TT_OP_MINIMUM:
      return tt__element_extreme(dtype, op == TT_OP_MINIMUM, out);
    default:
      return false;
  }
}
