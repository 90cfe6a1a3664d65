// Arrays: a header of one allocation (dims behind it) and memory that the device's allocator or
// somebody else owns. data, held, holds and the memory's fate are guarded by the device's lock;
// dtype, dims and bytes never change; refs is atomic. `ready` is set before anybody else sees the
// array.
#include <string.h>

#include "base/alloc.h"
#include "softtpu/device.h"

tt_array_t *tt__array_header(tt_device_t *device, const tt_type_t *type, size_t bytes, void *data) {
  tt_array_t *array = tt_alloc(sizeof *array + sizeof(int64_t) * type->rank);
  if (!array) return NULL;
  int64_t *dims = (int64_t *)(array + 1);
  for (uint32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  *array = (tt_array_t){
      .dtype = (uint8_t)type->dtype,
      .rank = type->rank,
      .device = device,
      .data = data,
      .bytes = bytes,
      .dims = dims,
  };
  atomic_init(&array->refs, 1);
  return array;
}

tt_status_t tt__array_allocate(tt_device_t *device, const tt_type_t *type, size_t bytes, bool idle,
                               tt_array_t **out_array) {
  *out_array = NULL;
  void *data;
  TT_RETURN_IF_ERROR(tt_memory_allocate(&device->memory, bytes, idle, &data));
  tt_array_t *array = tt__array_header(device, type, bytes, data);
  if (!array) {
    tt_memory_free(&device->memory, data, bytes, device->queue.enqueued);
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for an array");
  }
  *out_array = array;
  return TT_OK_STATUS;
}

// For work that is enqueued from now on; what is pending still may use it.
static void recycle(tt_array_t *array, void *data) {
  tt_memory_free(&array->device->memory, data, array->bytes, array->device->queue.enqueued);
}

// Foreign memory only becomes `held` here; tt__array_end_foreign tells its owner.
void tt__array_free_memory(tt_array_t *array) {
  void *data = array->data;
  if (!data) return;
  array->data = NULL;
  if (array->holds > 0 || array->foreign) {
    array->held = data;
  } else {
    recycle(array, data);
  }
}

// No other reference exists, so neither holds nor foreign memory can be in the way.
void tt__array_discard(tt_array_t *array) {
  tt__array_free_memory(array);
  tt_queue_event_release(array->ready);
  tt_free(array);
}

// --- foreign memory ---

// Tells the memory's owner, in the queue after the work that may use it.
typedef struct end_task_s {
  tt_task_t base;
  void (*on_free)(void *data, void *context);
  void *context, *data;
} end_task_t;

static void run_end(tt_task_t *task) {
  end_task_t *end = (end_task_t *)task;
  if (end->on_free) end->on_free(end->data, end->context);
  tt_free(end);
}

// Decided under the lock, done outside it: on_free is foreign code and may come back to us.
void tt__array_end_foreign(tt_array_t *array) {
  tt_device_t *device = array->device;
  end_task_t *end = NULL;
  pthread_mutex_lock(&device->mutex);
  if (array->holds == 0 && array->held) {
    end = array->end_task;
    end->data = array->held;
    array->held = array->end_task = NULL;
    // A queue with pending work has its thread: pushing cannot fail.
    if (!tt_queue_is_idle(&device->queue) && !tt_queue_push(&device->queue, &end->base)) end = NULL;
  }
  pthread_mutex_unlock(&device->mutex);
  if (end) run_end(&end->base);
}

tt_status_t tt_array_create(tt_device_t *device, const tt_type_t *type, tt_array_t **out_array) {
  *out_array = NULL;
  TT_RETURN_IF_ERROR(tt_device_check());
  pthread_mutex_lock(&device->mutex);
  tt_status_t status = tt__array_allocate(device, type, tt_type_bytes(type), true, out_array);
  pthread_mutex_unlock(&device->mutex);
  return status;
}

tt_status_t tt_array_wrap(tt_device_t *device, const tt_type_t *type, void *data,
                          void (*on_free)(void *data, void *context), void *context,
                          tt_array_t **out_array) {
  *out_array = NULL;
  TT_RETURN_IF_ERROR(tt_device_check());
  tt_array_t *array = tt__array_header(device, type, tt_type_bytes(type), data);
  end_task_t *end = tt_alloc(sizeof *end);
  if (!array || !end) {
    tt_free(array);
    tt_free(end);
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for an array");
  }
  *end = (end_task_t){{NULL, run_end}, on_free, context, data};
  array->foreign = true;
  array->end_task = end;
  *out_array = array;
  return TT_OK_STATUS;
}

// acq_rel: what other owners did to the array is visible to the one that frees it. Holds are over,
// since whoever holds has a reference.
void tt_array_release(tt_array_t *array) {
  if (!array || atomic_fetch_sub_explicit(&array->refs, 1, memory_order_acq_rel) != 1) return;
  tt_status_t forked = tt_device_check();
  if (forked) {  // the lock may be somebody's who is not here
    tt_status_release(forked);
    return;
  }
  pthread_mutex_lock(&array->device->mutex);
  array->holds = 0;
  tt__array_free_memory(array);
  if (array->held && !array->foreign) recycle(array, array->held);
  pthread_mutex_unlock(&array->device->mutex);
  if (array->foreign) tt__array_end_foreign(array);
  tt_queue_event_release(array->ready);
  tt_free(array);
}

void tt_array_delete(tt_array_t *array) {
  pthread_mutex_lock(&array->device->mutex);
  tt__array_free_memory(array);
  pthread_mutex_unlock(&array->device->mutex);
  if (array->foreign) tt__array_end_foreign(array);
}

bool tt_array_is_deleted(tt_array_t *array) {
  pthread_mutex_lock(&array->device->mutex);
  bool deleted = !array->data;
  pthread_mutex_unlock(&array->device->mutex);
  return deleted;
}

tt_status_t tt_array_pin(tt_array_t *array, const void **out_data) {
  *out_data = NULL;
  TT_RETURN_IF_ERROR(tt_device_check());
  pthread_mutex_lock(&array->device->mutex);
  void *data = array->data;
  if (data) array->holds++;
  pthread_mutex_unlock(&array->device->mutex);
  if (!data) return TT_ERROR(INVALID_ARGUMENT, "the buffer has been deleted or donated");
  *out_data = data;
  return TT_OK_STATUS;
}

tt_status_t tt_array_hold(tt_array_t *array, const void **out_data) {
  TT_RETURN_IF_ERROR(tt_array_pin(array, out_data));
  tt_status_t status = array->ready ? tt_queue_event_await(array->ready) : TT_OK_STATUS;
  if (status) tt_array_drop(array);
  return status;
}

void tt_array_drop(tt_array_t *array) {
  pthread_mutex_lock(&array->device->mutex);
  array->holds--;
  if (array->holds == 0 && array->held && !array->foreign) {
    recycle(array, array->held);
    array->held = NULL;
  }
  pthread_mutex_unlock(&array->device->mutex);
  if (array->foreign) tt__array_end_foreign(array);
}

// --- reads and copies ---

// A read that waits its turn in the queue.
typedef struct read_task_s {
  tt_task_t base;
  tt_array_t *array;  // pinned and retained
  const void *data;
  tt_array_read_fn_t read;
  void *context;
  tt_queue_event_t *event;
} read_task_t;

// In the queue everything before has run, so waiting here never waits for this thread itself.
static void finish_read(tt_array_t *array, const void *data, tt_array_read_fn_t read, void *context,
                        tt_queue_event_t *event) {
  tt_status_t status = array->ready ? tt_queue_event_await(array->ready) : TT_OK_STATUS;
  read(context, status ? NULL : data);
  tt_queue_event_set(event, status);
  tt_queue_event_release(event);
  tt_array_drop(array);
  tt_array_release(array);
}

static void run_read(tt_task_t *task) {
  read_task_t *t = (read_task_t *)task;
  finish_read(t->array, t->data, t->read, t->context, t->event);
  tt_free(t);
}

// The task gets one reference to the event, the caller another.
tt_status_t tt_array_read(tt_array_t *array, tt_array_read_fn_t read, void *context,
                          tt_queue_event_t **out_event) {
  *out_event = NULL;
  const void *data;
  TT_RETURN_IF_ERROR(tt_array_pin(array, &data));
  tt_queue_event_t *event = tt_queue_event_create();
  read_task_t *task = tt_alloc(sizeof *task);
  if (!event || !task) {
    tt_queue_event_release(event);
    tt_free(task);
    tt_array_drop(array);
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for a transfer");
  }
  tt_queue_event_retain(event);
  tt_array_retain(array);
  tt_status_t status = TT_OK_STATUS;
  bool ready = tt_array_is_ready(array);
  if (!ready) {
    *task = (read_task_t){{NULL, run_read}, array, data, read, context, event};
    pthread_mutex_lock(&array->device->mutex);
    tt_queue_throttle(&array->device->queue);
    status = tt_queue_push(&array->device->queue, &task->base);
    pthread_mutex_unlock(&array->device->mutex);
  }
  if (ready || status) tt_free(task);
  if (ready) finish_read(array, data, read, context, event);
  if (status) {
    tt_queue_event_release(event);
    tt_queue_event_release(event);
    tt_array_drop(array);
    tt_array_release(array);
    return status;
  }
  *out_event = event;
  return TT_OK_STATUS;
}

// A copy under way.
typedef struct copy_s {
  tt_array_t *target;  // retained and held
  void *data;
} copy_t;

static void copy_into(void *context, const void *data) {
  copy_t *copy = context;
  if (data) memcpy(copy->data, data, copy->target->bytes);
  tt_array_drop(copy->target);
  tt_array_release(copy->target);
  tt_free(copy);
}

// The copy is done in the source's queue, so its target is memory that no pending work touches, and
// stays held until then.
tt_status_t tt_array_copy_as(tt_array_t *array, tt_device_t *target, const tt_type_t *type,
                             tt_array_t **out_array) {
  *out_array = NULL;
  tt_array_t *made;
  TT_RETURN_IF_ERROR(tt_array_create(target, type, &made));
  copy_t *copy = tt_alloc(sizeof *copy);
  tt_status_t status = copy ? TT_OK_STATUS : TT_ERROR(OUT_OF_MEMORY, "no host memory for a copy");
  if (!status) {
    *copy = (copy_t){made, made->data};
    made->holds = 1;
    tt_array_retain(made);
    status = tt_array_read(array, copy_into, copy, &made->ready);
    if (status) {
      made->holds = 0;
      tt_array_release(made);
      tt_free(copy);
    }
  }
  if (status) {
    tt_array_release(made);
    return status;
  }
  *out_array = made;
  return TT_OK_STATUS;
}

tt_status_t tt_array_copy(tt_array_t *array, tt_device_t *target, tt_array_t **out_array) {
  tt_type_t type = tt_array_type(array);
  return tt_array_copy_as(array, target, &type, out_array);
}
