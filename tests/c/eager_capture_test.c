// Captured programs: what torch.compile runs.
#include "eager/capture.h"
#include "eager_fixture.h"

// The two outputs of one run.
static void run_step(tt_programs_t *programs, tensor_t *p, tensor_t *g, tensor_t *out) {
  tensor_fix(p), tensor_fix(g);
  tt_tensor_t inputs[] = {p->t, g->t};
  tt_program_run_t run;
  EXPECT_OK(tt_programs_run(programs, inputs, 2, NULL, 0, &run));
  EXPECT_INT(run.output_count, 2);
  EXPECT(run.outputs[0].same && run.outputs[0].input == 0);
  EXPECT(run.outputs[1].input == TT_CAPTURE_FRESH && run.outputs[1].storage == 0);
  EXPECT_INT(run.storage_count, 1);
  tt_out_t second = {run.storages[0], &run.outputs[1].meta, run.outputs[1].offset};
  *out = tensor_from(&second);
  tt_program_run_deinit(&run);
}

static tt_programs_t *programs_with(tt_capture_t *c) {
  tt_programs_t *programs = NULL;
  EXPECT_OK(tt_programs_create(&programs));
  EXPECT_OK(tt_programs_add(programs, NULL, 0, c));
  EXPECT_INT(tt_programs_count(programs), 1);
  return programs;
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
  tensor_t p = vector(2, (float[]){1, 2}), g = vector(2, (float[]){3, 4}), out;
  tt_programs_t *programs = programs_with(capture(&p, &g));
  EXPECT_FLOATS(&p, 1, 2);  // a capture changes nothing
  for (int i = 1; i <= 3; i++) {
    run_step(programs, &p, &g, &out);
    EXPECT_FLOATS(&p, 1 + 18 * (float)i, 2 + 32 * (float)i);
    EXPECT(out.t.offset == 1 && out.sizes[0] == 1);
    EXPECT_FLOATS(&out, 16);
    tensor_drop(&out);
  }
  // Other data, other storages.
  tensor_t q = vector(2, (float[]){0, 0}), h = vector(2, (float[]){1, 1});
  run_step(programs, &q, &h, &out);
  EXPECT_FLOATS(&q, 2, 2);
  EXPECT_FLOATS(&p, 55, 98);
  tensor_drop(&out);
  // Another shape, inputs that share a storage and other words are not for this program.
  tensor_t three = vector(3, (float[]){1, 2, 3});
  tensor_fix(&three), tensor_fix(&q), tensor_fix(&h);
  tt_tensor_t other[][2] = {{q.t, three.t}, {q.t, q.t}, {q.t, h.t}};
  for (int i = 0; i < 3; i++) {
    tt_program_run_t run;
    uint64_t word = 1;
    tt_status_t s = tt_programs_run(programs, other[i], 2, &word, i == 2, &run);
    EXPECT_INT(tt_status_code(s), TT_NOT_FOUND);
    EXPECT_ERROR(s, "capture:");
  }
  tt_programs_destroy(programs);
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
  // So does an input's own value: each run has another.
  tensor_fix(&g);
  EXPECT_OK(tt_capture_begin(0, &g.t, 1, &c));
  EXPECT_ERROR(tt_eager_download(&g.t, &x), "capture: a value is read");
  EXPECT_ERROR(tt_capture_end(c, &g.t, 1), "capture: a value is read");
  tt_capture_destroy(c);
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
  tt_programs_t *programs = programs_with(c);
  for (int i = 0; i < 2; i++) {
    tt_program_run_t run;
    tensor_fix(&x);
    EXPECT_OK(tt_programs_run(programs, &x.t, 1, NULL, 0, &run));
    EXPECT(run.storage_count == 0 && run.outputs[0].same);
    tt_program_run_deinit(&run);
    tensor_read(&x, compiled[i]);
  }
  EXPECT(memcmp(eager, compiled, sizeof eager) == 0);
  tt_programs_destroy(programs);
  tensor_drop(&x);
}

// g * g, of a tensor that the caller gives up where `given_up`.
static tensor_t square(tt_programs_t *programs, tensor_t *g, bool given_up) {
  tensor_fix(g);
  tt_tensor_t input = g->t;
  if (given_up) input.flags |= TT_TENSOR_GIVEN_UP;
  tt_program_run_t run;
  EXPECT_OK(tt_programs_run(programs, &input, 1, NULL, 0, &run));
  tt_out_t out = {run.storages[0], &run.outputs[0].meta, run.outputs[0].offset};
  tensor_t y = tensor_from(&out);
  tt_program_run_deinit(&run);
  return y;
}

TEST(inputs_that_are_given_up) {
  tensor_t g = vector(2, (float[]){3, 4});
  tt_capture_t *c;
  tensor_fix(&g);
  EXPECT_OK(tt_capture_begin(0, &g.t, 1, &c));
  tensor_t y = CALL("mul.Tensor", arg_tensor(&g), arg_tensor(&g));
  tensor_fix(&y);
  EXPECT_OK(tt_capture_end(c, &y.t, 1));
  tensor_drop(&y);
  tt_programs_t *programs = programs_with(c);
  y = square(programs, &g, true);  // the first run tells what may be given up
  EXPECT_FLOATS(&y, 9, 16);
  float lost[2];
  tensor_fix(&g);
  EXPECT_ERROR(tt_eager_download(&g.t, lost), "donated");
  tensor_drop(&g), tensor_drop(&y);
  g = vector(2, (float[]){5, 6});
  y = square(programs, &g, false);
  EXPECT_FLOATS(&y, 25, 36);
  EXPECT_FLOATS(&g, 5, 6);
  tensor_drop(&g), tensor_drop(&y);
  tt_programs_destroy(programs);
}

// The value of a 0-d CPU tensor.
static tt_tensor_t host_scalar(const void *handle, double value) {
  static const int64_t none = 0;
  tt_tensor_t t = {0};
  t.sizes = t.strides = &none;
  t.dtype = TT_F32;
  t.flags = TT_TENSOR_HOST;
  t.number.kind = TT_ARG_FLOAT;
  t.number.u.f = value;
  t.handle = handle;
  return t;
}

// x *= scalar; `frozen` uses the scalar's value as a number of its own.
static tt_capture_t *capture_scaling(tensor_t *x, double value, bool frozen) {
  tensor_t scalar = {.t = host_scalar(x, value)};
  tt_capture_t *c;
  tensor_fix(x);
  tt_tensor_t inputs[] = {x->t, scalar.t};
  EXPECT_OK(tt_capture_begin(0, inputs, 2, &c));
  tt_arg_t factor = {.kind = TT_ARG_TENSOR};
  factor.u.tensor = &inputs[1];
  if (frozen) inputs[1].handle = NULL;
  CALL_INTO("mul_.Tensor", TT_INPLACE, arg_tensor(x), factor);
  EXPECT_OK(tt_capture_end(c, &x->t, 1));
  return c;
}

TEST(host_scalars_are_inputs) {
  tensor_t x = vector(2, (float[]){1, 2});
  tt_capture_t *a = capture_scaling(&x, 2, false), *b = capture_scaling(&x, 5, false);
  EXPECT(tt_capture_same(a, b));
  tt_capture_destroy(b);
  tt_capture_t *f = capture_scaling(&x, 2, true), *g = capture_scaling(&x, 5, true);
  EXPECT(!tt_capture_same(f, g));
  uint64_t bits[2];
  EXPECT(tt_capture_scalar(g, 0, bits) && bits[0] == 0x40A00000 && bits[1] == 0);  // 5.0
  EXPECT(!tt_capture_scalar(g, 1, bits));
  tt_capture_destroy(f), tt_capture_destroy(g);
  tt_programs_t *programs = programs_with(a);
  for (int i = 0; i < 2; i++) {
    tensor_fix(&x);
    tt_tensor_t inputs[] = {x.t, host_scalar(NULL, 3 + i)};
    tt_program_run_t run;
    EXPECT_OK(tt_programs_run(programs, inputs, 2, NULL, 0, &run));
    tt_program_run_deinit(&run);
  }
  EXPECT_FLOATS(&x, 12, 24);
  tt_programs_destroy(programs);
  // Host data that is brought over meanwhile would be the same in every run.
  tt_capture_t *c;
  tensor_fix(&x);
  tt_tensor_t inputs[] = {x.t, host_scalar(&x, 1)};
  EXPECT_OK(tt_capture_begin(0, inputs, 2, &c));
  EXPECT_ERROR(tt_eager_upload(&x.t, (float[]){1, 2}), "capture: a host input");
  tt_capture_destroy(c);
  tensor_drop(&x);
}

int main(void) {
  engine_setup();
  if (tt_test_failures) return 1;
  in_all_modes(), reading_ends_a_capture(), random_numbers_are_drawn_by_runs();
  host_scalars_are_inputs(), inputs_that_are_given_up();
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
