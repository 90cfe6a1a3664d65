#include "base/alloc.h"
#include "ir/build.h"
#include "test.h"

static tt_graph_t *graph;
static tt_build_t b;

static void begin(void) {
  EXPECT_OK(tt_graph_create("test", &graph));
  b = tt_build_on(graph, graph->main);
}

static void end(void) {
  EXPECT_OK(tt_build_finish(&b));
  tt_graph_destroy(graph);
  EXPECT_INT(tt_alloc_live(), 0);
}

static tt_value_t argument(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  tt_value_t v;
  EXPECT_OK(tt_graph_argument(graph, graph->main, (tt_type_t){dtype, rank, dims}, &v));
  return v;
}
#define ARG(dtype, ...) \
  argument(dtype, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static const char *type_of(tt_value_t v) {
  static char text[200];
  tt_type_format(tt_build_type(&b, v), text, sizeof text);
  return text;
}

TEST(binary_broadcasts) {
  begin();
  tt_value_t x = ARG(TT_F32, 2, 1, 3), y = ARG(TT_F32, 4, 1), s = argument(TT_F32, 0, NULL);
  EXPECT_STR(type_of(tt_emit_binary(&b, TT_OP_ADD, x, y)), "tensor<2x4x3xf32>");
  EXPECT_STR(type_of(tt_emit_binary(&b, TT_OP_MULTIPLY, s, y)), "tensor<4x1xf32>");
  EXPECT_STR(type_of(tt_emit_compare(&b, TT_LT, x, s)), "tensor<2x1x3xi1>");
  EXPECT_STR(type_of(tt_emit_convert(&b, x, TT_I1)), "tensor<2x1x3xi1>");
  EXPECT_INT(tt_emit_convert(&b, x, TT_F32), x);
  EXPECT_STR(type_of(tt_emit_clamp(&b, s, y, s)), "tensor<4x1xf32>");
  end();
}

TEST(first_failure_sticks) {
  begin();
  tt_value_t x = ARG(TT_F32, 2), y = ARG(TT_F32, 3);
  uint32_t nodes = graph->main->node_count;
  tt_value_t bad = tt_emit_binary(&b, TT_OP_ADD, x, y);
  EXPECT_INT(bad, TT_NO_VALUE);
  tt_value_t after = tt_emit_unary(&b, TT_OP_TANH, bad);
  EXPECT_INT(after, TT_NO_VALUE);
  EXPECT_INT(graph->main->node_count, nodes);
  EXPECT_INT(tt_build_dtype(&b, after), TT_F32);
  EXPECT_ERROR(tt_build_finish(&b), "add: shapes tensor<2xf32> and tensor<3xf32>");
  end();
}

TEST(shapes_are_derived) {
  begin();
  tt_value_t x = ARG(TT_F32, 2, 3, 5);
  EXPECT_STR(type_of(tt_emit_transpose(&b, x, (int64_t[]){2, 0, 1})), "tensor<5x2x3xf32>");
  EXPECT_INT(tt_emit_transpose(&b, x, (int64_t[]){0, 1, 2}), x);
  EXPECT_STR(type_of(tt_emit_slice_dim(&b, x, 2, 1, 5, 2)), "tensor<2x3x2xf32>");
  EXPECT_STR(type_of(tt_emit_reshape(&b, x, 1, (int64_t[]){30})), "tensor<30xf32>");
  tt_value_t zero = tt_emit_scalar(&b, TT_F32, 0);
  tt_value_t padded =
      tt_emit_pad(&b, x, zero, (int64_t[]){1, 0, -1}, (int64_t[]){0, 2, 0}, (int64_t[]){0, 1, 0});
  EXPECT_STR(type_of(padded), "tensor<3x7x4xf32>");
  tt_value_t both[] = {x, x};
  EXPECT_STR(type_of(tt_emit_concat(&b, both, 2, 1)), "tensor<2x6x5xf32>");
  EXPECT_STR(type_of(tt_emit_reduce(&b, TT_OP_ADD, x, (int64_t[]){0, 2}, 2, false)),
             "tensor<3xf32>");
  EXPECT_STR(type_of(tt_emit_reduce(&b, TT_OP_MAXIMUM, x, (int64_t[]){1}, 1, true)),
             "tensor<2x1x5xf32>");
  tt_value_t value, index;
  tt_emit_arg_reduce(&b, true, x, 1, TT_S64, false, &value, &index);
  EXPECT_STR(type_of(value), "tensor<2x5xf32>");
  EXPECT_STR(type_of(index), "tensor<2x5xi64>");
  tt_value_t w = ARG(TT_F32, 2, 5, 7);
  EXPECT_STR(type_of(tt_emit_matmul(&b, x, w, TT_BF16)), "tensor<2x3x7xbf16>");
  tt_window_t window = {.sizes = (int64_t[]){1, 2, 2}, .strides = (int64_t[]){1, 2, 1}};
  EXPECT_STR(type_of(tt_emit_reduce_window(&b, TT_OP_ADD, x, &window)), "tensor<2x1x4xf32>");
  tt_value_t image = ARG(TT_F32, 1, 4, 9, 9), kernel = ARG(TT_F32, 8, 2, 3, 3);
  tt_conv_t conv = {.strides = (int64_t[]){2, 1},
                    .padding = (int64_t[]){1, 1, 0, 0},
                    .feature_groups = 2,
                    .batch_groups = 1};
  EXPECT_STR(type_of(tt_emit_conv(&b, image, kernel, &conv, TT_F32)), "tensor<1x8x5x7xf32>");
  EXPECT_STR(type_of(tt_emit_bitcast(&b, x, TT_U8, 4, (int64_t[]){2, 3, 5, 4})),
             "tensor<2x3x5x4xui8>");
  end();
}

TEST(indexing_shapes) {
  begin();
  tt_value_t x = ARG(TT_F32, 2, 3, 5), i = ARG(TT_S64, 4, 6), along = ARG(TT_S64, 2, 7, 5);
  EXPECT_STR(type_of(tt_emit_take(&b, x, i, 1)), "tensor<2x4x6x5xf32>");
  EXPECT_STR(type_of(tt_emit_take_along(&b, x, along, 1)), "tensor<2x7x5xf32>");
  tt_value_t updates = ARG(TT_F32, 2, 4, 6, 5), u2 = ARG(TT_F32, 2, 7, 5);
  EXPECT_STR(type_of(tt_emit_put(&b, x, i, updates, 1, TT_OP_ADD)), "tensor<2x3x5xf32>");
  EXPECT_STR(type_of(tt_emit_put_along(&b, x, along, u2, 1, TT_OP_COUNT)), "tensor<2x3x5xf32>");
  tt_value_t small = ARG(TT_S32, 1, 2, 5), u3 = ARG(TT_F32, 1, 2, 5);
  EXPECT_STR(type_of(tt_emit_put_along(&b, x, small, u3, 1, TT_OP_ADD)), "tensor<2x3x5xf32>");
  tt_value_t xs[] = {x, tt_emit_iota(&b, TT_S64, 3, (int64_t[]){2, 3, 5}, 2)}, sorted[2];
  tt_emit_sort(&b, xs, 2, 2, true, sorted);
  EXPECT_STR(type_of(sorted[1]), "tensor<2x3x5xi64>");
  end();
}

TEST(regions_nest) {
  begin();
  tt_value_t n = argument(TT_S32, 0, NULL), x = ARG(TT_F32, 4);
  tt_type_t types[] = {*tt_build_type(&b, n), *tt_build_type(&b, x)};
  tt_value_t args[2], out[2];
  tt_block_t *cond = tt_emit_region_begin(&b, types, 2, args);
  tt_value_t more = tt_emit_compare(&b, TT_GT, args[0], tt_emit_scalar(&b, TT_S32, 0));
  tt_emit_region_end(&b, cond, &more, 1);
  tt_block_t *body = tt_emit_region_begin(&b, types, 2, args);
  tt_value_t next[] = {tt_emit_binary(&b, TT_OP_SUBTRACT, args[0], tt_emit_scalar(&b, TT_S32, 1)),
                       tt_emit_binary(&b, TT_OP_ADD, args[1], x)};
  tt_emit_region_end(&b, body, next, 2);
  tt_emit_while(&b, (tt_value_t[]){n, x}, 2, cond, body, out);
  EXPECT_STR(type_of(out[1]), "tensor<4xf32>");
  EXPECT(b.block == graph->main);
  EXPECT_OK(tt_graph_return(graph, graph->main, out, 2));
  EXPECT_INT(graph->main->node_count, 1);
  end();
}

static tt_graph_t *sum_graph(double constant, bool waste) {
  tt_graph_t *g;
  tt_value_t x;
  EXPECT_OK(tt_graph_create("sum", &g));
  EXPECT_OK(tt_graph_argument(g, g->main, (tt_type_t){TT_F32, 1, (int64_t[]){4}}, &x));
  tt_build_t build = tt_build_on(g, g->main);
  if (waste) {
    tt_block_t *unused = tt_emit_region_begin(&build, &g->values[x].type, 1, &(tt_value_t){0});
    tt_emit_region_end(&build, unused, NULL, 0);
  }
  tt_value_t r = tt_emit_binary(&build, TT_OP_ADD, x, tt_emit_scalar(&build, TT_F32, constant));
  r = tt_emit_reduce(&build, TT_OP_ADD, r, (int64_t[]){0}, 1, false);
  EXPECT_OK(tt_build_finish(&build));
  EXPECT_OK(tt_graph_return(g, g->main, &r, 1));
  return g;
}

TEST(hash_sees_structure_only) {
  tt_graph_t *a = sum_graph(1, false), *same = sum_graph(1, true), *other = sum_graph(2, false);
  tt_graph_t *copy;
  EXPECT(tt_graph_hash(a) == tt_graph_hash(same));
  EXPECT(tt_graph_hash(a) != tt_graph_hash(other));
  EXPECT_OK(tt_graph_clone(a, &copy));
  EXPECT(tt_graph_hash(a) == tt_graph_hash(copy));
  copy->donations[0] = TT_DONATE;
  EXPECT(tt_graph_hash(a) != tt_graph_hash(copy));
  tt_graph_destroy(a);
  EXPECT_INT(copy->main->nodes[0]->parent == copy->main, 1);
  for (int i = 0; i < 20; i++) {
    tt_value_t v;
    EXPECT_OK(tt_graph_argument(copy, copy->main, (tt_type_t){TT_F32, 0, NULL}, &v));
    EXPECT_INT(copy->donations[0], TT_DONATE);
  }
  tt_graph_destroy(same);
  tt_graph_destroy(other);
  tt_graph_destroy(copy);
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(constants_hold_the_nearest_value) {
  begin();
  tt_value_t v = tt_emit_scalar(&b, TT_U8, 300);
  EXPECT_INT(*(const uint8_t *)tt_node_attr(graph->values[v].node, TT_ATTR_VALUE)->u.bytes, 255);
  v = tt_emit_splat_int(&b, TT_S64, 0, NULL, INT64_MIN + 1);
  int64_t i;
  memcpy(&i, tt_node_attr(graph->values[v].node, TT_ATTR_VALUE)->u.bytes, 8);
  EXPECT(i == INT64_MIN + 1);
  v = tt_emit_scalar(&b, TT_BF16, 1.0 / 3);
  uint16_t h;
  memcpy(&h, tt_node_attr(graph->values[v].node, TT_ATTR_VALUE)->u.bytes, 2);
  EXPECT_INT(h, 0x3eab);
  v = tt_emit_lowest(&b, TT_S8);
  EXPECT_INT(*(const int8_t *)tt_node_attr(graph->values[v].node, TT_ATTR_VALUE)->u.bytes, -128);
  end();
}

TEST_MAIN(binary_broadcasts, first_failure_sticks, shapes_are_derived, indexing_shapes,
          regions_nest, hash_sees_structure_only, constants_hold_the_nearest_value)
