#include "eager/host.h"

#include <string.h>

typedef struct host_op_s {
  const char *name;
  tt_host_fn_t run;
} host_op_t;

static const host_op_t host_ops[] = {
#define ATEN(functional, inplace, out, lower, param, flags)
#define ATEN_HOST(functional, inplace, out, name) {#name, tt__host_##name},
#include "aten/aten.def"
#undef ATEN
#undef ATEN_HOST
};

tt_status_t tt__host_call(const tt_call_t *call, tt_outs_t *outs) {
  const tt_aten_op_t *op = tt__op(call->op);
  outs->count = 0;
  outs->items = outs->inline_items;
  outs->instance = NULL;
  TT_RETURN_IF_ERROR(tt__ready(call->device));
  if (op->flags & TT_ATEN_MASKS) {
    return tt__has_masks(call) ? tt__call_with_masks(call, outs) : tt__record(call, outs);
  }
  for (size_t i = 0; i < sizeof host_ops / sizeof *host_ops; i++) {
    if (strcmp(host_ops[i].name, op->lower_name) != 0) continue;
    tt_status_t s = host_ops[i].run(call, outs);
    if (!s) return s;
    for (uint32_t r = 0; r < outs->count; r++) tt_storage_release(outs->items[r].storage);
    tt_outs_deinit(outs);
    return s;
  }
  return TT_ERROR(INTERNAL, "internal: %s has no host function; please report", op->lower_name);
}

tt_status_t tt__host_unsupported(const tt_call_t *call, const char *why) {
  return TT_ERROR(UNIMPLEMENTED, "lower: %s: %s", tt__call_name(call), why);
}

static tt_status_t convert(const tt_tensor_t *t, tt_dtype_t dtype, int64_t *strides,
                           tt_tensor_t *out) {
  int64_t stride = 1;
  for (uint32_t i = t->rank; i-- > 0; stride *= t->sizes[i] > 1 ? t->sizes[i] : 1) {
    strides[i] = stride;
  }
  *out = (tt_tensor_t){
      .sizes = t->sizes, .strides = strides, .rank = t->rank, .dtype = (uint8_t)dtype};
  size_t bytes = (size_t)tt__elements(t) * tt_dtype_size(dtype);
  TT_RETURN_IF_ERROR(tt_storage_create(tt_storage_device(t->storage), bytes, &out->storage));
  tt_status_t s = tt_eager_copy(out, t);
  if (s) tt_storage_release(out->storage);
  return s;
}

tt_status_t tt__host_read(const tt_tensor_t *t, tt_dtype_t dtype, void **out_data) {
  *out_data = tt_alloc_zeroed((size_t)tt__elements(t) * tt_dtype_size(dtype));
  if (!*out_data) return tt__no_host_memory();
  tt_status_t s = TT_OK_STATUS;
  if (t->flags & TT_TENSOR_HOST) {
    uint64_t bits[2];
    tt__scalar_bits(t->number.kind, &t->number.u, dtype, bits);
    memcpy(*out_data, bits, tt_dtype_size(dtype));
  } else if (t->dtype == dtype) {
    s = tt_eager_download(t, *out_data);
  } else {
    int64_t strides[TT_MAX_RANK];
    tt_tensor_t converted;
    s = convert(t, dtype, strides, &converted);
    if (!s) {
      s = tt_eager_download(&converted, *out_data);
      tt_storage_release(converted.storage);
    }
  }
  if (!s) return s;
  tt_free(*out_data);
  *out_data = NULL;
  return s;
}

// Metadata of the last results of this thread's host ops; the bridge is done with it before the
// next.
typedef struct slot_s {
  tt_out_meta_t meta;
  int64_t sizes[TT_MAX_RANK], strides[TT_MAX_RANK];
} slot_t;
enum { SLOTS = 8 };
static _Thread_local slot_t slots[SLOTS];

tt_status_t tt__host_give(const tt_call_t *call, const tt__host_result_t *r, const void *data,
                          tt_outs_t *outs) {
  TT_CHECK(outs->count < SLOTS && outs->count < sizeof outs->inline_items / sizeof(tt_out_t));
  slot_t *slot = &slots[outs->count];
  int64_t elements = 1, dense[TT_MAX_RANK];
  for (uint32_t i = r->rank; i-- > 0;) {
    slot->sizes[i] = r->sizes[i];
    dense[i] = slot->strides[i] = elements;
    if (r->strides) slot->strides[i] = r->strides[i];
    elements *= r->sizes[i];
  }
  slot->meta = (tt_out_meta_t){(uint8_t)r->dtype, r->rank, slot->sizes, slot->strides};
  tt_storage_t *storage;
  size_t bytes = (size_t)elements * tt_dtype_size(r->dtype);
  TT_RETURN_IF_ERROR(tt_storage_create(call->device, bytes, &storage));
  outs->items[outs->count++] = (tt_out_t){storage, &slot->meta, 0};
  // As memory the result is a vector; converted on the way where the host's type is another.
  tt_tensor_t flat = {.storage = storage,
                      .sizes = &elements,
                      .strides = (int64_t[]){1},
                      .rank = 1,
                      .dtype = (uint8_t)r->dtype};
  if (!r->strides) flat.sizes = r->sizes, flat.strides = dense, flat.rank = r->rank;
  if (r->from == r->dtype) return tt_eager_upload(&flat, data);
  tt_tensor_t wide = flat;
  wide.dtype = (uint8_t)r->from;
  bytes = (size_t)elements * tt_dtype_size(r->from);
  TT_RETURN_IF_ERROR(tt_storage_create(call->device, bytes, &wide.storage));
  tt_status_t s = tt_eager_upload(&wide, data);
  if (!s) s = tt_eager_copy(&flat, &wide);
  tt_storage_release(wide.storage);
  return s;
}

tt_status_t tt__host_give_vector(const tt_call_t *call, tt_dtype_t from, tt_dtype_t dtype,
                                 int64_t count, const void *data, tt_outs_t *outs) {
  tt__host_result_t r = {from, dtype, 1, &count, NULL};
  return tt__host_give(call, &r, data, outs);
}

tt_status_t tt__host_run(const char *name, tt_variant_t variant, const tt_call_t *like,
                         const tt_arg_t *args, uint32_t count, tt_outs_t *outs) {
  for (uint32_t i = 0; i < tt_aten_op_count; i++) {
    if (strcmp(tt_aten_ops[i].functional, name) != 0) continue;
    tt_call_t call = {(uint16_t)i, (uint8_t)variant, (uint8_t)count, like->device, args};
    return tt__record(&call, outs);
  }
  return tt__host_unsupported(like, name);
}
