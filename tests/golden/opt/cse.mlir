// pass: opt
module @"cse" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    %1 = stablehlo.sine %arg0 : tensor<4xf32>
    %2 = stablehlo.add %0, %1 : tensor<4xf32>
    %dead = stablehlo.cosine %arg0 : tensor<4xf32>
    %3 = "stablehlo.if"(%arg1) ({
      %4 = stablehlo.sine %arg0 : tensor<4xf32>
      %5 = stablehlo.exponential %4 : tensor<4xf32>
      stablehlo.return %5 : tensor<4xf32>
    }, {
      %6 = stablehlo.exponential %arg0 : tensor<4xf32>
      stablehlo.return %6 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %2, %3 : tensor<4xf32>, tensor<4xf32>
  }
}
// ----
module @"cse" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    %1 = stablehlo.add %0, %0 : tensor<4xf32>
    %2 = "stablehlo.if"(%arg1) ({
      %3 = stablehlo.exponential %0 : tensor<4xf32>
      stablehlo.return %3 : tensor<4xf32>
    }, {
      %4 = stablehlo.exponential %arg0 : tensor<4xf32>
      stablehlo.return %4 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
}
