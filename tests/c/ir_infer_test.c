// What each rule refuses, and by which constraint. Statements see the arguments named below.
#include "base/alloc.h"
#include "ir/graph.h"
#include "test.h"

static const char arguments[] =
    "%a: tensor<2x3xf32>, %b: tensor<3x2xf32>, %v: tensor<3xf32>, %s: tensor<f32>, "
    "%i: tensor<i32>, %n: tensor<4x2xi64>, %p: tensor<i1>, %c: tensor<2x3xcomplex<f32>>, "
    "%m: tensor<3x3xf32>, %x: tensor<2x4x8x8xf32>, %k: tensor<6x2x3x3xf32>, %u: tensor<2xui64>";

static tt_status_t parse(const char *statement) {
  char text[4096];
  tt_graph_t *g = NULL;
  int size = snprintf(text, sizeof text,
                      "func.func @main(%s) -> tensor<f32> {\n%s\nreturn %%s : tensor<f32>\n}",
                      arguments, statement);
  tt_status_t s = tt_graph_parse(text, (size_t)size, &g);
  tt_graph_destroy(g);
  return s;
}

#define ADD_BODY                                  \
  "({\n^bb0(%l: tensor<f32>, %r: tensor<f32>):\n" \
  "%z = stablehlo.add %l, %r : tensor<f32>\nstablehlo.return %z : tensor<f32>\n})"

static const struct {
  const char *error, *statement;
} refused[] = {
    {"add_c1", "%0 = stablehlo.add %a, %b : tensor<2x3xf32>"},
    {"element type i1", "%0 = stablehlo.sine %p : tensor<i1>"},
    {"element type complex", "%0 = stablehlo.floor %c : tensor<2x3xcomplex<f32>>"},
    {"not tensor<2x4xf32>", "%0 = stablehlo.sine %a : tensor<2x4xf32>"},
    {"compare_c4",
     "%0 = stablehlo.compare LT, %c, %c : (tensor<2x3xcomplex<f32>>, "
     "tensor<2x3xcomplex<f32>>) -> tensor<2x3xi1>"},
    {"compare_c3",
     "%0 = stablehlo.compare LT, %a, %a, SIGNED : (tensor<2x3xf32>, "
     "tensor<2x3xf32>) -> tensor<2x3xi1>"},
    {"select_c2", "%0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<2x3xf32>"},
    {"clamp_c1",
     "%0 = stablehlo.clamp %v, %a, %s : (tensor<3xf32>, tensor<2x3xf32>, "
     "tensor<f32>) -> tensor<2x3xf32>"},
    {"convert_c1", "%0 = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<3x2xf16>"},
    {"bitcast_convert_c1",
     "%0 = stablehlo.bitcast_convert %a : (tensor<2x3xf32>) -> tensor<2x3xi8>"},
    {"iota_c1", "%0 = stablehlo.iota dim = 2 : tensor<2x3xi32>"},
    {"broadcast_in_dim_c5",
     "%0 = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<3xf32>) -> "
     "tensor<2x3xf32>"},
    {"broadcast_in_dim_c3",
     "%0 = stablehlo.broadcast_in_dim %a, dims = [1, 1] : "
     "(tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"reshape_c2", "%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<7xf32>"},
    {"transpose_c2",
     "%0 = stablehlo.transpose %a, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>"},
    {"reverse_c2", "%0 = stablehlo.reverse %a, dims = [2] : tensor<2x3xf32>"},
    {"slice_c3", "%0 = stablehlo.slice %a [0:2, 1:4] : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"slice_c4", "%0 = stablehlo.slice %a [0:2, 0:3:0] : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"dynamic_slice_c4",
     "%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [3, 1] : "
     "(tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<3x1xf32>"},
    {"dynamic_slice_c2",
     "%0 = stablehlo.dynamic_slice %a, %i, sizes = [1, 1] : "
     "(tensor<2x3xf32>, tensor<i32>) -> tensor<1x1xf32>"},
    {"dynamic_update_slice_c6",
     "%0 = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<2x3xf32>, tensor<3x2xf32>, "
     "tensor<i32>, tensor<i32>) -> tensor<2x3xf32>"},
    {"pad_c4",
     "%0 = stablehlo.pad %a, %s, low = [-3, 0], high = [0, 0], interior = [0, 0] : "
     "(tensor<2x3xf32>, tensor<f32>) -> tensor<0x3xf32>"},
    {"concatenate_c2",
     "%0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3xf32>, "
     "tensor<3x2xf32>) -> tensor<5x3xf32>"},
    {"concatenate_c4",
     "%0 = stablehlo.concatenate %a, %a, dim = 2 : (tensor<2x3xf32>, "
     "tensor<2x3xf32>) -> tensor<4x3xf32>"},
    {"dot_general_c10",
     "%0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : "
     "(tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>"},
    {"dot_general_c3",
     "%0 = stablehlo.dot_general %m, %m, batching_dims = [0] x [0], "
     "contracting_dims = [0] x [1] : (tensor<3x3xf32>, tensor<3x3xf32>) -> "
     "tensor<3x3xf32>"},
    {"dot_general_c12",
     "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
     "(tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>"},
    {"convolution_c14",
     "%0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, "
     "1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<2x4x8x8xf32>, "
     "tensor<6x2x3x3xf32>) -> tensor<2x6x6x6xf32>"},
    {"convolution_c25",
     "%0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, "
     "1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, "
     "feature_group_count = 2 : i64} : (tensor<2x4x8x8xf32>, "
     "tensor<6x2x3x3xf32>) -> tensor<2x6x8x8xf32>"},
    {"reduce_c4",
     "%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = "
     "[2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>"},
    {"reduce_c2",
     "%0 = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = "
     "[1] : (tensor<2x3xf32>, tensor<i32>) -> tensor<2xf32>"},
    {"gather_c3",
     "%0 = \"stablehlo.gather\"(%a, %n) <{dimension_numbers = #stablehlo.gather<"
     "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, "
     "tensor<4x2xi64>) -> tensor<4x3xf32>"},
    {"gather_c21",
     "%0 = \"stablehlo.gather\"(%a, %n) <{dimension_numbers = #stablehlo.gather<"
     "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<2x3xf32>, "
     "tensor<4x2xi64>) -> tensor<4x2x4xf32>"},
    {"scatter_c4",
     "%0 = \"stablehlo.scatter\"(%a, %n, %a) <{scatter_dimension_numbers = "
     "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> " ADD_BODY
     " : (tensor<2x3xf32>, tensor<4x2xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"sort_c5", "%0 = \"stablehlo.sort\"(%a) <{dimension = 0 : i64}> " ADD_BODY
                " : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"cholesky_c3", "%0 = stablehlo.cholesky %a, lower = true : tensor<2x3xf32>"},
    {"triangular_solve_c3",
     "%0 = \"stablehlo.triangular_solve\"(%m, %a) <{left_side = true, "
     "lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, "
     "unit_diagonal = false}> : (tensor<3x3xf32>, tensor<2x3xf32>) -> "
     "tensor<2x3xf32>"},
    {"fft_c4",
     "%0 = stablehlo.fft %c, type = FFT, length = [5] : (tensor<2x3xcomplex<f32>>) -> "
     "tensor<2x3xcomplex<f32>>"},
    {"fft_c2",
     "%0 = stablehlo.fft %a, type = FFT, length = [3] : (tensor<2x3xf32>) -> "
     "tensor<2x3xf32>"},
    {"rng_bit_generator_c1",
     "%0, %1 = stablehlo.rng_bit_generator %u, algorithm = PHILOX : "
     "(tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>)"},
    {"if_c2",
     "%0 = \"stablehlo.if\"(%p) ({\nstablehlo.return %a : tensor<2x3xf32>\n}, {\n"
     "stablehlo.return %b : tensor<3x2xf32>\n}) : (tensor<i1>) -> tensor<2x3xf32>"},
    {"while_c1",
     "%0 = stablehlo.while(%j = %a) : tensor<2x3xf32> cond {\nstablehlo.return %j : "
     "tensor<2x3xf32>\n} do {\nstablehlo.return %j : tensor<2x3xf32>\n}"},
    {"all_to_all_c2",
     "%0 = \"stablehlo.all_to_all\"(%a) <{split_dimension = 1 : i64, "
     "concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = "
     "dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x3xf32>) -> "
     "tensor<4x1xf32>"},
    {"all_gather_c6",
     "%0 = \"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, "
     "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : "
     "(tensor<2x3xf32>) -> tensor<4x4xf32>"},
    {"batch_norm_inference_c3",
     "%0 = \"stablehlo.batch_norm_inference\"(%a, %v, %v, %v, %v) <{epsilon = 1.0e-5 : f32, "
     "feature_index = 0 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, "
     "tensor<3xf32>) -> tensor<2x3xf32>"},
    {"top_k: k is 4",
     "%0:2 = chlo.top_k(%a, k = 4) : tensor<2x3xf32> -> (tensor<2x4xf32>, "
     "tensor<2x4xi32>)"},
    {"value has",
     "%0 = \"stablehlo.constant\"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> "
     "tensor<3xi32>"},
    {"expected ','", "%0 = stablehlo.constant dense<[[1, 2], [3]]> : tensor<2x2xi32>"},
    {"the number is no i8", "%0 = stablehlo.constant dense<300> : tensor<i8>"},
    {"dynamic dimensions", "%0 = stablehlo.iota dim = 0 : tensor<?xi32>"},
    {"the tensor is too large",
     "%0 = stablehlo.iota dim = 0 : tensor<4611686018427387904x4611686018427387904xi32>"},
    {"operation 'stablehlo.frobnicate' is not supported", "%0 = stablehlo.frobnicate %a"},
    {"is not supported", "%0 = mhlo.add %a, %a : tensor<2x3xf32>"},
    {"has 1 results", "%0:2 = stablehlo.sine %a : tensor<2x3xf32>"},
    {"operand 0 is not of the type written",
     "%0 = stablehlo.sine %a : (tensor<3x2xf32>) -> tensor<3x2xf32>"},
    {"%nothing is not defined", "%0 = stablehlo.sine %nothing : tensor<f32>"},
    {"function @f is not defined", "%0 = call @f() : () -> tensor<f32>"},
};

TEST(rules_refuse_by_constraint) {
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    EXPECT_ERROR(parse(refused[i].statement), refused[i].error);
  }
  EXPECT_INT(tt_alloc_live(), 0);
}

// The statement that all the others vary is fine.
TEST(rules_accept) {
  EXPECT_OK(parse("%0 = stablehlo.add %a, %a : tensor<2x3xf32>"));
  EXPECT_OK(
      parse("%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
            "(tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xbf16>"));
  EXPECT_OK(
      parse("%0 = \"stablehlo.sort\"(%s) ({\n^bb0(%l: tensor<f32>, %r: tensor<f32>):\n"
            "%z = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "stablehlo.return %z : tensor<i1>\n}) : (tensor<f32>) -> tensor<f32>"));
  EXPECT_INT(tt_alloc_live(), 0);
}

TEST(donations_must_fit) {
  const char *text =
      "func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<3xf32> {\n"
      "%0 = stablehlo.iota dim = 0 : tensor<3xf32>\nreturn %0 : tensor<3xf32>\n}";
  tt_graph_t *g;
  EXPECT_OK(tt_graph_parse(text, strlen(text), &g));
  EXPECT_ERROR(tt_graph_verify(g), "aliases output 0 of another type");
  tt_graph_destroy(g);
}

TEST_MAIN(rules_refuse_by_constraint, rules_accept, donations_must_fit)
