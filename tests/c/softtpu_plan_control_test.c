// Loops and branches as sub-plans over shared buffers.
#include "softtpu_plan_check.h"

static tt_graph_t *parse(const char *text) {
  tt_graph_t *graph = NULL;
  EXPECT_OK(tt_graph_parse(text, strlen(text), &graph));
  return graph;
}

static void check(const char *text, int donate) {
  tt_graph_t *graph = parse(text);
  if (!graph) return;
  for (uint32_t i = 0; i < graph->main->arg_count && donate; i++) graph->donations[i] = TT_DONATE;
  check_t c = {.tolerance = 1, .print = true};
  for (int round = 0; round < 4; round++) EXPECT(check_graph(graph, &c) <= 1);
  tt_graph_destroy(graph);
}
static void both(const char *text) {
  check(text, 0);
  check(text, 1);
}

// Fibonacci by a swap of carried values: neither may overwrite the other too early.
TEST(carried_values_may_swap) {
  both(
      "module @m {\n"
      "  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, "
      "tensor<4xf32>) {\n"
      "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %0:3 = stablehlo.while(%i = %c, %a = %arg0, %b = %arg1) : tensor<i32>, tensor<4xf32>, "
      "tensor<4xf32>\n"
      "    cond {\n"
      "      %n = stablehlo.constant dense<7> : tensor<i32>\n"
      "      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %1 : tensor<i1>\n"
      "    } do {\n"
      "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "      %2 = stablehlo.add %i, %one : tensor<i32>\n"
      "      %3 = stablehlo.add %a, %b : tensor<4xf32>\n"
      "      stablehlo.return %2, %b, %3 : tensor<i32>, tensor<4xf32>, tensor<4xf32>\n"
      "    }\n"
      "    return %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>\n"
      "  }\n"
      "}\n");
  both(
      "module @m {\n"
      "  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, "
      "tensor<4xf32>) {\n"
      "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %0:3 = stablehlo.while(%i = %c, %a = %arg0, %b = %arg1) : tensor<i32>, tensor<4xf32>, "
      "tensor<4xf32>\n"
      "    cond {\n"
      "      %n = stablehlo.constant dense<5> : tensor<i32>\n"
      "      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %1 : tensor<i1>\n"
      "    } do {\n"
      "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "      %2 = stablehlo.add %i, %one : tensor<i32>\n"
      "      stablehlo.return %2, %b, %a : tensor<i32>, tensor<4xf32>, tensor<4xf32>\n"
      "    }\n"
      "    return %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>\n"
      "  }\n"
      "}\n");
}

// A loop that fills rows in place, reads a capture, and holds a branch.
TEST(loops_update_in_place_and_capture) {
  both(
      "module @m {\n"
      "  func.func public @main(%x: tensor<6x5xf32>, %y: tensor<5xf32>) -> (tensor<6x5xf32>, "
      "tensor<5xf32>) {\n"
      "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %k = stablehlo.negate %y : tensor<5xf32>\n"
      "    %0:3 = stablehlo.while(%i = %c, %a = %x, %s = %y) : tensor<i32>, tensor<6x5xf32>, "
      "tensor<5xf32>\n"
      "    cond {\n"
      "      %n = stablehlo.constant dense<6> : tensor<i32>\n"
      "      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %1 : tensor<i1>\n"
      "    } do {\n"
      "      %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "      %two = stablehlo.constant dense<3> : tensor<i32>\n"
      "      %r = stablehlo.dynamic_slice %a, %i, %zero, sizes = [1, 5] : (tensor<6x5xf32>, "
      "tensor<i32>, tensor<i32>) -> tensor<1x5xf32>\n"
      "      %f = stablehlo.reshape %r : (tensor<1x5xf32>) -> tensor<5xf32>\n"
      "      %g = stablehlo.add %f, %k : tensor<5xf32>\n"
      "      %p = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      %h = \"stablehlo.if\"(%p) ({\n"
      "        %t = stablehlo.multiply %g, %s : tensor<5xf32>\n"
      "        stablehlo.return %t : tensor<5xf32>\n"
      "      }, {\n"
      "        stablehlo.return %k : tensor<5xf32>\n"
      "      }) : (tensor<i1>) -> tensor<5xf32>\n"
      "      %u = stablehlo.reshape %h : (tensor<5xf32>) -> tensor<1x5xf32>\n"
      "      %w = stablehlo.dynamic_update_slice %a, %u, %i, %zero : (tensor<6x5xf32>, "
      "tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<6x5xf32>\n"
      "      %j = stablehlo.add %i, %one : tensor<i32>\n"
      "      %v = stablehlo.add %s, %g : tensor<5xf32>\n"
      "      stablehlo.return %j, %w, %v : tensor<i32>, tensor<6x5xf32>, tensor<5xf32>\n"
      "    }\n"
      "    return %0#1, %0#2 : tensor<6x5xf32>, tensor<5xf32>\n"
      "  }\n"
      "}\n");
}

TEST(cases_choose_the_last_out_of_range) {
  both(
      "module @m {\n"
      "  func.func public @main(%i: tensor<i32>, %x: tensor<3xf32>) -> (tensor<3xf32>, "
      "tensor<3xf32>) {\n"
      "    %0:2 = \"stablehlo.case\"(%i) ({\n"
      "      %a = stablehlo.negate %x : tensor<3xf32>\n"
      "      stablehlo.return %a, %x : tensor<3xf32>, tensor<3xf32>\n"
      "    }, {\n"
      "      %a = stablehlo.add %x, %x : tensor<3xf32>\n"
      "      stablehlo.return %x, %a : tensor<3xf32>, tensor<3xf32>\n"
      "    }, {\n"
      "      %a = stablehlo.multiply %x, %x : tensor<3xf32>\n"
      "      stablehlo.return %a, %a : tensor<3xf32>, tensor<3xf32>\n"
      "    }) : (tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>)\n"
      "    return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>\n"
      "  }\n"
      "}\n");
}

// Whichever allocation fails, planning says so and leaks nothing.
TEST(planning_survives_failing_allocations) {
  tt_graph_t *graph;
  tt_value_t x;
  const int64_t dims[] = {8, 16};
  tt_type_t type = {TT_F32, 2, dims};
  EXPECT_OK(tt_graph_create("fail", &graph));
  EXPECT_OK(tt_graph_argument(graph, graph->main, type, &x));
  tt_build_t b = tt_build_on(graph, graph->main);
  const int64_t dim = 1;
  tt_value_t sum = tt_emit_reduce(&b, TT_OP_ADD, tt_emit_unary(&b, TT_OP_TANH, x), &dim, 1, true);
  tt_value_t out[2] = {tt_emit_binary(&b, TT_OP_DIVIDE, x, sum), TT_NO_VALUE};
  tt_emit_sort(&b, out, 1, 1, false, &out[1]);
  EXPECT_OK(tt_build_finish(&b));
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 2));
  tt_plan_t *plan;
  EXPECT_OK(tt_plan_create(graph, NULL, &plan));  // tables made once stay
  tt_plan_destroy(plan);
  int failures = 0;
  for (int64_t nth = 1; nth < 2000; nth++) {
    int64_t before = tt_alloc_live();
    tt_alloc_fail_at(nth);
    tt_status_t status = tt_plan_create(graph, NULL, &plan);
    tt_alloc_fail_at(0);
    bool done = !status;
    failures += !done;
    tt_status_release(status);
    tt_plan_destroy(plan);
    EXPECT_INT(tt_alloc_live(), before);
    if (done) break;
  }
  EXPECT(failures > 3);
  tt_graph_destroy(graph);
}

TEST_MAIN(carried_values_may_swap, loops_update_in_place_and_capture,
          cases_choose_the_last_out_of_range, planning_survives_failing_allocations)
