// Windows over the trailing dimensions of a tensor.
#ifndef TT_ATEN_POOL_H_
#define TT_ATEN_POOL_H_

#include "aten/emit.h"

#define TT_POOL_SPATIAL 3

// Adds `grad` into zero planes at flat positions `indices` (both [..., spatial out...]): the
// gradient of every max pooling. `like` gives the result's shape.
tt_value_t tt__unpool(tt_lower_t *L, tt_value_t grad, tt_value_t indices, const tt_tensor_t *like,
                      uint32_t spatial, tt_dtype_t d);

#endif  // TT_ATEN_POOL_H_
