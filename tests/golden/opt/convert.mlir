// pass: simplify
module @"convert" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xi16>, %arg1: tensor<4xi8>) -> (tensor<4xui64>, tensor<4xi8>, tensor<4xi32>, tensor<4xi16>, tensor<4xui64>) {
    %0 = stablehlo.convert %arg0 : (tensor<4xi16>) -> tensor<4xf32>
    %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xui64>
    %2 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xi8>
    %3 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xi32>
    %4 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xi16>
    %5 = stablehlo.convert %arg1 : (tensor<4xi8>) -> tensor<4xi32>
    %6 = stablehlo.convert %5 : (tensor<4xi32>) -> tensor<4xui64>
    return %1, %2, %3, %4, %6 : tensor<4xui64>, tensor<4xi8>, tensor<4xi32>, tensor<4xi16>, tensor<4xui64>
  }
}
// ----
module @"convert" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xi16>, %arg1: tensor<4xi8>) -> (tensor<4xui64>, tensor<4xi8>, tensor<4xi32>, tensor<4xi16>, tensor<4xui64>) {
    %0 = stablehlo.convert %arg0 : (tensor<4xi16>) -> tensor<4xf32>
    %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xui64>
    %2 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xi8>
    %3 = stablehlo.convert %arg0 : (tensor<4xi16>) -> tensor<4xi32>
    %4 = stablehlo.convert %arg1 : (tensor<4xi8>) -> tensor<4xui64>
    return %1, %2, %3, %arg0, %4 : tensor<4xui64>, tensor<4xi8>, tensor<4xi32>, tensor<4xi16>, tensor<4xui64>
  }
}
