// Making a group and taking it down: every rank's shared memory, mapped by all.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "dist/far.h"
#include "dist/internal.h"

typedef struct address_s {
  tt_record_t record;
  int64_t pid, fd;
  uint64_t control;  // where its owner has the segment
} address_t;

typedef struct mapped_s {
  tt_record_t record;
  uint64_t pulls;
} mapped_t;

static tt_status_t map_segment(tt_group_t *group, uint32_t rank, int fd) {
  void *base = mmap(NULL, group->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: cannot map %zu bytes of rank %u: %s",
                    group->segment_bytes, group->peers[rank].name, strerror(errno));
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
  if (group->fd < 0) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no shared memory: %s", strerror(errno));
  }
  // All pages now: running out later would be a signal, not a status.
  int error = posix_fallocate(group->fd, 0, (off_t)group->segment_bytes);
  if (error) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: cannot reserve %zu bytes of shared memory: %s",
                    group->segment_bytes, strerror(error));
  }
  return map_segment(group, group->rank, group->fd);
}

static tt_status_t died(const tt_peer_t *peer) {
  return TT_ERROR(UNAVAILABLE, "tpu_dist: rank %u (process %d) died while the group was made",
                  peer->name, (int)peer->pid);
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
    if (error == ESRCH || error == ENOENT) return died(peer);
    return TT_ERROR(UNAVAILABLE,
                    "tpu_dist: rank %u cannot open the memory of rank %u (process %d): %s",
                    tt__name(group), peer->name, (int)peer->pid, strerror(error));
  }
  tt_status_t status = map_segment(group, rank, fd);
  close(fd);
  return status;
}

// Why rank `name` of the meeting cannot come any more.
static tt_status_t is_gone(void *context, uint32_t name) {
  tt_group_t *group = context;
  for (uint32_t k = 0; k < group->size; k++) {
    if (group->peers[k].name != name || group->peers[k].pidfd < 0) continue;
    struct pollfd fd = {.fd = group->peers[k].pidfd, .events = POLLIN};
    if (poll(&fd, 1, 0) == 1) return died(&group->peers[k]);
  }
  return TT_OK_STATUS;
}

// May this rank read its peers' memory? TORCHTPU_DIST_PULL=0 says no.
static bool can_pull(tt_group_t *group, const address_t *all) {
  const char *wanted = getenv("TORCHTPU_DIST_PULL");
  if (wanted && strcmp(wanted, "0") == 0) return false;
  for (uint32_t k = 0; k < group->size; k++) {
    pid_t pid = 0;
    if (k == group->rank) continue;
    uint64_t from = all[group->peers[k].name].control + offsetof(tt_control_t, pid);
    tt_status_t status = tt__pull(group, k, from, &pid, sizeof pid, "meeting");
    tt_status_release(status);
    if (status || pid != group->peers[k].pid) return false;
  }
  return true;
}

static tt_status_t connect_peers(tt_group_t *group, const tt_meeting_t *meeting) {
  tt_status_t status = make_own_segment(group);
  tt_control_t *control = group->peers[group->rank].control;
  address_t mine = {.pid = getpid(), .fd = group->fd, .control = (uint64_t)(uintptr_t)control};
  if (control) control->pid = getpid();
#ifdef PR_SET_PTRACER
  // Where the system lets only parents read a process's memory: what the launcher started may.
  (void)prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
#endif
  address_t *all = tt_alloc(sizeof *all * meeting->size);
  if (!all) status = tt_status_join(status, TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory"));
  status = tt_meeting_round(meeting, "memory", status, &mine.record, sizeof mine, all, NULL, NULL);
  if (status) {
    tt_free(all);
    return status;
  }
  for (uint32_t k = 0; !status && k < group->size; k++) {
    if (k != group->rank) status = open_peer(group, k, &all[group->peers[k].name]);
  }
  // Everyone learns whether everyone is connected before anyone goes on.
  mapped_t mapped = {.pulls = !status && can_pull(group, all)}, *others = (mapped_t *)(void *)all;
  status = tt_meeting_round(meeting, "mapped", status, &mapped.record, sizeof mapped, others,
                            is_gone, group);
  group->pulls = true;
  for (uint32_t k = 0; !status && k < group->size; k++) {
    group->pulls = group->pulls && others[group->peers[k].name].pulls;
  }
  tt_free(all);
  return status;
}

tt_status_t tt_group_create(const tt_meeting_t *meeting, const uint32_t *members, uint32_t count,
                            tt_group_t **out_group) {
  tt_group_t *group = tt_alloc_zeroed(sizeof *group);
  tt_peer_t *peers = tt_alloc_zeroed(sizeof *peers * count);
  if (!group || !peers) {
    tt_free(group);
    tt_free(peers);
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: no memory for a group of %u", count);
  }
  *group = (tt_group_t){.size = count, .fd = -1, .peers = peers};
  pthread_mutex_init(&group->broken_lock, NULL);
  for (uint32_t k = 0; k < count; k++) {
    peers[k].name = members[k];
    peers[k].pidfd = -1;
    tt__peer_init(&peers[k]);
    if (members[k] == meeting->rank) group->rank = k;
  }
  group->timeout_s = meeting->timeout_s;
  group->spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)count ? 4000 : 0;
  group->ring_bytes = count <= 16 ? 256u << 10 : 64u << 10;
  group->segment_bytes = tt_align_up(sizeof(tt_control_t), 4096) + 2 * TT_SLOT_BYTES +
                         count * (sizeof(tt_ring_t) + group->ring_bytes);
  tt_status_t status = connect_peers(group, meeting);
  if (status) {
    tt_group_destroy(group);
    return status;
  }
  *out_group = group;
  return TT_OK_STATUS;
}

void tt_group_destroy(tt_group_t *group) {
  if (!group) return;
  if (group->far) tt__far_destroy(group);
  if (group->peers[group->rank].control) tt__group_set_state(group, TT_RANK_LEFT);
  for (uint32_t k = 0; k < group->size; k++) {
    tt_peer_t *peer = &group->peers[k];
    if (peer->control) munmap(peer->control, group->segment_bytes);
    if (peer->pidfd >= 0) close(peer->pidfd);
    tt__peer_deinit(peer);
  }
  if (group->fd >= 0) close(group->fd);
  tt_status_release(atomic_load(&group->broken));
  pthread_mutex_destroy(&group->broken_lock);
  tt_free(group->peers);
  tt_free(group);
}
