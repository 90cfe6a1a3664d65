// Point to point: a byte ring for each ordered pair of ranks, in the receiver's segment. Several
// threads may wait for one peer's messages with other tags: one of them reads the ring, takes what
// has its own tag and puts the rest aside for the others.
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "dist/far.h"
#include "dist/group.h"
#include "dist/internal.h"

// How long one sleep lasts before the peer is looked at again.
#define NAP_NS 20000000

typedef struct pipe_s {
  tt_wait_t wait;
  tt_ring_t *ring;
  unsigned char *data;
} pipe_t;

// From `sender` to the segment's owner; `wait` names the other one.
static pipe_t pipe_of(uint32_t owner, uint32_t sender, tt_wait_t wait) {
  tt_ring_t *ring = tt__ring(wait.group, owner, sender);
  return (pipe_t){wait, ring, (unsigned char *)(ring + 1)};
}

void tt__peer_init(tt_peer_t *peer) {
  pthread_mutex_init(&peer->send_lock, NULL);
  pthread_mutex_init(&peer->receive_lock, NULL);
  pthread_cond_init(&peer->received, NULL);
}

void tt__peer_deinit(tt_peer_t *peer) {
  while (peer->stash_head) {
    tt_stashed_t *next = peer->stash_head->next;
    tt_free(peer->stash_head);
    peer->stash_head = next;
  }
  pthread_mutex_destroy(&peer->send_lock);
  pthread_mutex_destroy(&peer->receive_lock);
  pthread_cond_destroy(&peer->received);
}

// Moves bytes between the caller's memory and the ring at position `at`, in one or two pieces.
static void ring_copy(const pipe_t *pipe, uint32_t at, void *mine, size_t bytes, bool in) {
  size_t capacity = pipe->wait.group->ring_bytes, offset = at % capacity;
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
  uint32_t capacity = (uint32_t)pipe->wait.group->ring_bytes;
  while (bytes) {
    uint32_t at = atomic_load(&ring->written.value);
    uint32_t room = capacity - (at - atomic_load(&ring->consumed.value));
    if (!room) {
      TT_RETURN_IF_ERROR(tt__wait_for(&pipe->wait, &ring->consumed, at - capacity + 1));
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
      TT_RETURN_IF_ERROR(tt__wait_for(&pipe->wait, &ring->written, at + 1));
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

static bool ring_empty(const pipe_t *pipe) {
  return atomic_load(&pipe->ring->written.value) == atomic_load(&pipe->ring->consumed.value);
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

// --- sending ------------------------------------------------------------------------------------

tt_status_t tt_group_send(tt_group_t *group, const tt_message_t *message) {
  TT_RETURN_IF_ERROR(check_peer(group, message->peer, "send"));
  if (group->far) return tt__far_send(group, message);
  tt_wait_t wait = {group, message->peer, tt__limit(group, message->timeout_s), "send", NULL};
  pipe_t pipe = pipe_of(message->peer, group->rank, wait);
  tt_envelope_t envelope = tt__envelope(message);
  pthread_mutex_t *lock = &group->peers[message->peer].send_lock;
  pthread_mutex_lock(lock);
  tt_status_t status = tt__group_check(group);
  if (!status) status = ring_write(&pipe, &envelope, sizeof envelope);
  if (!status) status = ring_write(&pipe, message->data, tt__message_bytes(&envelope));
  pthread_mutex_unlock(lock);
  return status;
}

// --- receiving ----------------------------------------------------------------------------------

tt_status_t tt__envelope_check(const tt_group_t *group, uint32_t from, const tt_envelope_t *sent,
                               const tt_message_t *expected) {
  if (sent->elements == expected->elements && sent->dtype == (uint32_t)expected->dtype) {
    return TT_OK_STATUS;
  }
  return TT_ERROR(INVALID_ARGUMENT,
                  "tpu_dist: receive: rank %u sent %llu x %s, rank %u expects %zu x %s",
                  group->peers[from].name, (unsigned long long)sent->elements,
                  tt_dtype_text((tt_dtype_t)sent->dtype), tt__name(group), expected->elements,
                  tt_dtype_text(expected->dtype));
}

// A message with this tag that came earlier, or NULL. The caller frees it.
static tt_stashed_t *unstash(tt_peer_t *peer, uint32_t tag) {
  tt_stashed_t *before = NULL;
  for (tt_stashed_t *s = peer->stash_head; s; before = s, s = s->next) {
    if (s->envelope.tag != tag) continue;
    *(before ? &before->next : &peer->stash_head) = s->next;
    if (peer->stash_tail == s) peer->stash_tail = before;
    return s;
  }
  return NULL;
}

static void stash(tt_peer_t *peer, tt_stashed_t *s) {
  *(peer->stash_tail ? &peer->stash_tail->next : &peer->stash_head) = s;
  peer->stash_tail = s;
}

// Reads the next message: where it should go if it is the one, else into *out_aside, which is the
// caller's.
static tt_status_t read_message(const pipe_t *pipe, const tt_message_t *message,
                                tt_stashed_t **out_aside) {
  tt_envelope_t envelope, wanted = tt__envelope(message);
  TT_RETURN_IF_ERROR(ring_read(pipe, &envelope, sizeof envelope));
  size_t bytes = tt__message_bytes(&envelope);
  if (memcmp(&envelope, &wanted, sizeof wanted) == 0) return ring_read(pipe, message->data, bytes);
  tt_stashed_t *s = tt_alloc(sizeof *s + bytes);
  if (!s) {
    return tt__group_break(
        pipe->wait.group,
        TT_ERROR(OUT_OF_MEMORY, "tpu_dist: receive: no memory for a message of %zu bytes", bytes));
  }
  *s = (tt_stashed_t){.envelope = envelope};
  tt_status_t status = ring_read(pipe, s->data, bytes);
  if (status) {
    tt_free(s);
  } else {
    *out_aside = s;
  }
  return status;
}

static void take_nap(tt_peer_t *peer) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += NAP_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&peer->received, &peer->receive_lock, &until);
}

// Gives what was put aside for the message, or a turn at the ring (*out_turn), or neither: another
// thread reads, or there is nothing to read and `look` says not to wait for it.
static tt_stashed_t *take_turn(const pipe_t *pipe, const tt_message_t *message, bool look,
                               bool *out_turn) {
  tt_peer_t *peer = &pipe->wait.group->peers[pipe->wait.peer];
  *out_turn = false;
  pthread_mutex_lock(&peer->receive_lock);
  tt_stashed_t *s = unstash(peer, message->tag);
  if (!s && !peer->reading) {
    *out_turn = peer->reading = !look || !ring_empty(pipe);
  } else if (!s && !look) {
    take_nap(peer);
  }
  pthread_mutex_unlock(&peer->receive_lock);
  return s;
}

static void end_turn(tt_peer_t *peer, tt_stashed_t *aside) {
  pthread_mutex_lock(&peer->receive_lock);
  if (aside) stash(peer, aside);
  peer->reading = false;
  pthread_cond_broadcast(&peer->received);
  pthread_mutex_unlock(&peer->receive_lock);
}

static tt_status_t take(tt_stashed_t *s, const tt_message_t *message, const tt_wait_t *wait) {
  tt_status_t status = tt__envelope_check(wait->group, wait->peer, &s->envelope, message);
  if (!status) memcpy(message->data, s->data, tt__message_bytes(&s->envelope));
  tt_free(s);
  return status;
}

// Receives the peer's message with the tag. `look`: only if it has come; *out_taken says so.
static tt_status_t receive(const tt_wait_t *wait, const tt_message_t *message, bool look,
                           bool *out_taken) {
  tt_group_t *group = wait->group;
  pipe_t pipe = pipe_of(group->rank, wait->peer, *wait);
  *out_taken = true;
  for (;;) {
    bool turn;
    tt_stashed_t *s = take_turn(&pipe, message, look, &turn);
    if (s) return take(s, message, wait);
    if (turn) {
      tt_status_t status = read_message(&pipe, message, &s);
      end_turn(&group->peers[wait->peer], s);
      if (status || !s) return status;
    } else if (look) {
      *out_taken = false;
      return TT_OK_STATUS;
    } else {
      TT_RETURN_IF_ERROR(tt__wait_check(wait));
    }
  }
}

tt_status_t tt_group_receive(tt_group_t *group, const tt_message_t *message) {
  TT_RETURN_IF_ERROR(check_peer(group, message->peer, "receive"));
  if (group->far) return tt__far_receive(group, message);
  bool taken;
  tt_limit_t limit = tt__limit(group, message->timeout_s);
  return receive(&(tt_wait_t){group, message->peer, limit, "receive", &group->deaf}, message, false,
                 &taken);
}

void tt_group_stop_receiving(tt_group_t *group) {
  atomic_store(&group->deaf, true);
  if (group->far) tt__far_stop_receiving(group);
}

// Between two looks at every peer. *out_gone: why nobody can send any more, when all are gone.
static tt_status_t pause_polling(tt_group_t *group, uint32_t round, tt_status_t *out_gone) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (atomic_load(&group->deaf)) {
    *out_gone = TT_ERROR(UNAVAILABLE,
                         "tpu_dist: receive from any rank on rank %u: the process "
                         "group was destroyed",
                         tt__name(group));
    return TT_OK_STATUS;
  }
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

tt_status_t tt_group_receive_any(tt_group_t *group, const tt_message_t *message,
                                 uint32_t *out_from) {
  TT_RETURN_IF_ERROR(tt__group_check(group));
  if (group->far) return tt__far_receive_any(group, message, out_from);
  tt_limit_t limit = tt__limit(group, message->timeout_s);
  uint32_t round = 0;
  tt_status_t gone = TT_OK_STATUS;
  do {
    for (uint32_t k = 0; k < group->size; k++) {
      if (k == group->rank) continue;
      bool there = false;
      tt_wait_t wait = {group, k, limit, "receive", &group->deaf};
      tt_status_t status = receive(&wait, message, true, &there);
      *out_from = k;
      if (there) {
        tt_status_release(gone);
        return status;
      }
    }
    // Only after one more look: what a peer sent before it went is still taken.
    if (gone) return tt__group_break(group, gone);
    TT_RETURN_IF_ERROR(pause_polling(group, ++round, &gone));
  } while (tt__dist_now_ns() < limit.deadline_ns);
  tt_status_release(gone);
  return TT_ERROR(DEADLINE, "tpu_dist: receive from any rank on rank %u: nothing came in time",
                  tt__name(group));
}
