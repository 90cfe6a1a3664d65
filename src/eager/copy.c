// Data in and out of storages, and between them.
#include <string.h>

#include "eager/captured.h"
#include "eager/internal.h"

// --- ops of our own ------------------------------------------------------------------------------

// copy_(dst, src): casts and broadcasts; the recorder writes through dst's view.
static void lower_copy(tt_lower_t *L, int param) {
  (void)param;
  tt_lower_return(L, 0, tt_lower_tensor(L, 1));
}

// contiguous(src): the logical value, dense row-major, conj and neg resolved.
static void lower_contiguous(tt_lower_t *L, int param) {
  (void)param;
  tt_lower_return(L, 0, tt_lower_tensor(L, 0));
}

const tt_aten_op_t tt__own_ops[] = {
    [TT__OP_COPY - TT__OP_FIRST] = {"copy", "copy_", "", lower_copy, "copy", 0,
                                    TT_ATEN_KEEP_SELF_DTYPE},
    [TT__OP_CONTIGUOUS - TT__OP_FIRST] = {"contiguous", "", "", lower_contiguous, "contiguous", 0,
                                          TT_ATEN_KEEP_SELF_DTYPE},
    [TT__OP_REPLICAS - TT__OP_FIRST] = {"replicas", "replicas_", "", tt__lower_replicas, "replicas",
                                        0, TT_ATEN_KEEP_SELF_DTYPE},
};

static tt_status_t call_copy(const tt_tensor_t *dst, const tt_tensor_t *src) {
  tt_arg_t args[2] = {{.kind = TT_ARG_TENSOR, .u.tensor = dst},
                      {.kind = TT_ARG_TENSOR, .u.tensor = src}};
  tt_call_t call = {TT__OP_COPY, TT_INPLACE, 2, (int8_t)tt_storage_device(dst->storage), args};
  tt_outs_t outs;
  TT_RETURN_IF_ERROR(tt__record(&call, &outs));
  tt_outs_deinit(&outs);
  return TT_OK_STATUS;
}

// `out_tensor` owns its storage; its sizes and strides last until the caller's tt_outs_deinit.
static tt_status_t call_contiguous(const tt_tensor_t *src, tt_outs_t *outs,
                                   tt_tensor_t *out_tensor) {
  tt_arg_t arg = {.kind = TT_ARG_TENSOR, .u.tensor = src};
  tt_call_t call = {TT__OP_CONTIGUOUS, TT_FUNCTIONAL, 1, (int8_t)tt_storage_device(src->storage),
                    &arg};
  TT_RETURN_IF_ERROR(tt__record(&call, outs));
  const tt_out_t *out = &outs->items[0];
  *out_tensor = (tt_tensor_t){.storage = out->storage,
                              .sizes = out->meta->sizes,
                              .strides = out->meta->strides,
                              .rank = out->meta->rank,
                              .dtype = out->meta->dtype};
  return TT_OK_STATUS;
}

// --- plain memory --------------------------------------------------------------------------------

static size_t dense_bytes(const tt_tensor_t *t) {
  size_t n = tt_dtype_size((tt_dtype_t)t->dtype);
  for (uint32_t i = 0; i < t->rank; i++) n *= (size_t)t->sizes[i];
  return n;
}

// Row-major from the storage's first byte on, nothing lazy.
static bool is_plain(const tt_tensor_t *t) {
  int64_t stride = 1;
  if (t->offset != 0 || t->flags & (TT_TENSOR_CONJ | TT_TENSOR_NEG)) return false;
  for (uint32_t i = t->rank; i-- > 0; stride *= t->sizes[i]) {
    if (t->sizes[i] != 1 && t->strides[i] != stride) return false;
  }
  return true;
}

// Is the tensor all of its storage, row-major?
static bool fills_storage(const tt_tensor_t *t) {
  size_t element = tt_dtype_size((tt_dtype_t)t->dtype);
  return is_plain(t) && dense_bytes(t) / element == tt_storage_bytes(t->storage) / element;
}

static tt_type_t dense_type(const tt_tensor_t *t) {
  return (tt_type_t){(tt_dtype_t)t->dtype, t->rank, t->sizes};
}

// Makes the buffer the storage's value. Takes it over.
static tt_status_t set_buffer(tt_storage_t *storage, const tt_type_t *type, tt_buffer_t *buffer) {
  const tt__layout_t *layout = tt__layout(type->dtype, type->rank, type->dims);
  tt__lock();
  tt__version_t *v = layout ? tt__version_make(layout, buffer) : NULL;
  if (v) tt__storage_set(storage, v);
  tt__unlock();
  if (v) return TT_OK_STATUS;
  tt_buffer_release(buffer);
  return tt__no_host_memory();
}

static tt_status_t make_plain(int device, const tt_tensor_t *like, tt_buffer_t *buffer,
                              int64_t *strides, tt_tensor_t *out_tensor) {
  *out_tensor = (tt_tensor_t){
      .sizes = like->sizes, .strides = strides, .rank = like->rank, .dtype = like->dtype};
  int64_t stride = 1;
  for (uint32_t i = like->rank; i-- > 0; stride *= like->sizes[i] > 1 ? like->sizes[i] : 1) {
    strides[i] = stride;
  }
  tt_status_t s = tt_storage_create(device, dense_bytes(like), &out_tensor->storage);
  if (s) {
    tt_buffer_release(buffer);
    return s;
  }
  tt_type_t type = dense_type(like);
  s = set_buffer(out_tensor->storage, &type, buffer);
  if (s) tt_storage_release(out_tensor->storage);
  return s;
}

static tt_status_t create_buffer(int device, const tt_type_t *type, const void *host,
                                 tt_buffer_t **out_buffer) {
  tt_client_t *client = tt__engine.client;
  tt_status_t s = tt_buffer_create(client, (uint32_t)device, type, host, out_buffer);
  if (!s || tt_status_code(s) != TT_OUT_OF_MEMORY) return s;
  tt_status_release(s);
  TT_RETURN_IF_ERROR(tt_client_synchronize(client, (uint32_t)device));
  return tt_buffer_create(client, (uint32_t)device, type, host, out_buffer);
}

tt_status_t tt_eager_upload(const tt_tensor_t *dst, const void *host) {
  int device = tt_storage_device(dst->storage);
  TT_RETURN_IF_ERROR(tt__ready(device));
  TT_RETURN_IF_ERROR(tt__capture_upload(device));
  if (dense_bytes(dst) == 0) return TT_OK_STATUS;
  tt_type_t type = dense_type(dst);
  tt_buffer_t *buffer = NULL;
  TT_RETURN_IF_ERROR(create_buffer(device, &type, host, &buffer));
  if (fills_storage(dst)) return set_buffer(dst->storage, &type, buffer);
  int64_t strides[TT_MAX_RANK];
  tt_tensor_t temporary;
  TT_RETURN_IF_ERROR(make_plain(device, dst, buffer, strides, &temporary));
  tt_status_t s = call_copy(dst, &temporary);
  tt_storage_release(temporary.storage);
  return s;
}

tt_status_t tt_eager_allocate(const tt_tensor_t *dst, void **out_data, tt_buffer_t **out_buffer) {
  int device = tt_storage_device(dst->storage);
  *out_data = NULL;
  *out_buffer = NULL;
  TT_RETURN_IF_ERROR(tt__ready(device));
  if (!fills_storage(dst) || dense_bytes(dst) == 0) return TT_OK_STATUS;
  tt_type_t type = dense_type(dst);
  tt_status_t s =
      tt_buffer_allocate(tt__engine.client, (uint32_t)device, &type, out_data, out_buffer);
  if (tt_status_code(s) != TT_OUT_OF_MEMORY) return s;
  tt_status_release(s);
  return TT_OK_STATUS;
}

tt_status_t tt_eager_replace(const tt_tensor_t *dst, tt_buffer_t *buffer) {
  tt_type_t type = dense_type(dst);
  return set_buffer(dst->storage, &type, buffer);
}

// The version that is exactly the tensor's dense bytes, settled and retained (so that nobody
// donates its buffer); NULL where there is none. *out_unwritten: the storage was never written.
static tt_status_t plain_version(const tt_tensor_t *t, tt__version_t **out_version,
                                 bool *out_unwritten) {
  *out_version = NULL;
  tt__lock();
  tt__version_t *v = t->storage->version;
  *out_unwritten = !v;
  tt_status_t s = tt__capture_look(t->storage);
  if (!s && v && is_plain(t) && dense_bytes(t) == v->layout->bytes) {
    s = tt__version_settle(v);
    if (s) tt__error_told(tt_storage_device(t->storage), s);
    if (!s) tt__version_retain(*out_version = t->storage->version);
  }
  tt__unlock();
  return s;
}

static void drop_version(tt__version_t *v) {
  tt__lock();
  tt__version_release(v);
  tt__unlock();
}

// src's dense value, settled and retained; NULL for a storage that was never written.
static tt_status_t dense_version(const tt_tensor_t *src, tt__version_t **out_version) {
  bool unwritten;
  TT_RETURN_IF_ERROR(plain_version(src, out_version, &unwritten));
  if (*out_version || unwritten) return TT_OK_STATUS;
  tt_outs_t outs;
  tt_tensor_t dense;
  TT_RETURN_IF_ERROR(call_contiguous(src, &outs, &dense));
  tt_status_t s = plain_version(&dense, out_version, &unwritten);
  tt_storage_release(dense.storage);
  tt_outs_deinit(&outs);
  TT_RETURN_IF_ERROR(s);
  TT_CHECK(*out_version != NULL);
  return TT_OK_STATUS;
}

// --- to the host ---------------------------------------------------------------------------------

struct tt_snapshot_s {
  tt__version_t *version;  // NULL: all zeros
  int device;
};

tt_status_t tt_eager_snapshot(const tt_tensor_t *src, tt_snapshot_t **out_snapshot) {
  int device = tt_storage_device(src->storage);
  TT_RETURN_IF_ERROR(tt__ready(device));
  tt_snapshot_t *snapshot = tt_alloc_zeroed(sizeof *snapshot);
  if (!snapshot) return tt__no_host_memory();
  snapshot->device = device;
  tt_status_t s = dense_bytes(src) ? dense_version(src, &snapshot->version) : TT_OK_STATUS;
  if (s) {
    tt_free(snapshot);
    return s;
  }
  *out_snapshot = snapshot;
  return TT_OK_STATUS;
}

tt_status_t tt_snapshot_read(tt_snapshot_t *snapshot, void *host, size_t bytes) {
  if (!snapshot->version) {
    memset(host, 0, bytes);
    return TT_OK_STATUS;
  }
  tt_status_t s = tt_buffer_read(snapshot->version->buffer, host, bytes);
  return tt_status_join(tt__check_all(snapshot->device), s);
}

tt_status_t tt_snapshot_hold(tt_snapshot_t *snapshot, const void **out_data) {
  *out_data = NULL;
  if (!snapshot->version) return TT_OK_STATUS;
  tt_status_t s = tt_buffer_hold(snapshot->version->buffer, out_data);
  s = tt_status_join(tt__check_all(snapshot->device), s);
  if (s && *out_data) tt_buffer_drop(snapshot->version->buffer);
  return s;
}

void tt_snapshot_drop(tt_snapshot_t *snapshot) { tt_buffer_drop(snapshot->version->buffer); }

void tt_snapshot_release(tt_snapshot_t *snapshot) {
  if (!snapshot) return;
  if (snapshot->version) drop_version(snapshot->version);
  tt_free(snapshot);
}

tt_status_t tt_eager_download(const tt_tensor_t *src, void *host) {
  size_t bytes = dense_bytes(src);
  tt_snapshot_t snapshot = {.device = tt_storage_device(src->storage)};
  TT_RETURN_IF_ERROR(tt__ready(snapshot.device));
  if (bytes == 0) return TT_OK_STATUS;
  tt_status_t s = dense_version(src, &snapshot.version);
  if (s) return tt_status_join(tt__check_all(snapshot.device), s);
  s = tt_snapshot_read(&snapshot, host, bytes);
  if (snapshot.version) drop_version(snapshot.version);
  return s;
}

tt_status_t tt_eager_item(const tt_tensor_t *src, tt_number_t *out_number) {
  union {
    uint8_t bytes[16];
    uint64_t words[2];
  } value = {.words = {0, 0}};
  if (src->flags & TT_TENSOR_HOST) {
    *out_number = src->number;
    return TT_OK_STATUS;
  }
  if (dense_bytes(src) != tt_dtype_size((tt_dtype_t)src->dtype)) {
    return TT_ERROR(INVALID_ARGUMENT, "a Tensor with %zu elements cannot be converted to Scalar",
                    dense_bytes(src) / tt_dtype_size((tt_dtype_t)src->dtype));
  }
  TT_RETURN_IF_ERROR(tt_eager_download(src, value.bytes));
  tt__number_of((tt_dtype_t)src->dtype, value.bytes, out_number);
  return TT_OK_STATUS;
}

// --- copies --------------------------------------------------------------------------------------

// src's dense value as a tensor on another device. The caller releases its storage.
static tt_status_t move_to_device(const tt_tensor_t *src, int device, int64_t *strides,
                                  tt_tensor_t *out_tensor) {
  tt__version_t *version;
  tt_buffer_t *moved = NULL;
  TT_RETURN_IF_ERROR(dense_version(src, &version));
  if (!version) {  // never written: zeros there too
    *out_tensor = *src;
    out_tensor->offset = 0;
    return tt_storage_create(device, tt_storage_bytes(src->storage), &out_tensor->storage);
  }
  tt_status_t s = tt_buffer_copy_to_device(version->buffer, (uint32_t)device, &moved);
  drop_version(version);
  TT_RETURN_IF_ERROR(s);
  return make_plain(device, src, moved, strides, out_tensor);
}

static bool same_whole(const tt_tensor_t *a, const tt_tensor_t *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->sizes[i] != b->sizes[i] || a->strides[i] != b->strides[i]) return false;
  }
  return fills_storage(a) && fills_storage(b);
}

// One whole storage into another of the same type: both name the same value from now on, and the
// first one that is written gets its own. False where that cannot be.
static bool share_version(const tt_tensor_t *dst, const tt_tensor_t *src) {
  bool plain = atomic_load(&tt__engine.mode) == TT_MODE_DEBUG ||
               tt__capture_window(tt_storage_device(dst->storage)) != NULL;
  if (plain || !same_whole(dst, src)) return false;
  tt__lock();
  tt__version_t *v = src->storage->version;
  bool whole = v && v->layout->bytes == dense_bytes(src);
  if (whole) {
    tt__version_retain(v);
    tt__storage_set(dst->storage, v);
  }
  tt__unlock();
  return whole;
}

tt_status_t tt_eager_copy(const tt_tensor_t *dst, const tt_tensor_t *src) {
  int device = tt_storage_device(dst->storage);
  TT_RETURN_IF_ERROR(tt__ready(device));
  if (src->flags & TT_TENSOR_HOST || tt_storage_device(src->storage) == device ||
      dense_bytes(src) == 0) {
    bool host = (src->flags & TT_TENSOR_HOST) != 0;
    return !host && share_version(dst, src) ? TT_OK_STATUS : call_copy(dst, src);
  }
  int64_t strides[TT_MAX_RANK];
  tt_tensor_t moved;
  TT_RETURN_IF_ERROR(move_to_device(src, device, strides, &moved));
  tt_status_t s = call_copy(dst, &moved);
  tt_storage_release(moved.storage);
  return s;
}
