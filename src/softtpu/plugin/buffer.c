// Buffers: what they are, where they are, copies. A handle is a reference to an array.
#include "base/alloc.h"
#include "softtpu/plugin/plugin.h"

static const tt_pjrt_type_t numbers[TT_DTYPE_COUNT] = {
#define X(number, name) [TT_##name] = number,
    TT_PJRT_TYPES(X)
#undef X
};

tt_pjrt_type_t tt__soft_type_number(tt_dtype_t dtype) { return numbers[dtype]; }

tt_status_t tt__soft_type(tt_pjrt_type_t number, tt_dtype_t *out_dtype) {
  for (int i = 0; i < TT_DTYPE_COUNT; i++) {
    if (numbers[i] == number) {
      *out_dtype = (tt_dtype_t)i;
      return TT_OK_STATUS;
    }
  }
  return TT_ERROR(UNIMPLEMENTED, "the software TPU has no element type number %d", number);
}

tt_pjrt_error_t *tt__soft_Buffer_Destroy(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_array_release(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_ElementType(tt_pjrt_int_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = numbers[((tt_array_t *)a->self)->dtype];
  return NULL;
}

// Borrowed from the array. Nothing is padded and no dimension is dynamic.
tt_pjrt_error_t *tt__soft_Buffer_Dimensions(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  tt_array_t *array = a->self;
  a->items = array->dims;
  a->count = array->rank;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_UnpaddedDimensions(tt_pjrt_list_args_t *a) {
  return tt__soft_Buffer_Dimensions(a);
}

tt_pjrt_error_t *tt__soft_Buffer_DynamicDimensionIndices(tt_pjrt_list_args_t *a) {
  TT_SOFT_CHECK(a, count);
  a->items = NULL;
  a->count = 0;
  return NULL;
}

// Row-major always: a table of the longest list serves every rank from its own start.
#define MAX_RANK 32
tt_pjrt_error_t *tt__soft_Buffer_GetMemoryLayout(tt_pjrt_layout_args_t *a) {
  static const int64_t descending[MAX_RANK] = {31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21,
                                               20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10,
                                               9,  8,  7,  6,  5,  4,  3,  2,  1,  0};
  TT_SOFT_CHECK(a, layout);
  uint32_t rank = ((tt_array_t *)a->self)->rank;
  if (rank > MAX_RANK) {
    return tt__soft_error(TT_ERROR(UNIMPLEMENTED, "the layout of an array of rank %u", rank));
  }
  a->layout.is_strided = 0;
  a->layout.u.tiled = (tt_pjrt_tiled_layout_t){.struct_size = sizeof(tt_pjrt_tiled_layout_t),
                                               .minor_to_major = descending + MAX_RANK - rank,
                                               .minor_to_major_size = rank};
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_OnDeviceSizeInBytes(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = ((tt_array_t *)a->self)->bytes;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_Device(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  a->result = ((tt_array_t *)a->self)->device;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_Memory(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  a->result = &tt__soft_device_of(((tt_array_t *)a->self)->device)->memory;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_Delete(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_array_delete(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_IsDeleted(tt_pjrt_bool_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = tt_array_is_deleted(a->self);
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_IsOnCpu(tt_pjrt_bool_args_t *a) {
  TT_SOFT_CHECK(a, value);
  a->value = false;  // its memory may be read only through the interface
  return NULL;
}

// A reference to the array's own event, or one that is done; the caller destroys it.
tt_pjrt_error_t *tt__soft_Buffer_ReadyEvent(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  tt_array_t *array = a->self;
  if (array->ready) {
    tt_queue_event_retain(array->ready);
    a->result = array->ready;
    return NULL;
  }
  a->result = tt_queue_event_create_done(TT_OK_STATUS);
  if (!a->result) return tt__soft_error(TT_ERROR(OUT_OF_MEMORY, "no host memory for an event"));
  return NULL;
}

// Waits: whoever asks for an address means to look.
tt_pjrt_error_t *tt__soft_Buffer_UnsafePointer(tt_pjrt_size_args_t *a) {
  TT_SOFT_CHECK(a, value);
  const void *data;
  TT_SOFT_RETURN_IF_ERROR(tt_array_hold(a->self, &data));
  tt_array_drop(a->self);
  a->value = (uintptr_t)data;
  return NULL;
}

// The same as a pointer. Valid while the caller keeps the buffer alive and does not donate it.
tt_pjrt_error_t *tt__soft_Buffer_OpaqueDeviceMemoryDataPointer(tt_pjrt_get_args_t *a) {
  TT_SOFT_CHECK(a, result);
  const void *data;
  TT_SOFT_RETURN_IF_ERROR(tt_array_hold(a->self, &data));
  tt_array_drop(a->self);
  a->result = (void *)(uintptr_t)data;
  return NULL;
}

// An external reference is a hold: a deleted buffer keeps its memory until it is dropped.
tt_pjrt_error_t *tt__soft_Buffer_IncreaseExternalReferenceCount(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  const void *data;
  return tt__soft_error(tt_array_pin(a->self, &data));
}

tt_pjrt_error_t *tt__soft_Buffer_DecreaseExternalReferenceCount(tt_pjrt_ref_args_t *a) {
  TT_SOFT_CHECK(a, self);
  tt_array_drop(a->self);
  return NULL;
}

static tt_pjrt_error_t *copy_to(tt_pjrt_copy_args_t *a, tt_soft_device_t *target) {
  tt_array_t *copy;
  TT_SOFT_RETURN_IF_ERROR(tt_array_copy(a->self, &target->device, &copy));
  a->result = copy;
  return NULL;
}

tt_pjrt_error_t *tt__soft_Buffer_CopyToDevice(tt_pjrt_copy_args_t *a) {
  TT_SOFT_CHECK(a, result);
  return copy_to(a, a->target);
}

tt_pjrt_error_t *tt__soft_Buffer_CopyToMemory(tt_pjrt_copy_args_t *a) {
  TT_SOFT_CHECK(a, result);
  return copy_to(a, ((tt_soft_memory_t *)a->target)->device);
}

// A copy under another type: arrays do not share memory here.
tt_pjrt_error_t *tt__soft_Buffer_Bitcast(tt_pjrt_bitcast_args_t *a) {
  TT_SOFT_CHECK(a, result);
  tt_array_t *array = a->self;
  tt_type_t type = {TT_DTYPE_NONE, (uint32_t)a->rank, a->dims};
  TT_SOFT_RETURN_IF_ERROR(tt__soft_type(a->type, &type.dtype));
  if (tt_type_bytes(&type) != array->bytes) {
    return tt__soft_error(TT_ERROR(INVALID_ARGUMENT, "bitcast of %zu bytes to %zu", array->bytes,
                                   tt_type_bytes(&type)));
  }
  tt_array_t *copy;
  TT_SOFT_RETURN_IF_ERROR(tt_array_copy_as(array, array->device, &type, &copy));
  a->result = copy;
  return NULL;
}
