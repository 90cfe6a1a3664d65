module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2xi1> {jax.result_info = "result[0]"}, tensor<2xcomplex<f32>> {jax.result_info = "result[1]"}, tensor<4xf32> {jax.result_info = "result[2]"}, tensor<64xi8> {jax.result_info = "result[3]"}, tensor<50xi1> {jax.result_info = "result[4]"}, tensor<3xbf16> {jax.result_info = "result[5]"}, tensor<0x3xf32> {jax.result_info = "result[6]"}, tensor<40xi1> {jax.result_info = "result[7]"}, tensor<3xi8> {jax.result_info = "result[8]"}, tensor<1xui64> {jax.result_info = "result[9]"}) {
    %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %cst = stablehlo.constant dense<[(1.000000e+00,2.000000e+00), (3.000000e+00,-4.000000e+00)]> : tensor<2xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[0x7FC00000, 0x7F800000, 0xFF800000, -0.000000e+00]> : tensor<4xf32>
    %c_1 = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]> : tensor<64xi8>
    %c_2 = stablehlo.constant dense<true> : tensor<50xi1>
    %cst_3 = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xbf16>
    %cst_4 = stablehlo.constant dense<> : tensor<0x3xf32>
    %c_5 = stablehlo.constant dense<[false, false, false, false, true, false, false, true, false, true, false, false, false, false, true, true, true, true, false, true, true, true, false, false, false, false, false, true, false, true, false, false, true, false, false, false, false, true, false, true]> : tensor<40xi1>
    %c_6 = stablehlo.constant dense<-128> : tensor<3xi8>
    %c_7 = stablehlo.constant dense<18446744073709551615> : tensor<1xui64>
    return %c, %cst, %cst_0, %c_1, %c_2, %cst_3, %cst_4, %c_5, %c_6, %c_7 : tensor<2xi1>, tensor<2xcomplex<f32>>, tensor<4xf32>, tensor<64xi8>, tensor<50xi1>, tensor<3xbf16>, tensor<0x3xf32>, tensor<40xi1>, tensor<3xi8>, tensor<1xui64>
  }
}
// ----
module @"jit__lambda" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2xi1>, tensor<2xcomplex<f32>>, tensor<4xf32>, tensor<64xi8>, tensor<50xi1>, tensor<3xbf16>, tensor<0x3xf32>, tensor<40xi1>, tensor<3xi8>, tensor<1xui64>) {
    %0 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %1 = stablehlo.constant dense<[(1.0,2.0), (3.0,-4.0)]> : tensor<2xcomplex<f32>>
    %2 = stablehlo.constant dense<[0x7FC00000, 0x7F800000, 0xFF800000, -0.0]> : tensor<4xf32>
    %3 = stablehlo.constant dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F"> : tensor<64xi8>
    %4 = stablehlo.constant dense<true> : tensor<50xi1>
    %5 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>
    %6 = stablehlo.constant dense<> : tensor<0x3xf32>
    %7 = stablehlo.constant dense<[false, false, false, false, true, false, false, true, false, true, false, false, false, false, true, true, true, true, false, true, true, true, false, false, false, false, false, true, false, true, false, false, true, false, false, false, false, true, false, true]> : tensor<40xi1>
    %8 = stablehlo.constant dense<-128> : tensor<3xi8>
    %9 = stablehlo.constant dense<18446744073709551615> : tensor<1xui64>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<2xi1>, tensor<2xcomplex<f32>>, tensor<4xf32>, tensor<64xi8>, tensor<50xi1>, tensor<3xbf16>, tensor<0x3xf32>, tensor<40xi1>, tensor<3xi8>, tensor<1xui64>
  }
}
