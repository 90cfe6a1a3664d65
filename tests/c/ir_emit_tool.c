// Prints the program that the emitter makes for the case named by the argument;
// tests/test_ir_emit.py has XLA run it and compares with PyTorch.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ir/build.h"

static tt_graph_t *graph;
static tt_value_t x, y, idx, pred, row, out[2];
static int out_count = 1;

static tt_value_t argument(tt_dtype_t dtype, uint32_t rank, const int64_t *dims) {
  tt_value_t v;
  tt_status_release(tt_graph_argument(graph, graph->main, (tt_type_t){dtype, rank, dims}, &v));
  return v;
}

// Arguments of every case: x, y f32 [4, 5]; idx i64 [3, 2] in [0, 3); pred i1 [4, 5]; row f32 [5].
static void arguments(void) {
  x = argument(TT_F32, 2, (int64_t[]){4, 5});
  y = argument(TT_F32, 2, (int64_t[]){4, 5});
  idx = argument(TT_S64, 2, (int64_t[]){3, 2});
  pred = argument(TT_I1, 2, (int64_t[]){4, 5});
  row = argument(TT_F32, 1, (int64_t[]){5});
}

static void emit(tt_build_t *b, const char *name) {
  static const int64_t one = 1, both[] = {0, 1};
#define CASE(text) if (strcmp(name, text) == 0)
  CASE("argmax") {
    tt_emit_arg_reduce(b, true, x, 1, TT_S64, false, &out[0], &out[1]), out_count = 2;
  }
  CASE("argmin") {
    tt_emit_arg_reduce(b, false, x, 0, TT_S32, true, &out[0], &out[1]), out_count = 2;
  }
  CASE("sort") {
    tt_value_t xs[] = {x, tt_emit_iota(b, TT_S64, 2, (int64_t[]){4, 5}, 1)};
    tt_emit_sort(b, xs, 2, 1, false, out), out_count = 2;
  }
  CASE("sort_descending") {
    tt_value_t xs[] = {x, tt_emit_iota(b, TT_S64, 2, (int64_t[]){4, 5}, 0)};
    tt_emit_sort(b, xs, 2, 0, true, out), out_count = 2;
  }
  CASE("take") out[0] = tt_emit_take(b, x, idx, 1);
  CASE("take_along") out[0] = tt_emit_take_along(b, x, idx, 1);
  CASE("put_add") out[0] = tt_emit_put(b, x, idx, tt_emit_take(b, y, idx, 1), 1, TT_OP_ADD);
  CASE("put_along_add") {
    out[0] = tt_emit_put_along(b, x, idx, tt_emit_take_along(b, y, idx, 0), 0, TT_OP_ADD);
  }
  CASE("put_along_max") {
    tt_value_t whole = tt_emit_slice_dim(b, x, 0, 0, 3, 1);
    out[0] = tt_emit_put_along(
        b, whole, idx, tt_emit_slice_dim(b, tt_emit_slice_dim(b, y, 0, 0, 3, 1), 1, 0, 2, 1), 1,
        TT_OP_MAXIMUM);
  }
  CASE("sum") out[0] = tt_emit_reduce(b, TT_OP_ADD, x, &one, 1, true);
  CASE("prod") out[0] = tt_emit_reduce(b, TT_OP_MULTIPLY, x, both, 2, false);
  CASE("amax") out[0] = tt_emit_reduce(b, TT_OP_MAXIMUM, x, &one, 1, false);
  CASE("any") out[0] = tt_emit_reduce(b, TT_OP_OR, pred, &one, 1, false);
  CASE("all") out[0] = tt_emit_reduce(b, TT_OP_AND, pred, &one, 1, false);
  CASE("window") {
    tt_window_t w = {.sizes = (int64_t[]){2, 3},
                     .strides = (int64_t[]){2, 1},
                     .padding = (int64_t[]){0, 0, 1, 1}};
    out[0] = tt_emit_reduce_window(b, TT_OP_MAXIMUM, x, &w);
  }
  CASE("conv") {
    tt_value_t image = tt_emit_reshape(b, x, 4, (int64_t[]){1, 1, 4, 5});
    tt_value_t kernel =
        tt_emit_reshape(b, tt_emit_slice_dim(b, y, 0, 0, 3, 2), 4, (int64_t[]){1, 1, 2, 5});
    tt_conv_t conv = {.strides = (int64_t[]){1, 2},
                      .padding = (int64_t[]){1, 1, 2, 2},
                      .feature_groups = 1,
                      .batch_groups = 1};
    out[0] = tt_emit_conv(b, image, kernel, &conv, TT_F32);
  }
  CASE("matmul") out[0] = tt_emit_matmul(b, x, tt_emit_transpose(b, y, (int64_t[]){1, 0}), TT_F32);
  CASE("where") out[0] = tt_emit_select(b, pred, row, tt_emit_scalar(b, TT_F32, -1));
  CASE("clamp") out[0] = tt_emit_clamp(b, tt_emit_scalar(b, TT_F32, -0.5), x, row);
  CASE("to_bool") out[0] = tt_emit_convert(b, x, TT_I1);
  CASE("to_int8")
  out[0] = tt_emit_convert(b, tt_emit_binary(b, TT_OP_MULTIPLY, row, tt_emit_scalar(b, TT_F32, 40)),
                           TT_S8);
  CASE("pad") {
    out[0] = tt_emit_pad(b, x, tt_emit_scalar(b, TT_F32, 7), (int64_t[]){1, -1}, (int64_t[]){0, 2},
                         NULL);
  }
  CASE("pow_while") {
    const tt_type_t types[] = {{TT_S32, 0, NULL}, *tt_build_type(b, x)};
    tt_value_t args[2], init[] = {tt_emit_scalar(b, TT_S32, 0), x}, results[2];
    tt_block_t *condition = tt_emit_region_begin(b, types, 2, args);
    tt_value_t more = tt_emit_compare(b, TT_LT, args[0], tt_emit_scalar(b, TT_S32, 3));
    tt_emit_region_end(b, condition, &more, 1);
    tt_block_t *body = tt_emit_region_begin(b, types, 2, args);
    tt_value_t next[] = {tt_emit_binary(b, TT_OP_ADD, args[0], tt_emit_scalar(b, TT_S32, 1)),
                         tt_emit_binary(b, TT_OP_MULTIPLY, args[1], x)};
    tt_emit_region_end(b, body, next, 2);
    tt_emit_while(b, init, 2, condition, body, results);
    out[0] = results[1];
  }
}

int main(int argc, char **argv) {
  char *text = NULL;
  size_t size = 0;
  tt_status_t s = tt_graph_create("emit", &graph);
  if (s) return 1;
  arguments();
  tt_build_t b = tt_build_on(graph, graph->main);
  out[0] = x;
  emit(&b, argc > 1 ? argv[1] : "");
  s = tt_build_finish(&b);
  if (!s) s = tt_graph_return(graph, graph->main, out, (uint32_t)out_count);
  if (!s) s = tt_graph_verify(graph);
  if (!s) s = tt_graph_print(graph, &text, &size);
  if (s) fprintf(stderr, "%s\n", tt_status_message(s));
  if (!s) fwrite(text, 1, size, stdout);
  int failed = s != TT_OK_STATUS;
  tt_status_release(s);
  tt_free(text);
  tt_graph_destroy(graph);
  return failed;
}
