// Moments, shared by the normalisations.
#ifndef TT_ATEN_NORM_H_
#define TT_ATEN_NORM_H_

#include "aten/emit.h"

// Over `dims` (n elements), kept as size 1; variance is the biased one, in two passes.
typedef struct tt__moments_s {
  tt_value_t mean, centered, variance;
} tt__moments_t;
tt__moments_t tt__moments(tt_build_t *b, tt_value_t x, const int64_t *dims, uint32_t count,
                          int64_t n);

#endif  // TT_ATEN_NORM_H_
