// Finds out what a small region computes by running it on telling values: lowerings differ in how
// they write a comparator, not in what it answers.
#ifndef TT_SOFTTPU_PLAN_PROBE_H_
#define TT_SOFTTPU_PLAN_PROBE_H_

#include "softtpu/plan_internal.h"

typedef enum tt__order_e {
  TT__ORDER_NONE,
  TT__ORDER_ASCENDING,        // NaN above all, -0 equal to +0
  TT__ORDER_DESCENDING,       // NaN first
  TT__ORDER_TOTAL_ASCENDING,  // IEEE's total order
  TT__ORDER_TOTAL_DESCENDING,
} tt__order_t;

// What a sort's comparator over its first two arguments says; NONE where it looks at others.
tt_status_t tt__probe_comparator(tt__planner_t *p, const tt_node_t *sort,
                                 tt__order_t *out_order) TT_MUST_USE;
// Whether a reduction's body over (value, index, value, index) keeps the better value, NaN before
// any number, and the lower index among equals. *out_largest: which is better.
tt_status_t tt__probe_arg_reduce(tt__planner_t *p, const tt_node_t *reduce, bool *out_matches,
                                 bool *out_largest) TT_MUST_USE;
// The order as unsigned integers, so that equal keys are equal elements.
void tt__probe_keys(tt__order_t order, tt_dtype_t dtype, const void *data, int64_t count,
                    int64_t stride, uint64_t *out_keys);

#endif  // TT_SOFTTPU_PLAN_PROBE_H_
