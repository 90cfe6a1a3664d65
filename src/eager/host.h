// What TT_ATEN_HOST ops share: results that depend on data are computed on the host from downloaded
// values, because their sizes must be known there anyway.
#ifndef TT_EAGER_HOST_H_
#define TT_EAGER_HOST_H_

#include "eager/internal.h"

#define ATEN(functional, inplace, out, lower, param, flags)
#define ATEN_HOST(functional, inplace, out, name) \
  tt_status_t tt__host_##name(const tt_call_t *call, tt_outs_t *outs) TT_MUST_USE;
#include "aten/aten.def"
#undef ATEN
#undef ATEN_HOST

static inline int64_t tt__elements(const tt_tensor_t *t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t->rank; i++) n *= t->sizes[i];
  return n;
}
static inline const tt_tensor_t *tt__tensor_arg(const tt_call_t *call, uint32_t i) {
  return i < call->arg_count && call->args[i].kind == TT_ARG_TENSOR ? call->args[i].u.tensor : NULL;
}
static inline int64_t tt__int_arg(const tt_call_t *call, uint32_t i, int64_t otherwise) {
  bool has = i < call->arg_count && call->args[i].kind != TT_ARG_NONE;
  return has ? call->args[i].u.i : otherwise;
}

// The tensor's elements, row-major, converted to `dtype` on the device; tt_free *out_data.
tt_status_t tt__host_read(const tt_tensor_t *t, tt_dtype_t dtype, void **out_data) TT_MUST_USE;

// Appends a result whose memory, row-major over `memory_sizes` in `from`, is given. The tensor has
// `dtype` (converted on the device), `sizes` and `strides`. At most 8 results a call.
typedef struct tt__host_result_s {
  tt_dtype_t from, dtype;
  uint32_t rank;
  const int64_t *sizes, *strides;  // strides NULL: row-major
} tt__host_result_t;
tt_status_t tt__host_give(const tt_call_t *call, const tt__host_result_t *r, const void *data,
                          tt_outs_t *outs) TT_MUST_USE;
// A row-major vector.
tt_status_t tt__host_give_vector(const tt_call_t *call, tt_dtype_t from, tt_dtype_t dtype,
                                 int64_t count, const void *data, tt_outs_t *outs) TT_MUST_USE;
// Runs another op of the table, found by its functional name.
tt_status_t tt__host_run(const char *name, tt_variant_t variant, const tt_call_t *like,
                         const tt_arg_t *args, uint32_t count, tt_outs_t *outs) TT_MUST_USE;
// "lower:": the bridge's fallbacks have a go.
tt_status_t tt__host_unsupported(const tt_call_t *call, const char *why) TT_MUST_USE;

// index(...) and its kin where a boolean mask stands among the indices (mask.c).
bool tt__has_masks(const tt_call_t *call);
tt_status_t tt__call_with_masks(const tt_call_t *call, tt_outs_t *outs) TT_MUST_USE;

#endif  // TT_EAGER_HOST_H_
