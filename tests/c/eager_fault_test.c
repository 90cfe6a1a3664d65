// Every allocation of the engine fails once: an error comes back, nothing crashes, and afterwards
// everything works.
#include "base/alloc.h"
#include "eager_fixture.h"

// Runs a few calls of new shapes; stops at the first error.
static tt_status_t some_calls(int size) {
  tt_storage_t *storage = NULL;
  tt_outs_t outs;
  static float data[4096];
  TT_RETURN_IF_ERROR(tt_storage_create(0, (size_t)size * 4, &storage));
  tensor_t x = tensor_over(storage, TT_F32, 1, (int64_t[]){size});
  tensor_fix(&x);
  tt_status_t s = tt_eager_upload(&x.t, data);
  tt_arg_t args[] = {arg_tensor(&x), arg_tensor(&x), arg_scalar(2)};
  if (!s) s = call_status("add.Tensor", TT_FUNCTIONAL, args, 3, &outs);
  if (!s) {
    tensor_t y = tensor_from(&outs.items[0]);
    tt_outs_deinit(&outs);
    tt_arg_t into[] = {arg_tensor(&y), arg_tensor(&x), arg_scalar(1)};
    s = call_status("add_.Tensor", TT_INPLACE, into, 3, &outs);
    if (!s) tt_outs_deinit(&outs);
    if (!s) s = tt_eager_download(&y.t, data);
    tensor_drop(&y);
  }
  tensor_drop(&x);
  return s;
}

static int fail_each(int first_size) {
  int failures = 0, successes = 0;
  for (int n = 1; n < 400 && successes < 5; n++) {
    tt_alloc_fail_at(n);
    tt_status_t s = some_calls(first_size + n);
    tt_alloc_fail_at(0);
    successes = s ? 0 : successes + 1;
    if (!s) continue;
    failures++;
    EXPECT_INT(tt_status_code(s), TT_OUT_OF_MEMORY);
    if (tt_status_code(s) != TT_OUT_OF_MEMORY) printf("  at %d: %s\n", n, tt_status_message(s));
    tt_status_release(s);
    tt_status_release(tt_eager_synchronize(0));
    EXPECT_OK(some_calls(first_size + n));
    if (tt_test_failures > 5) break;
  }
  return failures;
}

TEST(strict) { EXPECT(fail_each(10) > 10); }

TEST(windows) {
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
  EXPECT(fail_each(1000) > 10);
  EXPECT_OK(tt_eager_set_mode(TT_MODE_STRICT));
}

int main(void) {
  engine_setup();
  if (tt_test_failures) return 1;
  EXPECT_OK(some_calls(3));
  strict(), windows();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
