// DeferAndFuse: windows, their program cache, liveness, periods, run-time checks, streams, threads.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eager/window.h"
#include "eager_fixture.h"

static void step(tensor_t *p, tensor_t *g, double lr) {
  tensor_t scaled = CALL("mul.Tensor", arg_tensor(g), arg_tensor(g));
  tensor_t shifted = CALL("add.Tensor", arg_tensor(&scaled), arg_tensor(g), arg_number(1));
  CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(p), arg_tensor(&shifted), arg_scalar(lr));
  tensor_drop(&scaled), tensor_drop(&shifted);
}

TEST(steps_hit_the_cache) {
  tensor_t p = vector(2, (float[]){0, 100}), g = vector(2, (float[]){1, 2});
  tt_eager_stats_t warm = {0};
  float want = 0;
  for (int i = 0; i < 6; i++) {
    double lr = 0.5 + i;  // a schedule: never a recompile
    step(&p, &g, lr);
    want += 2 * (float)lr;
    float got[2];
    tensor_read(&p, got);
    EXPECT(got[0] == want && got[1] == 100 + 3 * want);
    if (i == 1) warm = stats_now();
  }
  tt_eager_stats_t now = stats_now();
  EXPECT_INT(now.programs_compiled, warm.programs_compiled);
  EXPECT_INT(now.window_hits - warm.window_hits, 4);
  EXPECT_INT(now.windows_flushed - warm.windows_flushed, 4);
  EXPECT_INT(now.ops_submitted - warm.ops_submitted, 4);
  tensor_drop(&p), tensor_drop(&g);
}

TEST(who_holds_a_value_matters) {
  tensor_t a = vector(2, (float[]){1, 2});
  tensor_t b = CALL("add.Tensor", arg_tensor(&a), arg_tensor(&a), arg_number(1));
  EXPECT_FLOATS(&b, 2, 4);
  for (int keep = 0; keep < 2; keep++) {
    tensor_t t = CALL("mul.Tensor", arg_tensor(&b), arg_tensor(&b));
    CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(&b), arg_tensor(&t), arg_number(1));
    if (keep) {
      EXPECT_FLOATS(&b, 42, 420);
      EXPECT_FLOATS(&t, 36, 400);
    } else {
      tensor_drop(&t);
      EXPECT_FLOATS(&b, 6, 20);
      continue;
    }
    tensor_drop(&t);
  }
  // Nothing of this window is wanted: nothing runs.
  EXPECT_OK(tt_eager_flush(0));
  tt_eager_stats_t before = stats_now();
  tensor_t t = CALL("mul.Tensor", arg_tensor(&b), arg_tensor(&b));
  tensor_drop(&t);
  EXPECT_OK(tt_eager_flush(0));
  EXPECT_INT(stats_now().ops_submitted, before.ops_submitted);
  tensor_drop(&a), tensor_drop(&b);
}

TEST(a_loop_without_reads_is_cut_at_its_period) {
  tensor_t p = vector(1, (float[]){0}), g = vector(1, (float[]){1});
  int64_t warm = 0, submitted = 0;
  for (int i = 0; i < 20000; i++) {
    if (i == 6000) warm = stats_now().programs_compiled, submitted = stats_now().ops_submitted;
    step(&p, &g, 0.25);
  }
  EXPECT_INT(stats_now().programs_compiled, warm);
  EXPECT(stats_now().ops_submitted - submitted > 20);
  EXPECT_FLOATS(&p, 10000);
  tensor_drop(&p), tensor_drop(&g);
}

static void bad_index(tt_eager_mode_t mode) {
  EXPECT_OK(tt_eager_set_mode(mode));
  tensor_t x = vector(3, (float[]){1, 2, 3});
  tensor_t good = tensor_of(TT_S64, 1, (int64_t[]){3}, (int64_t[]){2, 0, -1});
  tensor_t bad = tensor_of(TT_S64, 1, (int64_t[]){3}, (int64_t[]){0, 7, 0});
  tensor_t y = CALL("take", arg_tensor(&x), arg_tensor(&good));
  EXPECT_FLOATS(&y, 3, 1, 3);
  tt_arg_t args[] = {arg_tensor(&x), arg_tensor(&bad)};
  tt_outs_t outs;
  tt_status_t s = call_status("take", TT_FUNCTIONAL, args, 2, &outs);
  if (!s) {
    tensor_t z = tensor_from(&outs.items[0]);
    s = tt_eager_synchronize(0);
    tensor_drop(&z);
    tt_outs_deinit(&outs);
  }
  EXPECT_INT(tt_status_code(s), TT_INDEX);
  EXPECT_ERROR(s, "take: index is out of bounds");
  EXPECT_OK(tt_eager_synchronize(0));
  EXPECT_FLOATS(&y, 3, 1, 3);
  tensor_drop(&x), tensor_drop(&good), tensor_drop(&bad), tensor_drop(&y);
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
}

TEST(checks) {
  bad_index(TT_MODE_STRICT);
  bad_index(TT_MODE_DEBUG);
  bad_index(TT_MODE_DEFER_AND_FUSE);
}

TEST(streams_and_events) {
  int64_t side;
  EXPECT_OK(tt_stream_create(0, &side));
  EXPECT(side != 0);
  tensor_t a = vector(1, (float[]){1});
  tensor_t b = CALL("add.Tensor", arg_tensor(&a), arg_tensor(&a), arg_number(1));
  tt_stream_set_current(0, side);
  EXPECT_INT(tt_stream_current(0), side);
  // b is pending in stream 0's window.
  tensor_t c = CALL("add.Tensor", arg_tensor(&b), arg_tensor(&a), arg_number(1));
  tt_event_t *start, *end;
  EXPECT_OK(tt_event_create(0, &start));
  EXPECT_OK(tt_event_create(0, &end));
  EXPECT(tt_event_query(start));
  EXPECT_OK(tt_event_record(start, side));
  tensor_t d = CALL("mul.Tensor", arg_tensor(&c), arg_tensor(&c));
  EXPECT_OK(tt_event_record(end, side));
  tt_stream_set_current(0, 0);
  EXPECT_OK(tt_event_wait(end, 0));
  EXPECT_OK(tt_event_synchronize(end));
  EXPECT(tt_event_query(end) && tt_stream_query(0, side));
  double ms = -1;
  EXPECT_OK(tt_event_elapsed_ms(start, end, &ms));
  EXPECT(ms >= 0 && ms < 10000);
  EXPECT_FLOATS(&d, 9);
  EXPECT_OK(tt_stream_synchronize(0, side));
  tt_event_destroy(start), tt_event_destroy(end);
  tensor_drop(&a), tensor_drop(&b), tensor_drop(&c), tensor_drop(&d);
}

static tensor_t doubled(int64_t size) {
  static const float ones[64] = {[0] = 1, [63] = 1};
  tensor_t a = tensor_of(TT_F32, 1, (int64_t[]){size}, ones);
  tensor_t b = CALL("add.Tensor", arg_tensor(&a), arg_tensor(&a), arg_number(1));
  tensor_drop(&a);
  return b;
}

// Each size is a window of its own. A cache of eight ops forgets the oldest of them, never one that
// is in use, and what a forgotten program still has to tell is told.
TEST(the_cache_of_windows_is_bounded) {
  tt__fused_limit(8);
  tensor_t x = vector(3, (float[]){1, 2, 3});
  tensor_t bad = tensor_of(TT_S64, 1, (int64_t[]){3}, (int64_t[]){0, 7, 0});
  tensor_t y = CALL("index_select", arg_tensor(&x), arg_number(0), arg_tensor(&bad));
  tt_status_t s = tt_eager_flush(0);  // tells already where the device was quick
  int64_t compiled = stats_now().programs_compiled;
  for (int round = 0; round < 2; round++) {
    for (int64_t size = 1; size <= 32; size++) {
      tensor_t b = doubled(size), often = doubled(40);
      EXPECT_OK(tt_eager_flush(0));
      EXPECT_FLOATS(&b, 2);
      tensor_drop(&b), tensor_drop(&often);
    }
  }
  int64_t made = stats_now().programs_compiled - compiled;
  EXPECT(made > 40);  // the second round found few of the first one's
  s = tt_status_join(s, tt_eager_synchronize(0));
  EXPECT(s && strstr(tt_status_message(s), "index_select"));
  tt_status_release(s);
  tt__fused_limit(1 << 17);
  compiled = stats_now().programs_compiled;
  for (int round = 0; round < 2; round++) {
    for (int64_t size = 1; size <= 32; size++) {
      tensor_t b = doubled(size);
      EXPECT_FLOATS(&b, 2);
      tensor_drop(&b);
    }
  }
  EXPECT(stats_now().programs_compiled - compiled <= 32);
  tensor_drop(&x), tensor_drop(&bad), tensor_drop(&y);
}

// Ops of ever new sizes: the cache of instances keeps to its limit, in each mode, and forgets none
// that a window has, nor what a forgotten one still has to tell.
TEST(the_cache_of_instances_is_bounded) {
  static const int modes[] = {TT_MODE_STRICT, TT_MODE_DEBUG, TT_MODE_DEFER_AND_FUSE};
  tt__instance_limit(16);
  for (int m = 0; m < 3; m++) {
    EXPECT_OK(tt_eager_set_mode(modes[m]));
    tensor_t first = doubled(3), kept[64];
    for (int64_t i = 0; i < 64; i++) kept[i] = doubled(1 + i);  // one window
    for (int64_t i = 0; i < 64; i++) {
      EXPECT_FLOATS(&kept[i], 2);
      tensor_drop(&kept[i]);
    }
    EXPECT_FLOATS(&first, 2);
    tensor_drop(&first);
    tensor_t x = vector(3, (float[]){1, 2, 3});
    tensor_t bad = tensor_of(TT_S64, 1, (int64_t[]){3}, (int64_t[]){0, 7, 0});
    tt_arg_t args[] = {arg_tensor(&x), arg_number(0), arg_tensor(&bad)};
    tt_outs_t outs;
    tt_call_t call = {op_named("index_select", TT_FUNCTIONAL), TT_FUNCTIONAL, 3, 0, args};
    tt_status_t s = tt_eager_call(&call, &outs);
    if (!s) {
      tt_storage_release(outs.items[0].storage);
      tt_outs_deinit(&outs);
    }
    for (int64_t i = 0; i < 64; i++) {
      tensor_t more = doubled(64 - i);
      s = tt_status_join(s, tt_eager_flush(0));
      tensor_drop(&more);
    }
    s = tt_status_join(s, tt_eager_synchronize(0));
    EXPECT(s && strstr(tt_status_message(s), "index_select"));
    tt_status_release(s);
    tensor_drop(&x), tensor_drop(&bad);
    EXPECT(stats_now().instances <= 17);
  }
  tt__instance_limit(1 << 14);
}

static void *work(void *result) {
  tensor_t p = vector(1, (float[]){0}), g = vector(1, (float[]){1});
  for (int i = 0; i < 500; i++) {
    step(&p, &g, 0.5);
    if (i % 50 == 0) EXPECT_OK(tt_eager_synchronize(0));
  }
  tensor_read(&p, result);
  tensor_drop(&p), tensor_drop(&g);
  return NULL;
}

TEST(threads) {
  pthread_t threads[4];
  float results[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, &results[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) EXPECT(results[i] == 500);
}

TEST(a_forked_child_is_told) {
  pid_t child = fork();
  if (child == 0) {
    tt_storage_t *s;
    tt_status_t e = tt_storage_create(0, 8, &s);
    _exit(e && strstr(tt_status_message(e), "in forked subprocess") ? 0 : 1);
  }
  int code = 1;
  EXPECT(waitpid(child, &code, 0) == child);
  EXPECT_INT(code, 0);
}

int main(void) {
  engine_setup();
  if (tt_test_failures) return 1;
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
  void (*const tests[])(void) = {steps_hit_the_cache,
                                 who_holds_a_value_matters,
                                 a_loop_without_reads_is_cut_at_its_period,
                                 checks,
                                 the_cache_of_windows_is_bounded,
                                 the_cache_of_instances_is_bounded,
                                 streams_and_events,
                                 threads,
                                 a_forked_child_is_told};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
