// Elements of any dtype as one of four wide kinds, the only place that knows how each dtype is
// stored. Loads are exact; stores round or wrap once.
#ifndef TT_SOFTTPU_ELEMENT_H_
#define TT_SOFTTPU_ELEMENT_H_

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tt_wide_e {
  TT_WIDE_REAL,      // double: every float type
  TT_WIDE_SIGNED,    // int64_t
  TT_WIDE_UNSIGNED,  // uint64_t; i1 is 0 or 1
  TT_WIDE_COMPLEX,   // two doubles
} tt_wide_t;

// The wide kind of complex numbers, c64 and c128.
typedef struct tt_complex_s {
  double re, im;
} tt_complex_t;

// Large enough for any element.
typedef union tt_element_u {
  double real;
  int64_t i;
  uint64_t u;
  tt_complex_t z;
} tt_element_t;

// The kind that holds every value of the dtype.
static inline tt_wide_t tt_element_wide(tt_dtype_t dtype) {
  switch (tt_dtype_class(dtype)) {
    case TT_CLASS_FLOAT:
      return TT_WIDE_REAL;
    case TT_CLASS_SIGNED:
      return TT_WIDE_SIGNED;
    case TT_CLASS_COMPLEX:
      return TT_WIDE_COMPLEX;
    case TT_CLASS_PRED:
    case TT_CLASS_UNSIGNED:
      return TT_WIDE_UNSIGNED;
  }
  return TT_WIDE_UNSIGNED;
}
static inline size_t tt_element_wide_size(tt_wide_t wide) {
  return wide == TT_WIDE_COMPLEX ? sizeof(tt_complex_t) : 8;
}

// `count` dense elements of `dtype` to and from an array of its wide kind; the two must not
// overlap. Stores: floats round to nearest even from f64 in one step, integers keep their low bits,
// i1 is "not zero".
void tt_element_load(tt_dtype_t dtype, const void *data, int64_t count, void *wide);
void tt_element_store(tt_dtype_t dtype, const void *wide, int64_t count, void *data);

// StableHLO's convert: float -> integer truncates, saturates, NaN is 0; anything -> i1 is "not
// zero"; integer -> float rounds once; complex -> real drops the imaginary part.
void tt_element_convert(tt_dtype_t from, const void *data, int64_t count, tt_dtype_t to, void *out);

// One element as an integer (indices); unsigned values past INT64_MAX saturate.
int64_t tt_element_index(tt_dtype_t dtype, const void *data, int64_t position);

// x rounded to the given float type and back: what storing and loading would make of it.
double tt_element_round(tt_dtype_t dtype, double x);

#ifdef __cplusplus
}
#endif
#endif  // TT_SOFTTPU_ELEMENT_H_
