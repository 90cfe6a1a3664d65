// Groups whose ranks are on several hosts: messages between any two ranks carry everything.
#ifndef TT_DIST_FAR_H_
#define TT_DIST_FAR_H_

#include "dist/group.h"

typedef struct tt_far_s tt_far_t;

// Takes over both links. `local`: the group of this host's ranks, taken over too.
tt_status_t tt_group_create_far(const tt_meeting_t *meeting, const tt_link_t links[2],
                                tt_group_t *local, const uint32_t *leaders, uint32_t leader_count,
                                tt_group_t **out_group) TT_MUST_USE;

// What group.h's functions do on such a group.
void tt__far_destroy(tt_group_t *group);
void tt__far_abort(tt_group_t *group);
tt_status_t tt__far_barrier(tt_group_t *group) TT_MUST_USE;
tt_status_t tt__far_all_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                               const void *in, void *out, size_t elements) TT_MUST_USE;
tt_status_t tt__far_reduce(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op, const void *in,
                           void *out, size_t elements, uint32_t root) TT_MUST_USE;
tt_status_t tt__far_broadcast(tt_group_t *group, tt_dtype_t dtype, const void *in, void *out,
                              size_t elements, uint32_t root) TT_MUST_USE;
tt_status_t tt__far_all_gather(tt_group_t *group, tt_dtype_t dtype, const void *in,
                               void *const *outs, const size_t *elements) TT_MUST_USE;
tt_status_t tt__far_reduce_scatter(tt_group_t *group, tt_dtype_t dtype, tt_reduce_op_t op,
                                   const void *const *ins, void *out,
                                   const size_t *elements) TT_MUST_USE;
tt_status_t tt__far_all_to_all(tt_group_t *group, tt_dtype_t dtype, const void *const *ins,
                               const size_t *in_elements, void *const *outs,
                               const size_t *out_elements) TT_MUST_USE;
tt_status_t tt__far_gather(tt_group_t *group, tt_dtype_t dtype, const void *in, void *const *outs,
                           size_t elements, uint32_t root) TT_MUST_USE;
tt_status_t tt__far_scatter(tt_group_t *group, tt_dtype_t dtype, const void *const *ins, void *out,
                            size_t elements, uint32_t root) TT_MUST_USE;
tt_status_t tt__far_send(tt_group_t *group, const void *data, size_t bytes, uint32_t to,
                         uint32_t tag) TT_MUST_USE;
tt_status_t tt__far_receive(tt_group_t *group, void *data, size_t bytes, uint32_t from,
                            uint32_t tag) TT_MUST_USE;
tt_status_t tt__far_receive_any(tt_group_t *group, void *data, size_t bytes, uint32_t tag,
                                uint32_t *out_from) TT_MUST_USE;

#endif  // TT_DIST_FAR_H_
