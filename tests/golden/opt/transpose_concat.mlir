// pass: simplify
module @"parts" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x5x4xf32>) -> (tensor<4x2x8xf32>, tensor<2x8x4xf32>, tensor<8x2x4xf32>) {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x8x4xf32>
    %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<2x8x4xf32>) -> tensor<4x2x8xf32>
    %2 = stablehlo.concatenate %arg0, %arg1, %arg0, dim = 1 : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x3x4xf32>) -> tensor<2x11x4xf32>
    %3 = stablehlo.slice %2 [0:2, 0:8, 0:4] : (tensor<2x11x4xf32>) -> tensor<2x8x4xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0, 2] : (tensor<2x8x4xf32>) -> tensor<8x2x4xf32>
    return %1, %3, %4 : tensor<4x2x8xf32>, tensor<2x8x4xf32>, tensor<8x2x4xf32>
  }
}
// ----
module @"parts" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x4xf32>, %arg1: tensor<2x5x4xf32>) -> (tensor<4x2x8xf32>, tensor<2x8x4xf32>, tensor<8x2x4xf32>) {
    %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %1 = stablehlo.transpose %arg1, dims = [2, 0, 1] : (tensor<2x5x4xf32>) -> tensor<4x2x5xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 2 : (tensor<4x2x3xf32>, tensor<4x2x5xf32>) -> tensor<4x2x8xf32>
    %3 = stablehlo.concatenate %arg0, %arg1, %arg0, dim = 1 : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x3x4xf32>) -> tensor<2x11x4xf32>
    %4 = stablehlo.slice %3 [0:2, 0:8, 0:4] : (tensor<2x11x4xf32>) -> tensor<2x8x4xf32>
    %5 = stablehlo.transpose %4, dims = [1, 0, 2] : (tensor<2x8x4xf32>) -> tensor<8x2x4xf32>
    return %2, %4, %5 : tensor<4x2x8xf32>, tensor<2x8x4xf32>, tensor<8x2x4xf32>
  }
}
