// A linked list under the device's mutex, and one thread that takes from its head. The enqueuing
// side pays for a wake-up only when the thread sleeps.
#include "softtpu/queue.h"

#include <string.h>

#include "base/relax.h"

// How long the thread polls for the next task before it sleeps: about 20 microseconds, the gap
// between two operations of an eager program.
#define SPIN_COUNT 400
// Pending tasks at which the enqueuing thread waits.
#define DEPTH 4096

void tt_queue_init(tt_queue_t *queue, pthread_mutex_t *mutex) {
  memset(queue, 0, sizeof *queue);
  queue->mutex = mutex;
  pthread_cond_init(&queue->wake, NULL);
  pthread_cond_init(&queue->progress, NULL);
  atomic_init(&queue->completed, 0);
  atomic_init(&queue->posted, 0);
}

// `done` is the thread's own count. Polls `posted` without the lock first, then looks again under
// it. Ends when told to and nothing is left.
static void *thread_main(void *argument) {
  tt_queue_t *queue = argument;
  uint64_t done = 0;
  for (;;) {
    for (int i = 0; i < SPIN_COUNT; i++) {
      if (atomic_load_explicit(&queue->posted, memory_order_acquire) != done) break;
      tt_relax();
    }
    pthread_mutex_lock(queue->mutex);
    while (!queue->head && !queue->stopping) {
      queue->sleeping = true;
      pthread_cond_wait(&queue->wake, queue->mutex);
      queue->sleeping = false;
    }
    tt_task_t *task = queue->head;
    if (task) {
      queue->head = task->next;
      if (!queue->head) queue->tail = NULL;
    }
    pthread_mutex_unlock(queue->mutex);
    if (!task) return NULL;
    task->run(task);
    pthread_mutex_lock(queue->mutex);
    atomic_store_explicit(&queue->completed, ++done, memory_order_release);
    if (queue->waiters > 0) pthread_cond_broadcast(&queue->progress);
    pthread_mutex_unlock(queue->mutex);
  }
}

void tt_queue_deinit(tt_queue_t *queue) {
  pthread_mutex_lock(queue->mutex);
  queue->stopping = true;
  pthread_cond_signal(&queue->wake);
  bool started = queue->started;
  pthread_mutex_unlock(queue->mutex);
  if (started) pthread_join(queue->thread, NULL);
  pthread_cond_destroy(&queue->wake);
  pthread_cond_destroy(&queue->progress);
}

// A program that enqueues faster than the device runs would fill the memory with arrays that wait;
// it waits until half of the queue is done.
void tt_queue_throttle(tt_queue_t *queue) {
  if (queue->enqueued - atomic_load(&queue->completed) >= DEPTH) {
    tt_queue_wait(queue, queue->enqueued - DEPTH / 2);
  }
}

tt_status_t tt_queue_start(tt_queue_t *queue) {
  if (queue->started) return TT_OK_STATUS;
  if (pthread_create(&queue->thread, NULL, thread_main, queue) != 0) {
    return TT_ERROR(UNAVAILABLE, "cannot start a device's thread");
  }
  queue->started = true;
  return TT_OK_STATUS;
}

tt_status_t tt_queue_push(tt_queue_t *queue, tt_task_t *task) {
  TT_RETURN_IF_ERROR(tt_queue_start(queue));
  task->next = NULL;
  if (queue->tail) {
    queue->tail->next = task;
  } else {
    queue->head = task;
  }
  queue->tail = task;
  queue->enqueued++;
  atomic_store_explicit(&queue->posted, queue->enqueued, memory_order_release);
  if (queue->sleeping) pthread_cond_signal(&queue->wake);
  return TT_OK_STATUS;
}

void tt_queue_wait(tt_queue_t *queue, uint64_t count) {
  queue->waiters++;
  while (atomic_load_explicit(&queue->completed, memory_order_acquire) < count) {
    pthread_cond_wait(&queue->progress, queue->mutex);
  }
  queue->waiters--;
}
