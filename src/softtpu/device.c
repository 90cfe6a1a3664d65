// A device's own state, the pool that all devices share, and what a fork leaves of both.
#include "softtpu/device.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"

// Set in a child of fork and never cleared: children of children are children.
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;

static void mark_forked(void) { atomic_store(&forked, true); }
static void watch_fork(void) { (void)pthread_atfork(NULL, NULL, mark_forked); }

tt_status_t tt_device_check(void) {
  if (atomic_load_explicit(&forked, memory_order_relaxed)) {
    return TT_ERROR(UNAVAILABLE,
                    "the device was used before this process was forked and cannot be used in the "
                    "child; use the 'spawn' start method");
  }
  return TT_OK_STATUS;
}

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static tt_pool_t *pool;

// A pool that cannot be had is a warning, not a failure: everything runs on one thread, too.
static void make_pool(void) {
  const char *text = getenv("TORCHTPU_NUM_THREADS");
  long count = text ? strtol(text, NULL, 10) : 0;
  tt_status_t status = tt_pool_create(count > 0 && count < 4096 ? (uint32_t)count : 0, &pool);
  if (status) {
    tt_log(TT_LOG_WARNING, "running on one thread: %s", tt_status_message(status));
    tt_status_release(status);
    pool = NULL;
  }
}

tt_pool_t *tt_device_pool(void) {
  pthread_once(&pool_once, make_pool);
  return pool;
}

tt_status_t tt_device_init(tt_device_t *device, uint32_t ordinal, int64_t memory_limit) {
  pthread_once(&fork_once, watch_fork);
  TT_RETURN_IF_ERROR(tt_device_check());
  device->ordinal = ordinal;
  device->failure = NULL;
  pthread_mutex_init(&device->mutex, NULL);
  tt_queue_init(&device->queue, &device->mutex);
  tt_memory_init(&device->memory, ordinal, memory_limit, &device->queue.completed);
  return TT_OK_STATUS;
}

void tt_device_deinit(tt_device_t *device) {
  if (atomic_load(&forked)) return;  // locks and threads are as the parent had them
  tt_queue_deinit(&device->queue);
  tt_memory_deinit(&device->memory);
  tt_queue_event_release(device->failure);
  pthread_mutex_destroy(&device->mutex);
}

// Takes the failure away under the lock, so that of two threads one hears of it.
tt_status_t tt_device_synchronize(tt_device_t *device) {
  TT_RETURN_IF_ERROR(tt_device_check());
  pthread_mutex_lock(&device->mutex);
  tt_queue_wait(&device->queue, device->queue.enqueued);
  tt_queue_event_t *failure = device->failure;
  device->failure = NULL;
  pthread_mutex_unlock(&device->mutex);
  if (!failure) return TT_OK_STATUS;
  tt_status_t status =
      tt_queue_event_observed(failure) ? TT_OK_STATUS : tt_queue_event_error(failure);
  tt_queue_event_release(failure);
  return status;
}

// A task that does nothing but complete an event.
typedef struct mark_task_s {
  tt_task_t base;
  tt_queue_event_t *event;
} mark_task_t;

static void run_mark(tt_task_t *task) {
  mark_task_t *mark = (mark_task_t *)task;
  tt_queue_event_set(mark->event, TT_OK_STATUS);
  tt_queue_event_release(mark->event);
  tt_free(mark);
}

// On an idle queue the event is done at once, with the present time.
tt_status_t tt_device_mark(tt_device_t *device, tt_queue_event_t **out_event) {
  *out_event = NULL;
  TT_RETURN_IF_ERROR(tt_device_check());
  mark_task_t *task = tt_alloc(sizeof *task);
  tt_queue_event_t *event = tt_queue_event_create();
  if (!task || !event) {
    tt_free(task);
    tt_queue_event_release(event);
    return TT_ERROR(OUT_OF_MEMORY, "no host memory for an event");
  }
  tt_status_t status = TT_OK_STATUS;
  pthread_mutex_lock(&device->mutex);
  bool idle = tt_queue_is_idle(&device->queue);
  if (!idle) {
    *task = (mark_task_t){{NULL, run_mark}, event};
    tt_queue_event_retain(event);
    status = tt_queue_push(&device->queue, &task->base);
  }
  pthread_mutex_unlock(&device->mutex);
  if (idle || status) tt_free(task);
  if (idle) tt_queue_event_set(event, TT_OK_STATUS);
  if (status) {
    tt_queue_event_release(event);
    tt_queue_event_release(event);
    return status;
  }
  *out_event = event;
  return TT_OK_STATUS;
}
