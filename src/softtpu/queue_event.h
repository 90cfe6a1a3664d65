// A moment in a device's work: pending, then done or failed, for ever. Thread-safe, refcounted.
#ifndef TT_SOFTTPU_QUEUE_EVENT_H_
#define TT_SOFTTPU_QUEUE_EVENT_H_

#include "base/status.h"

typedef struct tt_queue_event_s tt_queue_event_t;

// Called once, by the thread that completes the event, without any lock of the event's; `error` is
// borrowed.
typedef void (*tt_queue_event_fn_t)(void *context, tt_status_t error);

tt_queue_event_t *tt_queue_event_create(void) TT_MUST_USE;  // pending; NULL: no memory
// Already done (or failed with `status`, which is consumed).
tt_queue_event_t *tt_queue_event_create_done(tt_status_t status) TT_MUST_USE;
void tt_queue_event_retain(tt_queue_event_t *event);
void tt_queue_event_release(tt_queue_event_t *event);  // NULL-safe

// Completes a pending event; consumes `status`. The second time changes nothing.
void tt_queue_event_set(tt_queue_event_t *event, tt_status_t status);
bool tt_queue_event_is_done(const tt_queue_event_t *event);
bool tt_queue_event_failed(const tt_queue_event_t *event);
// A clone of the failure, OK while pending. Counts as having been told.
tt_status_t tt_queue_event_error(tt_queue_event_t *event) TT_MUST_USE;
// Waits; returns a clone of the failure.
tt_status_t tt_queue_event_await(tt_queue_event_t *event) TT_MUST_USE;
// The same for those who only pass the failure on, to outputs that somebody will look at: it does
// not count as told.
tt_status_t tt_queue_event_follow(tt_queue_event_t *event) TT_MUST_USE;
// Runs `fn` at completion, at once where that has been. False: no memory, fn will not run.
bool tt_queue_event_on_done(tt_queue_event_t *event, tt_queue_event_fn_t fn,
                            void *context) TT_MUST_USE;
// Nanoseconds of CLOCK_MONOTONIC at completion, 0 while pending.
int64_t tt_queue_event_time(const tt_queue_event_t *event);
// Whether somebody has been told of the failure (by error or await).
bool tt_queue_event_observed(const tt_queue_event_t *event);

#endif  // TT_SOFTTPU_QUEUE_EVENT_H_
