module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<i64> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i64>, tensor<4xf32>
    cond {
      %c_1 = stablehlo.constant dense<10> : tensor<i64>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_1 = stablehlo.constant dense<1> : tensor<i64>
      %1 = stablehlo.add %iterArg, %c_1 : tensor<i64>
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %3 = stablehlo.multiply %iterArg_0, %2 : tensor<4xf32>
      stablehlo.return %1, %3 : tensor<i64>, tensor<4xf32>
    }
    return %0#0, %0#1 : tensor<i64>, tensor<4xf32>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<i64>, tensor<4xf32>) {
    %0 = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = "stablehlo.while"(%0, %arg0) ({
    ^bb0(%2: tensor<i64>, %3: tensor<4xf32>):
      %4 = stablehlo.constant dense<10> : tensor<i64>
      %5 = stablehlo.compare LT, %2, %4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }, {
    ^bb0(%6: tensor<i64>, %7: tensor<4xf32>):
      %8 = stablehlo.constant dense<1> : tensor<i64>
      %9 = stablehlo.add %6, %8 : tensor<i64>
      %10 = stablehlo.constant dense<2.0> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %12 = stablehlo.multiply %7, %11 : tensor<4xf32>
      stablehlo.return %9, %12 : tensor<i64>, tensor<4xf32>
    }) : (tensor<i64>, tensor<4xf32>) -> (tensor<i64>, tensor<4xf32>)
    return %1#0, %1#1 : tensor<i64>, tensor<4xf32>
  }
}
