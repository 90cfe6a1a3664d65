module @m attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %p: tensor<i1>) -> (tensor<2x3xf32>) {
    %c = stablehlo.constant dense<[[1.0, 0x7FC00000, -0.0], [1e-3, 2, 3.5]]> : tensor<2x3xf32>
    %0 = call @f(%arg0, %c) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %1:2 = stablehlo.while(%i = %0, %j = %p) : tensor<2x3xf32>, tensor<i1> cond {
      stablehlo.return %j : tensor<i1>
    } do {
      %2 = stablehlo.not %j : tensor<i1>
      stablehlo.return %i, %2 : tensor<2x3xf32>, tensor<i1>
    }
    return %1#0 : tensor<2x3xf32>
  }
  func.func private @f(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %a, %b {x = "y"} : tensor<2x3xf32> loc("here")
    return %0 : tensor<2x3xf32>
  }
}
