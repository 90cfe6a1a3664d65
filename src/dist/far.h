// Groups whose ranks are on several hosts: shared memory inside a host, and between the hosts
// messages of one rank each, that host's speaker.
#ifndef TT_DIST_FAR_H_
#define TT_DIST_FAR_H_

#include "dist/group.h"

// Belongs to far.c and far_collective.c.
typedef struct tt_far_s {
  tt_link_t collectives, messages;
  tt_group_t *local;  // this host's ranks
  uint32_t host, host_count;
  uint32_t *host_of;  // [size]
  uint32_t *order;    // [size] the ranks host by host, ascending inside one
  uint32_t *starts;   // [host_count + 1] where each host begins in order
} tt_far_t;

// Takes over both links. `local`: the group of this host's ranks, taken over too. host_of[rank]
// counts the hosts from 0 in the order of their first ranks.
tt_status_t tt_group_create_far(const tt_meeting_t *meeting, const tt_link_t links[2],
                                tt_group_t *local, const uint32_t *host_of,
                                tt_group_t **out_group) TT_MUST_USE;

// What group.h's functions do on such a group.
void tt__far_destroy(tt_group_t *group);
void tt__far_stop_receiving(tt_group_t *group);
void tt__far_leave(tt_group_t *group, const char *reason);
// Ends the links and breaks the group, so that the others fail too and do not wait for their
// timeouts. Consumes and returns `status`.
tt_status_t tt__far_fail(tt_group_t *group, tt_status_t status) TT_MUST_USE;
tt_status_t tt__far_run(tt_group_t *group, const tt_collective_t *collective) TT_MUST_USE;
tt_status_t tt__far_send(tt_group_t *group, const tt_message_t *message) TT_MUST_USE;
tt_status_t tt__far_receive(tt_group_t *group, const tt_message_t *message) TT_MUST_USE;
tt_status_t tt__far_receive_any(tt_group_t *group, const tt_message_t *message,
                                uint32_t *out_from) TT_MUST_USE;

#endif  // TT_DIST_FAR_H_
