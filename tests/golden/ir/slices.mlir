module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf32>, %arg1: tensor<i32>) -> (tensor<2x3xf32> {jax.result_info = "result[0]"}, tensor<2x2xf32> {jax.result_info = "result[1]"}, tensor<4x5xf32> {jax.result_info = "result[2]"}, tensor<4x5xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.slice %arg0 [1:3, 0:5:2] : (tensor<4x5xf32>) -> tensor<2x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare LT, %arg1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.add %arg1, %c_0 : tensor<i32>
    %3 = stablehlo.select %1, %2, %arg1 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare LT, %arg1, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_2 = stablehlo.constant dense<5> : tensor<i32>
    %5 = stablehlo.add %arg1, %c_2 : tensor<i32>
    %6 = stablehlo.select %4, %5, %arg1 : tensor<i1>, tensor<i32>
    %7 = stablehlo.dynamic_slice %arg0, %3, %6, sizes = [2, 2] : (tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %arg1, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_4 = stablehlo.constant dense<4> : tensor<i32>
    %10 = stablehlo.add %arg1, %c_4 : tensor<i32>
    %11 = stablehlo.select %9, %10, %arg1 : tensor<i1>, tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.compare LT, %arg1, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_6 = stablehlo.constant dense<5> : tensor<i32>
    %13 = stablehlo.add %arg1, %c_6 : tensor<i32>
    %14 = stablehlo.select %12, %13, %arg1 : tensor<i1>, tensor<i32>
    %15 = stablehlo.dynamic_update_slice %arg0, %8, %11, %14 : (tensor<4x5xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x5xf32>
    %16 = stablehlo.reverse %arg0, dims = [0] : tensor<4x5xf32>
    return %0, %7, %15, %16 : tensor<2x3xf32>, tensor<2x2xf32>, tensor<4x5xf32>, tensor<4x5xf32>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf32>, %arg1: tensor<i32>) -> (tensor<2x3xf32>, tensor<2x2xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
    %0 = stablehlo.slice %arg0 [1:3, 0:5:2] : (tensor<4x5xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.compare LT, %arg1, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.constant dense<4> : tensor<i32>
    %4 = stablehlo.add %arg1, %3 : tensor<i32>
    %5 = stablehlo.select %2, %4, %arg1 : tensor<i1>, tensor<i32>
    %6 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.compare LT, %arg1, %6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %8 = stablehlo.constant dense<5> : tensor<i32>
    %9 = stablehlo.add %arg1, %8 : tensor<i32>
    %10 = stablehlo.select %7, %9, %arg1 : tensor<i1>, tensor<i32>
    %11 = stablehlo.dynamic_slice %arg0, %5, %10, sizes = [2, 2] : (tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %12 = stablehlo.constant dense<1.0> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %14 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.compare LT, %arg1, %14, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %16 = stablehlo.constant dense<4> : tensor<i32>
    %17 = stablehlo.add %arg1, %16 : tensor<i32>
    %18 = stablehlo.select %15, %17, %arg1 : tensor<i1>, tensor<i32>
    %19 = stablehlo.constant dense<0> : tensor<i32>
    %20 = stablehlo.compare LT, %arg1, %19, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %21 = stablehlo.constant dense<5> : tensor<i32>
    %22 = stablehlo.add %arg1, %21 : tensor<i32>
    %23 = stablehlo.select %20, %22, %arg1 : tensor<i1>, tensor<i32>
    %24 = stablehlo.dynamic_update_slice %arg0, %13, %18, %23 : (tensor<4x5xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x5xf32>
    %25 = stablehlo.reverse %arg0, dims = [0] : tensor<4x5xf32>
    return %0, %11, %24, %25 : tensor<2x3xf32>, tensor<2x2xf32>, tensor<4x5xf32>, tensor<4x5xf32>
  }
}
