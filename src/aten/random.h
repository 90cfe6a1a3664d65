// Draws inside one program. Internal to aten/.
#ifndef TT_ATEN_RANDOM_H_
#define TT_ATEN_RANDOM_H_

#include "aten/lower.h"

// One op's place in the generator's sequence (ui32, rank 0). An op has eight streams; a draw of f64
// numbers takes two of them, normal ones twice as many as uniform ones.
typedef struct tt__random_s {
  tt_value_t key0, key1, counter;
} tt__random_t;

// The call's place: asks for seed and offset as run-time values. Once a lowering.
tt__random_t tt__random_begin(tt_lower_t *L);
// Another sequence for each `number` (rank 0): the rounds of a loop.
tt__random_t tt__random_salt(tt_build_t *b, const tt__random_t *r, tt_value_t number);
// ui32 and ui64, every value as likely.
tt_value_t tt__random_bits(tt_build_t *b, const tt__random_t *r, uint32_t rank, const int64_t *dims,
                           uint32_t stream);
tt_value_t tt__random_bits64(tt_build_t *b, const tt__random_t *r, uint32_t rank,
                             const int64_t *dims, uint32_t stream);
// In [0, 1): f64 for f64, else f32 that stays below 1 when rounded to dtype.
tt_value_t tt__random_uniform(tt_build_t *b, const tt__random_t *r, tt_dtype_t dtype, uint32_t rank,
                              const int64_t *dims, uint32_t stream);
// Standard normal by Box and Muller: f64 for f64, else f32.
tt_value_t tt__random_normal(tt_build_t *b, const tt__random_t *r, tt_dtype_t dtype, uint32_t rank,
                             const int64_t *dims, uint32_t stream);

#endif  // TT_ATEN_RANDOM_H_
