// pass: simplify
module @"sink" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.constant dense<1.0> : tensor<3x2xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x2xf32>
    %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<3x2xf32>
    %5 = stablehlo.tanh %4 : tensor<3x2xf32>
    %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %7 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %8 = stablehlo.multiply %7, %7 : tensor<3x2xf32>
    return %6, %8 : tensor<2x3xf32>, tensor<3x2xf32>
  }
}
// ----
module @"sink" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
    %0 = stablehlo.constant dense<1.0> : tensor<2x3xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<2x3xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<2x3xf32>
    %4 = stablehlo.tanh %3 : tensor<2x3xf32>
    %5 = stablehlo.multiply %arg0, %arg0 : tensor<2x3xf32>
    %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %4, %6 : tensor<2x3xf32>, tensor<3x2xf32>
  }
}
