module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xbf16> {jax.result_info = "result[0]"}, tensor<4xf16> {jax.result_info = "result[1]"}, tensor<4xf8E4M3FN> {jax.result_info = "result[2]"}, tensor<4xf8E5M2> {jax.result_info = "result[3]"}, tensor<4xi4> {jax.result_info = "result[4]"}, tensor<4xui4> {jax.result_info = "result[5]"}, tensor<4xi8> {jax.result_info = "result[6]"}, tensor<4xui64> {jax.result_info = "result[7]"}, tensor<4xi1> {jax.result_info = "result[8]"}, tensor<4xcomplex<f64>> {jax.result_info = "result[9]"}) {
    %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xbf16>
    %1 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf16>
    %2 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
    %3 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf8E5M2>
    %4 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi4>
    %5 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xui4>
    %6 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi8>
    %7 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xui64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %9 = stablehlo.compare NE, %arg0, %8, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %10 = stablehlo.convert %9 : tensor<4xi1>
    %11 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xcomplex<f64>>
    return %0, %1, %2, %3, %4, %5, %6, %7, %10, %11 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xi4>, tensor<4xui4>, tensor<4xi8>, tensor<4xui64>, tensor<4xi1>, tensor<4xcomplex<f64>>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xi4>, tensor<4xui4>, tensor<4xi8>, tensor<4xui64>, tensor<4xi1>, tensor<4xcomplex<f64>>) {
    %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xbf16>
    %1 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf16>
    %2 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
    %3 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf8E5M2>
    %4 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi4>
    %5 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xui4>
    %6 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi8>
    %7 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xui64>
    %8 = stablehlo.constant dense<0.0> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %10 = stablehlo.compare NE, %arg0, %9, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %11 = stablehlo.convert %10 : (tensor<4xi1>) -> tensor<4xi1>
    %12 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xcomplex<f64>>
    return %0, %1, %2, %3, %4, %5, %6, %7, %11, %12 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xi4>, tensor<4xui4>, tensor<4xi8>, tensor<4xui64>, tensor<4xi1>, tensor<4xcomplex<f64>>
  }
}
