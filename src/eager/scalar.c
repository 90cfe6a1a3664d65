// Run-time scalars: a Python number in the bits of a dtype.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "eager/internal.h"

// Out-of-range values saturate and NaN is 0: what the device's own conversion gives.
static int64_t to_int64(double d) {
  if (!(d == d)) return 0;
  if (d >= 9223372036854775808.0) return INT64_MAX;
  if (d < -9223372036854775808.0) return INT64_MIN;
  return (int64_t)d;
}

static uint64_t bits_of(const void *value, size_t size) {
  uint64_t bits = 0;
  memcpy(&bits, value, size);
  return bits;
}

static uint64_t float_bits(tt_dtype_t dtype, double d) {
  switch (dtype) {
    case TT_F64:
      return bits_of(&d, 8);
    case TT_BF16:
      return tt_f64_to_bf16(d);
    case TT_F16:
      return tt_f64_to_f16(d);
    case TT_F8E4M3FN:
      return tt_f32_to_f8e4m3fn((float)d);
    case TT_F8E5M2:
      return tt_f32_to_f8e5m2((float)d);
    default: {
      float f = (float)d;
      return bits_of(&f, 4);
    }
  }
}

void tt__scalar_bits(uint8_t kind, const void *payload, tt_dtype_t dtype, uint64_t *out_bits) {
  double d[2] = {0, 0};
  int64_t i = 0;
  bool integer = kind == TT_ARG_INT || kind == TT_ARG_BOOL;
  out_bits[0] = out_bits[1] = 0;
  if (integer) {
    memcpy(&i, payload, 8);
    d[0] = (double)i;
  } else {
    memcpy(d, payload, kind == TT_ARG_COMPLEX ? 16 : 8);
    if (!tt_dtype_is_float(dtype)) i = to_int64(d[0]);
  }
  if (dtype == TT_I1) {
    out_bits[0] = integer ? i != 0 : d[0] != 0 || d[1] != 0;
  } else if (tt_dtype_is_int(dtype)) {
    out_bits[0] = bits_of(&i, tt_dtype_size(dtype));
  } else if (dtype == TT_C64) {
    out_bits[0] = float_bits(TT_F32, d[0]) | float_bits(TT_F32, d[1]) << 32;
  } else if (dtype == TT_C128) {
    out_bits[0] = float_bits(TT_F64, d[0]);
    out_bits[1] = float_bits(TT_F64, d[1]);
  } else if (dtype == TT_F32 && integer) {
    float f = (float)i;  // one rounding, not by way of f64
    out_bits[0] = bits_of(&f, 4);
  } else {
    out_bits[0] = float_bits(dtype, d[0]);
  }
}

void tt__number_of(tt_dtype_t dtype, const void *data, tt_number_t *out_number) {
  float f[2];
  int64_t i = 0;
  uint16_t h;
  uint8_t byte;
  size_t size = tt_dtype_size(dtype);
  *out_number = (tt_number_t){.kind = TT_ARG_FLOAT};
  switch (dtype) {
    case TT_F64:
      memcpy(&out_number->u.f, data, 8);
      return;
    case TT_F32:
      memcpy(f, data, 4);
      out_number->u.f = (double)f[0];
      return;
    case TT_BF16:
    case TT_F16:
      memcpy(&h, data, 2);
      out_number->u.f = (double)(dtype == TT_BF16 ? tt_bf16_to_f32(h) : tt_f16_to_f32(h));
      return;
    case TT_F8E4M3FN:
    case TT_F8E5M2:
      memcpy(&byte, data, 1);
      out_number->u.f =
          (double)(dtype == TT_F8E4M3FN ? tt_f8e4m3fn_to_f32(byte) : tt_f8e5m2_to_f32(byte));
      return;
    case TT_C64:
      memcpy(f, data, 8);
      out_number->kind = TT_ARG_COMPLEX;
      out_number->u.complex[0] = (double)f[0];
      out_number->u.complex[1] = (double)f[1];
      return;
    case TT_C128:
      out_number->kind = TT_ARG_COMPLEX;
      memcpy(out_number->u.complex, data, 16);
      return;
    default:
      break;
  }
  memcpy(&i, data, size);
  if (tt_dtype_is_signed_int(dtype) && size < 8) {
    int shift = 64 - 8 * (int)size;
    i = (int64_t)((uint64_t)i << shift) >> shift;
  }
  out_number->kind = dtype == TT_I1 ? TT_ARG_BOOL : TT_ARG_INT;
  out_number->u.i = dtype == TT_I1 ? i != 0 : i;
}

// What PyTorch calls the type in its message; NULL for those that take every number.
static const char *limited_type(tt_dtype_t dtype) {
  static const char *const names[TT_DTYPE_COUNT] = {
      [TT_U8] = "uint8_t",  [TT_S8] = "int8_t",     [TT_S16] = "int16_t",        [TT_S32] = "int",
      [TT_S64] = "int64_t", [TT_F16] = "c10::Half", [TT_BF16] = "c10::BFloat16", [TT_F32] = "float",
      [TT_F64] = "double",
  };
  return names[dtype];
}

static double largest(tt_dtype_t dtype) {
  switch (dtype) {
    case TT_F16:
      return 65504;
    case TT_BF16:
      return 0x1.FEp127;
    case TT_F32:
      return (double)FLT_MAX;
    case TT_F64:
      return DBL_MAX;
    default:
      return ldexp(1, 8 * (int)tt_dtype_size(dtype) - tt_dtype_is_signed_int(dtype)) - 1;
  }
}

// Integers may wrap below zero in an unsigned type, as PyTorch lets them.
static bool fits(const tt_arg_t *a, tt_dtype_t dtype) {
  bool integer = a->kind == TT_ARG_INT, is_float = tt_dtype_is_float(dtype);
  double d = integer ? (double)a->u.i : a->kind == TT_ARG_FLOAT ? a->u.f : a->u.complex[0];
  double most = largest(dtype), least = is_float ? -most : -most - 1;
  if (a->kind == TT_ARG_COMPLEX && a->u.complex[1] != 0) return false;
  if (integer && dtype == TT_S64) return true;
  if (!is_float && !tt_dtype_is_signed_int(dtype)) least = integer ? -most : 0;
  if (is_float && (isinf(d) || isnan(d))) return true;
  return d >= least && (d <= most || (dtype == TT_S64 && d < 0x1p63));
}

tt_status_t tt__check_fits(const tt_call_t *call, bool promotes) {
  const tt_arg_t *self = &call->args[0];
  if (self->kind != TT_ARG_TENSOR) return TT_OK_STATUS;
  tt_dtype_t dtype = (tt_dtype_t)self->u.tensor->dtype;
  const char *name = limited_type(dtype);
  for (uint32_t i = 1; name && i < call->arg_count; i++) {
    const tt_arg_t *a = &call->args[i];
    bool number = a->kind == TT_ARG_FLOAT || a->kind == TT_ARG_COMPLEX ||
                  (a->kind == TT_ARG_INT && a->count == 1);
    if (promotes && a->kind == TT_ARG_FLOAT && tt_dtype_is_int(dtype)) return TT_OK_STATUS;
    if (number && !fits(a, dtype)) {
      return TT_ERROR(INVALID_ARGUMENT, "value cannot be converted to type %s without overflow",
                      name);
    }
  }
  return TT_OK_STATUS;
}
