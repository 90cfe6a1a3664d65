// Programs reach the host's library with the right arguments: a naive library stands in, counts its
// calls, and the results are compared with the reference executor's.
#include "softtpu/library.h"
#include "softtpu_plan_check.h"

static int matmuls, forwards, input_grads, kernel_grads;

static bool naive_matmul(int dtype, const tt_matrix_t *a, const tt_matrix_t *b,
                         const tt_matrix_t *c) {
  if (dtype != TT_F32) return false;
  matmuls++;
  for (int64_t n = 0; n < c->batch; n++)
    for (int64_t i = 0; i < c->rows; i++)
      for (int64_t j = 0; j < c->cols; j++) {
        double sum = 0;
        for (int64_t k = 0; k < a->cols; k++)
          sum +=
              (double)((const float *)
                           a->data)[n * a->batch_stride + i * a->row_stride + k * a->col_stride] *
              (double)((const float *)
                           b->data)[n * b->batch_stride + k * b->row_stride + j * b->col_stride];
        ((float *)c->data)[n * c->batch_stride + i * c->row_stride + j * c->col_stride] =
            (float)sum;
      }
  return true;
}

typedef enum pass_e { FORWARD, INPUT_GRAD, KERNEL_GRAD } pass_t;

// All three passes are one sum over (image, output feature, input feature, output point, tap).
static bool naive(const tt_library_conv_t *c, pass_t pass, float *x, float *w, float *y) {
  if (c->spatial_rank != 2) return false;
  const int64_t *in = c->input, *ker = c->kernel, *out = c->output;
  int64_t og = out[1] / c->groups;
  size_t count = (size_t)(pass == FORWARD      ? out[0] * out[1] * out[2] * out[3]
                          : pass == INPUT_GRAD ? in[0] * in[1] * in[2] * in[3]
                                               : ker[0] * ker[1] * ker[2] * ker[3]);
  double *sum = tt_alloc_zeroed(count * sizeof *sum + 1);
  for (int64_t n = 0; n < in[0]; n++)
    for (int64_t o = 0; o < out[1]; o++)
      for (int64_t i = 0; i < ker[1]; i++)
        for (int64_t p = 0; p < out[2] * out[3]; p++)
          for (int64_t k = 0; k < ker[2] * ker[3]; k++) {
            int64_t h =
                p / out[3] * c->strides[0] + k / ker[3] * c->dilation[0] - c->padding_low[0];
            int64_t v =
                p % out[3] * c->strides[1] + k % ker[3] * c->dilation[1] - c->padding_low[1];
            if (h < 0 || v < 0 || h >= in[2] || v >= in[3]) continue;
            int64_t xi = ((n * in[1] + o / og * ker[1] + i) * in[2] + h) * in[3] + v;
            int64_t wi = (o * ker[1] + i) * ker[2] * ker[3] + k;
            int64_t yi = (n * out[1] + o) * out[2] * out[3] + p;
            if (pass == FORWARD) sum[yi] += (double)x[xi] * (double)w[wi];
            if (pass == INPUT_GRAD) sum[xi] += (double)y[yi] * (double)w[wi];
            if (pass == KERNEL_GRAD) sum[wi] += (double)y[yi] * (double)x[xi];
          }
  float *to = pass == FORWARD ? y : pass == INPUT_GRAD ? x : w;
  for (size_t i = 0; i < count; i++) to[i] = (float)sum[i];
  tt_free(sum);
  return true;
}
#define MUTABLE(p) ((float *)(uintptr_t)(p))
static bool naive_conv(int dtype, const tt_library_conv_t *c, const void *x, const void *w,
                       void *y) {
  forwards++;
  return dtype == TT_F32 && naive(c, FORWARD, MUTABLE(x), MUTABLE(w), y);
}
static bool naive_input(int dtype, const tt_library_conv_t *c, const void *y, const void *w,
                        void *x) {
  input_grads++;
  return dtype == TT_F32 && naive(c, INPUT_GRAD, x, MUTABLE(w), MUTABLE(y));
}
static bool naive_kernel(int dtype, const tt_library_conv_t *c, const void *y, const void *x,
                         void *w) {
  kernel_grads++;
  return dtype == TT_F32 && naive(c, KERNEL_GRAD, MUTABLE(x), w, MUTABLE(y));
}

static tt_graph_t *graph;
static tt_build_t build;
static void start(void) {
  EXPECT_OK(tt_graph_create("library", &graph));
  build = tt_build_on(graph, graph->main);
}
static tt_value_t argument(uint32_t rank, const int64_t *dims) {
  tt_value_t v = TT_NO_VALUE;
  tt_type_t type = {TT_F32, rank, dims};
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &v));
  return v;
}
#define DIMS(...) \
  (const int64_t[]) { __VA_ARGS__ }
static void finish(tt_value_t v) {
  EXPECT_OK(tt_build_finish(&build));
  EXPECT_OK(tt_graph_return(graph, graph->main, &v, 1));
  check_t check = {.tolerance = 4, .print = true};
  distance_floor = 1;
  EXPECT(check_graph(graph, &check) <= 4);
  tt_graph_destroy(graph);
}

// [O, I/g, k, k] -> [I, O/g, k, k] per group, as the lowering of the input gradient writes it.
static tt_value_t swap_kernel(tt_value_t w, int64_t groups, int64_t o, int64_t i, int64_t k) {
  if (groups == 1) return tt_emit_transpose(&build, w, DIMS(1, 0, 2, 3));
  w = tt_emit_reshape(&build, w, 5, DIMS(groups, o / groups, i, k, k));
  w = tt_emit_transpose(&build, w, DIMS(0, 2, 1, 3, 4));
  return tt_emit_reshape(&build, w, 4, DIMS(groups * i, o / groups, k, k));
}

static void all_passes(int64_t n, int64_t groups, int64_t stride, int64_t pad, int64_t dilation,
                       int64_t k) {
  int64_t i = 2, ci = i * groups, co = 3 * groups, h = 10, v = 9, span = dilation * (k - 1);
  int64_t oh = (h + 2 * pad - span - 1) / stride + 1, ow = (v + 2 * pad - span - 1) / stride + 1;
  const int64_t *ones = DIMS(1, 1), *strides = DIMS(stride, stride),
                *dil = DIMS(dilation, dilation);
  int before = forwards;
  start();
  tt_value_t x = argument(4, DIMS(n, ci, h, v)), w = argument(4, DIMS(co, i, k, k));
  tt_conv_t forward = {strides, DIMS(pad, pad, pad, pad), ones, dil, NULL, groups, 1};
  finish(tt_emit_conv(&build, x, w, &forward, TT_F32));
  EXPECT_INT(forwards, before + 1);
  before = input_grads;
  int before_forward = forwards;
  start();
  tt_value_t g = argument(4, DIMS(n, co, oh, ow));
  w = argument(4, DIMS(co, i, k, k));
  tt_conv_t input = {ones,
                     DIMS(span - pad, h + span - (oh - 1) * stride - 1 - (span - pad), span - pad,
                          v + span - (ow - 1) * stride - 1 - (span - pad)),
                     strides,
                     dil,
                     ones,
                     groups,
                     1};
  finish(tt_emit_conv(&build, g, swap_kernel(w, groups, co, i, k), &input, TT_F32));
  EXPECT(input_grads == before + 1 || forwards == before_forward + 1);
  before = kernel_grads;
  start();
  x = argument(4, DIMS(n, ci, h, v));
  g = argument(4, DIMS(n, co, oh, ow));
  tt_conv_t weight = {dil,
                      DIMS(pad, span + (oh - 1) * stride + 1 - h - pad, pad,
                           span + (ow - 1) * stride + 1 - v - pad),
                      ones,
                      strides,
                      NULL,
                      1,
                      groups};
  tt_value_t r = tt_emit_conv(&build, tt_emit_transpose(&build, x, DIMS(1, 0, 2, 3)),
                              tt_emit_transpose(&build, g, DIMS(1, 0, 2, 3)), &weight, TT_F32);
  finish(tt_emit_transpose(&build, r, DIMS(1, 0, 2, 3)));
  EXPECT_INT(kernel_grads, before + 1);
}

TEST(convolutions_reach_the_library) {
  for (int64_t n = 1; n <= 3; n += 2)
    for (int64_t groups = 1; groups <= 2; groups++)
      for (int64_t stride = 1; stride <= 2; stride++)
        for (int64_t pad = 0; pad <= 1; pad++)
          for (int64_t dilation = 1; dilation <= 2; dilation++)
            for (int64_t k = 2; k <= 3; k++) all_passes(n, groups, stride, pad, dilation, k);
}

TEST(products_reach_the_library) {
  start();
  tt_value_t q = argument(4, DIMS(2, 5, 3, 8)), k = argument(4, DIMS(2, 6, 3, 8));
  int before = matmuls;
  finish(tt_emit_matmul(&build, tt_emit_transpose(&build, q, DIMS(0, 2, 1, 3)),
                        tt_emit_transpose(&build, k, DIMS(0, 2, 3, 1)), TT_F32));
  EXPECT(matmuls > before);
}

int main(void) {
  static const tt_library_t library = {sizeof library, naive_matmul, naive_conv,
                                       naive_input,    naive_kernel, NULL};
  tt_library_install(&library);
  convolutions_reach_the_library();
  products_reach_the_library();
  tt_library_install(NULL);
  if (tt_test_failures) printf("%d failures\n", tt_test_failures);
  return tt_test_failures != 0;
}
