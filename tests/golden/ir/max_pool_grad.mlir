module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x8x8xf32>) -> (tensor<1x8x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x4x4xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.pad %arg0, %cst_0, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<1x8x8xf32>, tensor<f32>) -> tensor<1x8x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = "stablehlo.select_and_scatter"(%1, %0, %cst_1) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %4 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %4 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<1x8x8xf32>, tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x8x8xf32>
    %3 = stablehlo.slice %2 [0:1, 0:8, 0:8] : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
    return %3 : tensor<1x8x8xf32>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x8x8xf32>) -> (tensor<1x8x8xf32>) {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x4x4xf32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.pad %arg0, %2, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<1x8x8xf32>, tensor<f32>) -> tensor<1x8x8xf32>
    %4 = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = "stablehlo.select_and_scatter"(%3, %1, %4) <{window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [0, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = stablehlo.compare GE, %6, %7, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    }, {
    ^bb0(%9: tensor<f32>, %10: tensor<f32>):
      %11 = stablehlo.add %9, %10 : tensor<f32>
      stablehlo.return %11 : tensor<f32>
    }) : (tensor<1x8x8xf32>, tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x8x8xf32>
    %12 = stablehlo.slice %5 [0:1, 0:8, 0:8] : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
    return %12 : tensor<1x8x8xf32>
  }
}
