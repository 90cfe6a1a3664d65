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

TEST_MAIN(carried_values_may_swap, loops_update_in_place_and_capture,
          cases_choose_the_last_out_of_range)
