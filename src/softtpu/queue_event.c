// State is one atomic: pending, then done or failed, written after error and time with sequential
// consistency, so that whoever reads it without the mutex may read those, too. The mutex is for
// sleeping and for the list of callbacks.
#include "softtpu/queue_event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/alloc.h"
#include "base/relax.h"

// How long a waiter polls before it sleeps: about 10 microseconds, a small kernel's time.
#define SPIN_COUNT 200

typedef struct callback_s {
  struct callback_s *next;
  tt_queue_event_fn_t fn;
  void *context;
} callback_t;

enum { PENDING, DONE, FAILED };

struct tt_queue_event_s {
  _Atomic uint32_t refs;
  _Atomic int state;
  _Atomic bool observed;
  tt_status_t error;  // written before `state`
  int64_t time;
  pthread_mutex_t mutex;  // guards callbacks and the transition
  pthread_cond_t cond;
  callback_t *callbacks;
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

tt_queue_event_t *tt_queue_event_create(void) {
  tt_queue_event_t *event = tt_alloc(sizeof *event);
  if (!event) return NULL;
  atomic_init(&event->refs, 1);
  atomic_init(&event->state, PENDING);
  atomic_init(&event->observed, false);
  event->error = TT_OK_STATUS;
  event->time = 0;
  event->callbacks = NULL;
  pthread_mutex_init(&event->mutex, NULL);
  pthread_cond_init(&event->cond, NULL);
  return event;
}

tt_queue_event_t *tt_queue_event_create_done(tt_status_t status) {
  tt_queue_event_t *event = tt_queue_event_create();
  if (!event) {
    tt_status_release(status);
    return NULL;
  }
  event->error = status;
  event->time = now_ns();
  atomic_store(&event->state, status ? FAILED : DONE);
  return event;
}

void tt_queue_event_retain(tt_queue_event_t *event) {
  atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}

void tt_queue_event_release(tt_queue_event_t *event) {
  if (!event || atomic_fetch_sub(&event->refs, 1) != 1) return;
  while (event->callbacks) {  // a pending event that nobody will ever set
    callback_t *next = event->callbacks->next;
    tt_free(event->callbacks);
    event->callbacks = next;
  }
  tt_status_release(event->error);
  pthread_cond_destroy(&event->cond);
  pthread_mutex_destroy(&event->mutex);
  tt_free(event);
}

// Callbacks run after the lock is gone: they may call anything, this event included. The caller's
// reference keeps the event and with it the borrowed status.
void tt_queue_event_set(tt_queue_event_t *event, tt_status_t status) {
  pthread_mutex_lock(&event->mutex);
  if (atomic_load(&event->state) != PENDING) {
    pthread_mutex_unlock(&event->mutex);
    tt_status_release(status);
    return;
  }
  event->error = status;
  event->time = now_ns();
  callback_t *callbacks = event->callbacks;
  event->callbacks = NULL;
  atomic_store(&event->state, status ? FAILED : DONE);
  pthread_cond_broadcast(&event->cond);
  pthread_mutex_unlock(&event->mutex);
  while (callbacks) {
    callback_t *next = callbacks->next;
    callbacks->fn(callbacks->context, status);
    tt_free(callbacks);
    callbacks = next;
  }
}

bool tt_queue_event_is_done(const tt_queue_event_t *event) {
  return atomic_load_explicit(&event->state, memory_order_acquire) != PENDING;
}

bool tt_queue_event_failed(const tt_queue_event_t *event) {
  return atomic_load_explicit(&event->state, memory_order_acquire) == FAILED;
}

tt_status_t tt_queue_event_error(tt_queue_event_t *event) {
  if (!tt_queue_event_failed(event)) return TT_OK_STATUS;
  atomic_store(&event->observed, true);
  return tt_status_clone(event->error);
}

// Polls for a moment first: a sleep and a wake cost more than most kernels.
tt_status_t tt_queue_event_follow(tt_queue_event_t *event) {
  for (int i = 0; i < SPIN_COUNT && !tt_queue_event_is_done(event); i++) tt_relax();
  if (!tt_queue_event_is_done(event)) {
    pthread_mutex_lock(&event->mutex);
    while (!tt_queue_event_is_done(event)) pthread_cond_wait(&event->cond, &event->mutex);
    pthread_mutex_unlock(&event->mutex);
  }
  return tt_status_clone(event->error);
}

tt_status_t tt_queue_event_await(tt_queue_event_t *event) {
  tt_status_t status = tt_queue_event_follow(event);
  if (status) atomic_store(&event->observed, true);
  return status;
}

// Looks again under the lock: the event may complete while the record is made.
bool tt_queue_event_on_done(tt_queue_event_t *event, tt_queue_event_fn_t fn, void *context) {
  if (!tt_queue_event_is_done(event)) {
    callback_t *callback = tt_alloc(sizeof *callback);
    if (!callback) return false;
    callback->fn = fn;
    callback->context = context;
    pthread_mutex_lock(&event->mutex);
    if (!tt_queue_event_is_done(event)) {
      callback->next = event->callbacks;
      event->callbacks = callback;
      pthread_mutex_unlock(&event->mutex);
      return true;
    }
    pthread_mutex_unlock(&event->mutex);
    tt_free(callback);
  }
  if (tt_queue_event_failed(event)) atomic_store(&event->observed, true);
  fn(context, event->error);
  return true;
}

int64_t tt_queue_event_time(const tt_queue_event_t *event) {
  return tt_queue_event_is_done(event) ? event->time : 0;
}

bool tt_queue_event_observed(const tt_queue_event_t *event) {
  return atomic_load(&event->observed);
}
