module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<4xf32> {jax.result_info = "result[1]"}, tensor<4xf32> {jax.result_info = "result[2]"}, tensor<4xf32> {jax.result_info = "result[3]"}, tensor<4xf32> {jax.result_info = "result[4]"}, tensor<4xf32> {jax.result_info = "result[5]"}, tensor<4xf32> {jax.result_info = "result[6]"}, tensor<4xf32> {jax.result_info = "result[7]"}, tensor<4xf32> {jax.result_info = "result[8]"}, tensor<4xf32> {jax.result_info = "result[9]"}, tensor<4xf32> {jax.result_info = "result[10]"}, tensor<4xf32> {jax.result_info = "result[11]"}, tensor<4xf32> {jax.result_info = "result[12]"}, tensor<4xf32> {jax.result_info = "result[13]"}, tensor<4xf32> {jax.result_info = "result[14]"}, tensor<4xf32> {jax.result_info = "result[15]"}, tensor<4xi1> {jax.result_info = "result[16]"}, tensor<4xf32> {jax.result_info = "result[17]"}, tensor<4xf32> {jax.result_info = "result[18]"}, tensor<4xf32> {jax.result_info = "result[19]"}, tensor<4xf32> {jax.result_info = "result[20]"}, tensor<4xf32> {jax.result_info = "result[21]"}, tensor<4xf32> {jax.result_info = "result[22]"}, tensor<4xf32> {jax.result_info = "result[23]"}, tensor<4xf32> {jax.result_info = "result[24]"}, tensor<4xf32> {jax.result_info = "result[25]"}, tensor<4xf32> {jax.result_info = "result[26]"}, tensor<4xf32> {jax.result_info = "result[27]"}, tensor<4xf32> {jax.result_info = "result[28]"}, tensor<4xf32> {jax.result_info = "result[29]"}, tensor<4xf32> {jax.result_info = "result[30]"}, tensor<4xf32> {jax.result_info = "result[31]"}, tensor<4xf32> {jax.result_info = "result[32]"}, tensor<4xf32> {jax.result_info = "result[33]"}) {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    %1 = stablehlo.cosine %arg0 : tensor<4xf32>
    %2 = stablehlo.tan %arg0 : tensor<4xf32>
    %3 = stablehlo.tanh %arg0 : tensor<4xf32>
    %4 = stablehlo.exponential %arg0 : tensor<4xf32>
    %5 = stablehlo.exponential_minus_one %arg0 : tensor<4xf32>
    %6 = stablehlo.log %arg0 : tensor<4xf32>
    %7 = stablehlo.log_plus_one %arg0 : tensor<4xf32>
    %8 = stablehlo.sqrt %arg0 : tensor<4xf32>
    %9 = stablehlo.rsqrt %arg0 : tensor<4xf32>
    %10 = stablehlo.cbrt %arg0 : tensor<4xf32>
    %11 = stablehlo.floor %arg0 : tensor<4xf32>
    %12 = stablehlo.ceil %arg0 : tensor<4xf32>
    %13 = call @round(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %14 = stablehlo.round_nearest_afz %arg0 : tensor<4xf32>
    %15 = stablehlo.sign %arg0 : tensor<4xf32>
    %16 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    %17 = stablehlo.negate %arg0 : tensor<4xf32>
    %18 = stablehlo.exponential %17 : tensor<4xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %20 = stablehlo.add %19, %18 : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %22 = stablehlo.divide %21, %20 : tensor<4xf32>
    %23 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>
    %24 = chlo.erfc %arg0 : tensor<4xf32> -> tensor<4xf32>
    %25 = chlo.erf_inv %arg0 : tensor<4xf32> -> tensor<4xf32>
    %26 = chlo.lgamma %arg0 : tensor<4xf32> -> tensor<4xf32>
    %27 = chlo.digamma %arg0 : tensor<4xf32> -> tensor<4xf32>
    %28 = chlo.asin %arg0 : tensor<4xf32> -> tensor<4xf32>
    %29 = chlo.acos %arg0 : tensor<4xf32> -> tensor<4xf32>
    %30 = chlo.atan %arg0 : tensor<4xf32> -> tensor<4xf32>
    %31 = chlo.asinh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %32 = chlo.acosh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %33 = chlo.atanh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %34 = chlo.sinh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %35 = chlo.cosh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %36 = stablehlo.abs %arg0 : tensor<4xf32>
    %37 = stablehlo.negate %arg0 : tensor<4xf32>
    %38 = chlo.square %arg0 : tensor<4xf32> -> tensor<4xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func private @round(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    %1 = stablehlo.cosine %arg0 : tensor<4xf32>
    %2 = stablehlo.tan %arg0 : tensor<4xf32>
    %3 = stablehlo.tanh %arg0 : tensor<4xf32>
    %4 = stablehlo.exponential %arg0 : tensor<4xf32>
    %5 = stablehlo.exponential_minus_one %arg0 : tensor<4xf32>
    %6 = stablehlo.log %arg0 : tensor<4xf32>
    %7 = stablehlo.log_plus_one %arg0 : tensor<4xf32>
    %8 = stablehlo.sqrt %arg0 : tensor<4xf32>
    %9 = stablehlo.rsqrt %arg0 : tensor<4xf32>
    %10 = stablehlo.cbrt %arg0 : tensor<4xf32>
    %11 = stablehlo.floor %arg0 : tensor<4xf32>
    %12 = stablehlo.ceil %arg0 : tensor<4xf32>
    %13 = stablehlo.round_nearest_even %arg0 : tensor<4xf32>
    %14 = stablehlo.round_nearest_afz %arg0 : tensor<4xf32>
    %15 = stablehlo.sign %arg0 : tensor<4xf32>
    %16 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
    %17 = stablehlo.negate %arg0 : tensor<4xf32>
    %18 = stablehlo.exponential %17 : tensor<4xf32>
    %19 = stablehlo.constant dense<1.0> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %21 = stablehlo.add %20, %18 : tensor<4xf32>
    %22 = stablehlo.constant dense<1.0> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %24 = stablehlo.divide %23, %21 : tensor<4xf32>
    %25 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>
    %26 = chlo.erfc %arg0 : tensor<4xf32> -> tensor<4xf32>
    %27 = chlo.erf_inv %arg0 : tensor<4xf32> -> tensor<4xf32>
    %28 = chlo.lgamma %arg0 : tensor<4xf32> -> tensor<4xf32>
    %29 = chlo.digamma %arg0 : tensor<4xf32> -> tensor<4xf32>
    %30 = chlo.asin %arg0 : tensor<4xf32> -> tensor<4xf32>
    %31 = chlo.acos %arg0 : tensor<4xf32> -> tensor<4xf32>
    %32 = chlo.atan %arg0 : tensor<4xf32> -> tensor<4xf32>
    %33 = chlo.asinh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %34 = chlo.acosh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %35 = chlo.atanh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %36 = chlo.sinh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %37 = chlo.cosh %arg0 : tensor<4xf32> -> tensor<4xf32>
    %38 = stablehlo.abs %arg0 : tensor<4xf32>
    %39 = stablehlo.negate %arg0 : tensor<4xf32>
    %40 = stablehlo.multiply %arg0, %arg0 : tensor<4xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
