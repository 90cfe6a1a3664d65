func.func @main(%a: tensor<4x5xf32>, %b: tensor<5x4xi8>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
  %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<5x4xi8>) -> tensor<4x5xi8>
  %c = stablehlo.constant dense<"0x0102030405060708090A0B0C0D0E0F1011121314"> : tensor<4x5xi8>
  %s = stablehlo.slice %t [0:4:2, 1:3] : (tensor<4x5xi8>) -> tensor<2x2xi8>
  %d = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1], precision = [HIGHEST, DEFAULT] : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x4xf32>
  %m = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 2, 2>, padding = dense<1> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %r = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<4x5xf32>, tensor<f32>) -> tensor<5x6xf32>
  return %0 : tensor<4xf32>
}
