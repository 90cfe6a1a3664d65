// Index values made ready for gather and scatter.
#ifndef TT_ATEN_INDEX_H_
#define TT_ATEN_INDEX_H_

#include "aten/emit.h"

// Checks that every element of `index` lies in [0, size), or in [-size, size) with `wrap`, where
// negative ones count from the end; an error of `code` follows otherwise (PyTorch has IndexError
// for some ops and RuntimeError for others). Gives in-range indices, i32 where `size` allows.
tt_value_t tt__index_ready(tt_lower_t *L, tt_value_t index, int64_t dim, int64_t size, bool wrap,
                           tt_code_t code);

// A 0-d value as rank 1; others unchanged.
tt_value_t tt__at_least_1d(tt_build_t *b, tt_value_t x);

// One rank-0 value over the shape of `like`.
tt_value_t tt__fill_like(tt_build_t *b, tt_value_t like, tt_value_t scalar);

#endif  // TT_ATEN_INDEX_H_
