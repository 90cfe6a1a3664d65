module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf32>) -> (tensor<5xf32> {jax.result_info = "result[0]"}, tensor<4x5xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.slice %arg0 [0:1, 0:5] : (tensor<4x5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5xf32>) -> tensor<5xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %3:4 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %c, %iterArg_1 = %1, %iterArg_2 = %2) : tensor<4x5xf32>, tensor<i64>, tensor<5xf32>, tensor<4x5xf32>
    cond {
      %c_3 = stablehlo.constant dense<4> : tensor<i64>
      %4 = stablehlo.compare LT, %iterArg_0, %c_3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_0) : (tensor<4x5xf32>, tensor<i64>) -> tensor<5xf32>
      %5:2 = func.call @closed_call(%iterArg_1, %4) : (tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>)
      %6 = func.call @dynamic_update_index_in_dim(%iterArg_2, %5#1, %iterArg_0) : (tensor<4x5xf32>, tensor<5xf32>, tensor<i64>) -> tensor<4x5xf32>
      %c_3 = stablehlo.constant dense<1> : tensor<i64>
      %7 = stablehlo.add %iterArg_0, %c_3 : tensor<i64>
      stablehlo.return %iterArg, %7, %5#0, %6 : tensor<4x5xf32>, tensor<i64>, tensor<5xf32>, tensor<4x5xf32>
    }
    return %3#2, %3#3 : tensor<5xf32>, tensor<4x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4x5xf32>, %arg1: tensor<i64>) -> tensor<5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 5] : (tensor<4x5xf32>, tensor<i64>, tensor<i64>) -> tensor<1x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5xf32>) -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
  func.func private @closed_call(%arg0: tensor<5xf32>, %arg1: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<5xf32>
    %1 = stablehlo.multiply %arg0, %arg1 : tensor<5xf32>
    return %0, %1 : tensor<5xf32>, tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4x5xf32>, %arg1: tensor<5xf32>, %arg2: tensor<i64>) -> tensor<4x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<4x5xf32>, tensor<1x5xf32>, tensor<i64>, tensor<i64>) -> tensor<4x5xf32>
    return %1 : tensor<4x5xf32>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf32>) -> (tensor<5xf32>, tensor<4x5xf32>) {
    %0 = stablehlo.slice %arg0 [0:1, 0:5] : (tensor<4x5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5xf32>) -> tensor<5xf32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %4 = stablehlo.constant dense<0> : tensor<i64>
    %5:4 = "stablehlo.while"(%arg0, %4, %1, %3) ({
    ^bb0(%6: tensor<4x5xf32>, %7: tensor<i64>, %8: tensor<5xf32>, %9: tensor<4x5xf32>):
      %10 = stablehlo.constant dense<4> : tensor<i64>
      %11 = stablehlo.compare LT, %7, %10, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    }, {
    ^bb0(%12: tensor<4x5xf32>, %13: tensor<i64>, %14: tensor<5xf32>, %15: tensor<4x5xf32>):
      %16 = stablehlo.constant dense<0> : tensor<i64>
      %17 = stablehlo.dynamic_slice %12, %13, %16, sizes = [1, 5] : (tensor<4x5xf32>, tensor<i64>, tensor<i64>) -> tensor<1x5xf32>
      %18 = stablehlo.reshape %17 : (tensor<1x5xf32>) -> tensor<5xf32>
      %19 = stablehlo.add %14, %18 : tensor<5xf32>
      %20 = stablehlo.multiply %14, %18 : tensor<5xf32>
      %21 = stablehlo.broadcast_in_dim %20, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
      %22 = stablehlo.constant dense<0> : tensor<i64>
      %23 = stablehlo.dynamic_update_slice %15, %21, %13, %22 : (tensor<4x5xf32>, tensor<1x5xf32>, tensor<i64>, tensor<i64>) -> tensor<4x5xf32>
      %24 = stablehlo.constant dense<1> : tensor<i64>
      %25 = stablehlo.add %13, %24 : tensor<i64>
      stablehlo.return %12, %25, %19, %23 : tensor<4x5xf32>, tensor<i64>, tensor<5xf32>, tensor<4x5xf32>
    }) : (tensor<4x5xf32>, tensor<i64>, tensor<5xf32>, tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<i64>, tensor<5xf32>, tensor<4x5xf32>)
    return %5#2, %5#3 : tensor<5xf32>, tensor<4x5xf32>
  }
}
