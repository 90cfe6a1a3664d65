// A thread that runs jobs in the order they came.
#ifndef TT_DIST_LANE_H_
#define TT_DIST_LANE_H_

#include <stddef.h>

#include "base/status.h"

typedef struct tt_lane_s tt_lane_t;  // thread-safe

typedef struct tt_lane_task_s {
  struct tt_lane_task_s *next;
  // Runs the task and disposes of it; `cancelled` when the lane ends before the task's turn.
  void (*run)(struct tt_lane_task_s *task, bool cancelled);
} tt_lane_task_t;

// kept_bytes: how much scratch memory an idle lane holds on to.
tt_status_t tt_lane_create(size_t kept_bytes, tt_lane_t **out_lane) TT_MUST_USE;
void tt_lane_destroy(tt_lane_t *lane);  // cancels what has not begun, waits for what has; NULL-safe
// Memory for the running task, until it ends; NULL when there is none. One call a task.
void *tt_lane_scratch(tt_lane_t *lane, size_t bytes) TT_MUST_USE;
// From the lane's own thread (what is called back at a task's end) the task runs at once: the
// caller may wait for it, and on every rank it has the same place, after the task that called back.
void tt_lane_push(tt_lane_t *lane, tt_lane_task_t *task);

#endif  // TT_DIST_LANE_H_
