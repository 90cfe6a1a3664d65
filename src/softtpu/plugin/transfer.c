// Transfers between host and device. To the device data are copied before the call returns, or not
// at all where the caller lets us use its memory; from the device they are copied when they are
// ready.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

// --- strided copies ---

typedef struct shape_s {
  uint32_t rank;
  size_t item;
  const int64_t *dims;
  const int64_t *strides;  // bytes of the strided side; the other one is dense row-major
} shape_t;

// Axis by axis; the innermost in one piece where it is dense on both sides. *dense moves on.
static void copy_strided(const shape_t *shape, uint32_t axis, char **dense, char *strided,
                         bool to_dense) {
  if (axis == shape->rank) {
    memcpy(to_dense ? *dense : strided, to_dense ? strided : *dense, shape->item);
    *dense += shape->item;
    return;
  }
  int64_t count = shape->dims[axis], stride = shape->strides[axis];
  if (axis + 1 == shape->rank && stride == (int64_t)shape->item) {
    size_t bytes = shape->item * (size_t)count;
    memcpy(to_dense ? *dense : strided, to_dense ? strided : *dense, bytes);
    *dense += bytes;
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    copy_strided(shape, axis + 1, dense, strided + i * stride, to_dense);
  }
}

// Row-major without gaps; dimensions of size 1 may claim any stride.
static bool is_dense(const tt_type_t *type, const int64_t *strides) {
  int64_t expected = (int64_t)tt_dtype_size(type->dtype);
  for (uint32_t i = type->rank; i-- > 0;) {
    if (type->dims[i] != 1 && strides[i] != expected) return false;
    expected *= type->dims[i];
  }
  return true;
}

// The strides of a layout; false: it has tiles or is no permutation.
static bool strides_of(const tt_pjrt_layout_t *layout, const tt_type_t *type, int64_t *strides) {
  if (layout->is_strided) {
    if (layout->u.strided.count != type->rank) return false;
    if (type->rank) {
      memcpy(strides, layout->u.strided.byte_strides, sizeof(int64_t) * type->rank);
    }
    return true;
  }
  const tt_pjrt_tiled_layout_t *tiled = &layout->u.tiled;
  if (tiled->tile_count != 0 || tiled->minor_to_major_size != type->rank) return false;
  int64_t stride = (int64_t)tt_dtype_size(type->dtype);
  for (uint32_t i = 0; i < type->rank; i++) {
    int64_t axis = tiled->minor_to_major[i];
    if (axis < 0 || axis >= type->rank) return false;
    strides[axis] = stride;
    stride *= type->dims[axis];
  }
  return true;
}

// The caller's dims, checked: a size in bytes that fits.
static tt_status_t make_type(tt_pjrt_type_t number, const int64_t *dims, size_t rank,
                             tt_type_t *out_type) {
  *out_type = (tt_type_t){TT_DTYPE_NONE, (uint32_t)rank, dims};
  TT_RETURN_IF_ERROR(tt__soft_type(number, &out_type->dtype));
  size_t bytes = tt_dtype_size(out_type->dtype);
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0 || !tt_size_mul(bytes, (size_t)dims[i], &bytes)) {
      return TT_ERROR(INVALID_ARGUMENT, "an array cannot have size %lld in dimension %zu",
                      (long long)dims[i], i);
    }
  }
  return TT_OK_STATUS;
}

// --- to the device ---

// The device no longer needs the caller's memory: that is the event he was given.
static void end_zero_copy(void *data, void *context) {
  (void)data;
  tt_queue_event_set(context, TT_OK_STATUS);
  tt_queue_event_release(context);
}

static tt_status_t wrap_host(tt_soft_device_t *device, const tt_type_t *type, const void *data,
                             tt_pjrt_upload_args_t *a) {
  tt_queue_event_t *event = tt_queue_event_create();
  if (!event) return TT_ERROR(OUT_OF_MEMORY, "no host memory for an event");
  tt_queue_event_retain(event);
  tt_array_t *array;
  tt_status_t status =
      tt_array_wrap(&device->device, type, (void *)(uintptr_t)data, end_zero_copy, event, &array);
  if (status) {
    tt_queue_event_release(event);
    tt_queue_event_release(event);
    return status;
  }
  a->buffer = array;
  a->done = event;
  return TT_OK_STATUS;
}

static tt_status_t copy_host(tt_soft_device_t *device, const tt_type_t *type,
                             const int64_t *strides, tt_pjrt_upload_args_t *a) {
  tt_queue_event_t *event = tt_queue_event_create_done(TT_OK_STATUS);
  if (!event) return TT_ERROR(OUT_OF_MEMORY, "no host memory for an event");
  tt_array_t *array;
  tt_status_t status = tt_array_create(&device->device, type, &array);
  if (status) {
    tt_queue_event_release(event);
    return status;
  }
  if (array->bytes > 0 && strides) {
    shape_t shape = {type->rank, tt_dtype_size(type->dtype), type->dims, strides};
    char *dense = array->data;
    copy_strided(&shape, 0, &dense, (char *)(uintptr_t)a->data, true);
  } else if (array->bytes > 0) {
    memcpy(array->data, a->data, array->bytes);
  }
  a->buffer = array;
  a->done = event;
  return TT_OK_STATUS;
}

// Zero copy needs dense data on our alignment, which kernels rely on.
tt_pjrt_error_t *tt__soft_Client_BufferFromHostBuffer(tt_pjrt_upload_args_t *a) {
  TT_SOFT_CHECK(a, buffer);
  tt_soft_device_t *device;
  tt_type_t type;
  TT_SOFT_RETURN_IF_ERROR(tt__soft_target(a->client, a->device, a->memory, &device));
  TT_SOFT_RETURN_IF_ERROR(make_type(a->type, a->dims, a->rank, &type));
  const int64_t *strides = a->byte_stride_count == a->rank ? a->byte_strides : NULL;
  if (strides && is_dense(&type, strides)) strides = NULL;
  bool zero_copy = a->semantics == TT_PJRT_HOST_IMMUTABLE_ZERO_COPY ||
                   a->semantics == TT_PJRT_HOST_MUTABLE_ZERO_COPY;
  if (zero_copy && !strides && (uintptr_t)a->data % TT_MEMORY_ALIGNMENT == 0 && a->data) {
    return tt__soft_error(wrap_host(device, &type, a->data, a));
  }
  return tt__soft_error(copy_host(device, &type, strides, a));
}

tt_pjrt_error_t *tt__soft_Client_CreateUninitializedBuffer(tt_pjrt_uninitialized_args_t *a) {
  TT_SOFT_CHECK(a, buffer);
  tt_soft_device_t *device;
  tt_type_t type;
  TT_SOFT_RETURN_IF_ERROR(tt__soft_target(a->client, a->device, a->memory, &device));
  TT_SOFT_RETURN_IF_ERROR(make_type(a->type, a->dims, a->rank, &type));
  tt_array_t *array;
  TT_SOFT_RETURN_IF_ERROR(tt_array_create(&device->device, &type, &array));
  a->buffer = array;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Client_CreateViewOfDeviceBuffer(tt_pjrt_view_args_t *a) {
  TT_SOFT_CHECK(a, buffer);
  tt_soft_device_t *device;
  tt_type_t type;
  void *memory = TT_PJRT_HAS(a, memory) ? a->memory : NULL;
  TT_SOFT_RETURN_IF_ERROR(tt__soft_target(a->client, a->device, memory, &device));
  TT_SOFT_RETURN_IF_ERROR(make_type(a->type, a->dims, a->rank, &type));
  tt_array_t *array;
  TT_SOFT_RETURN_IF_ERROR(
      tt_array_wrap(&device->device, &type, a->data, a->on_delete, a->on_delete_context, &array));
  a->buffer = array;
  return NULL;
}

// --- to the host ---

// A copy to the host that may have to wait; freed when it has been made.
typedef struct download_s {
  char *data;
  size_t offset, size;
  shape_t shape;  // rank 0: plain bytes
  int64_t tables[];
} download_t;

static void download(void *context, const void *data) {
  download_t *d = context;
  if (data && d->shape.rank) {
    char *dense = (char *)(uintptr_t)data;
    copy_strided(&d->shape, 0, &dense, d->data, false);
  } else if (data && d->size) {
    memcpy(d->data, (const char *)data + d->offset, d->size);
  }
  tt_free(d);
}

static tt_status_t start_download(tt_array_t *array, download_t *d, void **out_event) {
  tt_queue_event_t *event;
  tt_status_t status = tt_array_read(array, download, d, &event);
  if (status) {
    tt_free(d);
    return status;
  }
  *out_event = event;
  return TT_OK_STATUS;
}

static tt_status_t shape_download(download_t *d, const tt_array_t *array,
                                  const tt_pjrt_layout_t *layout) {
  tt_type_t type = tt_array_type(array);
  int64_t *dims = d->tables, *strides = d->tables + type.rank;
  if (!strides_of(layout, &type, strides)) {
    return TT_ERROR(UNIMPLEMENTED, "a tiled or partial layout of the host's array");
  }
  if (is_dense(&type, strides) || array->bytes == 0) return TT_OK_STATUS;
  memcpy(dims, type.dims, sizeof(int64_t) * type.rank);
  d->shape = (shape_t){type.rank, tt_dtype_size(type.dtype), dims, strides};
  return TT_OK_STATUS;
}

tt_pjrt_error_t *tt__soft_Buffer_ToHostBuffer(tt_pjrt_download_args_t *a) {
  TT_SOFT_CHECK(a, event);
  tt_array_t *array = a->self;
  if (!a->data) {
    a->size = array->bytes;
    return NULL;
  }
  if (a->size < array->bytes) {
    return tt__soft_error(
        TT_ERROR(INVALID_ARGUMENT, "%zu bytes do not hold an array of %zu", a->size, array->bytes));
  }
  download_t *d = tt_alloc_zeroed(sizeof *d + sizeof(int64_t) * 2 * array->rank);
  if (!d) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a transfer"));
  d->data = a->data;
  d->size = array->bytes;
  tt_status_t status = a->layout ? shape_download(d, array, a->layout) : TT_OK_STATUS;
  if (status) {
    tt_free(d);
    return tt__soft_error(status);
  }
  return tt__soft_error(start_download(array, d, &a->event));
}

tt_pjrt_error_t *tt__soft_Buffer_CopyRawToHost(tt_pjrt_raw_download_args_t *a) {
  TT_SOFT_CHECK(a, event);
  tt_array_t *array = a->self;
  if (a->offset < 0 || a->size < 0 || (size_t)a->offset > array->bytes ||
      (size_t)a->size > array->bytes - (size_t)a->offset) {
    return tt__soft_error(TT_ERROR(INDEX, "%lld bytes at %lld of an array of %zu",
                                   (long long)a->size, (long long)a->offset, array->bytes));
  }
  download_t *d = tt_alloc_zeroed(sizeof *d);
  if (!d) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for a transfer"));
  d->data = a->data;
  d->offset = (size_t)a->offset;
  d->size = (size_t)a->size;
  return tt__soft_error(start_download(array, d, &a->event));
}
