// Op families, planned against reference: shapes large enough to reach every code path.
#include "softtpu_plan_check.h"

static tt_graph_t *graph;
static tt_build_t build;

static void start(void) {
  EXPECT_OK(tt_graph_create("ops", &graph));
  build = tt_build_on(graph, graph->main);
}
static tt_value_t argument(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  tt_value_t v = TT_NO_VALUE;
  tt_type_t type = {dtype, rank, dims};
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &v));
  return v;
}
#define DIMS(...) \
  (const int64_t[]) { __VA_ARGS__ }

// Runs with and without threads; the result must not depend on them.
static void finish(const tt_value_t *values, uint32_t count, double tolerance, bool special) {
  EXPECT_OK(tt_build_finish(&build));
  EXPECT_OK(tt_graph_return(graph, graph->main, values, count));
  tt_pool_t *pool;
  EXPECT_OK(tt_pool_create(3, &pool));
  check_t check = {.tolerance = tolerance, .special = special, .print = true};
  rng_state = 99;
  double alone = check_graph(graph, &check);
  check.pool = pool;
  rng_state = 99;
  double together = check_graph(graph, &check);
  EXPECT(alone <= tolerance);
  EXPECT(together == alone);
  tt_pool_destroy(pool);
  tt_graph_destroy(graph);
}
static void finish1(tt_value_t v, double tolerance) { finish(&v, 1, tolerance, false); }

TEST(large_reductions) {
  static const tt_dtype_t types[] = {TT_F32, TT_BF16, TT_S32, TT_U8};
  static const int64_t shapes[][3] = {
      {1, 1, 300000}, {3, 2000, 70}, {50000, 1, 3}, {3, 29, 2100}, {9000, 2, 17}};
  for (int t = 0; t < 4; t++) {
    for (int s = 0; s < 5; s++) {
      for (int mask = 1; mask < 8; mask++) {
        int64_t dims[3];
        uint32_t n = 0;
        for (int d = 0; d < 3; d++)
          if (mask >> d & 1) dims[n++] = d;
        start();
        tt_value_t x = argument(types[t], 3, shapes[s]);
        tt_value_t y = tt_emit_binary(&build, TT_OP_ADD, x, x);
        tt_value_t sum = tt_emit_reduce(&build, TT_OP_ADD, y, dims, n, false);
        tt_value_t most = tt_emit_reduce(&build, TT_OP_MAXIMUM, x, dims, n, true);
        tt_value_t out[2] = {sum, most};
        finish(out, 2, 1.0, s == 3);
      }
    }
  }
}

TEST(matrix_products) {
  static const tt_dtype_t types[] = {TT_F32, TT_F64, TT_BF16, TT_F16};
  static const int64_t sizes[][4] = {{1, 1, 1, 1},       {1, 5, 7, 3},     {2, 64, 64, 64},
                                     {1, 300, 900, 520}, {3, 1, 1000, 33}, {1, 130, 1, 70},
                                     {2, 0, 4, 3},       {1, 3, 4, 0}};
  for (int t = 0; t < 4; t++) {
    for (int s = 0; s < 8; s++) {
      for (int flip = 0; flip < 4; flip++) {
        int64_t b = sizes[s][0], m = sizes[s][1], n = sizes[s][2], k = sizes[s][3];
        start();
        tt_value_t x =
            flip & 1 ? argument(types[t], 3, DIMS(b, k, m)) : argument(types[t], 3, DIMS(b, m, k));
        tt_value_t y =
            flip & 2 ? argument(types[t], 3, DIMS(b, n, k)) : argument(types[t], 3, DIMS(b, k, n));
        if (flip & 1) x = tt_emit_transpose(&build, x, DIMS(0, 2, 1));
        if (flip & 2) y = tt_emit_transpose(&build, y, DIMS(0, 2, 1));
        if (flip == 3) x = tt_emit_unary(&build, TT_OP_NEGATE, x);
        distance_floor = 50;
        finish1(tt_emit_matmul(&build, x, y, types[t]), 64);
      }
    }
  }
}

TEST(attention_shapes) {
  start();
  tt_value_t q = argument(TT_F32, 4, DIMS(2, 17, 4, 8)), k = argument(TT_F32, 4, DIMS(2, 19, 4, 8));
  tt_value_t qt = tt_emit_transpose(&build, q, DIMS(0, 2, 1, 3));
  tt_value_t kt = tt_emit_transpose(&build, k, DIMS(0, 2, 3, 1));
  distance_floor = 50;
  finish1(tt_emit_matmul(&build, qt, kt, TT_F32), 16);
}

// Forward convolutions and both gradients as the lowerings write them.
static void conv_case(tt_dtype_t d, int64_t groups, int64_t stride, int64_t pad, int64_t dilation,
                      int64_t k) {
  int64_t n = 3, ci = 4 * groups, co = 6 * groups, h = 11, w = 9;
  int64_t oh = (h + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
  int64_t ow = (w + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
  int64_t span = dilation * (k - 1);
  const int64_t *ones = DIMS(1, 1), *strides = DIMS(stride, stride),
                *dil = DIMS(dilation, dilation);
  distance_floor = 50;
  start();
  tt_value_t x = argument(d, 4, DIMS(n, ci, h, w)),
             kernel = argument(d, 4, DIMS(co, ci / groups, k, k));
  tt_conv_t forward = {strides, DIMS(pad, pad, pad, pad), ones, dil, NULL, groups, 1};
  finish1(tt_emit_conv(&build, x, kernel, &forward, d), 64);
  start();
  tt_value_t g = argument(d, 4, DIMS(n, co, oh, ow));
  kernel = argument(d, 4, DIMS(co / groups, ci, k, k));
  tt_value_t swapped = groups == 1
                           ? tt_emit_transpose(&build, kernel, DIMS(1, 0, 2, 3))
                           : tt_emit_reshape(&build, kernel, 4, DIMS(ci, co / groups, k, k));
  tt_conv_t input = {ones,
                     DIMS(span - pad, h + span - (oh - 1) * stride - 1 - (span - pad), span - pad,
                          w + span - (ow - 1) * stride - 1 - (span - pad)),
                     strides,
                     dil,
                     ones,
                     groups,
                     1};
  finish1(tt_emit_conv(&build, g, swapped, &input, d), 64);
  start();
  x = argument(d, 4, DIMS(n, ci, h, w));
  g = argument(d, 4, DIMS(n, co, oh, ow));
  tt_conv_t weight = {dil,
                      DIMS(pad, span + (oh - 1) * stride + 1 - h - pad, pad,
                           span + (ow - 1) * stride + 1 - w - pad),
                      ones,
                      strides,
                      NULL,
                      1,
                      groups};
  tt_value_t r = tt_emit_conv(&build, tt_emit_transpose(&build, x, DIMS(1, 0, 2, 3)),
                              tt_emit_transpose(&build, g, DIMS(1, 0, 2, 3)), &weight, d);
  finish1(tt_emit_transpose(&build, r, DIMS(1, 0, 2, 3)), 64);
}

TEST(convolutions) {
  static const tt_dtype_t types[] = {TT_F32, TT_F64, TT_BF16};
  for (int t = 0; t < 3; t++)
    for (int64_t groups = 1; groups <= 3; groups += 2)
      for (int64_t stride = 1; stride <= 2; stride++)
        for (int64_t pad = 0; pad <= 2; pad++)
          for (int64_t dilation = 1; dilation <= 2; dilation++)
            for (int64_t k = 1; k <= 3; k++) conv_case(types[t], groups, stride, pad, dilation, k);
}

TEST(gathers_and_scatters) {
  static const tt_dtype_t types[] = {TT_F32, TT_BF16, TT_S64, TT_I1};
  static const tt_op_t ops[] = {TT_OP_ADD, TT_OP_MAXIMUM, TT_OP_COUNT};
  for (int t = 0; t < 4; t++) {
    for (int64_t dim = 0; dim < 3; dim++) {
      for (int wide = 0; wide < 2; wide++) {
        const int64_t dims[3] = {9, 7, wide ? 70 : 5};
        tt_dtype_t index_type = wide ? TT_S32 : TT_S64;
        start();
        tt_value_t x = argument(types[t], 3, dims), i = argument(index_type, 2, DIMS(4, 6));
        finish1(tt_emit_take(&build, x, i, dim), 0);
        start();
        x = argument(types[t], 3, dims);
        int64_t less[3] = {dims[0] - 2, dims[1] - 1, dims[2] - 3};
        i = argument(index_type, 3, less);
        finish1(tt_emit_take_along(&build, x, i, dim), 0);
        for (int o = 0; o < 3; o++) {
          start();
          x = argument(types[t], 3, dims);
          i = argument(index_type, 3, less);
          tt_value_t updates = argument(types[t], 3, less);
          if (o == 1) graph->donations[0] = TT_DONATE;
          finish1(tt_emit_put_along(&build, x, i, updates, dim, ops[o]), 0);
          start();
          x = argument(types[t], 3, dims);
          i = argument(index_type, 1, DIMS(11));
          int64_t rows[3] = {dims[0], dims[1], dims[2]};
          rows[dim] = 11;
          updates = argument(types[t], 3, rows);
          finish1(tt_emit_put(&build, x, i, updates, dim, ops[o]), 0);
        }
      }
    }
  }
}

TEST(windows) {
  static const tt_dtype_t types[] = {TT_F32, TT_BF16, TT_S64, TT_U8};
  static const tt_op_t ops[] = {TT_OP_ADD, TT_OP_MAXIMUM, TT_OP_MINIMUM};
  for (int t = 0; t < 4; t++) {
    for (int o = 0; o < 3; o++) {
      for (int64_t dim = 0; dim < 3; dim++) {
        for (int back = 0; back < 2; back++) {
          const int64_t dims[3] = {5, 70, 12};
          int64_t sizes[3] = {1, 1, 1}, padding[6] = {0};
          sizes[dim] = dims[dim];
          padding[2 * dim + back] = dims[dim] - 1;
          start();
          tt_window_t scan = {.sizes = sizes, .padding = padding};
          finish1(tt_emit_reduce_window(&build, ops[o], argument(types[t], 3, dims), &scan), 1);
        }
      }
      for (int64_t stride = 1; stride <= 3; stride++) {
        start();
        tt_window_t pool = {.sizes = DIMS(1, 1, 3, 2),
                            .strides = DIMS(1, 1, stride, stride),
                            .window_dilations = DIMS(1, 1, 1, 2),
                            .padding = DIMS(0, 0, 0, 0, 1, 2, 2, 0)};
        finish1(
            tt_emit_reduce_window(&build, ops[o], argument(types[t], 4, DIMS(2, 3, 11, 13)), &pool),
            1);
      }
    }
  }
}

TEST(sorts) {
  static const tt_dtype_t types[] = {TT_F32, TT_BF16, TT_F16, TT_F64, TT_S64, TT_U8, TT_I1, TT_S8};
  for (int t = 0; t < 8; t++) {
    for (int64_t dim = 0; dim < 3; dim++) {
      for (int down = 0; down < 2; down++) {
        for (int special = 0; special < 2; special++) {
          start();
          tt_value_t x = argument(types[t], 3, DIMS(5, 90, 7));
          tt_value_t xs[2] = {x, tt_emit_iota(&build, TT_S64, 3, DIMS(5, 90, 7), dim)}, out[2];
          tt_emit_sort(&build, xs, 2, dim, down, out);
          finish(out, 2, 0.25, special);
        }
      }
    }
  }
}

static bool listing_has(const char *text) {
  tt_plan_t *plan;
  EXPECT_OK(tt_plan_create(graph, NULL, &plan));
  char *listing = tt_plan_describe(plan);
  bool has = strstr(listing, text) != NULL;
  if (!has) printf("%s", listing);
  tt_free(listing);
  tt_plan_destroy(plan);
  return has;
}

TEST(arg_reductions) {
  static const tt_dtype_t types[] = {TT_F32, TT_BF16, TT_S64, TT_U8, TT_F64};
  static const int64_t shapes[][3] = {{5, 40, 7}, {3, 2000, 3}, {2, 5, 1500}};
  for (int t = 0; t < 5; t++)
    for (int s = 0; s < 3; s++)
      for (int64_t dim = 0; dim < 3; dim++)
        for (int large = 0; large < 2; large++) {
          start();
          tt_value_t out[2], x = argument(types[t], 3, shapes[s]);
          tt_emit_arg_reduce(&build, large, x, dim, TT_S64, s == 0, &out[0], &out[1]);
          finish(out, 2, 0.25, s != 1);
        }
}

// The fast paths are taken, not only equal to the slow ones.
TEST(kernels_are_chosen) {
  start();
  tt_value_t x = argument(TT_F32, 2, DIMS(8, 100)), out[2];
  tt_emit_sort(&build, &x, 1, 1, true, out);
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 1));
  EXPECT(listing_has("sort sort:"));
  tt_graph_destroy(graph);
  start();
  x = argument(TT_F32, 2, DIMS(8, 100));
  x = tt_emit_reduce(&build, TT_OP_ADD, tt_emit_unary(&build, TT_OP_NEGATE, x), DIMS(1), 1, false);
  EXPECT_OK(tt_graph_return(graph, graph->main, &x, 1));
  EXPECT(listing_has("reduce reduce: constant in0 -> out0"));
  tt_graph_destroy(graph);
  start();
  tt_value_t a = argument(TT_F32, 2, DIMS(8, 16)), b = argument(TT_F32, 2, DIMS(9, 16));
  x = tt_emit_matmul(&build, a, tt_emit_transpose(&build, b, DIMS(1, 0)), TT_F32);
  EXPECT_OK(tt_graph_return(graph, graph->main, &x, 1));
  EXPECT(listing_has("dot dot_general: in0 in1 -> out0"));
  tt_graph_destroy(graph);
  start();
  x = argument(TT_F32, 2, DIMS(8, 100));
  tt_emit_arg_reduce(&build, true, x, 1, TT_S64, false, &out[0], &out[1]);
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 2));
  EXPECT(listing_has("arg reduce: in0 -> out0 out1"));
  tt_graph_destroy(graph);
}

// A broadcast in two shapes, neither of which is a view of the other: one is made, one shares it.
TEST(broadcasts_reshape) {
  start();
  tt_value_t x = argument(TT_F32, 2, DIMS(1, 6)), out[2];
  x = tt_emit_unary(&build, TT_OP_NEGATE, x);
  x = tt_emit_broadcast_in_dim(&build, x, 3, DIMS(3, 5, 6), DIMS(1, 2));
  out[0] = tt_emit_reshape(&build, x, 2, DIMS(15, 6));
  out[1] = tt_emit_reshape(&build, x, 3, DIMS(5, 3, 6));
  finish(out, 2, 0, false);
}

// Softmax of scaled, biased scores and a normalisation of its result, gradient-like second readers
// included: steps over the same rows that run band by band.
static tt_value_t row_chain(int64_t rows, int64_t columns, tt_value_t *out, bool keep_scores) {
  const int64_t shape[3] = {4, rows / 4, columns};
  tt_value_t x = argument(TT_F32, 3, shape), bias = argument(TT_F32, 2, shape + 1);
  tt_value_t weight = argument(TT_F32, 1, shape + 2), residual = argument(TT_F32, 3, shape);
  bias = tt_emit_broadcast_in_dim(&build, bias, 3, shape, DIMS(1, 2));
  tt_value_t scores = tt_emit_binary(&build, TT_OP_ADD, x, bias);
  tt_value_t most = tt_emit_reduce(&build, TT_OP_MAXIMUM, scores, DIMS(2), 1, true);
  most = tt_emit_broadcast_to(&build, most, 3, shape);
  tt_value_t e = tt_emit_binary(&build, TT_OP_SUBTRACT, scores, most);
  e = tt_emit_unary(&build, TT_OP_EXPONENTIAL, e);
  tt_value_t sum = tt_emit_reduce(&build, TT_OP_ADD, e, DIMS(2), 1, true);
  tt_value_t y =
      tt_emit_binary(&build, TT_OP_DIVIDE, e, tt_emit_broadcast_to(&build, sum, 3, shape));
  y = tt_emit_binary(&build, TT_OP_ADD, y, residual);
  tt_value_t mean = tt_emit_reduce(&build, TT_OP_ADD, y, DIMS(2), 1, true);
  mean =
      tt_emit_binary(&build, TT_OP_DIVIDE, mean,
                     tt_emit_broadcast_to(&build, tt_emit_scalar(&build, TT_F32, (double)columns),
                                          3, DIMS(4, rows / 4, 1)));
  tt_value_t d =
      tt_emit_binary(&build, TT_OP_SUBTRACT, y, tt_emit_broadcast_to(&build, mean, 3, shape));
  weight = tt_emit_broadcast_in_dim(&build, weight, 3, shape, DIMS(2));
  out[0] = tt_emit_binary(&build, TT_OP_MULTIPLY, d, weight);
  out[1] = sum;
  out[2] = keep_scores ? scores : mean;
  return x;
}

TEST(rows_run_in_bands) {
  static const int64_t shapes[][2] = {{512, 128}, {256, 1000}, {2048, 9}, {64, 5000}, {260, 67}};
  for (int s = 0; s < 5; s++)
    for (int variant = 0; variant < 8; variant++) {
      start();
      tt_value_t out[3];
      row_chain(shapes[s][0], shapes[s][1], out, (variant & 1) != 0);
      if (variant & 2) graph->donations[0] = TT_DONATE;
      if (variant & 4) graph->donations[1] = graph->donations[3] = TT_DONATE;
      finish(out, 3, 200.0, false);  // the differences lose places
    }
  start();
  tt_value_t out[3];
  row_chain(512, 128, out, false);
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 1));
  EXPECT(listing_has("rows:"));
  tt_graph_destroy(graph);
}

// What is the same along a row: read from memory, counted, computed, chosen by, stored and reduced;
// rows longer than a tile, too short to be worth it, and seen through transposes.
TEST(rows_share_elements) {
  static const int64_t shapes[][2] = {{40, 128}, {7, 300}, {3, 9000}, {64, 64}, {100, 33}};
  static const tt_dtype_t dtypes[] = {TT_F32, TT_BF16, TT_S32, TT_F64};
  for (int s = 0; s < 5; s++)
    for (int t = 0; t < 4; t++) {
      const int64_t *shape = shapes[s];
      tt_dtype_t d = dtypes[t];
      start();
      tt_value_t x = argument(d, 2, shape), row = argument(d, 1, shape);
      tt_value_t column = argument(d, 1, shape + 1),
                 flipped = argument(d, 2, DIMS(shape[1], shape[0]));
      tt_value_t chosen = argument(TT_I1, 1, shape);
      row = tt_emit_binary(&build, TT_OP_ADD, row, tt_emit_iota(&build, d, 1, shape, 0));
      row = tt_emit_binary(&build, TT_OP_MULTIPLY, row, row);
      tt_value_t wide = tt_emit_broadcast_in_dim(&build, row, 2, shape, DIMS(0));
      chosen = tt_emit_broadcast_in_dim(&build, chosen, 2, shape, DIMS(0));
      column = tt_emit_broadcast_in_dim(&build, column, 2, shape, DIMS(1));
      tt_value_t counter = tt_emit_iota(&build, d, 2, shape, 0), out[4];
      tt_value_t y = tt_emit_binary(&build, TT_OP_SUBTRACT, x, wide);
      y = tt_emit_binary(&build, TT_OP_ADD, y, tt_emit_binary(&build, TT_OP_ADD, counter, column));
      out[0] = tt_emit_select(&build, chosen, y, wide);
      out[1] = tt_emit_binary(&build, TT_OP_ADD, wide, counter);
      out[2] = tt_emit_reduce(&build, TT_OP_MAXIMUM, out[1], DIMS(1), 1, false);
      flipped = tt_emit_transpose(&build, flipped, DIMS(1, 0));
      out[3] = tt_emit_binary(&build, TT_OP_ADD, flipped, wide);
      finish(out, 4, 1, false);
      // A reduction's operand that is one element a row, or one of a row's in all.
      start();
      row = tt_emit_iota(&build, d, 2, shape, 0);
      out[0] = tt_emit_reduce(&build, TT_OP_ADD, row, DIMS(1), 1, false);
      row = tt_emit_binary(&build, TT_OP_ADD, row, row);
      out[1] = tt_emit_reduce(&build, TT_OP_ADD, row, DIMS(0), 1, false);
      finish(out, 2, 1, false);
    }
}

TEST_MAIN(kernels_are_chosen, broadcasts_reshape, rows_run_in_bands, rows_share_elements,
          arg_reductions, sorts, windows, gathers_and_scatters, convolutions, large_reductions,
          matrix_products, attention_shapes)
