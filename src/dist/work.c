#include "dist/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/alloc.h"
#include "dist/meeting.h"

#define PAUSE_NS 50000000

struct tt_work_s {
  _Atomic uint32_t refs;
  pthread_mutex_t lock;
  pthread_cond_t change;
  bool done;
  uint32_t source;
  double timeout_s;
  tt_status_t status;
  void (*on_done)(void *context, tt_status_t status);
  void *context;
};

tt_status_t tt_work_create(double timeout_s, tt_work_t **out_work) {
  tt_work_t *work = tt_alloc_zeroed(sizeof *work);
  if (!work) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a work handle");
  atomic_init(&work->refs, 1);
  work->timeout_s = timeout_s;
  pthread_mutex_init(&work->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&work->change, &attr);
  pthread_condattr_destroy(&attr);
  *out_work = work;
  return TT_OK_STATUS;
}

void tt_work_retain(tt_work_t *work) { atomic_fetch_add(&work->refs, 1); }

void tt_work_release(tt_work_t *work) {
  if (!work || atomic_fetch_sub(&work->refs, 1) != 1) return;
  tt_status_release(work->status);
  pthread_cond_destroy(&work->change);
  pthread_mutex_destroy(&work->lock);
  tt_free(work);
}

void tt_work_finish(tt_work_t *work, tt_status_t status, uint32_t source) {
  pthread_mutex_lock(&work->lock);
  work->status = status;
  work->source = source;
  work->done = true;
  void (*fn)(void *, tt_status_t) = work->on_done;
  work->on_done = NULL;
  pthread_cond_broadcast(&work->change);
  pthread_mutex_unlock(&work->lock);
  if (fn) fn(work->context, status);
}

void tt_work_on_done(tt_work_t *work, void (*fn)(void *context, tt_status_t status),
                     void *context) {
  pthread_mutex_lock(&work->lock);
  bool done = work->done;
  if (!done) {
    work->on_done = fn;
    work->context = context;
  }
  pthread_mutex_unlock(&work->lock);
  if (done) fn(context, work->status);
}

bool tt_work_is_done(tt_work_t *work) {
  pthread_mutex_lock(&work->lock);
  bool done = work->done;
  pthread_mutex_unlock(&work->lock);
  return done;
}

uint32_t tt_work_source(tt_work_t *work) {
  pthread_mutex_lock(&work->lock);
  uint32_t source = work->source;
  pthread_mutex_unlock(&work->lock);
  return source;
}

static bool done_by(tt_work_t *work, int64_t until_ns) {
  struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
  pthread_mutex_lock(&work->lock);
  int error = 0;
  while (!work->done && error != ETIMEDOUT) {
    error = pthread_cond_timedwait(&work->change, &work->lock, &until);
  }
  bool done = work->done;
  pthread_mutex_unlock(&work->lock);
  return done;
}

tt_status_t tt_work_wait(tt_work_t *work, double timeout_s, tt_status_t (*pause)(void)) {
  // The job's own timeout ends it; a margin on top only catches a lane that is stuck behind others.
  double seconds = timeout_s > 0 ? timeout_s : 2 * work->timeout_s + 10;
  int64_t end = tt__dist_now_ns() + (int64_t)(seconds * 1e9), next = end;
  do {
    if (pause) next = tt__dist_now_ns() + PAUSE_NS;
    if (done_by(work, next < end ? next : end)) return tt_status_clone(work->status);
    if (pause) TT_RETURN_IF_ERROR(pause());
  } while (next < end);
  return TT_ERROR(DEADLINE, "tpu_dist: not done within %.1f s", seconds);
}
