// What group.c, segment.c, collective.c and channel.c share.
#ifndef TT_DIST_INTERNAL_H_
#define TT_DIST_INTERNAL_H_

#include <pthread.h>
#include <sys/types.h>

#include "dist/group.h"

#define TT_SLOT_BYTES ((size_t)1 << 20)  // one staging slot; a rank has two and alternates
#define TT_CACHE_LINE 64

// What a rank says it is about to do; all ranks must say the same.
typedef struct tt_collective_header_s {
  uint64_t number;  // the group's how-manieth collective
  uint64_t elements;
  uint64_t parts;  // a hash of their lengths
  uint32_t kind, dtype, op, root;
} tt_collective_header_t;

// A counter that other processes wait on.
typedef struct tt_counter_s {
  _Alignas(TT_CACHE_LINE) _Atomic uint32_t value;
  _Atomic uint32_t waiters;
} tt_counter_t;

typedef enum tt_rank_state_e { TT_RANK_ALIVE, TT_RANK_LEFT, TT_RANK_ABORTED } tt_rank_state_t;

// Messages of one sender to the segment's owner. Counts are bytes ever written and read, modulo
// 2^32.
typedef struct tt_ring_s {
  tt_counter_t written, consumed;
} tt_ring_t;

// The start of a rank's shared segment; slots and rings follow.
typedef struct tt_control_s {
  tt_counter_t
      posted;  // steps this rank has published; posting step k says it is done reading k - 1
  _Atomic uint32_t state;
  char reason[192];                   // why it aborted the group
  pid_t pid;                          // the owner's
  tt_collective_header_t headers[2];  // by the collective's parity
  uint64_t places[2][2];              // likewise: where its input and output are (pull.c)
} tt_control_t;

// What goes before a message's data.
typedef struct tt_envelope_s {
  uint64_t elements;
  uint32_t dtype, tag;
} tt_envelope_t;

// A message that came before it was asked for.
typedef struct tt_stashed_s {
  struct tt_stashed_s *next;
  tt_envelope_t envelope;
  unsigned char data[];
} tt_stashed_t;

// When a wait ends, and the timeout that this comes from.
typedef struct tt_limit_s {
  int64_t deadline_ns;
  double timeout_s;
} tt_limit_t;

typedef struct tt_peer_s {
  uint32_t name;          // its rank among all ranks, what errors call it
  tt_control_t *control;  // the mapped segment
  unsigned char *slots[2];
  unsigned char *rings;
  int pidfd;  // -1: this rank itself
  pid_t pid;
  pthread_mutex_t send_lock;     // held while a message goes into our ring in its segment
  pthread_mutex_t receive_lock;  // guards what follows
  pthread_cond_t received;       // when it changed
  bool reading;                  // a thread reads this peer's ring in our segment
  tt_stashed_t *stash_head, *stash_tail;
} tt_peer_t;

struct tt_group_s {
  uint32_t rank, size;  // among the host's members
  size_t segment_bytes, ring_bytes;
  double timeout_s;      // where a call gives none
  uint32_t step;         // steps posted so far
  uint64_t collectives;  // collectives begun so far
  struct tt_far_s *far;  // ranks on several hosts: see far.h; what shared memory needs is unused
  int fd;
  bool pulls;  // ranks may read each other's memory
  uint32_t spins;
  tt_peer_t *peers;
  _Atomic(tt_status_t) broken;  // the first failure; sticks
  _Atomic bool deaf;            // receives fail
  pthread_mutex_t broken_lock;
};

static inline uint32_t tt__name(const tt_group_t *group) { return group->peers[group->rank].name; }
static inline double tt__timeout(const tt_group_t *group, double timeout_s) {
  return timeout_s > 0 ? timeout_s : group->timeout_s;
}
static inline tt_limit_t tt__limit(const tt_group_t *group, double timeout_s) {
  double seconds = tt__timeout(group, timeout_s);
  return (tt_limit_t){tt__dist_now_ns() + (int64_t)(seconds * 1e9), seconds};
}

// Waits until *counter has reached `target` (modulo 2^32), the limit is over, `peer` is gone or
// *stop (may be NULL) is set. `what` names the operation in the error.
typedef struct tt_wait_s {
  tt_group_t *group;
  uint32_t peer;
  tt_limit_t limit;
  const char *what;
  const _Atomic bool *stop;
} tt_wait_t;
tt_status_t tt__wait_for(const tt_wait_t *wait, tt_counter_t *counter, uint32_t target) TT_MUST_USE;
// The same looked at once by a thread that waits for another one, which watches the peer.
tt_status_t tt__wait_check(const tt_wait_t *wait) TT_MUST_USE;
void tt__counter_publish(tt_counter_t *counter, uint32_t value);

// Why `peer` can no longer answer, or OK.
tt_status_t tt__peer_failure(tt_group_t *group, uint32_t peer, const char *what) TT_MUST_USE;

// Tells the peers, and wakes those that wait for this rank.
void tt__group_set_state(tt_group_t *group, tt_rank_state_t state);

// Publishes this rank's next step and waits for every peer's.
tt_status_t tt__group_step(tt_group_t *group, tt_limit_t limit, const char *what) TT_MUST_USE;

// The failure that broke the group, as a copy; OK while it works.
tt_status_t tt__group_check(tt_group_t *group) TT_MUST_USE;
// Breaks the group (unless it is) and returns `status` for the caller.
tt_status_t tt__group_break(tt_group_t *group, tt_status_t status) TT_MUST_USE;
// Makes the peers' calls fail, too, naming this rank and why.
void tt__group_leave(tt_group_t *group, const char *reason);

// --- collective.c
const char *tt__kind_name(uint32_t kind);
// What this rank says of its next collective.
tt_collective_header_t tt__header_next(tt_group_t *group, const tt_collective_t *collective);
// The error of two ranks that call different things.
tt_status_t tt__header_mismatch(const tt_group_t *group, const tt_collective_header_t *mine,
                                uint32_t peer, const tt_collective_header_t *theirs) TT_MUST_USE;
// Runs it in shared memory. The peers compare `header`, which may be that of a larger group's
// collective of which this one is a step.
tt_status_t tt__shared_run(tt_group_t *group, const tt_collective_t *collective,
                           const tt_collective_header_t *header) TT_MUST_USE;

// --- pull.c
enum { TT_PLACE_IN, TT_PLACE_OUT };
// Whether the peer's memory can be read: copies `bytes` from its address.
tt_status_t tt__pull(tt_group_t *group, uint32_t peer, uint64_t from, void *to, size_t bytes,
                     const char *what) TT_MUST_USE;
// One collective on arrays in every rank's own memory. The places are published; each begins with a
// step and ends with one, between which nobody's arrays go away.
typedef struct tt_pull_s {
  tt_group_t *group;
  const tt_collective_t *c;
  const char *what;
  tt_status_t (*step)(void *context);
  void *context;
  size_t element_bytes;
} tt_pull_t;
tt_status_t tt__pull_all_reduce(const tt_pull_t *pull) TT_MUST_USE;
tt_status_t tt__pull_reduce(const tt_pull_t *pull) TT_MUST_USE;
tt_status_t tt__pull_reduce_scatter(const tt_pull_t *pull) TT_MUST_USE;
tt_status_t tt__pull_all_gather(const tt_pull_t *pull) TT_MUST_USE;
tt_status_t tt__pull_broadcast(const tt_pull_t *pull) TT_MUST_USE;

// --- channel.c
static inline tt_envelope_t tt__envelope(const tt_message_t *message) {
  return (tt_envelope_t){message->elements, (uint32_t)message->dtype, message->tag};
}
static inline size_t tt__message_bytes(const tt_envelope_t *envelope) {
  return envelope->elements * tt_dtype_size((tt_dtype_t)envelope->dtype);
}
// Whether what `from` sent is what the message expects.
tt_status_t tt__envelope_check(const tt_group_t *group, uint32_t from, const tt_envelope_t *sent,
                               const tt_message_t *expected) TT_MUST_USE;
void tt__peer_init(tt_peer_t *peer);
void tt__peer_deinit(tt_peer_t *peer);

static inline tt_ring_t *tt__ring(const tt_group_t *group, uint32_t owner, uint32_t sender) {
  return (tt_ring_t *)(void *)(group->peers[owner].rings +
                               (size_t)sender * (sizeof(tt_ring_t) + group->ring_bytes));
}

#endif  // TT_DIST_INTERNAL_H_
