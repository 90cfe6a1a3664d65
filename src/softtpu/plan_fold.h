// Reductions of one op over one type: kernels, accumulators, and the one rounding at the end.
#ifndef TT_SOFTTPU_PLAN_FOLD_H_
#define TT_SOFTTPU_PLAN_FOLD_H_

#include "softtpu/tile.h"

// An accumulator is acc_bytes of acc_lane. `identity` is an accumulator that changes nothing: -0
// for sums, since 0 + -0 would lose the sign of a sum of negative zeros.
typedef struct tt__fold_s {
  tt_dtype_t dtype;
  tt__lane_t lane, acc_lane;  // sums and products of floats accumulate in double
  size_t lane_bytes, acc_bytes;
  bool idempotent;  // folding the initial value in twice changes nothing
  tt__fold_rows_fn_t row;
  tt__fold_fn_t column, combine;  // combine: accumulators into accumulators
  char identity[16];
} tt__fold_t;

// False where there are no kernels for the op over the type.
bool tt__fold_choose(tt_op_t op, tt_dtype_t dtype, tt__fold_t *out_fold);
// An accumulator that holds the element at `data`.
void tt__fold_init(const tt__fold_t *fold, const char *data, char *acc);
// n accumulators into n elements of the dtype, with the one rounding.
void tt__fold_finish(const tt__fold_t *fold, const char *acc, int64_t n, char *out);
// Elements `src[i * stride]` as the lane's type: in place where they are, else in `line`. At most
// 1024 of them.
const char *tt__fold_lanes(const tt__fold_t *fold, int64_t n, const char *src, int64_t stride,
                           char *line);

// The visiting order of a reduction over x: the iteration space [outer, reduced, inner] (inner 1
// where rows are reduced), as base dimensions of `spec` and the root's view. plan_reduce.c.
void tt__plan_reduce_space(const tt_type_t *x, const tt_node_t *reduce, int64_t out_shape[3],
                           tt__tile_spec_t *spec, tt__tile_root_t *root);

#endif  // TT_SOFTTPU_PLAN_FOLD_H_
