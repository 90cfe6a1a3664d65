#define _GNU_SOURCE
#include "dist/group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "dist/internal.h"

// How long one sleep lasts before the peers are looked at again.
#define NAP_NS 20000000

int64_t tt__dist_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint32_t tt_group_rank(const tt_group_t *group) { return group->rank; }
uint32_t tt_group_size(const tt_group_t *group) { return group->size; }
void tt_group_set_timeout(tt_group_t *group, double timeout_s) {
  atomic_store(&group->timeout_ns, (int64_t)(timeout_s * 1e9));
}

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

static void set_state(tt_group_t *group, tt_rank_state_t state) {
  tt_control_t *control = group->peers[group->rank].control;
  atomic_store(&control->state, state);
  futex_wake_all(&control->posted.value);
  for (uint32_t k = 0; k < group->size; k++) {
    if (k == group->rank || !group->peers[k].control) continue;
    futex_wake_all(&tt__ring(group, k, group->rank)->written.value);
    futex_wake_all(&tt__ring(group, group->rank, k)->consumed.value);
  }
}

void tt_group_abort(tt_group_t *group) {
  tt_status_t status = tt__group_break(
      group, TT_ERROR(UNAVAILABLE, "tpu_dist: the group was aborted by rank %u", group->rank));
  tt_status_release(status);
  set_state(group, TT_RANK_ABORTED);
}

tt_status_t tt__peer_failure(tt_group_t *group, uint32_t peer, const char *what) {
  uint32_t state = atomic_load(&group->peers[peer].control->state);
  if (state == TT_RANK_ABORTED) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: %s on rank %u: rank %u aborted the group", what,
                    group->rank, peer);
  }
  struct pollfd fd = {.fd = group->peers[peer].pidfd, .events = POLLIN};
  bool dead = poll(&fd, 1, 0) == 1;
  if (dead || state == TT_RANK_LEFT) {
    return TT_ERROR(UNAVAILABLE, "tpu_dist: %s on rank %u: rank %u (process %d) %s", what,
                    group->rank, peer, (int)group->peers[peer].pid,
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

tt_status_t tt__group_wait(tt_group_t *group, tt_counter_t *counter, uint32_t target, uint32_t peer,
                           int64_t deadline, const char *what) {
  if (spin(group, counter, target)) return TT_OK_STATUS;
  for (;;) {
    // Looked at before the counter: what a peer published before it went is still taken.
    tt_status_t failure = tt__peer_failure(group, peer, what);
    if (reached(counter, target)) {
      tt_status_release(failure);
      return TT_OK_STATUS;
    }
    if (!failure) failure = tt__group_check(group);
    if (!failure && tt__dist_now_ns() > deadline) {
      failure = TT_ERROR(DEADLINE, "tpu_dist: %s on rank %u: rank %u did not answer within %.1f s",
                         what, group->rank, peer, (double)atomic_load(&group->timeout_ns) * 1e-9);
    }
    if (failure) return tt__group_break(group, failure);
    nap(counter, target);
  }
}

tt_status_t tt__group_step(tt_group_t *group, int64_t deadline, const char *what) {
  group->step++;
  tt__counter_publish(&group->peers[group->rank].control->posted, group->step);
  for (uint32_t i = 1; i < group->size; i++) {
    uint32_t peer = (group->rank + i) % group->size;
    TT_RETURN_IF_ERROR(tt__group_wait(group, &group->peers[peer].control->posted, group->step, peer,
                                      deadline, what));
  }
  return TT_OK_STATUS;
}

// --- making and taking down ---------------------------------------------------------------------

typedef struct address_s {
  int64_t pid;
  int64_t fd;
} address_t;

static tt_status_t map_segment(tt_group_t *group, uint32_t rank, int fd) {
  void *base = mmap(NULL, group->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: cannot map %zu bytes of rank %u: errno %d",
                    group->segment_bytes, rank, errno);
  }
  tt_peer_t *peer = &group->peers[rank];
  peer->control = base;
  unsigned char *at = (unsigned char *)base + tt_align_up(sizeof(tt_control_t), 4096);
  peer->slots[0] = at;
  peer->slots[1] = at + TT_SLOT_BYTES;
  peer->rings = at + 2 * TT_SLOT_BYTES;
  return TT_OK_STATUS;
}

static tt_status_t make_own_segment(tt_group_t *group) {
  group->fd = (int)syscall(SYS_memfd_create, "tpu_dist", 1u /* MFD_CLOEXEC */);
  if (group->fd < 0) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no shared memory: errno %d", errno);
  // All pages now: running out later would be a signal, not a status.
  int error = posix_fallocate(group->fd, 0, (off_t)group->segment_bytes);
  if (error) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: cannot reserve %zu bytes of shared memory: errno %d",
                    group->segment_bytes, error);
  }
  return map_segment(group, group->rank, group->fd);
}

static tt_status_t open_peer(tt_group_t *group, uint32_t rank, const address_t *address) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)address->pid,
           (long long)address->fd);
  tt_peer_t *peer = &group->peers[rank];
  peer->pid = (pid_t)address->pid;
  peer->pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
  int fd = peer->pidfd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) || info.st_uid != geteuid() ||
      (size_t)info.st_size != group->segment_bytes) {
    int error = errno;
    if (fd >= 0) close(fd);
    return TT_ERROR(UNAVAILABLE,
                    "tpu_dist: rank %u cannot open the memory of rank %u (process %d): errno %d",
                    group->rank, rank, (int)peer->pid, error);
  }
  tt_status_t status = map_segment(group, rank, fd);
  close(fd);
  return status;
}

static tt_status_t connect_peers(tt_group_t *group, tt_exchange_fn_t exchange, void *context) {
  address_t mine = {getpid(), group->fd};
  address_t *all = tt_alloc(sizeof *all * group->size);
  if (!all) return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for %u addresses", group->size);
  tt_status_t status = exchange(context, "address", &mine, sizeof mine, all);
  for (uint32_t k = 0; !status && k < group->size; k++) {
    if (k != group->rank) status = open_peer(group, k, &all[k]);
  }
  // Everyone learns whether everyone is connected before anyone goes on.
  char ok = status == TT_OK_STATUS;
  char *oks = (char *)all;
  tt_status_t second = exchange(context, "mapped", &ok, 1, oks);
  for (uint32_t k = 0; !status && !second && k < group->size; k++) {
    if (!oks[k]) second = TT_ERROR(UNAVAILABLE, "tpu_dist: rank %u could not connect", k);
  }
  tt_free(all);
  return tt_status_join(status, second);
}

tt_status_t tt_group_create(uint32_t rank, uint32_t size, double timeout_s,
                            tt_exchange_fn_t exchange, void *context, tt_group_t **out_group) {
  if (size == 0 || rank >= size) {
    return TT_ERROR(VALUE, "tpu_dist: rank %u in a group of %u", rank, size);
  }
  tt_group_t *group = tt_alloc_zeroed(sizeof *group);
  tt_peer_t *peers = tt_alloc_zeroed(sizeof *peers * size);
  if (!group || !peers) {
    tt_free(group);
    tt_free(peers);
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a group of %u", size);
  }
  *group = (tt_group_t){.rank = rank, .size = size, .fd = -1, .peers = peers};
  pthread_mutex_init(&group->broken_lock, NULL);
  for (uint32_t k = 0; k < size; k++) {
    peers[k].pidfd = -1;
    pthread_mutex_init(&peers[k].receive_lock, NULL);
  }
  tt_group_set_timeout(group, timeout_s);
  group->spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)size ? 4000 : 0;
  group->ring_bytes = size <= 16 ? 256u << 10 : 64u << 10;
  group->segment_bytes = tt_align_up(sizeof(tt_control_t), 4096) + 2 * TT_SLOT_BYTES +
                         size * (sizeof(tt_ring_t) + group->ring_bytes);
  tt_status_t status = make_own_segment(group);
  if (!status && size > 1) status = connect_peers(group, exchange, context);
  if (status) {
    tt_group_destroy(group);
    return status;
  }
  *out_group = group;
  return TT_OK_STATUS;
}

void tt_group_destroy(tt_group_t *group) {
  if (!group) return;
  if (group->peers[group->rank].control) set_state(group, TT_RANK_LEFT);
  for (uint32_t k = 0; k < group->size; k++) {
    tt_peer_t *peer = &group->peers[k];
    if (peer->control) munmap(peer->control, group->segment_bytes);
    if (peer->pidfd >= 0) close(peer->pidfd);
    while (peer->stash_head) {
      tt_stashed_t *next = peer->stash_head->next;
      tt_free(peer->stash_head);
      peer->stash_head = next;
    }
    pthread_mutex_destroy(&peer->receive_lock);
  }
  if (group->fd >= 0) close(group->fd);
  tt_status_release(atomic_load(&group->broken));
  pthread_mutex_destroy(&group->broken_lock);
  tt_free(group->peers);
  tt_free(group);
}
