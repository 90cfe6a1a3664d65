#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "test.h"

enum { COUNT = 1000 };

typedef struct touched_s {
  tt_pool_t *pool;
  _Atomic int times[COUNT];
  _Atomic int calls;
} touched_t;

static void touch(void *context, int64_t begin, int64_t end) {
  touched_t *t = context;
  atomic_fetch_add(&t->calls, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&t->times[i], 1);
}

static void nested(void *context, int64_t begin, int64_t end) {
  touched_t *t = context;
  for (int64_t i = begin; i < end; i++) tt_pool_run(t->pool, COUNT, 1, touch, t);
}

TEST(every_index_runs_once) {
  static touched_t t;
  for (uint32_t threads = 1; threads <= 5; threads++) {
    EXPECT_OK(tt_pool_create(threads, &t.pool));
    EXPECT_INT(tt_pool_thread_count(t.pool), threads);
    for (int round = 0; round < 200; round++) {
      memset(&t.times, 0, sizeof t.times);
      atomic_store(&t.calls, 0);
      int64_t count = 1 + round * 5, grain = 1 + round % 7;
      tt_pool_run(t.pool, count, grain, touch, &t);
      for (int64_t i = 0; i < COUNT; i++) EXPECT_INT(atomic_load(&t.times[i]), i < count);
      EXPECT(atomic_load(&t.calls) <= (int)threads);
      EXPECT(atomic_load(&t.calls) == 1 || count / atomic_load(&t.calls) >= grain);
    }
    tt_pool_destroy(t.pool);
  }
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(nested_calls_run_inline) {
  static touched_t t;
  EXPECT_OK(tt_pool_create(3, &t.pool));
  tt_pool_run(t.pool, 9, 1, nested, &t);
  for (int i = 0; i < COUNT; i++) EXPECT_INT(atomic_load(&t.times[i]), 9);
  EXPECT_INT(atomic_load(&t.calls), 9);
  tt_pool_destroy(t.pool);
}

static void *calls_often(void *argument) {
  touched_t *t = argument;
  for (int i = 0; i < 200; i++) tt_pool_run(t->pool, COUNT, 1, touch, t);
  return NULL;
}

TEST(two_callers_do_not_disturb_each_other) {
  static touched_t t;
  EXPECT_OK(tt_pool_create(2, &t.pool));
  pthread_t other;
  EXPECT_INT(pthread_create(&other, NULL, calls_often, &t), 0);
  calls_often(&t);
  pthread_join(other, NULL);
  for (int i = 0; i < COUNT; i++) EXPECT_INT(atomic_load(&t.times[i]), 400);
  tt_pool_destroy(t.pool);
}

TEST(creation_fails_cleanly) {
  tt_pool_t *pool;
  for (int n = 1; n <= 2; n++) {
    tt_alloc_fail_at(n);
    tt_status_t s = tt_pool_create(2, &pool);
    tt_alloc_fail_at(0);
    EXPECT_INT(tt_status_code(s), TT_OUT_OF_MEMORY);
    tt_status_release(s);
    EXPECT(pool == NULL);
  }
  EXPECT_OK(tt_pool_create(0, &pool));
  tt_pool_destroy(pool);
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST_MAIN(every_index_runs_once, nested_calls_run_inline, two_callers_do_not_disturb_each_other,
          creation_fails_cleanly)
