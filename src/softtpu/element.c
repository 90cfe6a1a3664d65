// Loads and stores are one loop a storage type, made by macros, so that compilers vectorise each;
// conversions between kinds go element by element through the widest form.
#include "softtpu/element.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

// Elements a conversion has on its stack: 4 kB for each of the two sides.
enum { CHUNK = 256 };

// f64 -> f32 leaving the last bit set where the result is inexact, so that a second rounding to a
// type of at most 22 significant bits equals one rounding (rounding to odd).
static float real_to_f32_odd(double x) {
  float f = (float)x;
  if ((double)f == x || isnan(x)) return f;
  uint32_t bits = tt_f32_to_bits(f);
  if (fabs((double)f) > fabs(x)) bits--;  // towards zero; infinity steps to the largest finite
  return tt_bits_to_f32(bits | 1u);
}

// An integer as a double rounded to odd: exact below 2^53, else the last bit is sticky.
static double magnitude_to_real_odd(uint64_t u) {
  if (u >> 53 == 0) return (double)u;
  uint64_t kept = u & ~UINT64_C(0x7ff);
  if (kept != u) kept |= UINT64_C(0x800);
  return (double)kept;
}

static uint8_t real_to_f8e4m3fn(double x) { return tt_f32_to_f8e4m3fn(real_to_f32_odd(x)); }
static uint8_t real_to_f8e5m2(double x) { return tt_f32_to_f8e5m2(real_to_f32_odd(x)); }

// Flips the sign bit up and takes its weight off again.
static int64_t sign_extend_4(uint8_t byte) { return (int64_t)((byte & 15) ^ 8) - 8; }

#define LOAD(name, ctype, wtype, expr)                \
  case TT_##name: {                                   \
    const ctype *restrict from = (const ctype *)data; \
    wtype *restrict to = (wtype *)wide;               \
    for (int64_t i = 0; i < count; i++) {             \
      ctype x = from[i];                              \
      to[i] = (wtype)(expr);                          \
    }                                                 \
    return;                                           \
  }

// A dispatch over storage types, long because there are many.
void tt_element_load(tt_dtype_t dtype, const void *data, int64_t count, void *wide) {
  switch (dtype) {
    LOAD(I1, uint8_t, uint64_t, x != 0)
    LOAD(S4, uint8_t, int64_t, sign_extend_4(x))
    LOAD(S8, int8_t, int64_t, x)
    LOAD(S16, int16_t, int64_t, x)
    LOAD(S32, int32_t, int64_t, x)
    LOAD(S64, int64_t, int64_t, x)
    LOAD(U4, uint8_t, uint64_t, x & 15)
    LOAD(U8, uint8_t, uint64_t, x)
    LOAD(U16, uint16_t, uint64_t, x)
    LOAD(U32, uint32_t, uint64_t, x)
    LOAD(U64, uint64_t, uint64_t, x)
    LOAD(F8E4M3FN, uint8_t, double, tt_f8e4m3fn_to_f32(x))
    LOAD(F8E5M2, uint8_t, double, tt_f8e5m2_to_f32(x))
    LOAD(BF16, uint16_t, double, tt_bf16_to_f32(x))
    LOAD(F16, uint16_t, double, tt_f16_to_f32(x))
    LOAD(F32, float, double, x)
    LOAD(F64, double, double, x)
    case TT_C64: {
      const float *from = (const float *)data;
      tt_complex_t *to = (tt_complex_t *)wide;
      for (int64_t i = 0; i < count; i++) {
        to[i].re = (double)from[2 * i];
        to[i].im = (double)from[2 * i + 1];
      }
      return;
    }
    case TT_C128: {
      const double *from = (const double *)data;
      tt_complex_t *to = (tt_complex_t *)wide;
      for (int64_t i = 0; i < count; i++) {
        to[i].re = from[2 * i];
        to[i].im = from[2 * i + 1];
      }
      return;
    }
    case TT_DTYPE_COUNT:
    case TT_DTYPE_NONE:
      return;
  }
}

#define STORE(name, ctype, wtype, expr)               \
  case TT_##name: {                                   \
    ctype *restrict to = (ctype *)data;               \
    const wtype *restrict from = (const wtype *)wide; \
    for (int64_t i = 0; i < count; i++) {             \
      wtype x = from[i];                              \
      to[i] = (ctype)(expr);                          \
    }                                                 \
    return;                                           \
  }

void tt_element_store(tt_dtype_t dtype, const void *wide, int64_t count, void *data) {
  switch (dtype) {
    STORE(I1, uint8_t, uint64_t, x != 0)
    STORE(S4, uint8_t, uint64_t, sign_extend_4((uint8_t)x))
    STORE(S8, uint8_t, uint64_t, x)
    STORE(S16, uint16_t, uint64_t, x)
    STORE(S32, uint32_t, uint64_t, x)
    STORE(S64, uint64_t, uint64_t, x)
    STORE(U4, uint8_t, uint64_t, x & 15)
    STORE(U8, uint8_t, uint64_t, x)
    STORE(U16, uint16_t, uint64_t, x)
    STORE(U32, uint32_t, uint64_t, x)
    STORE(U64, uint64_t, uint64_t, x)
    STORE(F8E4M3FN, uint8_t, double, real_to_f8e4m3fn(x))
    STORE(F8E5M2, uint8_t, double, real_to_f8e5m2(x))
    STORE(BF16, uint16_t, double, tt_f64_to_bf16(x))
    STORE(F16, uint16_t, double, tt_f64_to_f16(x))
    STORE(F32, float, double, x)
    STORE(F64, double, double, x)
    case TT_C64: {
      float *to = (float *)data;
      const tt_complex_t *from = (const tt_complex_t *)wide;
      for (int64_t i = 0; i < count; i++) {
        to[2 * i] = (float)from[i].re;
        to[2 * i + 1] = (float)from[i].im;
      }
      return;
    }
    case TT_C128: {
      double *to = (double *)data;
      const tt_complex_t *from = (const tt_complex_t *)wide;
      for (int64_t i = 0; i < count; i++) {
        to[2 * i] = from[i].re;
        to[2 * i + 1] = from[i].im;
      }
      return;
    }
    case TT_DTYPE_COUNT:
    case TT_DTYPE_NONE:
      return;
  }
}

// Integer -> real: f64 takes one rounding here; smaller types round from a value rounded to odd.
static double magnitude_to_real(uint64_t u, tt_dtype_t to) {
  return tt_dtype_real(to) == TT_F64 ? (double)u : magnitude_to_real_odd(u);
}

// The number as a double that rounds to `to` as the exact value would.
static double wide_to_real(tt_wide_t wide, const tt_element_t *x, tt_dtype_t to) {
  switch (wide) {
    case TT_WIDE_REAL:
      return x->real;
    case TT_WIDE_COMPLEX:
      return x->z.re;
    case TT_WIDE_UNSIGNED:
      return magnitude_to_real(x->u, to);
    case TT_WIDE_SIGNED:
      return x->i < 0 ? -magnitude_to_real(UINT64_C(0) - x->u, to) : magnitude_to_real(x->u, to);
  }
  return 0;
}

// 2^(bits - 1) is a double for every width, while the largest int64 is not: comparing with it would
// round it up.
static int64_t real_to_signed(double x, unsigned bits) {
  int64_t max = INT64_MAX >> (64 - bits);
  double limit = ldexp(1.0, (int)bits - 1);
  if (isnan(x)) return 0;
  if (x >= limit) return max;
  if (x < -limit) return -max - 1;
  return (int64_t)x;
}

static uint64_t real_to_unsigned(double x, unsigned bits) {
  if (isnan(x) || x <= 0) return 0;
  if (x >= ldexp(1.0, (int)bits)) return UINT64_MAX >> (64 - bits);
  return (uint64_t)x;
}

static bool wide_is_nonzero(tt_wide_t wide, const tt_element_t *x) {
  switch (wide) {
    case TT_WIDE_REAL:
      return x->real != 0;
    case TT_WIDE_COMPLEX:
      return x->z.re != 0 || x->z.im != 0;
    case TT_WIDE_SIGNED:
    case TT_WIDE_UNSIGNED:
      return x->u != 0;
  }
  return false;
}

// A complex number's real part is where a real number is in the union. Integer to integer keeps all
// bits; the store cuts them.
static tt_element_t convert_one(tt_wide_t wide, const tt_element_t *x, tt_dtype_t to) {
  tt_element_t r = {.u = 0};
  bool fractional = wide == TT_WIDE_REAL || wide == TT_WIDE_COMPLEX;
  switch (tt_dtype_class(to)) {
    case TT_CLASS_PRED:
      r.u = wide_is_nonzero(wide, x);
      break;
    case TT_CLASS_SIGNED:
      r.i = fractional ? real_to_signed(x->real, tt_dtype_infos[to].bits) : x->i;
      break;
    case TT_CLASS_UNSIGNED:
      r.u = fractional ? real_to_unsigned(x->real, tt_dtype_infos[to].bits) : x->u;
      break;
    case TT_CLASS_FLOAT:
      r.real = wide_to_real(wide, x, to);
      break;
    case TT_CLASS_COMPLEX:
      if (wide == TT_WIDE_COMPLEX) return *x;
      r.z.im = 0;
      r.z.re = wide_to_real(wide, x, to);
      break;
  }
  return r;
}

// memcpy in and out of the union: wide arrays are dense in their own kind, not in the union's size.
void tt_element_convert(tt_dtype_t from, const void *data, int64_t count, tt_dtype_t to,
                        void *out) {
  tt_element_t in[CHUNK], result[CHUNK];
  tt_wide_t wide_in = tt_element_wide(from), wide_out = tt_element_wide(to);
  size_t size_in = tt_element_wide_size(wide_in), size_out = tt_element_wide_size(wide_out);
  for (int64_t at = 0; at < count; at += CHUNK) {
    int64_t n = count - at < CHUNK ? count - at : CHUNK;
    tt_element_load(from, (const char *)data + (size_t)at * tt_dtype_size(from), n, in);
    for (int64_t i = 0; i < n; i++) {
      tt_element_t x;
      memcpy(&x, (const char *)in + (size_t)i * size_in, size_in);
      x = convert_one(wide_in, &x, to);
      memcpy((char *)result + (size_t)i * size_out, &x, size_out);
    }
    tt_element_store(to, result, n, (char *)out + (size_t)at * tt_dtype_size(to));
  }
}

int64_t tt_element_index(tt_dtype_t dtype, const void *data, int64_t position) {
  tt_element_t x;
  tt_element_load(dtype, (const char *)data + (size_t)position * tt_dtype_size(dtype), 1, &x);
  if (!tt_dtype_is_signed_int(dtype) && x.u > INT64_MAX) return INT64_MAX;
  return x.i;
}

double tt_element_round(tt_dtype_t dtype, double x) {
  unsigned char bytes[8];
  double r;
  tt_element_store(dtype, &x, 1, bytes);
  tt_element_load(dtype, bytes, 1, &r);
  return r;
}
