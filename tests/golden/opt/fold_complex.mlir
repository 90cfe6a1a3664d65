// pass: opt
module @"complex" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<f32>, tensor<i1>) {
    %0 = stablehlo.constant dense<(1.0,0.0)> : tensor<complex<f32>>
    %1 = stablehlo.convert %0 : (tensor<complex<f32>>) -> tensor<f32>
    %2 = stablehlo.constant dense<(-0.0,0.0)> : tensor<complex<f32>>
    %3 = stablehlo.constant dense<(0.0,0.0)> : tensor<complex<f32>>
    %4 = stablehlo.compare EQ, %2, %3, FLOAT : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<i1>
    return %1, %4 : tensor<f32>, tensor<i1>
  }
}
// ----
module @"complex" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<f32>, tensor<i1>) {
    %0 = stablehlo.constant dense<(1.0,0.0)> : tensor<complex<f32>>
    %1 = stablehlo.convert %0 : (tensor<complex<f32>>) -> tensor<f32>
    %2 = stablehlo.constant dense<(-0.0,0.0)> : tensor<complex<f32>>
    %3 = stablehlo.constant dense<(0.0,0.0)> : tensor<complex<f32>>
    %4 = stablehlo.compare EQ, %2, %3, FLOAT : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<i1>
    return %1, %4 : tensor<f32>, tensor<i1>
  }
}
