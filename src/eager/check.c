// Run-time checks: each program that has some gives the number of the first one that failed. The
// numbers are read when the host waits anyway, or when they are known already.
#include <string.h>

#include "eager/internal.h"

enum { MOST_PENDING = 64 };

typedef struct pending_s {
  tt_buffer_t *buffer;
  const tt__check_t *checks;
  tt__fused_t *program;      // whose `checks` is, retained; NULL: it is the instance's
  tt__instance_t *instance;  // the same
} pending_t;

typedef struct queue_s {
  pending_t items[MOST_PENDING];
  uint32_t count;
} queue_t;

static queue_t *queues[TT__MAX_DEVICES];

static tt_status_t read_check(pending_t p) {
  int32_t failed = 0;
  tt_status_t s = tt_buffer_read(p.buffer, &failed, sizeof failed);
  if (s) return tt_status_annotate(s, "%s", p.checks[0].op_name);
  if (failed == 0) return TT_OK_STATUS;
  const tt__check_t *c = &p.checks[failed - 1];
  return tt_status_make(c->code, __FILE__, __LINE__, "%s: %s", c->op_name, c->message);
}

// Consumes the buffer and the owners.
static tt_status_t examine(pending_t p) {
  tt_status_t s = read_check(p);
  tt_buffer_release(p.buffer);
  tt__fused_release(p.program);
  tt__instance_release(p.instance);
  return s;
}

static tt_status_t examine_oldest(queue_t *q, uint32_t count) {
  tt_status_t s = TT_OK_STATUS;
  for (uint32_t i = 0; i < count; i++) s = tt_status_join(s, examine(q->items[i]));
  q->count -= count;
  memmove(q->items, q->items + count, q->count * sizeof *q->items);
  return s;
}

tt_status_t tt__check_add(int device, tt_buffer_t *buffer, const tt__check_t *checks,
                          tt__fused_t *program, tt__instance_t *instance) {
  pending_t p = {buffer, checks, program, instance};
  if (program) tt__fused_retain(program);
  if (instance) tt__instance_retain(instance);
  if (tt_buffer_is_ready(buffer)) return examine(p);
  queue_t *q = queues[device];
  if (!q) q = queues[device] = tt_alloc_zeroed(sizeof *q);
  if (!q) return examine(p);
  tt_status_t s = TT_OK_STATUS;
  if (q->count == MOST_PENDING) s = examine_oldest(q, MOST_PENDING / 2);
  q->items[q->count++] = p;
  return s;
}

static tt_status_t deferred[TT__MAX_DEVICES];

void tt__error_defer(int device, tt_status_t status) {
  deferred[device] = tt_status_join(deferred[device], status);
}

void tt__error_told(int device, tt_status_t status) {
  bool same = deferred[device] && tt_status_code(status) == TT_OUT_OF_MEMORY &&
              tt_status_code(deferred[device]) == TT_OUT_OF_MEMORY;
  if (!same) return;
  tt_status_release(deferred[device]);
  deferred[device] = TT_OK_STATUS;
}

tt_status_t tt__check_all(int device) {
  queue_t taken = {.count = 0};
  tt__lock();
  tt_status_t s = deferred[device];
  deferred[device] = TT_OK_STATUS;
  if (queues[device]) {
    taken = *queues[device];
    queues[device]->count = 0;
  }
  tt__unlock();
  return tt_status_join(s, examine_oldest(&taken, taken.count));
}
