#define _GNU_SOURCE
#include "dist/group.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dist/far.h"
#include "dist/internal.h"

// How long one sleep lasts before the peers are looked at again.
#define NAP_NS 20000000

uint32_t tt_group_rank(const tt_group_t *group) { return group->rank; }
uint32_t tt_group_size(const tt_group_t *group) { return group->size; }

// --- failure -----------------------------------------------------------------------------------

tt_status_t tt__group_check(tt_group_t *group) {
  return tt_status_clone(atomic_load(&group->broken));
}

tt_status_t tt__group_break(tt_group_t *group, tt_status_t status) {
  pthread_mutex_lock(&group->broken_lock);
  if (!atomic_load(&group->broken)) atomic_store(&group->broken, tt_status_clone(status));
  pthread_mutex_unlock(&group->broken_lock);
  return status;
}

static void futex_wake_all(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void tt__group_set_state(tt_group_t *group, tt_rank_state_t state) {
  tt_control_t *control = group->peers[group->rank].control;
  atomic_store(&control->state, state);
  futex_wake_all(&control->posted.value);
  for (uint32_t k = 0; k < group->size; k++) {
    if (k == group->rank || !group->peers[k].control) continue;
    futex_wake_all(&tt__ring(group, k, group->rank)->written.value);
    futex_wake_all(&tt__ring(group, group->rank, k)->consumed.value);
  }
}

void tt__group_leave(tt_group_t *group, const char *reason) {
  if (group->far) {
    tt__far_leave(group, reason);
    return;
  }
  tt_control_t *control = group->peers[group->rank].control;
  if (atomic_load(&control->state) == TT_RANK_ABORTED) return;
  snprintf(control->reason, sizeof control->reason, "%s", reason);
  tt__group_set_state(group, TT_RANK_ABORTED);
}

void tt_group_abort(tt_group_t *group) {
  tt_status_t status = tt__group_break(
      group, TT_ERROR(UNAVAILABLE, "tpu_dist: the group was aborted by rank %u", tt__name(group)));
  tt_status_release(status);
  tt__group_leave(group, "");
}

tt_status_t tt__peer_failure(tt_group_t *group, uint32_t peer, const char *what) {
  const tt_control_t *control = group->peers[peer].control;
  uint32_t state = atomic_load(&control->state);
  if (state == TT_RANK_ABORTED) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: %s on rank %u: rank %u aborted the group%s%.*s", what,
                    tt__name(group), group->peers[peer].name, *control->reason ? ": " : "",
                    (int)sizeof control->reason - 1, control->reason);
  }
  struct pollfd fd = {.fd = group->peers[peer].pidfd, .events = POLLIN};
  bool dead = poll(&fd, 1, 0) == 1;
  if (dead || state == TT_RANK_LEFT) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: %s on rank %u: rank %u (process %d) %s", what,
                    tt__name(group), group->peers[peer].name, (int)group->peers[peer].pid,
                    dead ? "died" : "has left the group");
  }
  return TT_OK_STATUS;
}

// --- waiting -----------------------------------------------------------------------------------

static inline bool reached(tt_counter_t *counter, uint32_t target) {
  return (int32_t)(atomic_load(&counter->value) - target) >= 0;
}

void tt__counter_publish(tt_counter_t *counter, uint32_t value) {
  atomic_store(&counter->value, value);
  if (atomic_load(&counter->waiters)) futex_wake_all(&counter->value);
}

static bool spin(tt_group_t *group, tt_counter_t *counter, uint32_t target) {
  for (uint32_t i = 0; i < group->spins; i++) {
    if (reached(counter, target)) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  for (int i = 0; i < 4; i++) {
    if (reached(counter, target)) return true;
    sched_yield();
  }
  return reached(counter, target);
}

static void nap(tt_counter_t *counter, uint32_t target) {
  struct timespec time = {0, NAP_NS};
  atomic_fetch_add(&counter->waiters, 1);
  uint32_t seen = atomic_load(&counter->value);
  if ((int32_t)(seen - target) < 0) {
    syscall(SYS_futex, &counter->value, FUTEX_WAIT, seen, &time, NULL, 0);
  }
  atomic_fetch_sub(&counter->waiters, 1);
}

// Why waiting makes no sense any more, the peer's own failure aside; or OK.
static tt_status_t call_failure(const tt_wait_t *wait) {
  tt_group_t *group = wait->group;
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (wait->stop && atomic_load(wait->stop)) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: %s on rank %u: the process group was destroyed",
                    wait->what, tt__name(group));
  }
  if (tt__dist_now_ns() <= wait->limit.deadline_ns) return TT_OK_STATUS;
  return TT_ERROR(
      DEADLINE, "tpu_dist: %s on rank %u: rank %u did not answer within the timeout of %.1f s",
      wait->what, tt__name(group), group->peers[wait->peer].name, wait->limit.timeout_s);
}

tt_status_t tt__wait_check(const tt_wait_t *wait) {
  tt_status_t failure = call_failure(wait);
  return failure ? tt__group_break(wait->group, failure) : TT_OK_STATUS;
}

tt_status_t tt__wait_for(const tt_wait_t *wait, tt_counter_t *counter, uint32_t target) {
  if (spin(wait->group, counter, target)) return TT_OK_STATUS;
  for (;;) {
    // Looked at before the counter: what a peer published before it went is still taken.
    tt_status_t failure = tt__peer_failure(wait->group, wait->peer, wait->what);
    if (reached(counter, target)) {
      tt_status_release(failure);
      return TT_OK_STATUS;
    }
    if (!failure) failure = call_failure(wait);
    if (failure) return tt__group_break(wait->group, failure);
    nap(counter, target);
  }
}

tt_status_t tt__group_step(tt_group_t *group, tt_limit_t limit, const char *what) {
  group->step++;
  tt__counter_publish(&group->peers[group->rank].control->posted, group->step);
  for (uint32_t i = 1; i < group->size; i++) {
    uint32_t peer = (group->rank + i) % group->size;
    tt_wait_t wait = {group, peer, limit, what, NULL};
    TT_RETURN_IF_ERROR(tt__wait_for(&wait, &group->peers[peer].control->posted, group->step));
  }
  return TT_OK_STATUS;
}
