"""What the passes leave of JAX's programs, XLA runs with the same results."""

import os
import subprocess

import numpy as np
import pytest
from test_ir_text import CASES, TOOL, A, execute, jax, jnp, lax, random_input, wide_types  # noqa: F401

OPT = TOOL and TOOL.with_name("opt_tool")
pytestmark = pytest.mark.skipif(TOOL is None or not OPT.exists(), reason="opt_tool is not built")

MORE = {
    "transposed_mlp": (
        lambda x, w: jnp.tanh(jnp.transpose(x) * 2 + 1).T @ jnp.transpose(w).astype(jnp.float32),
        A(4, 5),
        A(6, 5),
    ),
    "heads": (
        lambda q, k: jnp.einsum(
            "bhqd,bhkd->bhqk",
            q.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3),
            k.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3) * 0.5,
        ),
        A(2, 5, 12),
        A(2, 5, 12),
    ),
    "nhwc_conv": (
        lambda x, k: lax.conv(
            x.transpose(0, 3, 1, 2), k.transpose(3, 2, 0, 1), (1, 1), "SAME"
        ).transpose(0, 2, 3, 1),
        A(2, 6, 6, 3),
        A(3, 3, 3, 4),
    ),
    "views": (
        lambda x: (
            jnp.concatenate([x[:, :2], x[:, 2:]], 1)[::-1][::-1]
            .reshape(20)
            .reshape(5, 4)
            .T.T[1:4, ::2]
        ),
        A(4, 5),
    ),
    "padded": (
        lambda x: jnp.pad(x, ((1, 2), (3, 4)))[1:5, 3:8] + jnp.pad(x, 1)[2:4, 1:3].sum(),
        A(4, 5),
    ),
    "chlo": (lambda x: lax.erf(x.T).T + lax.lgamma(x), A(4, 5)),
    "select_chain": (lambda x, y: jnp.where(~(x.T > y.T), x.T, 0.0).T, A(4, 5), A(4, 5)),
}


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_passes_keep_the_meaning(name):
    function, *args = {**CASES, **MORE}[name]
    text = jax.jit(function, keep_unused=True).lower(*args).as_text()
    if "lapack" in text:
        pytest.skip("XLA's CPU client alone has no LAPACK")
    done = subprocess.run(
        [OPT], input=text.encode(), capture_output=True, timeout=60, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr.decode()
    rng = np.random.default_rng(0)
    leaves = [random_input(rng, leaf) for leaf in jax.tree.leaves(args)]
    for got, wanted in zip(
        execute(done.stdout.decode(), leaves), execute(text, leaves), strict=True
    ):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        if got.dtype.kind in "fc":
            np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6)
        else:
            assert got.tobytes() == wanted.tobytes()


def test_dump_shows_the_graph_after_a_pass():
    text = jax.jit(lambda x: x.T.T + 0).lower(A(2, 3)).as_text()
    env = dict(os.environ, TT_DUMP="simplify")
    done = subprocess.run([OPT], input=text.encode(), capture_output=True, env=env)
    log = done.stderr.decode()
    assert "// after simplify" in log and "transpose" not in log
