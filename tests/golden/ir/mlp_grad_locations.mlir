#loc1 = loc("p['b1']")
#loc2 = loc("p['b2']")
#loc3 = loc("p['w1']")
#loc4 = loc("p['w2']")
#loc5 = loc("x")
#loc6 = loc("y")
module @jit_mlp attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16xf32> loc("p['b1']"), %arg1: tensor<4xf32> loc("p['b2']"), %arg2: tensor<8x16xf32> loc("p['w1']"), %arg3: tensor<16x4xf32> loc("p['w2']"), %arg4: tensor<32x8xf32> loc("x"), %arg5: tensor<32x4xf32> loc("y")) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<16xf32> {jax.result_info = "result[1]['b1']"}, tensor<4xf32> {jax.result_info = "result[1]['b2']"}, tensor<8x16xf32> {jax.result_info = "result[1]['w1']"}, tensor<16x4xf32> {jax.result_info = "result[1]['w2']"}) {
    %0 = stablehlo.dot_general %arg4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32> loc(#loc34)
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32> loc(#loc35)
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<32x16xf32> loc(#loc36)
    %3 = stablehlo.add %0, %2 : tensor<32x16xf32> loc(#loc36)
    %4 = stablehlo.tanh %3 : tensor<32x16xf32> loc(#loc37)
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc28)
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x16xf32> loc(#loc38)
    %6 = stablehlo.subtract %5, %4 : tensor<32x16xf32> loc(#loc38)
    %7 = stablehlo.dot_general %4, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x16xf32>, tensor<16x4xf32>) -> tensor<32x4xf32> loc(#loc39)
    %8 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32> loc(#loc40)
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<32x4xf32> loc(#loc41)
    %10 = stablehlo.add %7, %9 : tensor<32x4xf32> loc(#loc41)
    %11 = stablehlo.subtract %10, %arg5 : tensor<32x4xf32> loc(#loc42)
    %12 = stablehlo.multiply %11, %11 : tensor<32x4xf32> loc(#loc43)
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32> loc(#loc28)
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32x4xf32> loc(#loc44)
    %14 = stablehlo.multiply %13, %11 : tensor<32x4xf32> loc(#loc44)
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc45)
    %15 = stablehlo.reduce(%12 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x4xf32>, tensor<f32>) -> tensor<f32> loc(#loc45)
    %cst_2 = stablehlo.constant dense<1.280000e+02> : tensor<f32> loc(#loc28)
    %16 = stablehlo.divide %15, %cst_2 : tensor<f32> loc(#loc46)
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc(#loc28)
    %cst_4 = stablehlo.constant dense<1.280000e+02> : tensor<f32> loc(#loc28)
    %17 = stablehlo.divide %cst_3, %cst_4 : tensor<f32> loc(#loc47)
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<32x4xf32> loc(#loc48)
    %19 = stablehlo.multiply %18, %14 : tensor<32x4xf32> loc(#loc49)
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc50)
    %20 = stablehlo.reduce(%19 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<32x4xf32>, tensor<f32>) -> tensor<4xf32> loc(#loc50)
    %21 = stablehlo.reshape %20 : (tensor<4xf32>) -> tensor<1x4xf32> loc(#loc51)
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc50)
    %22 = stablehlo.reduce(%21 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32> loc(#loc50)
    %23 = stablehlo.dot_general %19, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x4xf32>, tensor<32x16xf32>) -> tensor<4x16xf32> loc(#loc52)
    %24 = stablehlo.transpose %23, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32> loc(#loc53)
    %25 = stablehlo.dot_general %19, %arg3, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<32x4xf32>, tensor<16x4xf32>) -> tensor<32x16xf32> loc(#loc52)
    %26 = stablehlo.multiply %25, %6 : tensor<32x16xf32> loc(#loc54)
    %27 = stablehlo.multiply %26, %4 : tensor<32x16xf32> loc(#loc54)
    %28 = stablehlo.add %26, %27 : tensor<32x16xf32> loc(#loc55)
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc56)
    %29 = stablehlo.reduce(%28 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<32x16xf32>, tensor<f32>) -> tensor<16xf32> loc(#loc56)
    %30 = stablehlo.reshape %29 : (tensor<16xf32>) -> tensor<1x16xf32> loc(#loc57)
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc56)
    %31 = stablehlo.reduce(%30 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<1x16xf32>, tensor<f32>) -> tensor<16xf32> loc(#loc56)
    %32 = stablehlo.dot_general %28, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x16xf32>, tensor<32x8xf32>) -> tensor<16x8xf32> loc(#loc58)
    %33 = stablehlo.transpose %32, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32> loc(#loc59)
    return %16, %31, %22, %33, %24 : tensor<f32>, tensor<16xf32>, tensor<4xf32>, tensor<8x16xf32>, tensor<16x4xf32> loc(#loc28)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc7 = loc("/tmp/ir/gen.py":38:15 to :24)
#loc8 = loc("/tmp/ir/gen.py":94:17 to :45)
#loc9 = loc("/tmp/ir/gen.py":38:15 to :32)
#loc10 = loc("/tmp/ir/gen.py":38:6 to :33)
#loc11 = loc("/tmp/ir/gen.py":38:44 to :53)
#loc12 = loc("/tmp/ir/gen.py":38:44 to :61)
#loc13 = loc("/tmp/ir/gen.py":38:44 to :63)
#loc14 = loc("/tmp/ir/gen.py":38:43 to :67)
#loc15 = loc("/tmp/ir/gen.py":38:42 to :75)
#loc16 = loc("mlp"(#loc7))
#loc17 = loc("<module>"(#loc8))
#loc18 = loc("mlp"(#loc9))
#loc19 = loc("mlp"(#loc10))
#loc20 = loc("mlp"(#loc11))
#loc21 = loc("mlp"(#loc12))
#loc22 = loc("mlp"(#loc13))
#loc23 = loc("mlp"(#loc14))
#loc24 = loc("mlp"(#loc15))
#loc25 = loc(callsite(#loc16 at #loc17))
#loc26 = loc(callsite(#loc18 at #loc17))
#loc27 = loc(callsite(#loc19 at #loc17))
#loc28 = loc("jit(mlp)"(#loc17))
#loc29 = loc(callsite(#loc20 at #loc17))
#loc30 = loc(callsite(#loc21 at #loc17))
#loc31 = loc(callsite(#loc22 at #loc17))
#loc32 = loc(callsite(#loc23 at #loc17))
#loc33 = loc(callsite(#loc24 at #loc17))
#loc34 = loc("jit(mlp)/jvp()/dot_general"(#loc25))
#loc35 = loc("jit(mlp)/jvp()/broadcast_in_dim"(#loc26))
#loc36 = loc("jit(mlp)/jvp()/add"(#loc26))
#loc37 = loc("jit(mlp)/jvp()/tanh"(#loc27))
#loc38 = loc("jit(mlp)/jvp()/sub"(#loc27))
#loc39 = loc("jit(mlp)/jvp()/dot_general"(#loc29))
#loc40 = loc("jit(mlp)/jvp()/broadcast_in_dim"(#loc30))
#loc41 = loc("jit(mlp)/jvp()/add"(#loc30))
#loc42 = loc("jit(mlp)/jvp()/sub"(#loc31))
#loc43 = loc("jit(mlp)/jvp()/integer_pow"(#loc32))
#loc44 = loc("jit(mlp)/jvp()/mul"(#loc32))
#loc45 = loc("jit(mlp)/jvp()/reduce_sum"(#loc33))
#loc46 = loc("jit(mlp)/jvp()/div"(#loc33))
#loc47 = loc("jit(mlp)/transpose(jvp())/div"(#loc33))
#loc48 = loc("jit(mlp)/transpose(jvp())/broadcast_in_dim"(#loc33))
#loc49 = loc("jit(mlp)/transpose(jvp())/mul"(#loc32))
#loc50 = loc("jit(mlp)/transpose(jvp())/reduce_sum"(#loc30))
#loc51 = loc("jit(mlp)/transpose(jvp())/reshape"(#loc30))
#loc52 = loc("jit(mlp)/transpose(jvp())/dot_general"(#loc29))
#loc53 = loc("jit(mlp)/transpose(jvp())/transpose"(#loc29))
#loc54 = loc("jit(mlp)/transpose(jvp())/mul"(#loc27))
#loc55 = loc("jit(mlp)/transpose(jvp())/add_any"(#loc27))
#loc56 = loc("jit(mlp)/transpose(jvp())/reduce_sum"(#loc26))
#loc57 = loc("jit(mlp)/transpose(jvp())/reshape"(#loc26))
#loc58 = loc("jit(mlp)/transpose(jvp())/dot_general"(#loc25))
#loc59 = loc("jit(mlp)/transpose(jvp())/transpose"(#loc25))
// ----
module @"jit_mlp" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<4xf32>, %arg2: tensor<8x16xf32>, %arg3: tensor<16x4xf32>, %arg4: tensor<32x8xf32>, %arg5: tensor<32x4xf32>) -> (tensor<f32>, tensor<16xf32>, tensor<4xf32>, tensor<8x16xf32>, tensor<16x4xf32>) {
    %0 = stablehlo.dot_general %arg4, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<32x16xf32>
    %3 = stablehlo.add %0, %2 : tensor<32x16xf32>
    %4 = stablehlo.tanh %3 : tensor<32x16xf32>
    %5 = stablehlo.constant dense<1.0> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<32x16xf32>
    %7 = stablehlo.subtract %6, %4 : tensor<32x16xf32>
    %8 = stablehlo.dot_general %4, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x16xf32>, tensor<16x4xf32>) -> tensor<32x4xf32>
    %9 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<32x4xf32>
    %11 = stablehlo.add %8, %10 : tensor<32x4xf32>
    %12 = stablehlo.subtract %11, %arg5 : tensor<32x4xf32>
    %13 = stablehlo.multiply %12, %12 : tensor<32x4xf32>
    %14 = stablehlo.constant dense<2.0> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %16 = stablehlo.multiply %15, %12 : tensor<32x4xf32>
    %17 = stablehlo.constant dense<0.0> : tensor<f32>
    %18 = "stablehlo.reduce"(%13, %17) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%19: tensor<f32>, %20: tensor<f32>):
      %21 = stablehlo.add %19, %20 : tensor<f32>
      stablehlo.return %21 : tensor<f32>
    }) : (tensor<32x4xf32>, tensor<f32>) -> tensor<f32>
    %22 = stablehlo.constant dense<128.0> : tensor<f32>
    %23 = stablehlo.divide %18, %22 : tensor<f32>
    %24 = stablehlo.constant dense<1.0> : tensor<f32>
    %25 = stablehlo.constant dense<128.0> : tensor<f32>
    %26 = stablehlo.divide %24, %25 : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<32x4xf32>
    %28 = stablehlo.multiply %27, %16 : tensor<32x4xf32>
    %29 = stablehlo.constant dense<0.0> : tensor<f32>
    %30 = "stablehlo.reduce"(%28, %29) <{dimensions = array<i64: 0>}> ({
    ^bb0(%31: tensor<f32>, %32: tensor<f32>):
      %33 = stablehlo.add %31, %32 : tensor<f32>
      stablehlo.return %33 : tensor<f32>
    }) : (tensor<32x4xf32>, tensor<f32>) -> tensor<4xf32>
    %34 = stablehlo.reshape %30 : (tensor<4xf32>) -> tensor<1x4xf32>
    %35 = stablehlo.constant dense<0.0> : tensor<f32>
    %36 = "stablehlo.reduce"(%34, %35) <{dimensions = array<i64: 0>}> ({
    ^bb0(%37: tensor<f32>, %38: tensor<f32>):
      %39 = stablehlo.add %37, %38 : tensor<f32>
      stablehlo.return %39 : tensor<f32>
    }) : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %40 = stablehlo.dot_general %28, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x4xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %41 = stablehlo.transpose %40, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %42 = stablehlo.dot_general %28, %arg3, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<32x4xf32>, tensor<16x4xf32>) -> tensor<32x16xf32>
    %43 = stablehlo.multiply %42, %7 : tensor<32x16xf32>
    %44 = stablehlo.multiply %43, %4 : tensor<32x16xf32>
    %45 = stablehlo.add %43, %44 : tensor<32x16xf32>
    %46 = stablehlo.constant dense<0.0> : tensor<f32>
    %47 = "stablehlo.reduce"(%45, %46) <{dimensions = array<i64: 0>}> ({
    ^bb0(%48: tensor<f32>, %49: tensor<f32>):
      %50 = stablehlo.add %48, %49 : tensor<f32>
      stablehlo.return %50 : tensor<f32>
    }) : (tensor<32x16xf32>, tensor<f32>) -> tensor<16xf32>
    %51 = stablehlo.reshape %47 : (tensor<16xf32>) -> tensor<1x16xf32>
    %52 = stablehlo.constant dense<0.0> : tensor<f32>
    %53 = "stablehlo.reduce"(%51, %52) <{dimensions = array<i64: 0>}> ({
    ^bb0(%54: tensor<f32>, %55: tensor<f32>):
      %56 = stablehlo.add %54, %55 : tensor<f32>
      stablehlo.return %56 : tensor<f32>
    }) : (tensor<1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %57 = stablehlo.dot_general %45, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x16xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    %58 = stablehlo.transpose %57, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    return %23, %53, %36, %58, %41 : tensor<f32>, tensor<16xf32>, tensor<4xf32>, tensor<8x16xf32>, tensor<16x4xf32>
  }
}
