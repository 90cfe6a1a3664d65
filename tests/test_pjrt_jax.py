"""JAX, a client of the interface that we did not write, on the software TPU's plugin."""

import os
import subprocess
import sys

import pjrt_builds
import pytest

pytest.importorskip("jax")
PLUGIN = pjrt_builds.built("libsofttpu.so")
pytestmark = pytest.mark.skipif(PLUGIN is None, reason="libsofttpu.so is not built")

HEAD = f"""
import jax, jax.numpy as jnp, numpy as np
from jax._src import xla_bridge
xla_bridge.register_plugin("softtpu", library_path={str(PLUGIN)!r}, priority=500)
cpu, soft = jax.devices("cpu")[0], jax.devices("softtpu")[0]
rng = np.random.default_rng(0)

def check(f, *args, tolerance=1e-4):
    want, got = (jax.tree.map(np.asarray, jax.jit(f)(*[jax.device_put(a, d) for a in args]))
                 for d in (cpu, soft))
    assert len(jax.tree.leaves(want)) > 0
    for w, g in zip(jax.tree.leaves(want), jax.tree.leaves(got), strict=True):
        assert w.dtype == g.dtype
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)

def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)
"""

PROGRAMS = {
    "device": """
assert len(jax.devices("softtpu")) == 2
assert soft.device_kind == "Software TPU"
one = jax.device_put(np.float32(1), soft)
stats = soft.memory_stats()
x = jax.jit(lambda one: jnp.full(1024, one))(one).block_until_ready()  # not memory of the host's
assert soft.memory_stats()["bytes_in_use"] - stats["bytes_in_use"] == 4096
assert stats["bytes_limit"] == 1 << 28
""",
    "transfers": """
a = normal(6, 4)
for view in (a, a.T, a[::2], a[:, ::-1], np.asfortranarray(a)):
    np.testing.assert_array_equal(np.asarray(jax.device_put(view, soft)), view)
other = jax.device_put(jax.device_put(a, soft), jax.devices("softtpu")[1])
np.testing.assert_array_equal(np.asarray(other), a)
""",
    "matmul": "check(lambda x: x @ x.T, normal(5, 7))",
    "training_step": """
def loss(w, x):
    h = jax.nn.gelu(x @ w)
    h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
    return jnp.sum(jax.nn.softmax(h)[:, :4] ** 2)
check(jax.value_and_grad(loss), normal(16, 16), normal(8, 16))
""",
    "sorting": "check(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.argmax(x, 1)), normal(8, 33))",
    "indexing": """
i = np.array([0, 3, 5], np.int32)
check(lambda x, i: (x[i], x.at[i].add(1.0), jnp.cumsum(x, 0), jnp.where(x > 0, x, 0)),
      normal(8, 4), i)
""",
    "control_flow": """
check(lambda x, w: jax.lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ w), x), normal(3, 4),
      normal(4, 4))
check(lambda x: jax.lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), jnp.zeros(4), x), normal(6, 4))
check(lambda x: jax.lax.cond(x.sum() > 0, lambda: x, lambda: -x), normal(4))
""",
    "random": "check(lambda x: jax.random.normal(jax.random.key(3), (4, 5)) + x, normal(4, 5))",
    "convolution": """
check(lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "SAME"), normal(2, 3, 8, 8),
      normal(4, 3, 3, 3))
check(lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2), (1, 2), "VALID"),
      normal(4, 8))
""",
    "linear_algebra": """
m = normal(8, 8)
m = m @ m.T + 8 * np.eye(8, dtype=np.float32)
check(lambda m, b: (jnp.linalg.cholesky(m), jnp.linalg.solve(m, b)), m, normal(8, 2))
""",
    "errors": """
try:
    jax.jit(lambda: jnp.zeros((1 << 30,)) + 1, device=soft)().block_until_ready()
except Exception as e:
    assert "RESOURCE_EXHAUSTED" in str(e), e
else:
    raise AssertionError("4 GiB on a device of 256 MiB")
check(lambda x: x + 1, normal(3))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax(name):
    run = subprocess.run(
        [sys.executable, "-c", HEAD + PROGRAMS[name]],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={
            **os.environ,
            "JAX_PLATFORMS": "softtpu,cpu",
            "TORCHTPU_NUM_DEVICES": "2",
            "TORCHTPU_HBM_BYTES": "256M",
        },
    )
    assert run.returncode == 0, run.stderr[-3000:]
