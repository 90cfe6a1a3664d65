#include "dist/lane.h"

#include <pthread.h>

#include "base/alloc.h"

struct tt_lane_s {
  pthread_mutex_t lock;
  pthread_cond_t change;
  pthread_t thread;
  tt_lane_task_t *head, *tail;
  bool ending;
  void *scratch;  // only the lane's thread uses it
  size_t scratch_bytes, kept_bytes;
};

static _Thread_local tt_lane_t *own_lane;  // the one whose thread this is

// Fresh pages for every large task would cost more than copying the data does.
void *tt_lane_scratch(tt_lane_t *lane, size_t bytes) {
  if (bytes <= lane->scratch_bytes) return lane->scratch;
  tt_free(lane->scratch);
  lane->scratch = tt_alloc_aligned(64, bytes);
  lane->scratch_bytes = lane->scratch ? bytes : 0;
  return lane->scratch;
}

static void trim(tt_lane_t *lane) {
  if (lane->scratch_bytes <= lane->kept_bytes) return;
  tt_free(lane->scratch);
  lane->scratch = NULL;
  lane->scratch_bytes = 0;
}

static void *serve(void *argument) {
  tt_lane_t *lane = own_lane = argument;
  pthread_mutex_lock(&lane->lock);
  for (;;) {
    while (!lane->head && !lane->ending) pthread_cond_wait(&lane->change, &lane->lock);
    tt_lane_task_t *task = lane->head;
    if (!task) break;
    lane->head = task->next;
    if (!lane->head) lane->tail = NULL;
    bool cancelled = lane->ending;
    pthread_mutex_unlock(&lane->lock);
    task->run(task, cancelled);
    trim(lane);
    pthread_mutex_lock(&lane->lock);
  }
  pthread_mutex_unlock(&lane->lock);
  return NULL;
}

tt_status_t tt_lane_create(size_t kept_bytes, tt_lane_t **out_lane) {
  tt_lane_t *lane = tt_alloc_zeroed(sizeof *lane);
  if (!lane) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a thread");
  lane->kept_bytes = kept_bytes;
  pthread_mutex_init(&lane->lock, NULL);
  pthread_cond_init(&lane->change, NULL);
  if (pthread_create(&lane->thread, NULL, serve, lane)) {
    pthread_cond_destroy(&lane->change);
    pthread_mutex_destroy(&lane->lock);
    tt_free(lane);
    return TT_ERROR(UNAVAILABLE, "tpu_dist: cannot start a thread");
  }
  *out_lane = lane;
  return TT_OK_STATUS;
}

void tt_lane_destroy(tt_lane_t *lane) {
  if (!lane) return;
  pthread_mutex_lock(&lane->lock);
  lane->ending = true;
  pthread_cond_signal(&lane->change);
  pthread_mutex_unlock(&lane->lock);
  pthread_join(lane->thread, NULL);
  pthread_cond_destroy(&lane->change);
  pthread_mutex_destroy(&lane->lock);
  tt_free(lane->scratch);
  tt_free(lane);
}

void tt_lane_push(tt_lane_t *lane, tt_lane_task_t *task) {
  if (lane == own_lane) {
    task->run(task, false);
    return;
  }
  task->next = NULL;
  pthread_mutex_lock(&lane->lock);
  if (lane->tail) lane->tail->next = task;
  if (!lane->head) lane->head = task;
  lane->tail = task;
  pthread_cond_signal(&lane->change);
  pthread_mutex_unlock(&lane->lock);
}
