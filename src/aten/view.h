// Strided views over a storage's value, as StableHLO.
//
// A storage's value is an IR value whose row-major elements are the storage's memory from its first
// byte on; its dims and dtype are whatever its maker found natural. Bytes past its end are zero;
// TT_NO_VALUE stands for a storage never written (all zeros). A view is PyTorch's metadata.
#ifndef TT_ATEN_VIEW_H_
#define TT_ATEN_VIEW_H_

#include "ir/build.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor's metadata over its storage; the lists are borrowed.
typedef struct tt_view_s {
  tt_dtype_t dtype;
  uint32_t rank;
  const int64_t *sizes, *strides;  // strides in elements, never negative
  int64_t offset;                  // in elements
} tt_view_t;

// The view's elements in logical shape. The identity, or slice, transpose, reshape and broadcast
// where those can tell it; else a gather.
tt_value_t tt_view_read(tt_build_t *b, tt_value_t base, const tt_view_t *view);

// The storage's value after `value` (of the view's sizes and dtype) was written through the view.
// `base` is not used where tt_view_covers; then the result has the sizes in the order of descending
// strides, so that equal metadata reads it back unchanged. Where elements overlap one of them wins.
tt_value_t tt_view_write(tt_build_t *b, tt_value_t base, tt_value_t value, const tt_view_t *view,
                         size_t storage_bytes);

// Does the view name every whole element of the storage exactly once?
bool tt_view_covers(const tt_view_t *view, size_t storage_bytes);

#ifdef __cplusplus
}
#endif
#endif  // TT_ATEN_VIEW_H_
