// Calls from end to end on the software TPU, the same in all modes.
#include "eager_fixture.h"

static void functional(void) {
  tensor_t a = vector(3, (float[]){1, 2, 3}), b = vector(3, (float[]){10, 20, 30});
  tensor_t c = CALL("add.Tensor", arg_tensor(&a), arg_tensor(&b), arg_number(1));
  tensor_t d = CALL("add.Tensor", arg_tensor(&c), arg_tensor(&b), arg_scalar(0.5));
  EXPECT_FLOATS(&d, 16, 32, 48);
  EXPECT_FLOATS(&c, 11, 22, 33);
  tensor_drop(&a), tensor_drop(&b), tensor_drop(&c), tensor_drop(&d);
}

static void in_place(void) {
  tensor_t a = vector(4, (float[]){1, 2, 3, 4}), b = vector(4, (float[]){1, 1, 1, 1});
  void *address = tt_storage_address(a.t.storage);
  for (int i = 0; i < 5; i++) {
    CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(&a), arg_tensor(&b), arg_number(2));
  }
  EXPECT_FLOATS(&a, 11, 12, 13, 14);
  EXPECT(tt_storage_address(a.t.storage) == address);
  // A view of the same storage sees and makes the changes.
  tensor_t odd = a;
  odd.sizes[0] = 2, odd.strides[0] = 2, odd.t.offset = 1;
  CALL_INTO("mul_.Tensor", TT_INPLACE, arg_tensor(&odd), arg_tensor(&odd));
  EXPECT_FLOATS(&a, 11, 144, 13, 196);
  EXPECT_FLOATS(&odd, 144, 196);
  // x.add_(x): one storage in two arguments.
  CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(&a), arg_tensor(&a), arg_number(1));
  EXPECT_FLOATS(&a, 22, 288, 26, 392);
  tensor_drop(&a), tensor_drop(&b);
}

static void out_form(void) {
  tensor_t a = vector(3, (float[]){1, 2, 3});
  tensor_t out = tensor_empty(TT_F64, 1, (int64_t[]){3});
  CALL_INTO("add.out", TT_OUT, arg_tensor(&a), arg_tensor(&a), arg_number(1), arg_tensor(&out));
  double got[3];
  tensor_read(&out, got);
  EXPECT(got[0] == 2 && got[1] == 4 && got[2] == 6);
  // Into a transposed part of a larger, never written storage.
  tensor_t big = tensor_empty(TT_F32, 2, (int64_t[]){3, 3}), column = big;
  column.t.rank = 1, column.sizes[0] = 3, column.strides[0] = 3, column.t.offset = 1;
  CALL_INTO("add.out", TT_OUT, arg_tensor(&a), arg_tensor(&a), arg_number(1), arg_tensor(&column));
  EXPECT_FLOATS(&big, 0, 2, 0, 0, 4, 0, 0, 6, 0);
  tensor_drop(&a), tensor_drop(&out), tensor_drop(&big);
}

static void copies(void) {
  tensor_t a = tensor_of(TT_F32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6});
  tensor_t t = a, b = tensor_empty(TT_S32, 2, (int64_t[]){3, 2});
  t.sizes[0] = 3, t.sizes[1] = 2, t.strides[0] = 1, t.strides[1] = 3;
  EXPECT_FLOATS(&t, 1, 4, 2, 5, 3, 6);
  tensor_fix(&b), tensor_fix(&t);
  EXPECT_OK(tt_eager_copy(&b.t, &t.t));
  int32_t got[6];
  tensor_read(&b, got);
  EXPECT(got[0] == 1 && got[1] == 4 && got[4] == 3 && got[5] == 6);
  // Upload through a view.
  EXPECT_OK(tt_eager_upload(&t.t, (float[]){9, 8, 7, 6, 5, 4}));
  EXPECT_FLOATS(&a, 9, 7, 5, 8, 6, 4);
  // A broadcast source, an item.
  tensor_t one = tensor_of(TT_F32, 0, NULL, (float[]){2.5f});
  tensor_fix(&a), tensor_fix(&one);
  EXPECT_OK(tt_eager_copy(&a.t, &one.t));
  EXPECT_FLOATS(&a, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f);
  tt_number_t n;
  EXPECT_OK(tt_eager_item(&one.t, &n));
  EXPECT(n.kind == TT_ARG_FLOAT && n.u.f == 2.5);
  EXPECT_ERROR(tt_eager_item(&a.t, &n), "cannot be converted to Scalar");
  tensor_drop(&a), tensor_drop(&b), tensor_drop(&one);
}

static void errors(void) {
  tensor_t a = vector(3, (float[]){1, 2, 3}), b = vector(2, (float[]){1, 2});
  tt_outs_t outs;
  tt_arg_t args[] = {arg_tensor(&a), arg_tensor(&b), arg_number(1)};
  EXPECT_ERROR(call_status("add.Tensor", TT_FUNCTIONAL, args, 3, &outs), "must match");
  EXPECT_ERROR(tt_storage_create(99, 8, &a.t.storage), "invalid device ordinal 99");
  tensor_t c = CALL("add.Tensor", arg_tensor(&b), arg_tensor(&b), arg_number(1));
  EXPECT_FLOATS(&c, 2, 4);
  tensor_drop(&b), tensor_drop(&c);
}

static void all_of_it(void) {
  functional();
  in_place();
  out_form();
  copies();
  errors();
}

TEST(strict) { all_of_it(); }

TEST(debug) {
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEBUG));
  all_of_it();
  tt_eager_set_check_finite(true);
  tensor_t a = vector(2, (float[]){1, 3e38f});
  tt_outs_t outs;
  tt_arg_t args[] = {arg_tensor(&a), arg_tensor(&a), arg_number(1)};
  EXPECT_ERROR(call_status("add.Tensor", TT_FUNCTIONAL, args, 3, &outs),
               "add.Tensor(f32[2], f32[2]");
  tt_eager_set_check_finite(false);
  tensor_drop(&a);
  EXPECT_OK(tt_eager_set_mode(TT_MODE_STRICT));
}

TEST(defer_and_fuse) {
  EXPECT_OK(tt_eager_set_mode(TT_MODE_DEFER_AND_FUSE));
  all_of_it();
  EXPECT_OK(tt_eager_set_mode(TT_MODE_STRICT));
}

TEST(scalars_do_not_recompile) {
  tensor_t a = vector(2, (float[]){1, 2});
  tt_eager_stats_t before = {0};
  for (int i = 0; i < 4; i++) {
    tensor_t c = CALL("add.Tensor", arg_tensor(&a), arg_tensor(&a), arg_scalar(2 + i * 0.25));
    EXPECT_FLOATS(&c, 3 + (float)i * 0.25f, 6 + (float)i * 0.5f);
    tensor_drop(&c);
    if (i == 0) before = stats_now();
  }
  EXPECT_INT(stats_now().programs_compiled, before.programs_compiled);
  EXPECT_INT(stats_now().instances, before.instances);
  tensor_drop(&a);
}

TEST(in_place_reuses_memory) {
  static float data[1 << 16];
  tensor_t a = tensor_of(TT_F32, 1, (int64_t[]){1 << 16}, data);
  tensor_t b = tensor_of(TT_F32, 1, (int64_t[]){1}, (float[]){1});
  EXPECT_OK(tt_eager_synchronize(0));
  tt_client_reset_peak(tt_eager_client(), 0);
  tt_memory_stats_t before, after;
  EXPECT_OK(tt_client_memory_stats(tt_eager_client(), 0, &before));
  for (int i = 0; i < 8; i++) {
    CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(&a), arg_tensor(&b), arg_number(1));
  }
  EXPECT_OK(tt_eager_synchronize(0));
  EXPECT_OK(tt_client_memory_stats(tt_eager_client(), 0, &after));
  EXPECT(after.peak_bytes_in_use < before.bytes_in_use + (1 << 17));
  tensor_drop(&a), tensor_drop(&b);
}

TEST(addresses) {
  tt_storage_t *s[64];
  for (int i = 0; i < 64; i++) {
    EXPECT_OK(tt_storage_create(0, (size_t)(i * i * 300 + 1), &s[i]));
    char *p = tt_storage_address(s[i]);
    EXPECT((uintptr_t)p % 64 == 0);
    EXPECT(tt_storage_find(p) == s[i]);
    EXPECT(tt_storage_find(p + i * i * 300) == s[i]);
    EXPECT(tt_storage_find(p + i * i * 300 + 1) == NULL);
    for (int j = 0; j < i; j++) {
      char *q = tt_storage_address(s[j]);
      EXPECT(q + j * j * 300 + 1 < p || p + i * i * 300 + 1 < q);
    }
  }
  void *old = tt_storage_address(s[5]);
  EXPECT_OK(tt_storage_resize(s[5], 1 << 20));
  EXPECT(tt_storage_address(s[5]) != old);
  EXPECT(tt_storage_find(tt_storage_address(s[5])) == s[5]);
  EXPECT(tt_storage_find(old) == NULL);
  for (int i = 0; i < 64; i++) tt_storage_release(s[i]);
  EXPECT_OK(tt_storage_create(0, 0, &s[0]));
  EXPECT(tt_storage_address(s[0]) == NULL);
  tt_storage_release(s[0]);
}

TEST(resize_keeps_the_prefix) {
  tensor_t a = vector(2, (float[]){5, 6});
  EXPECT_OK(tt_storage_resize(a.t.storage, 16));
  a.sizes[0] = 4;
  EXPECT_FLOATS(&a, 5, 6, 0, 0);
  CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(&a), arg_tensor(&a), arg_number(1));
  EXPECT_FLOATS(&a, 10, 12, 0, 0);
  tensor_drop(&a);
}

int main(void) {
  engine_setup();
  if (tt_test_failures) return 1;
  void (*const tests[])(void) = {strict,
                                 debug,
                                 defer_and_fuse,
                                 scalars_do_not_recompile,
                                 in_place_reuses_memory,
                                 addresses,
                                 resize_keeps_the_prefix};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tests[i]();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
