// Ops whose results depend on data, and random numbers.
#include "eager_fixture.h"

static tensor_t matrix(void) {
  return tensor_of(TT_F32, 2, (int64_t[]){2, 3}, (float[]){0, 1, 0, 2, -0.0f, NAN});
}

TEST(nonzero) {
  tensor_t x = matrix();
  tensor_t y = CALL("nonzero", arg_tensor(&x));
  int64_t got[6];
  EXPECT_INT(y.t.dtype, TT_S64);
  EXPECT(y.t.rank == 2 && y.sizes[0] == 3 && y.sizes[1] == 2);
  EXPECT(y.strides[0] == 1 && y.strides[1] == 3);  // as the CPU lays it out
  tensor_read(&y, got);
  EXPECT(got[0] == 0 && got[1] == 1 && got[2] == 1 && got[3] == 0 && got[4] == 1 && got[5] == 2);
  tensor_t none = vector(3, (float[]){0, 0, 0});
  tensor_t empty = CALL("nonzero", arg_tensor(&none));
  EXPECT(empty.sizes[0] == 0 && empty.sizes[1] == 1);
  tensor_drop(&x), tensor_drop(&y), tensor_drop(&none), tensor_drop(&empty);
}

TEST(masks) {
  tensor_t x = tensor_of(TT_F32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6});
  tensor_t mask = tensor_of(TT_I1, 2, (int64_t[]){2, 3}, (uint8_t[]){1, 0, 0, 0, 1, 1});
  tensor_t row = tensor_of(TT_I1, 1, (int64_t[]){2}, (uint8_t[]){0, 1});
  tensor_t y = CALL("masked_select", arg_tensor(&x), arg_tensor(&mask));
  EXPECT(y.t.rank == 1 && y.sizes[0] == 3);
  EXPECT_FLOATS(&y, 1, 5, 6);
  tensor_fix(&mask), tensor_fix(&row);
  tt_arg_t by_mask = {.kind = TT_ARG_TENSORS, .count = 1, .u.tensors = &mask.t};
  tt_arg_t by_row = {.kind = TT_ARG_TENSORS, .count = 1, .u.tensors = &row.t};
  tensor_t z = CALL("index.Tensor", arg_tensor(&x), by_mask);
  EXPECT_FLOATS(&z, 1, 5, 6);
  tensor_t r = CALL("index.Tensor", arg_tensor(&x), by_row);
  EXPECT(r.t.rank == 2 && r.sizes[0] == 1 && r.sizes[1] == 3);
  EXPECT_FLOATS(&r, 4, 5, 6);
  // One value: no positions are needed, so nothing is read back.
  tensor_t v = tensor_of(TT_F32, 0, NULL, (float[]){-1});
  CALL_INTO("index_put_", TT_INPLACE, arg_tensor(&x), by_row, arg_tensor(&v), arg_int(0));
  EXPECT_FLOATS(&x, 1, 2, 3, -1, -1, -1);
  tensor_t three = vector(3, (float[]){7, 8, 9});
  CALL_INTO("index_put_", TT_INPLACE, arg_tensor(&x), by_mask, arg_tensor(&three), arg_int(0));
  EXPECT_FLOATS(&x, 7, 2, 3, -1, 8, 9);
  tensor_t wrong = tensor_of(TT_I1, 1, (int64_t[]){3}, (uint8_t[]){0, 1, 1});
  tensor_fix(&wrong);
  tt_arg_t args[] = {arg_tensor(&x), {.kind = TT_ARG_TENSORS, .count = 1, .u.tensors = &wrong.t}};
  tt_outs_t outs;
  tt_status_t s = call_status("index.Tensor", TT_FUNCTIONAL, args, 2, &outs);
  EXPECT_INT(tt_status_code(s), TT_INDEX);
  EXPECT_ERROR(s, "shape of the mask");
  tensor_drop(&x), tensor_drop(&mask), tensor_drop(&row), tensor_drop(&y), tensor_drop(&z);
  tensor_drop(&r), tensor_drop(&v), tensor_drop(&three), tensor_drop(&wrong);
}

static void read_three(tt_outs_t *outs, tensor_t *out) {
  EXPECT_INT(outs->count, 3);
  for (int i = 0; i < 3; i++) out[i] = tensor_from(&outs->items[i]);
  tt_outs_deinit(outs);
}

TEST(unique) {
  tensor_t x = tensor_of(TT_F32, 1, (int64_t[]){6}, (float[]){3, -1, 3, 0, -0.0f, -1});
  tt_arg_t yes = {.kind = TT_ARG_BOOL, .u.i = 1};
  tt_arg_t args[] = {arg_tensor(&x), yes, yes, yes};
  tt_outs_t outs;
  tensor_t r[3];
  int64_t got[6];
  EXPECT_OK(call_status("_unique2", TT_FUNCTIONAL, args, 4, &outs));
  read_three(&outs, r);
  EXPECT_INT(r[0].sizes[0], 3);
  EXPECT_FLOATS(&r[0], -1, 0, 3);
  tensor_read(&r[1], got);
  EXPECT(got[0] == 2 && got[1] == 0 && got[2] == 2 && got[3] == 1 && got[4] == 1 && got[5] == 0);
  tensor_read(&r[2], got);
  EXPECT(got[0] == 2 && got[1] == 2 && got[2] == 2);
  for (int i = 0; i < 3; i++) tensor_drop(&r[i]);
  // Columns of a matrix, sorted; the result keeps the moved dimension's strides.
  tensor_t m = tensor_of(TT_S32, 2, (int64_t[]){2, 3}, (int32_t[]){2, 1, 2, 5, 4, 5});
  tt_arg_t dim_args[] = {arg_tensor(&m), arg_int(1), yes, yes, yes};
  EXPECT_OK(call_status("unique_dim", TT_FUNCTIONAL, dim_args, 5, &outs));
  read_three(&outs, r);
  int32_t values[4];
  EXPECT(r[0].sizes[0] == 2 && r[0].sizes[1] == 2 && r[0].strides[0] == 1 && r[0].strides[1] == 2);
  tensor_read(&r[0], values);
  EXPECT(values[0] == 1 && values[1] == 2 && values[2] == 4 && values[3] == 5);
  tensor_read(&r[1], got);
  EXPECT(got[0] == 1 && got[1] == 0 && got[2] == 1);
  for (int i = 0; i < 3; i++) tensor_drop(&r[i]);
  tensor_drop(&x), tensor_drop(&m);
}

TEST(counting) {
  tensor_t x = tensor_of(TT_S32, 1, (int64_t[]){4}, (int32_t[]){1, 3, 1, 0});
  tensor_t bins = CALL("bincount", arg_tensor(&x), arg_none(), arg_int(6));
  int64_t got[8];
  EXPECT_INT(bins.sizes[0], 6);
  tensor_read(&bins, got);
  EXPECT(got[0] == 1 && got[1] == 2 && got[2] == 0 && got[3] == 1 && got[5] == 0);
  tensor_t repeated = CALL("repeat_interleave.Tensor", arg_tensor(&x));
  int32_t small[8];
  EXPECT_INT(repeated.sizes[0], 5);
  tensor_read(&repeated, small);
  EXPECT(small[0] == 0 && small[1] == 1 && small[3] == 1 && small[4] == 2);
  for (int same = 0; same < 2; same++) {
    tensor_t y = tensor_of(TT_S32, 1, (int64_t[]){4}, (int32_t[]){1, 3, 1, !same});
    tt_arg_t args[] = {arg_tensor(&x), arg_tensor(&y)};
    tt_outs_t outs;
    EXPECT_OK(call_status("equal", TT_FUNCTIONAL, args, 2, &outs));
    EXPECT(outs.count == 1 && outs.items[0].storage == NULL);
    EXPECT_INT(outs.items[0].offset, same);
    tt_outs_deinit(&outs);
    tensor_drop(&y);
  }
  tensor_drop(&x), tensor_drop(&bins), tensor_drop(&repeated);
}

static void draw(float *out, float *again) {
  tt_generator_t *g = tt_generator_default(0);
  tt_generator_set_state(g, 42, 0);
  tensor_t x = vector(5, (float[]){0, 0, 0, 0, 0});
  tt_arg_t none = arg_none();
  CALL_INTO("uniform_", TT_INPLACE, arg_tensor(&x), arg_scalar(0), arg_scalar(1), none);
  tensor_read(&x, out);
  CALL_INTO("uniform_", TT_INPLACE, arg_tensor(&x), arg_scalar(0), arg_scalar(1), none);
  tensor_read(&x, again);
  uint64_t seed, offset;
  tt_generator_state(g, &seed, &offset);
  EXPECT(seed == 42 && offset == 16);  // two draws of 5, each rounded up to a multiple of 4
  tensor_drop(&x);
}

TEST(random_numbers_are_the_same_in_all_modes) {
  float strict[2][5], fused[2][5];
  draw(strict[0], strict[1]);
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
  draw(fused[0], fused[1]);
  EXPECT_OK(tt_eager_set_mode(TT_MODE_STRICT));
  EXPECT(memcmp(strict, fused, sizeof strict) == 0);
  EXPECT(memcmp(strict[0], strict[1], sizeof strict[0]) != 0);
  for (int i = 0; i < 5; i++) EXPECT(strict[0][i] >= 0 && strict[0][i] < 1);
}

int main(void) {
  engine_setup();
  if (tt_test_failures) return 1;
  void (*const tests[])(void) = {nonzero, masks, unique, counting,
                                 random_numbers_are_the_same_in_all_modes};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
