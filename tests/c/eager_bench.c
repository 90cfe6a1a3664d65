// Not a test: nanoseconds a call of the hot path. Build it like a test of tests/c.
#include <time.h>

#include "eager_fixture.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bench_add(const char *what, int variant, int count) {
  tensor_t a = vector(1, (float[]){1}), b = vector(1, (float[]){1});
  tt_arg_t args[] = {arg_tensor(&a), arg_tensor(&b), arg_scalar(0.5)};
  tt_call_t call = {op_named(variant ? "add_.Tensor" : "add.Tensor", variant), (uint8_t)variant, 3,
                    0, args};
  double best = 1e30;
  for (int round = 0; round < 7; round++) {
    double start = now();
    for (int i = 0; i < count; i++) {
      tt_outs_t outs;
      EXPECT_OK(tt_eager_call(&call, &outs));
      for (uint32_t k = 0; k < outs.count; k++) tt_storage_release(outs.items[k].storage);
      tt_outs_deinit(&outs);
    }
    double each = (now() - start) / count;
    if (each < best) best = each;
    EXPECT_OK(tt_eager_synchronize(0));
  }
  printf("%-40s %8.0f ns\n", what, best);
  tensor_drop(&a), tensor_drop(&b);
}

int main(void) {
  engine_setup();
  bench_add("strict add(f32[1])", TT_FUNCTIONAL, 20000);
  bench_add("strict add_(f32[1])", TT_INPLACE, 20000);
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
  bench_add("defer_and_fuse record add(f32[1])", TT_FUNCTIONAL, 4000);
  bench_add("defer_and_fuse record add_(f32[1])", TT_INPLACE, 4000);
  return tt_test_failures != 0;
}
