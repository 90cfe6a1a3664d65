"""The parser reads what JAX prints, and XLA runs what the printer writes, with the same results."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
f32 = np.float32

ROOT = pathlib.Path(__file__).resolve().parent.parent


def find_tool():
    builds = [os.environ.get("TORCHTPU_BUILD"), *ROOT.glob("build*")]
    for build in builds:
        if build and (tool := pathlib.Path(build) / "ir_tool").exists():
            return tool
    return None


TOOL = find_tool()
pytestmark = pytest.mark.skipif(TOOL is None, reason="ir_tool is not built (TORCHTPU_BUILD)")


def A(*shape, d=jnp.float32):
    return jax.ShapeDtypeStruct(shape, d)


def mlp(p, x, y):
    h = jnp.tanh(x @ p["w1"] + p["b1"])
    return ((h @ p["w2"] + p["b2"] - y) ** 2).mean()


UNARY = [
    *(jnp.sin, jnp.cos, jnp.tan, jnp.tanh, jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sqrt),
    *(lax.rsqrt, lax.cbrt, jnp.floor, jnp.ceil, jnp.round, lax.round, jnp.sign, lax.is_finite),
    *(lax.logistic, lax.erf, lax.erfc, lax.erf_inv, lax.lgamma, lax.digamma, lax.asin, lax.acos),
    *(lax.atan, lax.asinh, lax.acosh, lax.atanh, lax.sinh, lax.cosh, jnp.abs, jnp.negative),
    lax.square,
]
BINARY = [
    *(lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.pow, lax.max, lax.min, lax.atan2),
    *(lax.nextafter, lax.lt, lax.eq),
]
BITS = [
    *(lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.shift_left),
    *(lax.shift_right_logical, lax.shift_right_arithmetic),
]
DTYPES = [
    *(jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int8, jnp.uint64),
    *(jnp.bool_, jnp.complex128),
]
CONSTANTS = [
    np.array([True, False]),
    np.array([1 + 2j, 3 - 4j], np.complex64),
    np.array([np.nan, np.inf, -np.inf, -0.0], f32),
    np.array([1e-45, 3.4028235e38, 0.1], f32),
    np.array([1 / 3, 5e-324, -1.7976931348623157e308]),
    np.arange(64, dtype=np.int8),
    np.ones(50, bool),
    np.arange(41) % 3 == 0,
    np.array([1, 2, 3], jnp.bfloat16),
    np.zeros((0, 3), f32),
    np.full((3,), -128, np.int8),
    np.array([2**64 - 1], np.uint64),
    np.linspace(0, 1, 40).reshape(4, 10),
]
I32 = jnp.int32
init = (np.float32(0), np.int32(1))

CASES = {
    "matmul": (lambda a, b: a @ b, A(4, 5), A(5, 6)),
    "bmm": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), A(2, 4, 5), A(2, 6, 5)),
    "matmul_precision": (lambda a, b: lax.dot(a, b, precision="highest"), A(4, 5), A(5, 6)),
    "conv": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (2, 1), "SAME", rhs_dilation=(1, 2), feature_group_count=2
        ),
        A(1, 4, 9, 9),
        A(8, 2, 3, 3),
    ),
    "conv_grad": (
        jax.grad(
            lambda k, x: lax.conv_general_dilated(x, k, (2, 2), ((1, 1), (1, 1))).sum(), (0, 1)
        ),
        A(8, 4, 3, 3),
        A(2, 4, 9, 9),
    ),
    "conv_transpose": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
        A(1, 4, 4, 3),
        A(3, 3, 3, 5),
    ),
    "conv1d": (lambda x, k: lax.conv(x, k, (1,), "VALID"), A(1, 4, 9), A(8, 4, 3)),
    "sort": (lambda x: jnp.sort(x, axis=0), A(4, 5)),
    "argsort": (lambda x: jnp.argsort(x), A(4, 5)),
    "top_k": (lambda x: lax.top_k(x, 2), A(4, 5)),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), A(4, 5)),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
        A(4),
    ),
    "fori": (lambda x: lax.fori_loop(0, 10, lambda i, c: c + i, x), A(4)),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), A(d=jnp.bool_), A(4)),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), A(d=I32), A(4)),
    "gather": (lambda x, i: x[i], A(4, 5), A(3, d=I32)),
    "gather_two": (lambda x, i, j: x[i, :, j], A(4, 5, 6), A(3, d=I32), A(3, d=I32)),
    "gather_fill": (lambda x, i: x.at[i].get(mode="fill", fill_value=0), A(4, 5), A(3, d=I32)),
    "take_along": (lambda x, i: jnp.take_along_axis(x, i, 1), A(4, 5), A(4, 2, d=jnp.int64)),
    "scatter_add": (lambda x, i, u: x.at[i].add(u), A(4, 5), A(3, d=I32), A(3, 5)),
    "scatter_set": (lambda x, i: x.at[i, 2].set(1.0, mode="drop"), A(4, 5), A(3, d=I32)),
    "cumsum": (lambda x: jnp.cumsum(x, axis=1), A(4, 5)),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, axis=1), A(4, 5)),
    "fft": (lambda x: jnp.fft.fft(x), A(4, 8, d=jnp.complex64)),
    "rfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), A(4, 8)),
    "normal": (lambda k: jax.random.normal(k, (4, 5)), A(2, d=jnp.uint32)),
    "split": (lambda k: jax.random.split(k), A(2, d=jnp.uint32)),
    "randint": (lambda k: jax.random.randint(k, (3,), 0, 10), A(2, d=jnp.uint32)),
    "permutation": (lambda k: jax.random.permutation(k, 10), A(2, d=jnp.uint32)),
    "rbg": (lambda k: lax.rng_bit_generator(k, (4, 5)), A(4, d=jnp.uint32)),
    "softmax": (lambda x: jax.nn.softmax(x), A(4, 5)),
    "argmax": (lambda x: jnp.argmax(x, axis=1), A(4, 5)),
    "mlp_grad": (
        jax.value_and_grad(mlp),
        {"w1": A(8, 16), "b1": A(16), "w2": A(16, 4), "b2": A(4)},
        A(32, 8),
        A(32, 4),
    ),
    "big_constant": (lambda x: x + np.arange(100, dtype=f32).reshape(10, 10), A(10, 10)),
    "constants": (lambda: CONSTANTS,),
    "complex": (
        lambda x, y: jnp.abs(lax.complex(x, y)) + jnp.real(lax.complex(x, y) * 2j),
        A(4),
        A(4),
    ),
    "unary": (lambda x: [f(x) for f in UNARY], A(4)),
    "binary": (lambda x, y: [f(x, y) for f in BINARY], A(4), A(4)),
    "bits": (
        lambda x, y: [f(x, y) for f in BITS] + [lax.population_count(x), lax.clz(x), ~x],
        A(4, d=I32),
        A(4, d=I32),
    ),
    "dtypes": (lambda x: [x.astype(d) for d in DTYPES], A(4)),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), A(4)),
    "max_pool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "SAME"),
        A(1, 8, 8),
    ),
    "max_pool_grad": (
        jax.grad(
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID").sum()
        ),
        A(1, 8, 8),
    ),
    "sum_pool": (
        lambda x: lax.reduce_window(
            *(x, 0.0, lax.add, (1, 2, 2), (1, 2, 2), ((0, 0), (1, 1), (1, 1)), (1, 2, 1), (1, 1, 2))
        ),
        A(1, 8, 8),
    ),
    "pad": (lambda x: lax.pad(x, f32(0), ((1, 2, 1), (-1, 0, 0))), A(4, 5)),
    "slices": (
        lambda x, i: (
            x[1:3, ::2],
            lax.dynamic_slice(x, (i, i), (2, 2)),
            lax.dynamic_update_slice(x, jnp.ones((2, 2), f32), (i, i)),
            x[::-1],
        ),
        A(4, 5),
        A(d=I32),
    ),
    "concat": (lambda x, y: jnp.concatenate([x, y], 1), A(4, 5), A(4, 2)),
    "clip": (lambda x: jnp.clip(x, 0, 1), A(4, 5)),
    "clamp": (lambda x: lax.clamp(f32(0), x, f32(1)), A(4, 5)),
    "where": (lambda p, x, y: jnp.where(p, x, y), A(4, d=jnp.bool_), A(4), A(4)),
    "select": (lambda p, x, y: lax.select(p, x, y), A(d=jnp.bool_), A(4), A(4)),
    "remat": (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()), A(4)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), A(4)),
    "variadic_reduce": (
        lambda x, y: lax.reduce((x, y), init, lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
        A(4, 5),
        A(4, 5, d=I32),
    ),
    "map": (lambda x: lax.map(lambda v: v.sum(), x), A(4, 5)),
    "nested_calls": (lambda x: jax.jit(lambda a, b: (a + b, a - b))(x, jax.jit(jnp.sin)(x)), A(4)),
    "attention": (
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        *(A(2, 8, 4, 16),) * 3,
    ),
    "one_hot": (lambda i: jax.nn.one_hot(i, 10), A(4, d=I32)),
    "empty": (lambda x: x.sum(), A(0, 3)),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 3)), A(4)),
    "vmap_cond": (jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), A(4, d=jnp.bool_), A(4)),
    "vmap_gather": (jax.vmap(lambda x, i: x[i]), A(4, 5), A(4, 3, d=I32)),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), A(4)),
    "barrier": (lambda x, y: lax.optimization_barrier((x, y)), A(4), A(4)),
    "composite": (lambda x: lax.composite(lambda y: jnp.sin(y) * 2, name="my.op")(x), A(4)),
    "triangular_solve": (
        lambda a, b: jax.scipy.linalg.solve_triangular(a + 4 * jnp.eye(4), b, lower=True, trans=1),
        A(4, 4),
        A(4, 2),
    ),
    "cholesky": (lambda a: jnp.linalg.cholesky(a @ a.T + 4 * jnp.eye(4)), A(4, 4)),
}


def run_tool(text, check=True):
    done = subprocess.run([TOOL], input=text.encode(), capture_output=True, timeout=60)
    if check:
        assert done.returncode == 0, done.stderr.decode()
    return done


def random_input(rng, leaf):
    if leaf.dtype == np.bool_:
        return rng.random(leaf.shape) > 0.5
    if np.issubdtype(leaf.dtype, np.integer):
        return rng.integers(0, 4, leaf.shape).astype(leaf.dtype)
    return rng.uniform(0.05, 0.95, leaf.shape).astype(leaf.dtype)


def execute(text, inputs):
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        module.operation.verify()
        devices = xla_client.DeviceList((device,))
        compiled = device.client.compile_and_load(module, devices, xla_client.CompileOptions())
    results = compiled.execute_sharded([jax.device_put(x, device) for x in inputs])
    return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


@pytest.fixture(autouse=True)
def wide_types():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", CASES)
def test_round_trip_runs_the_same(name):
    function, *args = CASES[name]
    lowered = jax.jit(function, keep_unused=True).lower(*args)
    for debug in (False, True):
        printed = run_tool(lowered.as_text(debug_info=debug)).stdout.decode()
        assert run_tool(printed).stdout.decode() == printed
    if "lapack" in lowered.as_text():
        return  # XLA's CPU client alone has no LAPACK to run
    rng = np.random.default_rng(0)
    leaves = [random_input(rng, leaf) for leaf in jax.tree.leaves(args)]
    wanted = execute(lowered.as_text(), leaves)
    got = execute(run_tool(lowered.as_text()).stdout.decode(), leaves)
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        assert g.tobytes() == w.tobytes()


def test_donation_is_kept():
    lowered = jax.jit(lambda x, y: (x + y,), donate_argnums=0).lower(A(4), A(4))
    assert "tf.aliasing_output = 0 : i32" in run_tool(lowered.as_text()).stdout.decode()


def test_errors_have_a_place():
    bad = (
        "module {\n  func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        "    %0 = stablehlo.add %a, %b : tensor<2xf32>\n"
    )
    done = run_tool(bad + "    return %0 : tensor<2xf32>\n  }\n}", check=False)
    assert done.returncode == 1
    assert "3:28: %b is not defined here" in done.stderr.decode()
