// pass: simplify
module @"loop" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<i1>) -> (tensor<3x2xf32>) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = "stablehlo.if"(%arg1) ({
      %2 = stablehlo.tanh %0 : tensor<3x2xf32>
      stablehlo.return %2 : tensor<3x2xf32>
    }, {
      %3 = stablehlo.constant dense<1.0> : tensor<3x2xf32>
      stablehlo.return %3 : tensor<3x2xf32>
    }) : (tensor<i1>) -> tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  }
}
// ----
module @"loop" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<i1>) -> (tensor<3x2xf32>) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = "stablehlo.if"(%arg1) ({
      %2 = stablehlo.tanh %0 : tensor<3x2xf32>
      stablehlo.return %2 : tensor<3x2xf32>
    }, {
      %3 = stablehlo.constant dense<1.0> : tensor<3x2xf32>
      stablehlo.return %3 : tensor<3x2xf32>
    }) : (tensor<i1>) -> tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  }
}
