// Steps over the same rows that run together, band by band.
#ifndef TT_SOFTTPU_PLAN_ROWS_H_
#define TT_SOFTTPU_PLAN_ROWS_H_

#include "softtpu/plan_internal.h"

// What a step of kind "rows" is made of.
typedef struct tt__chain_s {
  tt__step_t **members;
  uint32_t count;
  int64_t rows, band;
} tt__chain_t;

// What a band's thread needs to know.
typedef struct tt__rows_job_s {
  const tt__step_t *step;
  const tt__run_t *run;
} tt__rows_job_t;

// Marks the chains of a sequence, before buffers are assigned: their members' lives overlap.
void tt__plan_rows_find(tt__planner_t *p, const tt__seq_t *seq);
// Makes each chain one step, when buffers are resolved.
tt_status_t tt__plan_rows_join(tt__planner_t *p, tt__seq_t *seq) TT_MUST_USE;

// --- plan_reduce.c ---
// How many rows a reduction has whose rows are independent of each other; else 0.
int64_t tt__plan_reduce_rows(const tt__step_t *step);
const tt__tile_t *tt__plan_reduce_tile(const tt__step_t *step);
// Rows [from, to) on the calling thread.
void tt__plan_reduce_band(const tt__step_t *step, const tt__run_t *run, int64_t from, int64_t to);

#endif  // TT_SOFTTPU_PLAN_ROWS_H_
