// A device with 8 MiB: out of memory is an error with numbers, and the device stays usable.
#include "eager_fixture.h"

enum { MIB = 1 << 20 };
static float data[MIB / 4 * 3];

static tensor_t big(void) { return tensor_of(TT_F32, 1, (int64_t[]){MIB / 4 * 3}, data); }

static void run_out(void) {
  tensor_t x = big(), results[4];
  tt_arg_t args[] = {arg_tensor(&x), arg_tensor(&x), arg_number(1)};
  tt_status_t s = TT_OK_STATUS;
  uint32_t made = 0;
  while (!s && made < 4) {
    tt_outs_t outs;
    s = call_status("add.Tensor", TT_FUNCTIONAL, args, 3, &outs);
    if (s) break;
    results[made++] = tensor_from(&outs.items[0]);
    tt_outs_deinit(&outs);
  }
  if (!s) s = tt_eager_synchronize(0);
  EXPECT(made < 4 || tt_eager_mode() == TT_MODE_DEFER_AND_FUSE);
  EXPECT_INT(tt_status_code(s), TT_OUT_OF_MEMORY);
  EXPECT_ERROR(s, "MiB");
  for (uint32_t i = 0; i < made; i++) tensor_drop(&results[i]);
  // What was there before is there still, and there is room again.
  tensor_t y = CALL("add.Tensor", arg_tensor(&x), arg_tensor(&x), arg_number(1));
  static float got[MIB / 4 * 3];
  tensor_read(&y, got);
  EXPECT(got[5] == 2 * data[5] && got[MIB / 2] == 2 * data[MIB / 2]);
  tensor_drop(&x), tensor_drop(&y);
}

TEST(strict) { run_out(); }

TEST(windows) {
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
  run_out();
  EXPECT_OK(tt_eager_set_mode(TT_MODE_STRICT));
}

TEST(copies_share_until_written) {
  tensor_t x = big(), copies[6];
  for (int i = 0; i < 6; i++) {
    copies[i] = tensor_empty(TT_F32, 1, (int64_t[]){MIB / 4 * 3});
    tensor_fix(&x), tensor_fix(&copies[i]);
    EXPECT_OK(tt_eager_copy(&copies[i].t, &x.t));
  }
  tensor_t one = vector(1, (float[]){1});
  CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(&copies[3]), arg_tensor(&one), arg_number(1));
  static float got[MIB / 4 * 3];
  tensor_read(&copies[3], got);
  EXPECT(got[7] == data[7] + 1);
  tensor_read(&copies[4], got);
  EXPECT(got[7] == data[7]);
  tensor_read(&x, got);
  EXPECT(got[7] == data[7]);
  for (int i = 0; i < 6; i++) tensor_drop(&copies[i]);
  tensor_drop(&x), tensor_drop(&one);
}

int main(void) {
  setenv("TORCHTPU_HBM_BYTES", "8388608", 1);
  for (int i = 0; i < MIB / 4 * 3; i++) data[i] = (float)(i % 1000);
  engine_setup();
  if (tt_test_failures) return 1;
  strict(), windows(), copies_share_until_written();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
