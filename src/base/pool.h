// A pool of worker threads with a static schedule: results never depend on the number of threads.
#ifndef TT_BASE_POOL_H_
#define TT_BASE_POOL_H_

#include <stdint.h>

#include "base/status.h"

// Called with a half-open range of task indices, on any thread, several at once. Tasks must not
// depend on each other, nor a task's result on where ranges are cut.
typedef void (*tt_pool_fn_t)(void *context, int64_t begin, int64_t end);

// Thread-safe.
typedef struct tt_pool_s tt_pool_t;

// Starts `thread_count - 1` threads (the caller is the other one); 0: one per core that this
// process may use. Caller destroys. Threads do not survive a fork: a child must not use its
// parent's pool.
tt_status_t tt_pool_create(uint32_t thread_count, tt_pool_t **out_pool) TT_MUST_USE;
// NULL-safe; waits for a job that is running.
void tt_pool_destroy(tt_pool_t *pool);
uint32_t tt_pool_thread_count(const tt_pool_t *pool);

// Runs fn over [0, count) split in contiguous ranges of at least `grain`; returns when all are
// done, with everything they wrote visible to the caller. One job at a time has the workers: while
// they are busy, and from inside a task, the whole range runs inline on the calling thread.
void tt_pool_run(tt_pool_t *pool, int64_t count, int64_t grain, tt_pool_fn_t fn, void *context);

#endif  // TT_BASE_POOL_H_
