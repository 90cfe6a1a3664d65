// Element types, named as StableHLO names them. One line here is the only place to add one.
#ifndef TT_BASE_DTYPE_H_
#define TT_BASE_DTYPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What arithmetic an element type has; PRED is i1, whose sum is "or" and whose product is "and".
typedef enum tt_dtype_class_e {
  TT_CLASS_PRED,
  TT_CLASS_SIGNED,
  TT_CLASS_UNSIGNED,
  TT_CLASS_FLOAT,
  TT_CLASS_COMPLEX,
} tt_dtype_class_t;

// X(enum suffix, StableHLO text, bits of a value, bytes in memory, class, mantissa bits)
// 4-bit values take a whole byte in memory, as PJRT's host buffers do.
#define TT_DTYPES(X)                         \
  X(I1, "i1", 1, 1, PRED, 0)                 \
  X(S4, "i4", 4, 1, SIGNED, 0)               \
  X(S8, "i8", 8, 1, SIGNED, 0)               \
  X(S16, "i16", 16, 2, SIGNED, 0)            \
  X(S32, "i32", 32, 4, SIGNED, 0)            \
  X(S64, "i64", 64, 8, SIGNED, 0)            \
  X(U4, "ui4", 4, 1, UNSIGNED, 0)            \
  X(U8, "ui8", 8, 1, UNSIGNED, 0)            \
  X(U16, "ui16", 16, 2, UNSIGNED, 0)         \
  X(U32, "ui32", 32, 4, UNSIGNED, 0)         \
  X(U64, "ui64", 64, 8, UNSIGNED, 0)         \
  X(F8E4M3FN, "f8E4M3FN", 8, 1, FLOAT, 3)    \
  X(F8E5M2, "f8E5M2", 8, 1, FLOAT, 2)        \
  X(BF16, "bf16", 16, 2, FLOAT, 7)           \
  X(F16, "f16", 16, 2, FLOAT, 10)            \
  X(F32, "f32", 32, 4, FLOAT, 23)            \
  X(F64, "f64", 64, 8, FLOAT, 52)            \
  X(C64, "complex<f32>", 64, 8, COMPLEX, 23) \
  X(C128, "complex<f64>", 128, 16, COMPLEX, 52)

typedef enum tt_dtype_e {
#define X(name, text, bits, bytes, cls, mantissa) TT_##name,
  TT_DTYPES(X)
#undef X
      TT_DTYPE_COUNT,
  TT_DTYPE_NONE = 255,
} tt_dtype_t;

// `bits` is the width of a value, `bytes` of its place in memory; `mantissa` counts stored bits,
// without the hidden one.
typedef struct tt_dtype_info_s {
  const char *text;
  uint8_t bits, bytes, cls, mantissa;
} tt_dtype_info_t;

extern const tt_dtype_info_t tt_dtype_infos[TT_DTYPE_COUNT];

// The questions below take a real type, never TT_DTYPE_NONE; only tt_dtype_text is safe for any
// value, because error messages use it.
static inline size_t tt_dtype_size(tt_dtype_t d) { return tt_dtype_infos[d].bytes; }
static inline const char *tt_dtype_text(tt_dtype_t d) {
  return d < TT_DTYPE_COUNT ? tt_dtype_infos[d].text : "none";
}
static inline tt_dtype_class_t tt_dtype_class(tt_dtype_t d) {
  return (tt_dtype_class_t)tt_dtype_infos[d].cls;
}
static inline bool tt_dtype_is_float(tt_dtype_t d) { return tt_dtype_class(d) == TT_CLASS_FLOAT; }
static inline bool tt_dtype_is_complex(tt_dtype_t d) {
  return tt_dtype_class(d) == TT_CLASS_COMPLEX;
}
static inline bool tt_dtype_is_signed_int(tt_dtype_t d) {
  return tt_dtype_class(d) == TT_CLASS_SIGNED;
}
static inline bool tt_dtype_is_unsigned(tt_dtype_t d) {
  return tt_dtype_class(d) == TT_CLASS_UNSIGNED;
}
static inline bool tt_dtype_is_int(tt_dtype_t d) {
  return tt_dtype_is_signed_int(d) || tt_dtype_is_unsigned(d);
}
// complex<f32> -> f32, complex<f64> -> f64, else itself.
static inline tt_dtype_t tt_dtype_real(tt_dtype_t d) {
  return d == TT_C64 ? TT_F32 : d == TT_C128 ? TT_F64 : d;
}

// The type that StableHLO spells so, TT_DTYPE_NONE where `text` names none. The names are few: a
// linear search beats a table.
tt_dtype_t tt_dtype_parse(const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif  // TT_BASE_DTYPE_H_
