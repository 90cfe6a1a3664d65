// pass: simplify
module @"algebra" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xi32>, %arg2: tensor<4xi1>, %arg3: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xi1>, tensor<4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %minus = stablehlo.constant dense<-0.0> : tensor<4xf32>
    %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<4xi32>
    %a = stablehlo.add %arg0, %zero : tensor<4xf32>
    %b = stablehlo.add %minus, %arg0 : tensor<4xf32>
    %c = stablehlo.multiply %b, %one : tensor<4xf32>
    %d = stablehlo.subtract %c, %zero : tensor<4xf32>
    %e = stablehlo.add %arg1, %i0 : tensor<4xi32>
    %f = stablehlo.xor %arg1, %arg1 : tensor<4xi32>
    %n = stablehlo.not %arg2 : tensor<4xi1>
    %s = stablehlo.select %n, %arg0, %one : tensor<4xi1>, tensor<4xf32>
    %w = stablehlo.convert %arg3 : (tensor<4xbf16>) -> tensor<4xf32>
    %x = stablehlo.convert %w : (tensor<4xf32>) -> tensor<4xbf16>
    %y = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf16>
    %z = stablehlo.convert %y : (tensor<4xf16>) -> tensor<4xbf16>
    %nn = stablehlo.not %n : tensor<4xi1>
    %neg = stablehlo.negate %arg0 : tensor<4xf32>
    %negneg = stablehlo.negate %neg : tensor<4xf32>
    return %a, %b, %d, %e, %f, %s, %x, %z, %nn, %negneg : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xi1>, tensor<4xf32>
  }
}
// ----
module @"algebra" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xi32>, %arg2: tensor<4xi1>, %arg3: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xi1>, tensor<4xf32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
    %1 = stablehlo.constant dense<1.0> : tensor<4xf32>
    %2 = stablehlo.add %arg0, %0 : tensor<4xf32>
    %3 = stablehlo.constant dense<0> : tensor<4xi32>
    %4 = stablehlo.select %arg2, %1, %arg0 : tensor<4xi1>, tensor<4xf32>
    %5 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf16>
    %6 = stablehlo.convert %5 : (tensor<4xf16>) -> tensor<4xbf16>
    return %2, %arg0, %arg0, %arg1, %3, %4, %arg3, %6, %arg2, %arg0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xbf16>, tensor<4xi1>, tensor<4xf32>
  }
}
