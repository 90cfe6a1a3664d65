// pass: simplify
module @"movement" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4xf32>) -> (tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<1x2xf32>, tensor<4x6xf32>, tensor<4x5xf32>, tensor<4x6xf32>, tensor<4x2xf32>) {
    %0 = stablehlo.reshape %arg0 : (tensor<4x6xf32>) -> tensor<24xf32>
    %1 = stablehlo.reshape %0 : (tensor<24xf32>) -> tensor<2x12xf32>
    %2 = stablehlo.reshape %1 : (tensor<2x12xf32>) -> tensor<4x6xf32>
    %3 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x12xf32>
    %4 = stablehlo.slice %3 [1:3, 7:10] : (tensor<4x12xf32>) -> tensor<2x3xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.pad %arg0, %z, low = [1, 2], high = [0, 1], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x9xf32>
    %6 = stablehlo.slice %5 [1:5, 2:8] : (tensor<5x9xf32>) -> tensor<4x6xf32>
    %7 = stablehlo.slice %arg0 [1:4:2, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %8 = stablehlo.slice %7 [1:2, 1:6:3] : (tensor<2x6xf32>) -> tensor<1x2xf32>
    %9 = stablehlo.slice %arg0 [0:4, 0:2] : (tensor<4x6xf32>) -> tensor<4x2xf32>
    %10 = stablehlo.slice %arg0 [0:4, 2:6] : (tensor<4x6xf32>) -> tensor<4x4xf32>
    %11 = stablehlo.concatenate %9, %10, dim = 1 : (tensor<4x2xf32>, tensor<4x4xf32>) -> tensor<4x6xf32>
    %12 = stablehlo.reshape %arg2 : (tensor<4xf32>) -> tensor<4x1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x5xf32>
    %14 = stablehlo.reverse %arg0, dims = [1] : tensor<4x6xf32>
    %15 = stablehlo.reverse %14, dims = [1] : tensor<4x6xf32>
    %c = stablehlo.constant dense<9> : tensor<i32>
    %16 = stablehlo.dynamic_slice %arg0, %c, %c, sizes = [4, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
    return %2, %4, %6, %8, %11, %13, %15, %16 : tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<1x2xf32>, tensor<4x6xf32>, tensor<4x5xf32>, tensor<4x6xf32>, tensor<4x2xf32>
  }
}
// ----
module @"movement" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4xf32>) -> (tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<1x2xf32>, tensor<4x6xf32>, tensor<4x5xf32>, tensor<4x6xf32>, tensor<4x2xf32>) {
    %0 = stablehlo.slice %arg1 [1:3, 1:4] : (tensor<4x6xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.slice %arg0 [3:4, 1:5:3] : (tensor<4x6xf32>) -> tensor<1x2xf32>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<4xf32>) -> tensor<4x5xf32>
    %3 = stablehlo.slice %arg0 [0:4, 4:6] : (tensor<4x6xf32>) -> tensor<4x2xf32>
    return %arg0, %0, %arg0, %1, %arg0, %2, %arg0, %3 : tensor<4x6xf32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<1x2xf32>, tensor<4x6xf32>, tensor<4x5xf32>, tensor<4x6xf32>, tensor<4x2xf32>
  }
}
