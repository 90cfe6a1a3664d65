// The work of one device, in order: a list of tasks and the thread that runs them.
#ifndef TT_SOFTTPU_QUEUE_H_
#define TT_SOFTTPU_QUEUE_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

// The head of a task's record. The queue owns it from push on.
typedef struct tt_task_s {
  struct tt_task_s *next;
  void (*run)(struct tt_task_s *task);  // on the queue's thread; frees the task
} tt_task_t;

// Thread-safe under the mutex. Tasks run one after another, in the order in which they were pushed,
// on one thread that is started by the first push: a device that only does small work inline has
// none.
typedef struct tt_queue_s {
  pthread_mutex_t *mutex;   // borrowed, the device's: guards all but the atomics
  pthread_cond_t wake;      // for the thread: there is a task, or the end
  pthread_cond_t progress;  // for waiters: `completed` has grown
  tt_task_t *head, *tail;
  uint64_t enqueued;           // number of tasks ever
  _Atomic uint64_t completed;  // number of tasks done
  _Atomic uint64_t posted;     // equals enqueued; what the thread polls
  uint32_t waiters;
  bool started, sleeping, stopping;
  pthread_t thread;
} tt_queue_t;

// `mutex` is the owner's, borrowed; every function says whether it wants it held.
void tt_queue_init(tt_queue_t *queue, pthread_mutex_t *mutex);
// Runs what is left, ends the thread. Call without the mutex.
void tt_queue_deinit(tt_queue_t *queue);

// Waits while very many tasks are pending. The mutex is held, released while waiting.
void tt_queue_throttle(tt_queue_t *queue);
// Starts the thread unless it runs. The mutex is held.
tt_status_t tt_queue_start(tt_queue_t *queue) TT_MUST_USE;
// Appends a task; starts the thread at the first one. The mutex is held. Fails without having taken
// the task, and only where the thread had to be started.
tt_status_t tt_queue_push(tt_queue_t *queue, tt_task_t *task) TT_MUST_USE;
// Nothing pending. The mutex is held.
static inline bool tt_queue_is_idle(tt_queue_t *queue) {
  return atomic_load_explicit(&queue->completed, memory_order_acquire) == queue->enqueued;
}
// Waits until the first `count` tasks are done. The mutex is held, released while waiting.
void tt_queue_wait(tt_queue_t *queue, uint64_t count);

#endif  // TT_SOFTTPU_QUEUE_H_
