// Windows over the trailing dimensions of a tensor.
#ifndef TT_ATEN_POOL_H_
#define TT_ATEN_POOL_H_

#include "aten/emit.h"

#define TT_POOL_SPATIAL 3

// One dimension's output windows as ranges [start, end) of the input, static.
typedef struct tt__ranges_s {
  int64_t count, widest;
  const int64_t *start, *end;
} tt__ranges_t;

// The windows of an adaptive pooling of `in` elements to `out`.
tt__ranges_t tt__adaptive_ranges(tt_build_t *b, int64_t in, int64_t out);
// The transpose of a relation with monotone ranges: for each of `in` inputs, the outputs whose
// range holds it.
tt__ranges_t tt__transposed_ranges(tt_build_t *b, const tt__ranges_t *ranges, int64_t in);

// x with dimension `dim` replaced by [count, widest]: the elements of each range, `fill` (rank 0)
// past its end.
tt_value_t tt__gather_ranges(tt_build_t *b, tt_value_t x, uint32_t dim, const tt__ranges_t *ranges,
                             tt_value_t fill);
// x with dimension `dim` replaced by the sums over the ranges.
tt_value_t tt__sum_ranges(tt_build_t *b, tt_value_t x, uint32_t dim, const tt__ranges_t *ranges);

// Planes [..., spatial...] flattened to [..., product].
tt_value_t tt__flatten_spatial(tt_build_t *b, tt_value_t x, uint32_t spatial);
// Adds `grad` into zero planes at flat positions `indices` (both [..., spatial out...]): the
// gradient of every max pooling. `like` gives the result's shape.
tt_value_t tt__unpool(tt_lower_t *L, tt_value_t grad, tt_value_t indices, const tt_tensor_t *like,
                      uint32_t spatial, tt_dtype_t d);

#endif  // TT_ATEN_POOL_H_
