// Captured programs: what torch.compile runs.
#include "eager_fixture.h"

static void run_step(tt_capture_t *c, tensor_t *p, tensor_t *g, tensor_t *out) {
  tensor_fix(p), tensor_fix(g);
  tt_tensor_t inputs[] = {p->t, g->t};
  tt_outs_t outs;
  EXPECT_OK(tt_capture_run(c, inputs, 2, &outs));
  EXPECT_INT(outs.count, 2);
  for (int i = 0; i < 2; i++) out[i] = tensor_from(&outs.items[i]);
  tt_outs_deinit(&outs);
}

// y = g * g; p += 2 * y; gives (p, the second half of y).
static tt_capture_t *capture(tensor_t *p, tensor_t *g) {
  tt_capture_t *c = NULL;
  tensor_fix(p), tensor_fix(g);
  tt_tensor_t inputs[] = {p->t, g->t};
  EXPECT_OK(tt_capture_begin(0, inputs, 2, &c));
  tensor_t y = CALL("mul.Tensor", arg_tensor(g), arg_tensor(g));
  CALL_INTO("add_.Tensor", TT_INPLACE, arg_tensor(p), arg_tensor(&y), arg_scalar(2));
  tensor_t half = y;
  half.sizes[0] = 1, half.t.offset = 1;
  tensor_fix(&half);
  tt_tensor_t outputs[] = {p->t, half.t};
  EXPECT_OK(tt_capture_end(c, outputs, 2));
  tt_outs_t none;
  float lost[2];
  tensor_fix(&y);
  EXPECT_ERROR(tt_eager_download(&y.t, lost), "while a program was captured");
  (void)none;
  tensor_drop(&y);
  return c;
}

static void all_of_it(void) {
  tensor_t p = vector(2, (float[]){1, 2}), g = vector(2, (float[]){3, 4});
  tt_capture_t *c = capture(&p, &g);
  EXPECT_FLOATS(&p, 1, 2);  // a capture changes nothing
  for (int i = 1; i <= 3; i++) {
    tensor_t out[2];
    run_step(c, &p, &g, out);
    EXPECT(out[0].t.storage == p.t.storage);
    EXPECT_FLOATS(&p, 1 + 18 * (float)i, 2 + 32 * (float)i);
    EXPECT(out[1].t.offset == 1 && out[1].sizes[0] == 1);
    EXPECT_FLOATS(&out[1], 16);
    tensor_drop(&out[0]), tensor_drop(&out[1]);
  }
  // Other data, other storages.
  tensor_t q = vector(2, (float[]){0, 0}), h = vector(2, (float[]){1, 1}), out[2];
  run_step(c, &q, &h, out);
  EXPECT_FLOATS(&q, 2, 2);
  EXPECT_FLOATS(&p, 55, 98);
  tensor_drop(&out[0]), tensor_drop(&out[1]);
  // Another shape is not for this program.
  tensor_t three = vector(3, (float[]){1, 2, 3});
  tt_tensor_t wrong[] = {q.t, three.t};
  tensor_fix(&three), tensor_fix(&q);
  wrong[0] = q.t, wrong[1] = three.t;
  tt_outs_t outs;
  tt_status_t s = tt_capture_run(c, wrong, 2, &outs);
  EXPECT_INT(tt_status_code(s), TT_NOT_FOUND);
  EXPECT_ERROR(s, "capture:");
  tt_capture_destroy(c);
  tensor_drop(&p), tensor_drop(&g), tensor_drop(&q), tensor_drop(&h), tensor_drop(&three);
}

TEST(in_all_modes) {
  for (int mode = TT_MODE_STRICT; mode <= TT_MODE_DEFER_AND_FUSE; mode++) {
    EXPECT_OK(tt_eager_set_mode((tt_eager_mode_t)mode));
    all_of_it();
  }
  EXPECT_OK(tt_eager_set_mode(TT_MODE_STRICT));
}

TEST(reading_ends_a_capture) {
  tensor_t g = vector(1, (float[]){3});
  tt_capture_t *c;
  tensor_fix(&g);
  EXPECT_OK(tt_capture_begin(0, &g.t, 1, &c));
  CALL_INTO("mul_.Tensor", TT_INPLACE, arg_tensor(&g), arg_tensor(&g));
  float x;
  EXPECT_ERROR(tt_eager_download(&g.t, &x), "capture: a value is read");
  EXPECT_ERROR(tt_capture_end(c, &g.t, 1), "capture: a value is read");
  tt_capture_destroy(c);
  EXPECT_FLOATS(&g, 3);
  // Given up half-way.
  tensor_fix(&g);
  EXPECT_OK(tt_capture_begin(0, &g.t, 1, &c));
  CALL_INTO("mul_.Tensor", TT_INPLACE, arg_tensor(&g), arg_tensor(&g));
  tt_capture_destroy(c);
  EXPECT_FLOATS(&g, 3);
  CALL_INTO("mul_.Tensor", TT_INPLACE, arg_tensor(&g), arg_tensor(&g));
  EXPECT_FLOATS(&g, 9);
  tensor_drop(&g);
}

TEST(random_numbers_are_drawn_by_runs) {
  tensor_t x = vector(4, (float[]){0, 0, 0, 0});
  tt_generator_t *g = tt_generator_default(0);
  float eager[2][4], compiled[2][4];
  tt_generator_set_state(g, 7, 0);
  for (int i = 0; i < 2; i++) {
    CALL_INTO("uniform_", TT_INPLACE, arg_tensor(&x), arg_scalar(0), arg_scalar(1), arg_none());
    tensor_read(&x, eager[i]);
  }
  tt_capture_t *c;
  tensor_fix(&x);
  tt_generator_set_state(g, 7, 0);
  EXPECT_OK(tt_capture_begin(0, &x.t, 1, &c));
  CALL_INTO("uniform_", TT_INPLACE, arg_tensor(&x), arg_scalar(0), arg_scalar(1), arg_none());
  EXPECT_OK(tt_capture_end(c, &x.t, 1));
  for (int i = 0; i < 2; i++) {
    tt_outs_t outs;
    tensor_fix(&x);
    EXPECT_OK(tt_capture_run(c, &x.t, 1, &outs));
    tt_storage_release(outs.items[0].storage);
    tt_outs_deinit(&outs);
    tensor_read(&x, compiled[i]);
  }
  EXPECT(memcmp(eager, compiled, sizeof eager) == 0);
  tt_capture_destroy(c);
  tensor_drop(&x);
}

int main(void) {
  engine_setup();
  if (tt_test_failures) return 1;
  in_all_modes(), reading_ends_a_capture(), random_numbers_are_drawn_by_runs();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
