module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x3x3xf32>, %arg1: tensor<2x4x9x9xf32>) -> (tensor<8x4x3x3xf32> {jax.result_info = "result[0]"}, tensor<2x4x9x9xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x5x5xf32>
    %1 = stablehlo.convolution(%arg1, %0) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [2, 2], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x9x9xf32>, tensor<2x8x5x5xf32>) -> tensor<8x4x3x3xf32>
    %2 = stablehlo.reverse %arg0, dims = [2, 3] : tensor<8x4x3x3xf32>
    %3 = stablehlo.convolution(%0, %2) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x5x5xf32>, tensor<8x4x3x3xf32>) -> tensor<2x4x9x9xf32>
    return %1, %3 : tensor<8x4x3x3xf32>, tensor<2x4x9x9xf32>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x3x3xf32>, %arg1: tensor<2x4x9x9xf32>) -> (tensor<8x4x3x3xf32>, tensor<2x4x9x9xf32>) {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x8x5x5xf32>
    %2 = "stablehlo.convolution"(%arg1, %1) <{precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], dimension_numbers = #stablehlo.conv<[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, window_strides = array<i64: 1, 1>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 2, 2>, window_reversal = array<i1: false, false>}>  : (tensor<2x4x9x9xf32>, tensor<2x8x5x5xf32>) -> tensor<8x4x3x3xf32>
    %3 = stablehlo.reverse %arg0, dims = [2, 3] : tensor<8x4x3x3xf32>
    %4 = "stablehlo.convolution"(%1, %3) <{precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, window_strides = array<i64: 1, 1>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>}>  : (tensor<2x8x5x5xf32>, tensor<8x4x3x3xf32>) -> tensor<2x4x9x9xf32>
    return %2, %4 : tensor<8x4x3x3xf32>, tensor<2x4x9x9xf32>
  }
}
