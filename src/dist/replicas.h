// A group whose other ranks are not there: replicas of the program that this process captures.
//
// In an open capture a job becomes a collective of the program; elsewhere it is done as if every
// rank held what this one holds.
#ifndef TT_DIST_REPLICAS_H_
#define TT_DIST_REPLICAS_H_

#include "dist/process_group.h"

typedef struct tt_replica_set_s tt_replica_set_t;  // thread-compatible

// Of `world` replicas the group is `ranks`, evenly spaced as one dimension of a mesh is; the other
// groups of that dimension do the same at the same time.
tt_status_t tt_replica_set_create(const int64_t *ranks, uint32_t count, uint32_t world,
                                  uint32_t rank, tt_replica_set_t **out_set) TT_MUST_USE;
void tt_replica_set_destroy(tt_replica_set_t *set);  // NULL-safe
tt_status_t tt_replica_set_run(const tt_replica_set_t *set, const tt_job_t *job) TT_MUST_USE;

#endif  // TT_DIST_REPLICAS_H_
