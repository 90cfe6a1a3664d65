// Captured programs (eager.h) that are made to be read: they tell where they come from, and are of
// several replicas.
#ifndef TT_EAGER_CAPTURE_H_
#define TT_EAGER_CAPTURE_H_

#include "eager/eager.h"
#include "ir/build.h"

#ifdef __cplusplus
extern "C" {
#endif

// From now on the capture notes the Python line of each call: loc("...") in its text.
void tt_capture_locate(tt_capture_t *capture);
// From now on tensors that are no inputs may be written: they become inputs of the program that it
// writes. Such a program is printed, not run.
void tt_capture_open(tt_capture_t *capture);
bool tt_capture_is_open(int device);  // this thread's, on the device
// After its end: what the calls' i-th scalar was, in the bits of its dtype; false past the last.
// The scalars, in order, are the printed program's last arguments.
bool tt_capture_scalar(const tt_capture_t *capture, uint32_t i, uint64_t out_bits[2]);

// --- collectives between the replicas of a captured program (replicas.c) -------------------------
typedef enum tt_replicas_kind_e {
  TT_REPLICAS_ALL_REDUCE,
  TT_REPLICAS_ALL_GATHER,      // of all elements as one row
  TT_REPLICAS_REDUCE_SCATTER,  // the same
  TT_REPLICAS_ALL_TO_ALL,      // the same
  TT_REPLICAS_BROADCAST,       // from each group's first replica
} tt_replicas_kind_t;

// One collective: who takes part, and what is done. The groups' list is borrowed for the call.
typedef struct tt_replicas_s {
  tt_replicas_kind_t kind;
  tt_op_t op;       // of the reductions: TT_OP_ADD, ...
  int64_t divisor;  // of a reduction's result: 1, or the group's size for an average
  tt_replica_groups_t groups;
} tt_replicas_t;

// Records out = collective(in) in this thread's open capture; both may be one tensor.
tt_status_t tt_eager_replicas(const tt_replicas_t *how, const tt_tensor_t *out,
                              const tt_tensor_t *in) TT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif  // TT_EAGER_CAPTURE_H_
