// pass: simplify
module @"contraction" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<1x8x8x4xf32>, %arg3: tensor<3x3x4x6xf32>) -> (tensor<2x5xf32>, tensor<1x6x6x6xf32>, tensor<3x3xf32>) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<5x3xf32>) -> tensor<3x5xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
    %2 = stablehlo.transpose %arg2, dims = [0, 3, 1, 2] : (tensor<1x8x8x4xf32>) -> tensor<1x4x8x8xf32>
    %3 = stablehlo.transpose %arg3, dims = [3, 2, 0, 1] : (tensor<3x3x4x6xf32>) -> tensor<6x4x3x3xf32>
    %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x6x6xf32>
    %5 = stablehlo.transpose %4, dims = [0, 2, 3, 1] : (tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>
    %6 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %7 = stablehlo.dot_general %6, %arg0, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
    return %1, %5, %7 : tensor<2x5xf32>, tensor<1x6x6x6xf32>, tensor<3x3xf32>
  }
}
// ----
module @"contraction" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<5x3xf32>, %arg2: tensor<1x8x8x4xf32>, %arg3: tensor<3x3x4x6xf32>) -> (tensor<2x5xf32>, tensor<1x6x6x6xf32>, tensor<3x3xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
    %1 = "stablehlo.convolution"(%arg2, %arg3) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}>  : (tensor<1x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<1x6x6x6xf32>
    %2 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
    return %0, %1, %2 : tensor<2x5xf32>, tensor<1x6x6x6xf32>, tensor<3x3xf32>
  }
}
