// The end of a job, to wait on.
#ifndef TT_DIST_WORK_H_
#define TT_DIST_WORK_H_

#include "dist/process_group.h"

tt_status_t tt_work_create(double timeout_s, tt_work_t **out_work) TT_MUST_USE;
// Ends the work; consumes `status`.
void tt_work_finish(tt_work_t *work, tt_status_t status, uint32_t source);

#endif  // TT_DIST_WORK_H_
