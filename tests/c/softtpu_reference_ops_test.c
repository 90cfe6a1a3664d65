// Structured ops, one small program each with values worked out by hand.
#include "softtpu_reference.h"

// A program of one function; `body` names its arguments %a, %b, ... in `args`.
#define MAIN(args, results, body) \
  "module @m {\n func.func public @main(" args ") -> (" results ") {\n" body "\n }\n}\n"
#define ADD(t)                                \
  "({\n^bb0(%p: tensor<" t ">, %q: tensor<" t \
  ">):\n"                                     \
  " %z = stablehlo.add %p, %q : tensor<" t ">\n stablehlo.return %z : tensor<" t ">\n})"

TEST(pads_and_crops) {
  const float x[] = {1, 2, 3}, v = 9;
  float r[5];
  EXPECT_OK(run_text(MAIN("%a: tensor<3xf32>, %v: tensor<f32>", "tensor<5xf32>",
                          "%r = stablehlo.pad %a, %v, low = [-1], high = [1], interior = [1] : "
                          "(tensor<3xf32>, tensor<f32>) -> tensor<5xf32>\n"
                          "return %r : tensor<5xf32>"),
                     (const void *[]){x, &v}, (void *[]){r}));
  EXPECT(same_f32(r, ((float[]){9, 2, 9, 3, 9}), 5));
}

TEST(dynamic_slices_clamp) {
  const int32_t x[] = {0, 1, 2, 3, 4}, far = 100, u[] = {7, 8};
  const int32_t near = -4;
  int32_t r[2], s[5];
  EXPECT_OK(run_text(
      MAIN("%a: tensor<5xi32>, %i: tensor<i32>, %j: tensor<i32>, %u: tensor<2xi32>",
           "tensor<2xi32>, tensor<5xi32>",
           "%r = stablehlo.dynamic_slice %a, %i, sizes = [2] : (tensor<5xi32>, tensor<i32>) -> "
           "tensor<2xi32>\n"
           "%s = stablehlo.dynamic_update_slice %a, %u, %j : (tensor<5xi32>, tensor<2xi32>, "
           "tensor<i32>) -> tensor<5xi32>\n"
           "return %r, %s : tensor<2xi32>, tensor<5xi32>"),
      (const void *[]){x, &far, &near, u}, (void *[]){r, s}));
  EXPECT(SAME(r, ((int32_t[]){3, 4})));
  EXPECT(SAME(s, ((int32_t[]){7, 8, 2, 3, 4})));
}

TEST(bitcasts_pack_nibbles) {
  const int8_t x[] = {1, -1};
  uint8_t r[1];
  EXPECT_OK(run_text(MAIN("%a: tensor<2xi4>", "tensor<ui8>",
                          "%r = stablehlo.bitcast_convert %a : (tensor<2xi4>) -> tensor<ui8>\n"
                          "return %r : tensor<ui8>"),
                     (const void *[]){x}, (void *[]){r}));
  EXPECT_INT(r[0], 0xf1);
}

TEST(reduces) {
  // 2^24 + 1 + 1: an f32 running sum would lose the ones, an f64 one does not.
  const float x[] = {16777216, 1, 1, -0.0f, NAN, 3}, zero = 0;
  float r[2];
  EXPECT_OK(run_text(MAIN("%a: tensor<2x3xf32>, %z: tensor<f32>", "tensor<2xf32>",
                          "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across "
                          "dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n"
                          "return %r : tensor<2xf32>"),
                     (const void *[]){x, &zero}, (void *[]){r}));
  EXPECT(same_f32(r, ((float[]){16777218, NAN}), 2));
}

TEST(reduce_bodies_keep_order) {
  // ((init * 2 - x0) * 2 - x1) * 2 - x2, in row-major order of the reduced dimensions.
  const int32_t x[] = {1, 2, 3, 4}, init = 5;
  int32_t r;
  EXPECT_OK(run_text(
      MAIN(
          "%a: tensor<2x2xi32>, %i: tensor<i32>", "tensor<i32>",
          "%two = stablehlo.constant dense<2> : tensor<i32>\n"
          "%r = \"stablehlo.reduce\"(%a, %i) <{dimensions = array<i64: 0, 1>}> ({\n"
          "^bb0(%p: tensor<i32>, %q: tensor<i32>):\n"
          " %d = stablehlo.multiply %p, %two : tensor<i32>\n"
          " %z = stablehlo.subtract %d, %q : tensor<i32>\n"
          " stablehlo.return %z : tensor<i32>\n}) : (tensor<2x2xi32>, tensor<i32>) -> tensor<i32>\n"
          "return %r : tensor<i32>"),
      (const void *[]){x, &init}, (void *[]){&r}));
  EXPECT_INT(r, ((((5 * 2 - 1) * 2 - 2) * 2 - 3) * 2 - 4));
}

TEST(windows_dilate) {
  // Base dilation 2 makes 1 i 2 i 3 (i: the initial value), the window takes every second element.
  const int32_t x[] = {1, 2, 3}, init = 10;
  int32_t r[3];
  EXPECT_OK(run_text(
      MAIN("%a: tensor<3xi32>, %i: tensor<i32>", "tensor<3xi32>",
           "%r = \"stablehlo.reduce_window\"(%a, %i) <{window_dimensions = array<i64: 2>, "
           "base_dilations = array<i64: 2>, window_dilations = array<i64: 2>}> " ADD(
               "i32") " : "
                      "(tensor<3xi32>, tensor<i32>) -> tensor<3xi32>\nreturn %r : tensor<3xi32>"),
      (const void *[]){x, &init}, (void *[]){r}));
  EXPECT(SAME(r, ((int32_t[]){13, 30, 15})));
}

TEST(select_and_scatter_takes_the_first) {
  const float x[] = {1, 5, 5, 2, 7, 0}, source[] = {10, 20}, zero = 0;
  float r[6];
  EXPECT_OK(run_text(
      MAIN("%a: tensor<6xf32>, %s: tensor<2xf32>, %z: tensor<f32>", "tensor<6xf32>",
           "%r = \"stablehlo.select_and_scatter\"(%a, %s, %z) <{window_dimensions = array<i64: 3>, "
           "window_strides = array<i64: 3>}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
           " %c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
           " stablehlo.return %c : tensor<i1>\n}, {\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
           " %c = stablehlo.add %p, %q : tensor<f32>\n stablehlo.return %c : tensor<f32>\n}) : "
           "(tensor<6xf32>, tensor<2xf32>, tensor<f32>) -> tensor<6xf32>\n"
           "return %r : tensor<6xf32>"),
      (const void *[]){x, source, &zero}, (void *[]){r}));
  EXPECT(same_f32(r, ((float[]){0, 10, 0, 0, 20, 0}), 6));
}

TEST(contracts) {
  const uint16_t x[] = {0x3f80, 0x4000, 0x4040, 0x4080};  // bf16 1 2; 3 4
  float r[4];
  EXPECT_OK(run_text(MAIN("%a: tensor<2x2xbf16>", "tensor<2x2xf32>",
                          "%r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
                          "(tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xf32>\n"
                          "return %r : tensor<2x2xf32>"),
                     (const void *[]){x}, (void *[]){r}));
  EXPECT(same_f32(r, ((float[]){7, 10, 15, 22}), 4));
}

TEST(convolves) {
  // Input 1 0 2 0 3 (dilated), kernel reversed, stride 2, one zero each side.
  const float x[] = {1, 2, 3}, k[] = {1, 10, 100};
  float r[3];
  EXPECT_OK(run_text(
      MAIN("%a: tensor<1x1x3xf32>, %k: tensor<1x1x3xf32>", "tensor<1x1x3xf32>",
           "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], "
           "window = {stride = [2], pad = [[1, 1]], lhs_dilate = [2], rhs_dilate = [1], "
           "reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
           "(tensor<1x1x3xf32>, tensor<1x1x3xf32>) -> tensor<1x1x3xf32>\n"
           "return %r : tensor<1x1x3xf32>"),
      (const void *[]){x, k}, (void *[]){r}));
  EXPECT(same_f32(r, ((float[]){10, 20, 30}), 3));
}

TEST(gathers_clamp_and_scatters_skip) {
  const float x[] = {0, 1, 2, 3}, u[] = {10, 20, 30};
  const int32_t i[] = {-7, 2, 9};
  float g[3], s[4];
  EXPECT_OK(run_text(
      MAIN("%a: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>",
           "tensor<3xf32>, tensor<4xf32>",
           "%g = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<"
           "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
           "slice_sizes = array<i64: 1>}> : (tensor<4xf32>, tensor<3x1xi32>) -> tensor<3xf32>\n"
           "%s = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = "
           "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
           "index_vector_dim = 1>}> " ADD("f32") " : (tensor<4xf32>, tensor<3x1xi32>, "
                                                 "tensor<3xf32>) -> tensor<4xf32>\n"
                                                 "return %g, %s : tensor<3xf32>, tensor<4xf32>"),
      (const void *[]){x, i, u}, (void *[]){g, s}));
  EXPECT(same_f32(g, ((float[]){0, 2, 3}), 3));
  EXPECT(same_f32(s, ((float[]){0, 1, 22, 3}), 4));
}

TEST(sorts_stably) {
  const int32_t keys[] = {3, 1, 3, 2, 1}, tags[] = {0, 1, 2, 3, 4};
  int32_t k[5], t[5];
  EXPECT_OK(run_text(
      MAIN("%a: tensor<5xi32>, %b: tensor<5xi32>", "tensor<5xi32>, tensor<5xi32>",
           "%r:2 = \"stablehlo.sort\"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({\n"
           "^bb0(%p: tensor<i32>, %q: tensor<i32>, %s: tensor<i32>, %t: tensor<i32>):\n"
           " %c = stablehlo.compare GT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
           " stablehlo.return %c : tensor<i1>\n}) : (tensor<5xi32>, tensor<5xi32>) -> "
           "(tensor<5xi32>, tensor<5xi32>)\nreturn %r#0, %r#1 : tensor<5xi32>, tensor<5xi32>"),
      (const void *[]){keys, tags}, (void *[]){k, t}));
  EXPECT(SAME(k, ((int32_t[]){3, 3, 2, 1, 1})));
  EXPECT(SAME(t, ((int32_t[]){0, 2, 3, 1, 4})));
}

TEST(loops_swap_their_values) {
  const int32_t n = 3, a = 1, b = 2;
  int32_t r[3];
  EXPECT_OK(
      run_text(MAIN("%n: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>",
                    "tensor<i32>, tensor<i32>, tensor<i32>",
                    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
                    "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
                    "%r:3 = stablehlo.while(%i = %n, %x = %a, %y = %b) : tensor<i32>, tensor<i32>, "
                    "tensor<i32>\n cond {\n  %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, "
                    "tensor<i32>) -> tensor<i1>\n  stablehlo.return %c : tensor<i1>\n } do {\n"
                    "  %j = stablehlo.subtract %i, %one : tensor<i32>\n"
                    "  stablehlo.return %j, %y, %x : tensor<i32>, tensor<i32>, tensor<i32>\n }\n"
                    "return %r#0, %r#1, %r#2 : tensor<i32>, tensor<i32>, tensor<i32>"),
               (const void *[]){&n, &a, &b}, (void *[]){&r[0], &r[1], &r[2]}));
  EXPECT(SAME(r, ((int32_t[]){0, 2, 1})));
}

TEST(factors_and_solves) {
  const double a[] = {4, 99, 2, 5}, b[] = {8, 13};
  double l[4], x[2];
  EXPECT_OK(
      run_text(MAIN("%a: tensor<2x2xf64>, %b: tensor<2x1xf64>", "tensor<2x2xf64>, tensor<2x1xf64>",
                    "%l = stablehlo.cholesky %a, lower = true : tensor<2x2xf64>\n"
                    "%x = \"stablehlo.triangular_solve\"(%l, %b) <{left_side = true, lower = true, "
                    "transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : "
                    "(tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>\n"
                    "return %l, %x : tensor<2x2xf64>, tensor<2x1xf64>"),
               (const void *[]){a, b}, (void *[]){l, x}));
  EXPECT(near_f64(l, ((double[]){2, 0, 1, 2}), 4, 0));
  EXPECT(near_f64(x, ((double[]){4, 4.5}), 2, 0));
}

TEST(transforms) {
  const double x[] = {1, 2, 3};
  double r[4];
  EXPECT_OK(run_text(MAIN("%a: tensor<3xf64>", "tensor<2xcomplex<f64>>",
                          "%r = stablehlo.fft %a, type = RFFT, length = [3] : (tensor<3xf64>) -> "
                          "tensor<2xcomplex<f64>>\nreturn %r : tensor<2xcomplex<f64>>"),
                     (const void *[]){x}, (void *[]){r}));
  EXPECT(near_f64(r, ((double[]){6, 0, -1.5, sqrt(3) / 2}), 4, 1e-15));
}

TEST(threefry_matches_its_paper) {
  // Known answer of Threefry-2x32 with 20 rounds for key 0, counter 0.
  const uint64_t state[] = {0, 0};
  uint64_t next[2];
  uint32_t r[2];
  EXPECT_OK(run_text(
      MAIN("%s: tensor<2xui64>", "tensor<2xui64>, tensor<2xui32>",
           "%n, %r = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> "
           "(tensor<2xui64>, tensor<2xui32>)\nreturn %n, %r : tensor<2xui64>, tensor<2xui32>"),
      (const void *[]){state}, (void *[]){next, r}));
  EXPECT(SAME(r, ((uint32_t[]){0x6b200159u, 0x99ba4efeu})));
  EXPECT(SAME(next, ((uint64_t[]){0, 1})));
}

TEST(replicas_reduce_together) {
  const float x0[] = {1, 2}, x1[] = {10, 20};
  float r0[2], r1[2];
  uint32_t id0, id1;
  EXPECT_OK(run_text_on(
      MAIN("%a: tensor<2xf32>", "tensor<2xf32>, tensor<ui32>",
           "%r = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1]]> : "
           "tensor<1x2xi64>}> " ADD("f32") " : (tensor<2xf32>) -> tensor<2xf32>\n"
                                           "%i = stablehlo.replica_id : tensor<ui32>\nreturn %r, "
                                           "%i : tensor<2xf32>, tensor<ui32>"),
      2, (const void *const *const[]){(const void *const[]){x0}, (const void *const[]){x1}},
      (void *const *const[]){(void *const[]){r0, &id0}, (void *const[]){r1, &id1}}));
  EXPECT(same_f32(r0, ((float[]){11, 22}), 2));
  EXPECT(same_f32(r1, r0, 2));
  EXPECT_INT(id0, 0);
  EXPECT_INT(id1, 1);
}

TEST(nodes_run_alone_with_captures) {
  const char *text = MAIN(
      "%a: tensor<3xf32>, %k: tensor<f32>, %z: tensor<f32>", "tensor<f32>",
      "%r = \"stablehlo.reduce\"(%a, %z) <{dimensions = array<i64: 0>}> ({\n"
      "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n %m = stablehlo.multiply %q, %k : tensor<f32>\n"
      " %s = stablehlo.add %p, %m : tensor<f32>\n stablehlo.return %s : tensor<f32>\n}) : "
      "(tensor<3xf32>, tensor<f32>) -> tensor<f32>\nreturn %r : tensor<f32>");
  tt_graph_t *graph = NULL;
  EXPECT_OK(tt_graph_parse(text, strlen(text), &graph));
  if (!graph) return;
  tt_value_t captured[2] = {0};
  const tt_node_t *node = graph->main->nodes[graph->main->node_count - 1];
  EXPECT_INT(tt_reference_captures(graph, node, captured, 2), 1);
  EXPECT_INT(captured[0], graph->main->args[1]);
  tt_reference_env_t *env = NULL;
  EXPECT_OK(tt_reference_env_create(graph, &env));
  const float x[] = {1, 2, 3}, k = 10, zero = 0;
  float r = 0;
  EXPECT_ERROR(tt_reference_node(graph, node, NULL, (const void *[]){x, &zero}, (void *[]){&r}),
               "environment");
  EXPECT_ERROR(tt_reference_node(graph, node, env, (const void *[]){x, &zero}, (void *[]){&r}),
               "captures");
  env->values[captured[0]] = (void *)(uintptr_t)&k;
  EXPECT_OK(tt_reference_node(graph, node, env, (const void *[]){x, &zero}, (void *[]){&r}));
  EXPECT(r == 60);
  tt_reference_env_destroy(env);
  tt_graph_destroy(graph);
}

TEST(unknown_custom_calls_are_named) {
  float x = 0;
  EXPECT_ERROR(run_text(MAIN("%a: tensor<f32>", "tensor<f32>",
                             "%r = stablehlo.custom_call @nobody(%a) : (tensor<f32>) -> "
                             "tensor<f32>\nreturn %r : tensor<f32>"),
                        (const void *[]){&x}, (void *[]){&x}),
               "nobody");
}

TEST_MAIN(pads_and_crops, dynamic_slices_clamp, bitcasts_pack_nibbles, reduces,
          reduce_bodies_keep_order, windows_dilate, select_and_scatter_takes_the_first, contracts,
          convolves, gathers_clamp_and_scatters_skip, sorts_stably, loops_swap_their_values,
          factors_and_solves, transforms, threefry_matches_its_paper, replicas_reduce_together,
          nodes_run_alone_with_captures, unknown_custom_calls_are_named)
