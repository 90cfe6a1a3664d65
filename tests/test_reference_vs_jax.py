# ruff: noqa: E501, E731, B023  (texts of programs; lambdas that are called at once)
"""The reference executor against XLA's CPU backend, op by op and dtype by dtype. Needs JAX and the
library of the C tests (`make test-c`); the types that add little are marked slow."""

import functools
import itertools
import os

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jax")
pytest.importorskip("ml_dtypes")

import jax
import jax.numpy as jnp
import ml_dtypes
from jax import lax
from reference_harness import (
    COMPLEX,
    F8,
    FLOATS,
    INTS,
    NUMPY,
    SIGNED,
    SMALL,
    UNSIGNED,
    Program,
    compare,
    compare_text,
    needs_library,
    sweep,
    values,
    wide,
)

pytestmark = needs_library

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    np.inf,
    -np.inf,
    np.nan,
    3.0,
    -7.25,
    88.0,
    1e-3,
]


def special(dtype):
    return np.concatenate([np.array(SPECIAL).astype(NUMPY[dtype]), values(dtype, (48,), "special")])


def int_special(dtype):
    info = np.iinfo(NUMPY[dtype])
    edge = np.array([0, 1, 2, info.max, info.min, info.max - 1, 3, 7], NUMPY[dtype])
    if info.min < 0:
        edge = np.concatenate([edge, np.array([-1, -2, -7], NUMPY[dtype])])
    return np.concatenate([edge, values(dtype, (21,), "edge")])


EXACT1 = ["abs", "ceil", "floor", "neg", "sign", "sqrt", "is_finite"]
SMOOTH1 = [
    "cbrt",
    "cos",
    "exp",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "rsqrt",
    "sin",
    "tan",
    "tanh",
    "erf",
    "erfc",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cosh",
    "sinh",
]


@pytest.mark.parametrize("dtype", sweep(FLOATS))
@pytest.mark.parametrize("op", EXACT1)
def test_float_unary_exact(op, dtype):
    compare(getattr(lax, op), [special(dtype)], ulps=0 if op != "sqrt" else 1)


@pytest.mark.parametrize("dtype", sweep(FLOATS))
@pytest.mark.parametrize("op", SMOOTH1)
def test_float_unary(op, dtype):
    # XLA's own approximations are good to a few ulps; f64 goes through polynomials of its own.
    compare(
        getattr(lax, op),
        [special(dtype)],
        ulps=16 if dtype != "f64" else 64,
        atol=1e-6 if dtype == "f32" else 0,
    )


@pytest.mark.parametrize("dtype", sweep(["f32", "f64"]))
@pytest.mark.parametrize("op", ["lgamma", "digamma", "erf_inv"])
def test_float_special_functions(op, dtype):
    x = special(dtype)
    if op == "erf_inv":
        x = np.concatenate([x, values(dtype, (64,), "erf", -1, 1)])
    compare(
        getattr(lax, op),
        [x],
        ulps=64 if dtype == "f32" else 4096,
        atol=2e-6 if dtype == "f32" else 1e-13,
    )


@pytest.mark.parametrize("dtype", sweep(FLOATS))
@pytest.mark.parametrize("method", [0, 1])
def test_round(method, dtype):
    compare(lambda x: lax.round(x, lax.RoundingMethod(method)), [special(dtype)])


def pairs(x):
    a, b = np.meshgrid(x, x)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("dtype", sweep(FLOATS))
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "max", "min", "rem", "nextafter"])
def test_float_binary_exact(op, dtype):
    if op == "nextafter" and dtype == "f16":
        pytest.skip("XLA rejects f16")
    a, b = pairs(special(dtype)[:40])
    compare(getattr(lax, op), [a, b])


@pytest.mark.parametrize("dtype", sweep(FLOATS))
@pytest.mark.parametrize("op", ["atan2", "pow"])
def test_float_binary(op, dtype):
    a, b = pairs(special(dtype)[:40])
    compare(getattr(lax, op), [a, b], ulps=64, atol=1e-6 if dtype != "f64" else 0)


@pytest.mark.parametrize("dtype", sweep(INTS))
@pytest.mark.parametrize(
    "op",
    [
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "max",
        "min",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "shift_left",
        "shift_right_logical",
        "shift_right_arithmetic",
    ],
)
def test_int_binary(op, dtype):
    a, b = pairs(int_special(dtype))
    if op.startswith("shift"):
        b = values(dtype, a.shape, "shift", 0, np.iinfo(b.dtype).bits + 3)
    compare(getattr(lax, op), [a, b])


@pytest.mark.parametrize("dtype", sweep(INTS))
@pytest.mark.parametrize("op", ["abs", "neg", "sign", "bitwise_not", "population_count", "clz"])
def test_int_unary(op, dtype):
    if op == "abs" and dtype in UNSIGNED:
        pytest.skip("JAX rejects unsigned types")
    compare(getattr(lax, op), [int_special(dtype)])


def binary_text(op, dtype, count):
    t = f"tensor<{count}x{dtype}>"
    return f"""module @m {{
  func.func public @main(%a: {t}, %b: {t}) -> {t} {{
    %r = stablehlo.{op} %a, %b : {t}
    return %r : {t}
  }}
}}"""


@pytest.mark.parametrize("dtype", sweep(INTS))
def test_int_power(dtype):
    # XLA looks at six bits of the exponent, and takes a large unsigned one as negative.
    a = np.repeat(int_special(dtype), 10)
    b = np.tile(
        np.array([0, 1, 2, 3, 7, 31, 62, 63, -1, -2] if dtype in SIGNED else range(10)),
        len(a) // 10,
    )
    b = b.astype(a.dtype)
    compare_text(binary_text("power", dtype, len(a)), [a, b])


@pytest.mark.parametrize("dtype", sweep(["i4", "ui4"]))
@pytest.mark.parametrize("op", ["add", "sub", "mul", "max", "min"])
def test_nibble_binary(op, dtype):
    a, b = pairs(values(dtype, (20,), op).astype(np.int8))
    compare(getattr(lax, op), [a.astype(NUMPY[dtype]), b.astype(NUMPY[dtype])])


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor", "max", "min"])
def test_bool_binary(op):
    a, b = pairs(np.array([False, True]))
    compare(getattr(lax, op), [a, b])


@pytest.mark.parametrize("dtype", sweep(COMPLEX))
@pytest.mark.parametrize(
    "op",
    [
        "abs",
        "neg",
        "sign",
        "cos",
        "sin",
        "exp",
        "log",
        "log1p",
        "expm1",
        "sqrt",
        "rsqrt",
        "tanh",
        "logistic",
        "tan",
        "real",
        "imag",
        "conj",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "sinh",
        "cosh",
    ],
)
def test_complex_unary(op, dtype):
    compare(getattr(lax, op), [values(dtype, (64,), op)], ulps=64)


@pytest.mark.parametrize("dtype", sweep(COMPLEX))
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "pow", "eq", "ne"])
def test_complex_binary(op, dtype):
    compare(getattr(lax, op), [values(dtype, (64,), "a"), values(dtype, (64,), "b")], ulps=256)


@pytest.mark.parametrize("dtype", sweep(FLOATS + INTS + ["i1"]))
@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compare(op, dtype):
    x = (
        special(dtype)
        if dtype in FLOATS
        else int_special(dtype)
        if dtype in INTS
        else np.array([False, True])
    )
    compare(getattr(lax, op), list(pairs(x[:30])))


CONVERT = [*FLOATS, *F8, *INTS, "i1", "i4", "ui4", *COMPLEX]


@pytest.mark.parametrize("to", sweep(CONVERT))
@pytest.mark.parametrize("source", sweep(CONVERT))
def test_convert(source, to):
    if source in COMPLEX and to not in COMPLEX:
        pytest.skip("JAX takes the real part itself")
    fractional = source in FLOATS or source in F8
    if fractional and to in ("i4", "ui4"):
        x = np.array([0, 1, -1, 3.7, 7, -8, 2.5]).astype(NUMPY[source])
    elif fractional:
        x = special(source)
    elif source in INTS:
        x = int_special(source)
    else:
        x = values(source, (64,), to)
    if to in ("f8E4M3FN", "f8E5M2"):
        # XLA's CPU backend rounds twice, by way of f16, from wide types.
        x = x[np.isfinite(wide(x).real)] if fractional else x
        x = x.astype(np.float64).astype(NUMPY["f8E5M2"]).astype(x.dtype) if fractional else x
    compare(lambda x: lax.convert_element_type(x, NUMPY[to]), [x])


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("f32", "i32"),
        ("f32", "ui8"),
        ("ui8", "f32"),
        ("f64", "ui32"),
        ("i16", "bf16"),
        ("f16", "i8"),
        ("i64", "f64"),
    ],
)
def test_bitcast(source, to):
    a, b = NUMPY[source], NUMPY[to]
    shape = (
        (3, np.dtype(b).itemsize // np.dtype(a).itemsize)
        if np.dtype(b).itemsize > np.dtype(a).itemsize
        else (3,)
    )
    x = values(source, shape, to)
    compare(lambda x: lax.bitcast_convert_type(x, b), [x])


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "bf16"]))
@pytest.mark.parametrize(
    ("exponent", "mantissa"), [(8, 7), (5, 10), (4, 3), (8, 23), (5, 2), (3, 0)]
)
def test_reduce_precision(exponent, mantissa, dtype):
    x = np.concatenate([special(dtype), values(dtype, (64,), "p", -1e-3, 1e-3)])
    compare(lambda x: lax.reduce_precision(x, exponent, mantissa), [x])


ALL = [*FLOATS, *INTS, *COMPLEX, "i1"]


@pytest.mark.parametrize("dtype", sweep(ALL))
def test_data_movement(dtype):
    x = values(dtype, (2, 3, 4))
    y = values(dtype, (2, 1, 4), "y")
    compare(lambda x: lax.transpose(x, (2, 0, 1)), [x])
    compare(lambda x: lax.rev(x, (0, 2)), [x])
    compare(lambda x: lax.slice(x, (0, 1, 1), (2, 3, 4), (1, 1, 2)), [x])
    compare(lambda x: lax.broadcast_in_dim(x, (2, 5, 4, 3), (0, 1, 2)), [y])
    compare(lambda x: lax.reshape(x, (4, 6)), [x])
    compare(lambda x, y: lax.concatenate([x, y, x], 1), [x, y])
    one = values(dtype, (), "pad")
    compare(lambda x, v: lax.pad(x, v, ((1, 2, 0), (0, -1, 1), (-1, 3, 2))), [x, one])
    compare(lambda x, v: lax.pad(x, v, ((-1, -1, 3), (2, -4, 0), (0, 0, 0))), [x, one])
    compare(lambda x, c: lax.select(c, x, jnp.flip(x)), [x, values("i1", (2, 3, 4))])
    for i in [(-5, 0, 9), (1, 1, 1), (0, 2, -1)]:
        index = [np.int32(k) for k in i]
        compare(lambda x, a, b, c: lax.dynamic_slice(x, (a, b, c), (1, 2, 2)), [x, *index])
        compare(
            lambda x, u, a, b, c: lax.dynamic_update_slice(x, u, (a, b, c)),
            [x, x[:1, :2, :2], *index],
        )
    if dtype != "i1":
        compare(lambda: lax.broadcasted_iota(NUMPY[dtype], (3, 5), 1), [])


@pytest.mark.parametrize("dtype", sweep([*FLOATS, *INTS]))
def test_clamp(dtype):
    compare(lax.clamp, [values(dtype, (), "l"), values(dtype, (30,)), values(dtype, (), "h")])
    compare(lax.clamp, [values(dtype, (30,), "l"), values(dtype, (30,)), values(dtype, (30,), "h")])


@pytest.mark.parametrize("dtype", sweep([*FLOATS, *INTS, *COMPLEX]))
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_reduce(op, dims, dtype):
    if dtype in COMPLEX and op in ("max", "min"):
        pytest.skip("complex numbers have no order")
    x = values(dtype, (3, 20, 5))
    fn = {
        "sum": lax.reduce_sum,
        "prod": lax.reduce_prod,
        "max": lax.reduce_max,
        "min": lax.reduce_min,
    }[op]
    if op == "prod" and dtype in FLOATS:
        x = values(dtype, (3, 20, 5), low=0.8, high=1.25)
    scale = float(np.max(np.abs(wide(x)))) if dtype not in INTS else 0
    eps = float(ml_dtypes.finfo(np.zeros((), NUMPY[dtype]).real.dtype).eps) if scale else 0
    compare(lambda x: fn(x, dims), [x], ulps=64 if dtype not in SMALL else 8, atol=scale * eps * 64)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_reduce_bool(dims):
    x = values("i1", (4, 5))
    compare(
        lambda x: (lax.reduce_and(x, dims), lax.reduce_or(x, dims), lax.reduce_xor(x, dims)), [x]
    )


@pytest.mark.parametrize("dtype", sweep([*FLOATS, *INTS]))
@pytest.mark.parametrize("axis", [0, 1])
def test_argmax(axis, dtype):
    x = (
        values(dtype, (40, 3), low=-3, high=3)
        if dtype not in UNSIGNED
        else values(dtype, (40, 3), low=0, high=5)
    )
    if dtype in FLOATS:
        x[7, 1] = np.nan
    compare(lambda x: (lax.argmax(x, axis, np.int32), lax.argmin(x, axis, np.int64)), [x])


def test_reduce_bodies():
    x, y = values("f32", (4, 30)), values("i32", (4, 30), low=-9, high=9)
    k = np.float32(0.5)
    # A body of several ops, of several values, one that captures a value.
    compare(lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b * b, (1,)), [x], ulps=64)
    compare(
        lambda x, y: lax.reduce(
            (x, y),
            (np.float32(-1), np.int32(3)),
            lambda a, b: (jnp.maximum(a[0], b[0]), a[1] + b[1]),
            (1,),
        ),
        [x, y],
    )
    compare(
        lambda x: lax.reduce(x, np.float32(0), lambda a, b: jnp.where(b > 0.5, a + 1, a), (1,)),
        [x + k],
    )


def windows():
    yield from [
        ((8,), (3,), (1,), "VALID", (1,), (1,)),
        ((8, 9), (2, 3), (2, 1), "SAME", (1, 1), (1, 1)),
        ((2, 7, 7), (1, 3, 2), (1, 2, 2), ((0, 0), (1, 2), (0, 3)), (1, 1, 1), (1, 1, 1)),
        ((6, 5), (2, 2), (1, 1), ((1, 1), (0, 2)), (2, 3), (1, 1)),
        ((9, 9), (3, 2), (2, 3), ((2, 0), (1, 1)), (1, 2), (2, 3)),
        ((9, 9), (3, 2), (2, 3), ((-1, 0), (1, -2)), (1, 2), (2, 1)),
        ((10,), (10,), (1,), ((9, 0),), (1,), (1,)),
    ]


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "bf16", "i32", "ui8", "complex<f32>"]))
@pytest.mark.parametrize("case", list(windows()), ids=str)
def test_reduce_window(case, dtype):
    shape, window, strides, padding, base, dil = case
    x = values(dtype, shape)
    zero = np.zeros((), NUMPY[dtype])
    run = functools.partial(
        lax.reduce_window,
        window_dimensions=window,
        window_strides=strides,
        padding=padding,
        base_dilation=base,
        window_dilation=dil,
    )
    # XLA sums bf16 windows in bf16.
    atol = {"f32": 4e-6, "f64": 1e-14, "bf16": 0.2, "complex<f32>": 4e-6}.get(dtype, 0)
    compare(lambda x: run(x, zero, lax.add), [x], ulps=16, atol=atol)
    if dtype not in COMPLEX:
        low = -np.inf if dtype in FLOATS else np.iinfo(NUMPY[dtype]).min
        compare(lambda x: run(x, np.array(low, NUMPY[dtype]), lax.max), [x])


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "bf16", "i32"]))
@pytest.mark.parametrize(
    "case",
    [
        ((8, 9), (2, 3), (2, 3), "VALID"),
        ((7, 7), (3, 3), (2, 2), "SAME"),
        ((1, 9), (1, 4), (1, 2), "SAME"),
    ],
    ids=str,
)
def test_max_pool_gradient(case, dtype):
    shape, window, strides, padding = case
    x = values(dtype, shape)
    if dtype == "i32":
        low = np.array(np.iinfo(np.int32).min, np.int32)
        compare(lambda x: lax.reduce_window(x, low, lax.max, window, strides, padding), [x])
        return
    low = np.array(-np.inf, NUMPY[dtype])
    pool = lambda x: lax.reduce_window(x, low, lax.max, window, strides, padding)
    compare(
        lambda x: jax.grad(lambda x: jnp.sum(pool(x) * jnp.cos(pool(x))))(x),
        [x],
        ulps=16,
        atol=0.05 if dtype == "bf16" else 1e-5,
    )


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "i32", "bf16"]))
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative(op, dtype):
    if op == "cumlogsumexp" and dtype == "i32":
        pytest.skip("floats only")
    x = values(dtype, (3, 17))
    for axis, reverse in itertools.product((0, 1), (False, True)):
        compare(
            lambda x: getattr(lax, op)(x, axis, reverse),
            [x],
            ulps=64 if dtype != "bf16" else 8,
            atol={"f32": 1e-5, "f64": 1e-13, "bf16": 0.2}.get(dtype, 0),
        )


DOTS = [
    ((4, 5), (5, 6), ((1,), (0,)), ((), ())),
    ((3, 4, 5), (3, 5, 2), ((2,), (1,)), ((0,), (0,))),
    ((4, 3, 5), (5, 3, 2), ((2,), (0,)), ((1,), (1,))),
    ((2, 3, 4, 5), (5, 3, 2, 6), ((1, 3), (1, 0)), ((0,), (2,))),
    ((5,), (5,), ((0,), (0,)), ((), ())),
    ((2, 3), (4,), ((), ()), ((), ())),
    ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
]


@pytest.mark.parametrize("dtype", sweep([*FLOATS, *COMPLEX, "i32", "i8", "ui16", "i64"]))
@pytest.mark.parametrize("case", DOTS, ids=str)
def test_dot_general(case, dtype):
    a, b, contract, batch = case
    x, y = values(dtype, a, "x"), values(dtype, b, "y")
    compare(
        lambda x, y: lax.dot_general(x, y, (contract, batch)),
        [x, y],
        ulps=64 if dtype not in SMALL else 4,
        atol={"f32": 4e-6, "complex<f32>": 8e-6, "f64": 1e-14, "complex<f64>": 1e-14}.get(
            dtype, 0.05 if dtype in SMALL else 0
        ),
    )


@pytest.mark.parametrize(
    ("dtype", "wider"),
    [("bf16", "f32"), ("f16", "f32"), ("i8", "i32"), ("ui8", "i32"), ("f32", "f64"), ("i8", "f32")],
)
def test_dot_widens(dtype, wider):
    x, y = values(dtype, (7, 33), "x"), values(dtype, (33, 5), "y")
    compare(
        lambda x, y: lax.dot_general(
            x, y, (((1,), (0,)), ((), ())), preferred_element_type=NUMPY[wider]
        ),
        [x, y],
        ulps=64,
        atol=1e-5,
    )


CONVS = [
    dict(x=(2, 3, 8), k=(4, 3, 3), s=(1,), p="SAME"),
    dict(x=(2, 4, 8, 9), k=(6, 2, 3, 2), s=(2, 1), p=((1, 0), (2, 1)), groups=2),
    dict(x=(2, 4, 8, 9), k=(4, 1, 3, 3), s=(1, 1), p="VALID", groups=4),
    dict(x=(2, 3, 5, 6), k=(4, 3, 3, 2), s=(1, 1), p=((2, 2), (1, 1)), lhs=(2, 3)),
    dict(x=(2, 3, 9, 9), k=(4, 3, 3, 2), s=(2, 1), p=((-1, 2), (1, 1)), lhs=(1, 2), rhs=(2, 3)),
    dict(x=(4, 3, 6, 6), k=(4, 3, 2, 2), s=(1, 1), p="VALID", batch=2),
    dict(x=(1, 2, 4, 5, 6), k=(3, 2, 2, 3, 2), s=(1, 2, 1), p="SAME"),
    dict(x=(2, 3), k=(4, 3), s=(), p=()),
    dict(x=(1, 3, 2), k=(4, 3, 3), s=(1,), p=((0, 0),)),
]


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "bf16", "i32", "complex<f32>", "i8"]))
@pytest.mark.parametrize("case", CONVS, ids=str)
def test_convolution(case, dtype):
    x, k = values(dtype, case["x"], "x"), values(dtype, case["k"], "k")
    compare(
        lambda x, k: lax.conv_general_dilated(
            x,
            k,
            case["s"],
            case["p"],
            case.get("lhs"),
            case.get("rhs"),
            feature_group_count=case.get("groups", 1),
            batch_group_count=case.get("batch", 1),
        ),
        [x, k],
        ulps=64 if dtype != "bf16" else 4,
        atol={"f32": 1e-5, "f64": 1e-13, "complex<f32>": 4e-5, "bf16": 0.1}.get(dtype, 0),
    )


@pytest.mark.parametrize(
    "dims", [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NHWC"), ("HWNC", "IOHW", "CHWN")]
)
def test_convolution_layouts(dims):
    sizes = dict(N=2, C=4, H=6, W=7)
    kernel = dict(O=5, I=4, H=3, W=2)
    x = values("f32", tuple(sizes[d] for d in dims[0]), "x")
    k = values("f32", tuple(kernel[d] for d in dims[1]), "k")
    compare(
        lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=dims),
        [x, k],
        ulps=64,
        atol=1e-5,
    )
    compare(
        lambda x, k: jax.grad(
            lambda x, k: lax.conv_general_dilated(
                x, k, (2, 1), "SAME", dimension_numbers=dims
            ).sum(),
            (0, 1),
        )(x, k),
        [x, k],
        ulps=64,
        atol=2e-5,
    )


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "i32", "bf16", "i1", "complex<f64>", "ui8"]))
@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_gather(mode, dtype):
    x = values(dtype, (5, 6, 7))
    bad = mode != "promise_in_bounds"
    i = values("i32", (4,), mode, -9 if bad else 0, 9 if bad else 4)
    j = values("i64", (4,), mode, -9 if bad else 0, 9 if bad else 5)
    compare(lambda x, i: x.at[i].get(mode=mode), [x, i])
    compare(lambda x, i, j: x.at[i, :, j].get(mode=mode), [x, i, j])
    compare(lambda x, i, j: x.at[i[:, None], j[None, :]].get(mode=mode), [x, i, j])
    compare(
        lambda x, i: jnp.take_along_axis(
            x, i[:, None, None] * jnp.ones((1, 6, 7), jnp.int32), 0, mode=mode
        ),
        [x, i],
    )


@pytest.mark.parametrize("slices", [(1, 2, 3), (2, 6, 1), (5, 1, 7)])
def test_gather_windows(slices):
    x, start = values("f32", (5, 6, 7)), values("i32", (3, 2, 3), "s", -3, 8)
    numbers = lax.GatherDimensionNumbers((2, 3, 4), (), (0, 1, 2))
    compare(lambda x, s: lax.gather(x, s, numbers, slices, mode="clip"), [x, start])
    numbers = lax.GatherDimensionNumbers((0, 2, 4), (), (2, 0, 1))
    compare(lambda x, s: lax.gather(x, s, numbers, slices, mode="clip"), [x, start])


def test_gather_batching():
    x, i = values("f32", (3, 4, 5, 6)), values("i32", (5, 3, 2), "i", -2, 7)
    numbers = lax.GatherDimensionNumbers((3,), (1,), (1,), (0, 2), (1, 0))
    compare(lambda x, i: lax.gather(x, i[..., None], numbers, (1, 1, 1, 6), mode="clip"), [x, i])
    y, u = values("f32", (3, 4, 5, 6)), values("f32", (5, 3, 2, 6), "u")
    scatter = lax.ScatterDimensionNumbers((3,), (1,), (1,), (0, 2), (1, 0))
    compare(
        lambda y, i, u: lax.scatter_add(y, i[..., None], u, scatter, mode="drop"),
        [y, i, u],
        ulps=16,
    )


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "i32", "ui8", "complex<f32>"]))
@pytest.mark.parametrize("op", ["set", "add", "multiply", "max", "min", "apply"])
def test_scatter(op, dtype):
    if op in ("max", "min") and dtype in COMPLEX:
        pytest.skip("complex numbers have no order")
    x, u = values(dtype, (5, 6)), values(dtype, (8, 6), "u")
    i = np.array([0, 3, 3, -9, 7, 4, 1, 3], np.int32)
    unique = np.array([0, 3, 2, -9, 7, 4, 1, 9], np.int32)
    if op == "apply":
        compare(lambda x, i: x.at[i].apply(lambda v: v * v + v), [x, unique], ulps=16)
        return
    index = unique if op == "set" else i
    compare(lambda x, i, u: getattr(x.at[i], op)(u, mode="drop"), [x, index, u], ulps=32)
    compare(
        lambda x, i, u: getattr(x.at[:, i], op)(u.T[:, :].repeat(1, 0)[:5], mode="drop"),
        [x, index, u],
        ulps=32,
    )


@pytest.mark.parametrize("dtype", sweep([*FLOATS, *INTS, "i1"]))
def test_sort(dtype):
    x = (
        values(dtype, (7, 33), low=-9, high=9)
        if dtype in FLOATS + SIGNED
        else values(dtype, (7, 33))
    )
    if dtype in FLOATS:
        x[2, 4], x[2, 9], x[3, 3], x[3, 4] = np.nan, -np.inf, 0.0, -0.0
    n = np.arange(7 * 33, dtype=np.int32).reshape(7, 33)
    for axis in (0, 1):
        compare(lambda x: jnp.sort(x, axis=axis), [x])
        compare(lambda x: jnp.sort(x, axis=axis, descending=True), [x])
        compare(lambda x, n: lax.sort((x, n), dimension=axis, is_stable=True, num_keys=1), [x, n])
    compare(lambda x, n: lax.sort((x, x[::-1], n), num_keys=2), [x, n])


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "bf16", "i32", "ui8", "i8"]))
def test_top_k(dtype):
    x = values(dtype, (4, 50))
    if dtype in FLOATS:
        x[1, 3], x[2, 7] = np.nan, -np.inf
    compare(lambda x: lax.top_k(x, 7), [x])


def test_control_flow():
    x, n = values("f32", (4,)), np.int32(5)
    compare(lambda x, n: lax.fori_loop(0, n, lambda i, v: v * 0.5 + i, x), [x, n], ulps=4)
    compare(
        lambda x, n: lax.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[2], s[1]), (0, x, x + 1)
        ),
        [x, n],
    )
    compare(lambda x: lax.cond(x[0] > 0, lambda v: v + 1, lambda v: v * 2, x), [x])
    for k in (-3, 0, 1, 2, 9):
        compare(
            lambda x, k: lax.switch(k, [lambda v: v, lambda v: -v, lambda v: v * 3], x),
            [x, np.int32(k)],
        )
    compare(lambda x: lax.scan(lambda c, v: (c + v, c * v), np.float32(1), x), [x], ulps=4)
    nested = lambda x, n: lax.fori_loop(
        0,
        n,
        lambda i, v: lax.cond(
            i % 2 == 0, lambda v: lax.fori_loop(0, i, lambda j, w: w + j, v), lambda v: v * x, v
        ),
        x,
    )
    compare(nested, [x, n], ulps=16)
    compare(
        lambda x: lax.map(lambda v: lax.while_loop(lambda s: s < 10, lambda s: s * 1.5 + 1, v), x),
        [x],
        ulps=4,
    )


@pytest.mark.parametrize("dtype", sweep(["f32", "f64", "complex<f32>", "complex<f64>"]))
@pytest.mark.parametrize("n", [1, 3, 6])
def test_linear_algebra(n, dtype):
    a = values(dtype, (2, n, n))
    spd = (a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(n)).astype(NUMPY[dtype])
    b = values(dtype, (2, n, 4), "b")
    loose = dict(
        ulps=4096, atol=1e-5 if dtype in ("f32", "complex<f32>") else 1e-13, platform="tpu"
    )
    compare(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), [spd], **loose)
    for lower, unit, mode in itertools.product((False, True), (False, True), (None, "t", "c")):
        solve = functools.partial(
            lax.linalg.triangular_solve,
            lower=lower,
            unit_diagonal=unit,
            transpose_a=mode is not None,
            conjugate_a=mode == "c",
        )
        compare(lambda a, b: solve(a, b, left_side=True), [spd, b], **loose)
        compare(lambda a, b: solve(a, jnp.swapaxes(b, -1, -2), left_side=False), [spd, b], **loose)


def test_cholesky_fails_with_nan():
    compare(
        lambda a: lax.linalg.cholesky(a, symmetrize_input=False),
        [np.array([[1, 2], [2, 1]], np.float32)],
        platform="tpu",
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12, 30, 64, 97])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("wide_type", [False, True])
def test_fft(kind, n, wide_type):
    complex_type, real_type = ("complex<f64>", "f64") if wide_type else ("complex<f32>", "f32")
    length = n if kind != "irfft" else n // 2 + 1
    x = values(real_type if kind == "rfft" else complex_type, (3, length))
    compare(
        lambda x: lax.fft(x, kind, (n,)), [x], ulps=64, atol=1e-13 * n if wide_type else 2e-6 * n
    )


@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_fft_dimensions(kind):
    full = (4, 6, 5)
    shape = (*full[:-1], full[-1] // 2 + 1) if kind == "irfft" else full
    x = values("f64" if kind == "rfft" else "complex<f64>", (2, *shape))
    compare(lambda x: lax.fft(x, kind, full), [x], ulps=64, atol=1e-12)
    compare(lambda x: lax.fft(x, kind, full[1:]), [x], ulps=64, atol=1e-12)


@pytest.mark.parametrize("dtype", sweep(["ui8", "ui16", "ui32", "ui64"]))
@pytest.mark.parametrize("algorithm", ["DEFAULT", "PHILOX", "THREE_FRY"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (8,), (3, 5), (2, 3, 4), (3, 4)])
def test_rng_bit_generator(shape, algorithm, dtype):
    state = np.array([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE], np.uint64)
    if algorithm == "PHILOX":
        state = np.append(state, np.uint64(7))
    out = "x".join([*map(str, shape), dtype])
    text = f"""module @m {{
  func.func public @main(%arg0: tensor<{len(state)}xui64>) -> (tensor<{len(state)}xui64>, tensor<{out}>) {{
    %s, %o = stablehlo.rng_bit_generator %arg0, algorithm = {algorithm} : (tensor<{len(state)}xui64>) -> (tensor<{len(state)}xui64>, tensor<{out}>)
    return %s, %o : tensor<{len(state)}xui64>, tensor<{out}>
  }}
}}"""
    compare_text(text, [state])


def test_jax_random():
    key = jax.random.PRNGKey(7)
    data = np.asarray(key)
    compare(lambda k: jax.random.bits(k, (5, 3)), [data])
    compare(lambda k: jax.random.uniform(k, (50,), np.float32), [data])
    compare(lambda k: jax.random.normal(k, (50,), np.float32), [data], ulps=32)
    compare(lambda k: jax.random.permutation(k, 20), [data])
    compare(lambda k: jax.random.gamma(k, 2.5, (10,), np.float64), [data], ulps=1 << 14)


BATCH_NORM = """module @m {{
  func.func public @main({args}) -> ({results}) {{
    {op}
  }}
}}"""


@pytest.mark.parametrize("feature", [0, 1, 2])
def test_batch_norm(feature):
    x, f = values("f32", (3, 4, 5)), (3, 4, 5)[feature]
    s, o, m = (values("f32", (f,), k) for k in "som")
    v, g = np.abs(values("f32", (f,), "v")) + np.float32(0.5), values("f32", (3, 4, 5), "g")
    t, c = "tensor<3x4x5xf32>", f"tensor<{f}xf32>"
    attrs = f"<{{epsilon = 1.000000e-03 : f32, feature_index = {feature} : i64}}>"
    compare_text(
        BATCH_NORM.format(
            args=f"%x: {t}, %s: {c}, %o: {c}, %m: {c}, %v: {c}",
            results=t,
            op=f"""
    %r = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {attrs} : ({t}, {c}, {c}, {c}, {c}) -> {t}
    return %r : {t}""",
        ),
        [x, s, o, m, v],
        ulps=64,
        atol=1e-5,
    )
    compare_text(
        BATCH_NORM.format(
            args=f"%x: {t}, %s: {c}, %o: {c}",
            results=f"{t}, {c}, {c}",
            op=f"""
    %r:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {attrs} : ({t}, {c}, {c}) -> ({t}, {c}, {c})
    return %r#0, %r#1, %r#2 : {t}, {c}, {c}""",
        ),
        [x, s, o],
        ulps=64,
        atol=1e-5,
    )
    compare_text(
        BATCH_NORM.format(
            args=f"%x: {t}, %s: {c}, %m: {c}, %v: {c}, %g: {t}",
            results=f"{t}, {c}, {c}",
            op=f"""
    %r:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) {attrs} : ({t}, {c}, {c}, {c}, {t}) -> ({t}, {c}, {c})
    return %r#0, %r#1, %r#2 : {t}, {c}, {c}""",
        ),
        [x, s, m, v, g],
        ulps=64,
        atol=2e-5,
    )


@pytest.mark.parametrize("n", [4, 5, 11])
@pytest.mark.parametrize(
    "fn",
    [
        "softmax",
        "logsumexp",
        "layer_norm",
        "gelu",
        "attention",
        "var",
        "median",
        "einsum",
        "mlp_grad",
    ],
)
def test_composed(fn, n):
    x, w = values("f32", (n, 8)), values("f32", (8, 8), "w")

    def layer_norm(x, w):
        m = x.mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) @ w

    fns = {
        "softmax": lambda x, w: jax.nn.softmax(x @ w, -1),
        "logsumexp": lambda x, w: jax.nn.logsumexp(x @ w, 0),
        "layer_norm": layer_norm,
        "gelu": lambda x, w: jax.nn.gelu(x @ w, approximate=False),
        "attention": lambda x, w: jax.nn.softmax((x @ w) @ x.T / 2.8, -1) @ x,
        "var": lambda x, w: jnp.var(x @ w, 0),
        "median": lambda x, w: jnp.median(x @ w, 0),
        "einsum": lambda x, w: jnp.einsum("ij,kj,lj->ikl", x, w, x),
        "mlp_grad": lambda x, w: jax.grad(lambda x, w: jnp.mean(jnp.tanh(x @ w) ** 2), (0, 1))(
            x, w
        ),
    }
    compare(fns[fn], [x, w], ulps=512, atol=1e-5)


def collective(op, operand, result, extra, body=""):
    return f"""module @m attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32}} {{
  func.func public @main(%x: {operand}) -> ({result}) {{
    %r = "stablehlo.{op}"(%x) <{{{extra}}}> {body} : ({operand}) -> {result}
    return %r : {result}
  }}
}}"""


SUM = """({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    })"""


def test_collectives():
    xs = [np.arange(8, dtype=np.float32).reshape(4, 2) + 10 * d for d in range(4)]
    everyone = "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
    halves = "replica_groups = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>"
    t = "tensor<4x2xf32>"
    rows = [[x] for x in xs]
    for (r,) in Program(collective("all_reduce", t, t, everyone, SUM))(*rows):
        np.testing.assert_array_equal(r, sum(xs))
    gathered = Program(
        collective("all_gather", t, "tensor<4x4xf32>", f"all_gather_dim = 1 : i64, {halves}")
    )(*rows)
    for d, (r,) in enumerate(gathered):
        np.testing.assert_array_equal(
            r, np.concatenate([xs[2], xs[0]] if d in (0, 2) else [xs[1], xs[3]], 1)
        )
    scattered = Program(
        collective(
            "reduce_scatter", t, "tensor<1x2xf32>", f"scatter_dimension = 0 : i64, {everyone}", SUM
        )
    )(*rows)
    for d, (r,) in enumerate(scattered):
        np.testing.assert_array_equal(r, sum(xs)[d : d + 1])
    swapped = Program(
        collective(
            "all_to_all",
            t,
            "tensor<2x4xf32>",
            f"split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, {halves}",
        )
    )(*rows)
    for d, (r,) in enumerate(swapped):
        group = [2, 0] if d in (0, 2) else [1, 3]
        part = group.index(d)
        np.testing.assert_array_equal(
            r, np.concatenate([xs[g][2 * part : 2 * part + 2] for g in group], 1)
        )
    moved = Program(
        collective(
            "collective_permute",
            t,
            t,
            "source_target_pairs = dense<[[0, 1], [3, 0]]> : tensor<2x2xi64>",
        )
    )(*rows)
    for d, expected in enumerate([xs[3], xs[0], 0 * xs[0], 0 * xs[0]]):
        np.testing.assert_array_equal(moved[d][0], expected)
    sent = Program(
        collective(
            "collective_broadcast", t, t, "replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>"
        )
    )(*rows)
    for d, expected in enumerate([0 * xs[0], xs[2], xs[2], 0 * xs[0]]):
        np.testing.assert_array_equal(sent[d][0], expected)


def test_collective_in_diverging_loops():
    text = """module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<i32>) -> (tensor<i32>, tensor<ui32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %s = %zero) : tensor<i32>, tensor<i32>
    cond {
      %c = stablehlo.compare LT, %i, %x, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.add %s, %n : tensor<i32>
      stablehlo.return %n, %t : tensor<i32>, tensor<i32>
    }
    %id = stablehlo.replica_id : tensor<ui32>
    return %r#1, %id : tensor<i32>, tensor<ui32>
  }
}"""
    results = Program(text)([np.array(3, np.int32)], [np.array(10, np.int32)])
    assert [int(v) for row in results for v in row] == [6, 0, 55, 1]


def test_unknown_custom_call_names_its_target():
    text = """module @m {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %r = stablehlo.custom_call @no_such_thing(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }
}"""
    with pytest.raises(RuntimeError, match="UNIMPLEMENTED.*no_such_thing"):
        Program(text)([np.zeros(2, np.float32)])
