// A c10d process group's work on device tensors: jobs in order on threads of the group's own, and a
// handle to wait on for each.
//
// A job's inputs are the versions its tensors have when it is submitted; its outputs are written
// when it is done, before its work reports so. Collectives run one after the other on one thread;
// messages run beside them, in order for each peer and direction.
#ifndef TT_DIST_PROCESS_GROUP_H_
#define TT_DIST_PROCESS_GROUP_H_

#include "dist/group.h"
#include "eager/eager.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_process_group_s tt_process_group_t;  // thread-safe
typedef struct tt_work_s tt_work_t;                    // thread-safe, refcounted

typedef enum tt_job_kind_e {
  TT_JOB_BARRIER,
  TT_JOB_ALL_REDUCE,      // each of ins (outs the same tensors) for itself
  TT_JOB_REDUCE,          // the same; outs are written on the root
  TT_JOB_BROADCAST,       // the same
  TT_JOB_ALL_GATHER,      // ins[0] -> outs: one tensor a rank, or one that holds all
  TT_JOB_REDUCE_SCATTER,  // ins: one tensor a rank, or one that holds all -> outs[0]
  TT_JOB_ALL_TO_ALL,      // ins, outs: one tensor a rank, or one each, cut by the splits
  TT_JOB_GATHER,          // ins[0] -> outs on the root
  TT_JOB_SCATTER,         // ins on the root -> outs[0]
  TT_JOB_SEND,            // each of ins to rank `root`
  TT_JOB_RECEIVE,         // each of outs from rank `root`
  TT_JOB_RECEIVE_ANY,     // outs[0] from any rank
} tt_job_kind_t;

typedef struct tt_job_s {
  tt_job_kind_t kind;
  tt_reduce_op_t op;
  uint32_t root, tag;
  const tt_tensor_t *ins, *outs;  // borrowed for the call; storages are retained by the job
  uint32_t in_count, out_count;
  // ALL_TO_ALL on one tensor each: elements for and from each rank; NULL: even.
  const int64_t *in_splits, *out_splits;
  double timeout_s;  // <= 0: the group's
} tt_job_t;

// Makes a link between all ranks, apart from others by its name. Called where ranks are on several
// hosts.
typedef tt_status_t (*tt_link_fn_t)(void *context, const char *name, tt_link_t *out_link);

// Gives the group `rank` of `size`. The store and `link` are used now only.
tt_status_t tt_process_group_create(const tt_store_t *store, uint32_t rank, uint32_t size,
                                    double timeout_s, tt_link_fn_t link, void *link_context,
                                    tt_process_group_t **out_group) TT_MUST_USE;
// A group of imagined ranks, for programs of several replicas (replicas.h): this process is
// ranks[rank] of `world`, no other is there.
tt_status_t tt_process_group_imagine(const int64_t *ranks, uint32_t count, uint32_t world,
                                     uint32_t rank, tt_process_group_t **out_group) TT_MUST_USE;
// Ends the threads: jobs that have not begun fail, the one that runs fails within a moment.
void tt_process_group_destroy(tt_process_group_t *group);
void tt_process_group_abort(tt_process_group_t *group);
void tt_process_group_set_timeout(tt_process_group_t *group, double timeout_s);

// Checks the job (dtypes, sizes, ranks: errors name them) and queues it.
tt_status_t tt_process_group_submit(tt_process_group_t *group, const tt_job_t *job,
                                    tt_work_t **out_work) TT_MUST_USE;

void tt_work_retain(tt_work_t *work);
void tt_work_release(tt_work_t *work);
bool tt_work_is_done(tt_work_t *work);
// Waits for the end (timeout_s <= 0: as long as the job itself may take) and gives its status.
// `pause` (NULL: none) is called several times a second meanwhile; its error ends the wait.
tt_status_t tt_work_wait(tt_work_t *work, double timeout_s, tt_status_t (*pause)(void)) TT_MUST_USE;
// Calls fn(context, status) once, at the end or at once; from another thread maybe. `status` is
// borrowed.
void tt_work_on_done(tt_work_t *work, void (*fn)(void *context, tt_status_t status), void *context);
uint32_t tt_work_source(tt_work_t *work);  // RECEIVE_ANY: whose message it was

#ifdef __cplusplus
}
#endif
#endif  // TT_DIST_PROCESS_GROUP_H_
