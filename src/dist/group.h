// The processes of one host that talk through shared memory: the software TPU's interconnect.
//
// Each rank owns a memfd that no path names; peers learn of it through the meeting, which only
// processes that share the rendezvous store reach, and the kernel checks that they are the same
// user. It holds a control page, two staging slots and one ring per sender; it goes away with the
// last process, however that ended. Waiting watches the peers' pidfds, so that a dead rank is an
// error at once; a silent one is an error after the timeout. Both name the rank, and break the
// group for good: every later call fails the same way.
#ifndef TT_DIST_GROUP_H_
#define TT_DIST_GROUP_H_

#include <stdatomic.h>

#include "dist/meeting.h"
#include "dist/reduce.h"

// Messages between any two ranks, for those that share no memory. Thread-safe.
typedef struct tt_part_s {
  uint32_t rank;  // the other one
  void *data;
  size_t bytes;
} tt_part_t;
typedef struct tt_link_s {
  void *context;
  // Sends and receives all parts at once and waits for them. Parts between two ranks with one tag
  // arrive in order. Errors name the rank.
  tt_status_t (*exchange)(void *context, const tt_part_t *sends, uint32_t send_count,
                          const tt_part_t *receives, uint32_t receive_count, uint32_t tag,
                          double timeout_s);
  tt_status_t (*receive_any)(void *context, void *data, size_t bytes, uint32_t tag,
                             double timeout_s, uint32_t *out_from);
  void (*abort)(void *context);           // what is pending, here and on the peers, fails
  void (*stop_receiving)(void *context);  // pending and later receives of this rank fail
  void (*close)(void *context);
} tt_link_t;

// Collectives: one at a time (the process group's thread). Messages and tt_group_abort: any thread.
typedef struct tt_group_s tt_group_t;

// Joins the `count` ranks `members` of the meeting, ascending, that share this host; this rank is
// one of them. From here on ranks are places in that list; errors use the meeting's numbers. Every
// rank of the meeting makes its group in the same round.
tt_status_t tt_group_create(const tt_meeting_t *meeting, const uint32_t *members, uint32_t count,
                            tt_group_t **out_group) TT_MUST_USE;
void tt_group_destroy(tt_group_t *group);  // tells the peers that this rank has left
uint32_t tt_group_rank(const tt_group_t *group);
uint32_t tt_group_size(const tt_group_t *group);
// Makes every pending and later call of this rank and its peers fail, naming this rank.
void tt_group_abort(tt_group_t *group);

// --- collectives (collective.c, far_collective.c) ------------------------------------------------
typedef enum tt_collective_kind_e {
  TT_COLLECTIVE_BARRIER,
  TT_COLLECTIVE_ALL_REDUCE,
  TT_COLLECTIVE_REDUCE,
  TT_COLLECTIVE_BROADCAST,
  TT_COLLECTIVE_ALL_GATHER,
  TT_COLLECTIVE_REDUCE_SCATTER,
  TT_COLLECTIVE_ALL_TO_ALL,
  TT_COLLECTIVE_GATHER,
  TT_COLLECTIVE_SCATTER,
} tt_collective_kind_t;

// What one rank gives and gets. Arrays are host memory, borrowed; `in` and `out` may be the same.
typedef struct tt_collective_s {
  tt_collective_kind_t kind;
  tt_dtype_t dtype;
  tt_reduce_op_t op;
  uint32_t root;
  const void *in;  // ALL_REDUCE, REDUCE, ALL_GATHER, GATHER; BROADCAST: the root's
  void *out;       // ALL_REDUCE, REDUCE_SCATTER, SCATTER; REDUCE: the root's, BROADCAST: the
                   // others'
  const void *const *ins;  // one for each rank: REDUCE_SCATTER, ALL_TO_ALL; SCATTER: the root's
  void *const *outs;       // one from each rank: ALL_GATHER, ALL_TO_ALL; GATHER: the root's
  size_t elements;         // of `in` and `out`, and of each in a list without lengths
  // Of ins and outs. All ranks give the same, except to ALL_TO_ALL; GATHER and SCATTER: may be
  // NULL.
  const size_t *in_lengths, *out_lengths;
  double timeout_s;  // <= 0: the meeting's
} tt_collective_t;

// Runs the collective, which all ranks call at the same place among theirs.
tt_status_t tt_group_run(tt_group_t *group, const tt_collective_t *collective) TT_MUST_USE;

// --- point to point (channel.c) ------------------------------------------------------------------
typedef struct tt_message_s {
  void *data;  // host memory, borrowed; only read by a send
  size_t elements;
  tt_dtype_t dtype;
  uint32_t peer, tag;
  double timeout_s;  // <= 0: the meeting's
} tt_message_t;

// Messages between two ranks with one tag arrive in order; those with other tags do not wait for
// them. What was sent and what is expected must agree: else the message is lost, and the receiver
// told.
tt_status_t tt_group_send(tt_group_t *group, const tt_message_t *message) TT_MUST_USE;
tt_status_t tt_group_receive(tt_group_t *group, const tt_message_t *message) TT_MUST_USE;
// From whichever rank's message comes first; `peer` is not looked at.
tt_status_t tt_group_receive_any(tt_group_t *group, const tt_message_t *message,
                                 uint32_t *out_from) TT_MUST_USE;
// Receives that wait, now or later, fail: nobody is there for what they would get.
void tt_group_stop_receiving(tt_group_t *group);

#endif  // TT_DIST_GROUP_H_
