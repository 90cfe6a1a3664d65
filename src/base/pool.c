// A caller cuts its range in as many parts as there are threads, mails one to each worker, does the
// first itself and waits. No queue and no stealing: which part holds which task depends on the
// range alone, and part i goes to the same thread every time, which often finds its data in its
// cache from the kernel before.
#define _GNU_SOURCE

#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/relax.h"

// How long a thread polls before it sleeps: long enough to span the gap between two kernels of one
// program, short enough not to take a core from anybody else.
#define SPIN_COUNT 1000

typedef struct job_s {
  tt_pool_fn_t fn;
  void *context;
  int64_t begin, end;
} job_t;

// One flag word and its sleepers. Post and wait each write one atomic and then read the other's, in
// sequentially consistent order, so that one of both sees the other: either the poster finds
// `sleeping` set and wakes, or the waiter finds the new word and does not sleep. The mutex is held
// from setting `sleeping` to sleeping, so that a wake cannot fall in between.
typedef struct signal_s {
  _Atomic uint32_t word;
  _Atomic bool sleeping;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
} signal_t;

// A worker's mailbox, in cache lines of its own. `job` is written by the caller before it posts and
// read by the worker after it has seen the post, which orders the two.
typedef struct worker_s {
  _Alignas(64) signal_t posted;  // counts jobs
  job_t job;
  pthread_t thread;
  tt_pool_t *pool;
} worker_t;

struct tt_pool_s {
  uint32_t worker_count;
  worker_t *workers;
  pthread_mutex_t caller;          // held while a job runs
  _Alignas(64) signal_t finished;  // word: workers still busy
  _Atomic bool stopping;
};

// True in workers always and in a caller while it does its part: a nested call runs inline.
static _Thread_local bool inside_task;

static void signal_init(signal_t *s) {
  atomic_init(&s->word, 0);
  atomic_init(&s->sleeping, false);
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->cond, NULL);
}

static void signal_deinit(signal_t *s) {
  pthread_cond_destroy(&s->cond);
  pthread_mutex_destroy(&s->mutex);
}

// Call after changing the word. Costs one load where nobody sleeps, the usual case between kernels.
static void signal_wake(signal_t *s) {
  if (!atomic_load(&s->sleeping)) return;
  pthread_mutex_lock(&s->mutex);
  pthread_cond_signal(&s->cond);
  pthread_mutex_unlock(&s->mutex);
}

// Waits until the word differs from `old` (want_zero false) or is zero (want_zero true).
static void signal_wait(signal_t *s, uint32_t old, bool want_zero) {
  for (int i = 0; i < SPIN_COUNT; i++) {
    uint32_t now = atomic_load_explicit(&s->word, memory_order_acquire);
    if (want_zero ? now == 0 : now != old) return;
    tt_relax();
  }
  pthread_mutex_lock(&s->mutex);
  atomic_store(&s->sleeping, true);
  for (;;) {
    uint32_t now = atomic_load(&s->word);
    if (want_zero ? now == 0 : now != old) break;
    pthread_cond_wait(&s->cond, &s->mutex);
  }
  atomic_store(&s->sleeping, false);
  pthread_mutex_unlock(&s->mutex);
}

// Jobs are counted, not flagged, so that a post which comes while the worker is still at the end of
// the one before is not lost.
static void *worker_main(void *argument) {
  worker_t *w = argument;
  tt_pool_t *pool = w->pool;
  inside_task = true;
  for (uint32_t seen = 0;; seen++) {
    signal_wait(&w->posted, seen, false);
    if (atomic_load(&pool->stopping)) return NULL;
    w->job.fn(w->job.context, w->job.begin, w->job.end);
    if (atomic_fetch_sub(&pool->finished.word, 1) == 1) signal_wake(&pool->finished);
  }
}

static void worker_post(worker_t *w) {
  atomic_fetch_add(&w->posted.word, 1);
  signal_wake(&w->posted);
}

// Ends the first `started` workers (a post with `stopping` set is the word to end) and frees
// everything.
static void teardown(tt_pool_t *pool, uint32_t started) {
  atomic_store(&pool->stopping, true);
  for (uint32_t i = 0; i < started; i++) worker_post(&pool->workers[i]);
  for (uint32_t i = 0; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
  for (uint32_t i = 0; i < pool->worker_count; i++) signal_deinit(&pool->workers[i].posted);
  signal_deinit(&pool->finished);
  pthread_mutex_destroy(&pool->caller);
  tt_free(pool->workers);
  tt_free(pool);
}

// The affinity mask, not the machine: containers and batch systems give a process less than all.
static uint32_t usable_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
#endif
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (uint32_t)n : 1;
}

tt_status_t tt_pool_create(uint32_t thread_count, tt_pool_t **out_pool) {
  *out_pool = NULL;
  if (thread_count == 0) thread_count = usable_cores();
  tt_pool_t *pool = tt_alloc_aligned(64, sizeof *pool);
  worker_t *workers = tt_alloc_aligned(64, sizeof *workers * thread_count);
  if (!pool || !workers) {
    tt_free(pool);
    tt_free(workers);
    return TT_ERROR(OUT_OF_MEMORY, "no memory for a pool of %u threads", thread_count);
  }
  pool->worker_count = thread_count - 1;
  pool->workers = workers;
  atomic_init(&pool->stopping, false);
  pthread_mutex_init(&pool->caller, NULL);
  signal_init(&pool->finished);
  for (uint32_t i = 0; i < pool->worker_count; i++) {
    signal_init(&workers[i].posted);
    workers[i].pool = pool;
  }
  for (uint32_t i = 0; i < pool->worker_count; i++) {
    if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0) {
      teardown(pool, i);
      return TT_ERROR(UNAVAILABLE, "cannot start thread %u of %u", i + 1, thread_count);
    }
  }
  *out_pool = pool;
  return TT_OK_STATUS;
}

void tt_pool_destroy(tt_pool_t *pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->caller);  // a job that another thread has running ends first
  pthread_mutex_unlock(&pool->caller);
  teardown(pool, pool->worker_count);
}

uint32_t tt_pool_thread_count(const tt_pool_t *pool) { return pool->worker_count + 1; }

// [count * part / parts, ...) without the product's overflow.
static int64_t split_at(int64_t count, int64_t part, int64_t parts) {
  return count / parts * part + count % parts * part / parts;
}

// The caller does the first part itself. A pool that is busy, or a call from inside a task, costs
// no waiting: all is done here.
void tt_pool_run(tt_pool_t *pool, int64_t count, int64_t grain, tt_pool_fn_t fn, void *context) {
  if (count <= 0) return;
  int64_t parts = grain > 1 ? count / grain : count;
  int64_t threads = (int64_t)pool->worker_count + 1;
  if (parts > threads) parts = threads;
  if (parts <= 1 || inside_task || pthread_mutex_trylock(&pool->caller) != 0) {
    fn(context, 0, count);
    return;
  }
  atomic_store(&pool->finished.word, (uint32_t)parts - 1);
  for (int64_t i = 1; i < parts; i++) {
    worker_t *w = &pool->workers[i - 1];
    w->job = (job_t){fn, context, split_at(count, i, parts), split_at(count, i + 1, parts)};
    worker_post(w);
  }
  inside_task = true;
  fn(context, 0, split_at(count, 1, parts));
  inside_task = false;
  signal_wait(&pool->finished, 0, true);
  pthread_mutex_unlock(&pool->caller);
}
