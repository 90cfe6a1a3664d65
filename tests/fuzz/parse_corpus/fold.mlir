// pass: opt
module @"fold" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<3xi8>, tensor<i1>, tensor<bf16>, tensor<f32>) {
    %0 = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<f32>
    %2 = stablehlo.constant dense<0.5> : tensor<f32>
    %3 = stablehlo.divide %1, %2 : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.multiply %arg0, %4 : tensor<4xf32>
    %6 = stablehlo.constant dense<[100, -100, 7]> : tensor<3xi8>
    %7 = stablehlo.add %6, %6 : tensor<3xi8>
    %8 = stablehlo.compare LT, %1, %3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %9 = stablehlo.constant dense<0.1> : tensor<bf16>
    %10 = stablehlo.multiply %9, %9 : tensor<bf16>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %nan = stablehlo.divide %z, %z : tensor<f32>
    return %5, %7, %8, %10, %nan : tensor<4xf32>, tensor<3xi8>, tensor<i1>, tensor<bf16>, tensor<f32>
  }
}
// ----
module @"fold" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<3xi8>, tensor<i1>, tensor<bf16>, tensor<f32>) {
    %0 = stablehlo.constant dense<6.0> : tensor<4xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<4xf32>
    %2 = stablehlo.constant dense<[-56, 56, 14]> : tensor<3xi8>
    %3 = stablehlo.constant dense<true> : tensor<i1>
    %4 = stablehlo.constant dense<0.0100097656> : tensor<bf16>
    %5 = stablehlo.constant dense<0.0> : tensor<f32>
    %6 = stablehlo.divide %5, %5 : tensor<f32>
    return %1, %2, %3, %4, %6 : tensor<4xf32>, tensor<3xi8>, tensor<i1>, tensor<bf16>, tensor<f32>
  }
}
