// Point to point: a byte ring for each ordered pair of ranks, in the receiver's segment.
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "dist/far.h"
#include "dist/group.h"
#include "dist/internal.h"

typedef struct message_s {
  uint64_t bytes;
  uint32_t tag, magic;
} message_t;
#define MESSAGE_MAGIC 0x74747032u

typedef struct pipe_s {
  tt_group_t *group;
  tt_ring_t *ring;
  unsigned char *data;
  uint32_t peer;
  int64_t deadline;
  const char *what;
} pipe_t;

static pipe_t pipe_of(tt_group_t *group, uint32_t owner, uint32_t sender, const char *what) {
  tt_ring_t *ring = tt__ring(group, owner, sender);
  return (pipe_t){group,
                  ring,
                  (unsigned char *)(ring + 1),
                  owner == group->rank ? sender : owner,
                  tt__deadline(group),
                  what};
}

// Moves bytes between the caller's memory and the ring at position `at`, in one or two pieces.
static void ring_copy(const pipe_t *pipe, uint32_t at, void *mine, size_t bytes, bool in) {
  size_t capacity = pipe->group->ring_bytes, offset = at % capacity;
  size_t first = bytes < capacity - offset ? bytes : capacity - offset;
  unsigned char *ring = pipe->data;
  if (in) {
    memcpy(ring + offset, mine, first);
    memcpy(ring, (char *)mine + first, bytes - first);
  } else {
    memcpy(mine, ring + offset, first);
    memcpy((char *)mine + first, ring, bytes - first);
  }
}

static tt_status_t ring_write(const pipe_t *pipe, const void *data, size_t bytes) {
  tt_ring_t *ring = pipe->ring;
  uint32_t capacity = (uint32_t)pipe->group->ring_bytes;
  while (bytes) {
    uint32_t at = atomic_load(&ring->written.value);
    uint32_t room = capacity - (at - atomic_load(&ring->consumed.value));
    if (!room) {
      TT_RETURN_IF_ERROR(tt__group_wait(pipe->group, &ring->consumed, at - capacity + 1, pipe->peer,
                                        pipe->deadline, pipe->what));
      continue;
    }
    uint32_t n = bytes < room ? (uint32_t)bytes : room;
    ring_copy(pipe, at, (void *)(uintptr_t)data, n, true);
    tt__counter_publish(&ring->written, at + n);
    data = (const char *)data + n;
    bytes -= n;
  }
  return TT_OK_STATUS;
}

static tt_status_t ring_read(const pipe_t *pipe, void *data, size_t bytes) {
  tt_ring_t *ring = pipe->ring;
  while (bytes) {
    uint32_t at = atomic_load(&ring->consumed.value);
    uint32_t there = atomic_load(&ring->written.value) - at;
    if (!there) {
      TT_RETURN_IF_ERROR(tt__group_wait(pipe->group, &ring->written, at + 1, pipe->peer,
                                        pipe->deadline, pipe->what));
      continue;
    }
    uint32_t n = bytes < there ? (uint32_t)bytes : there;
    ring_copy(pipe, at, data, n, false);
    tt__counter_publish(&ring->consumed, at + n);
    data = (char *)data + n;
    bytes -= n;
  }
  return TT_OK_STATUS;
}

// A rank has a ring for itself, too; between hosts messages go through links, which have none.
static tt_status_t check_peer(tt_group_t *group, uint32_t peer, const char *what) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (peer >= group->size || (peer == group->rank && group->far)) {
    return TT_ERROR(VALUE, "tpu_dist: %s: rank %u names rank %u in a group of %u", what,
                    group->rank, peer, group->size);
  }
  return TT_OK_STATUS;
}

tt_status_t tt_group_send(tt_group_t *group, const void *data, size_t bytes, uint32_t to,
                          uint32_t tag) {
  TT_RETURN_IF_ERROR(check_peer(group, to, "send"));
  if (group->far) return tt__far_send(group, data, bytes, to, tag);
  pipe_t pipe = pipe_of(group, to, group->rank, "send");
  message_t message = {bytes, tag, MESSAGE_MAGIC};
  TT_RETURN_IF_ERROR(ring_write(&pipe, &message, sizeof message));
  return ring_write(&pipe, data, bytes);
}

static tt_status_t check_size(tt_group_t *group, uint32_t from, size_t sent, size_t expected) {
  if (sent == expected) return TT_OK_STATUS;
  return TT_ERROR(INVALID_ARGUMENT,
                  "tpu_dist: receive: rank %u sent %zu bytes, rank %u expects %zu bytes",
                  group->peers[from].name, sent, tt__name(group), expected);
}

// A message with this tag that came earlier, or NULL. The caller frees it.
static tt_stashed_t *unstash(tt_peer_t *peer, uint32_t tag) {
  tt_stashed_t *before = NULL;
  for (tt_stashed_t *s = peer->stash_head; s; before = s, s = s->next) {
    if (s->tag != tag) continue;
    *(before ? &before->next : &peer->stash_head) = s->next;
    if (peer->stash_tail == s) peer->stash_tail = before;
    return s;
  }
  return NULL;
}

static tt_status_t stash(const pipe_t *pipe, tt_peer_t *peer, const message_t *message) {
  tt_stashed_t *s = tt_alloc(sizeof *s + message->bytes);
  if (!s) {
    return TT_ERROR(OUT_OF_MEMORY, "tpu_dist: receive: no memory for a message of %llu bytes",
                    (unsigned long long)message->bytes);
  }
  *s = (tt_stashed_t){.tag = message->tag, .bytes = message->bytes};
  tt_status_t status = ring_read(pipe, s->data, message->bytes);
  if (status) {
    tt_free(s);
    return status;
  }
  *(peer->stash_tail ? &peer->stash_tail->next : &peer->stash_head) = s;
  peer->stash_tail = s;
  return TT_OK_STATUS;
}

static tt_status_t take_stashed(tt_group_t *group, uint32_t from, tt_stashed_t *s, void *data,
                                size_t bytes) {
  tt_status_t status = check_size(group, from, s->bytes, bytes);
  if (!status) memcpy(data, s->data, bytes);
  tt_free(s);
  return status;
}

// Reads messages of `from` until one carries `tag`. Called with the peer's lock held.
static tt_status_t receive_locked(tt_group_t *group, void *data, size_t bytes, uint32_t from,
                                  uint32_t tag) {
  tt_peer_t *peer = &group->peers[from];
  tt_stashed_t *early = unstash(peer, tag);
  if (early) return take_stashed(group, from, early, data, bytes);
  pipe_t pipe = pipe_of(group, group->rank, from, "receive");
  for (;;) {
    message_t message;
    TT_RETURN_IF_ERROR(ring_read(&pipe, &message, sizeof message));
    TT_CHECK(message.magic == MESSAGE_MAGIC);
    if (message.tag == tag && message.bytes == bytes) return ring_read(&pipe, data, bytes);
    TT_RETURN_IF_ERROR(stash(&pipe, peer, &message));
    if (message.tag == tag) return take_stashed(group, from, unstash(peer, tag), data, bytes);
  }
}

tt_status_t tt_group_receive(tt_group_t *group, void *data, size_t bytes, uint32_t from,
                             uint32_t tag) {
  TT_RETURN_IF_ERROR(check_peer(group, from, "receive"));
  if (group->far) return tt__far_receive(group, data, bytes, from, tag);
  pthread_mutex_lock(&group->peers[from].receive_lock);
  tt_status_t status = receive_locked(group, data, bytes, from, tag);
  pthread_mutex_unlock(&group->peers[from].receive_lock);
  return status;
}

// Whether a message with `tag` waits from `from`; moves messages with other tags aside.
static tt_status_t poll_peer(tt_group_t *group, uint32_t from, uint32_t tag, bool *out_there) {
  tt_peer_t *peer = &group->peers[from];
  *out_there = false;
  for (tt_stashed_t *s = peer->stash_head; s; s = s->next) *out_there |= s->tag == tag;
  tt_ring_t *ring = tt__ring(group, group->rank, from);
  if (*out_there || atomic_load(&ring->written.value) == atomic_load(&ring->consumed.value)) {
    return TT_OK_STATUS;
  }
  pipe_t pipe = pipe_of(group, group->rank, from, "receive");
  message_t message;
  TT_RETURN_IF_ERROR(ring_read(&pipe, &message, sizeof message));
  TT_RETURN_IF_ERROR(stash(&pipe, peer, &message));
  *out_there = message.tag == tag;
  return TT_OK_STATUS;
}

// Between two looks at every peer. *out_gone: why nobody can send any more, when all are gone.
static tt_status_t pause_polling(tt_group_t *group, uint32_t round, tt_status_t *out_gone) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (round < 100) {
    sched_yield();
    return TT_OK_STATUS;
  }
  nanosleep(&(struct timespec){0, 200000}, NULL);
  if (round % 100) return TT_OK_STATUS;
  tt_status_t failure = TT_OK_STATUS;
  for (uint32_t k = 0; k < group->size; k++) {
    if (k == group->rank) continue;
    tt_status_release(failure);
    failure = tt__peer_failure(group, k, "receive from any rank");
    if (!failure) return TT_OK_STATUS;
  }
  *out_gone = failure;
  return TT_OK_STATUS;
}

tt_status_t tt_group_receive_any(tt_group_t *group, void *data, size_t bytes, uint32_t tag,
                                 uint32_t *out_from) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (group->far) return tt__far_receive_any(group, data, bytes, tag, out_from);
  int64_t deadline = tt__deadline(group);
  uint32_t round = 0;
  tt_status_t gone = TT_OK_STATUS;
  do {
    for (uint32_t k = 0; k < group->size; k++) {
      if (k == group->rank) continue;
      bool there = false;
      pthread_mutex_lock(&group->peers[k].receive_lock);
      tt_status_t status = poll_peer(group, k, tag, &there);
      if (!status && there) status = receive_locked(group, data, bytes, k, tag);
      pthread_mutex_unlock(&group->peers[k].receive_lock);
      *out_from = k;
      if (status || there) {
        tt_status_release(gone);
        return status;
      }
    }
    // Only after one more look: what a peer sent before it went is still taken.
    if (gone) return tt__group_break(group, gone);
    TT_RETURN_IF_ERROR(pause_polling(group, ++round, &gone));
  } while (tt__dist_now_ns() < deadline);
  tt_status_release(gone);
  return TT_ERROR(DEADLINE, "tpu_dist: receive from any rank on rank %u: nothing came in time",
                  tt__name(group));
}
