"""chlo ops written in StableHLO: how many ulps they are off, run by XLA, against 40 digits."""

import subprocess

import numpy as np
import pytest
from test_ir_text import TOOL, A, execute, jax, jnp, lax, wide_types  # noqa: F401

mpmath = pytest.importorskip("mpmath")
OPT = TOOL and TOOL.with_name("opt_tool")
pytestmark = pytest.mark.skipif(TOOL is None or not OPT.exists(), reason="opt_tool is not built")
mpmath.mp.dps = 40


def spread(low, high, n=1500):
    """Points of every magnitude up to the bounds."""
    rng = np.random.default_rng(1)
    line = rng.uniform(low, high, n)
    return np.concatenate([line, line * np.exp(-rng.uniform(0, 12, n)), [low, high]])


# name: (function, exact function, points, most ulps in f32, in f64)
OPS = {
    "erf": (lax.erf, mpmath.erf, spread(-5, 5), 4, 5),
    "erfc": (lax.erfc, mpmath.erfc, spread(-5, 9), 8, 12),
    "erf_inv": (lax.erf_inv, mpmath.erfinv, spread(-0.9999, 0.9999, 500), 8, 8),
    "lgamma": (lax.lgamma, lambda x: mpmath.loggamma(x).real, spread(0.01, 200), 8, 12),
    "sinh": (lax.sinh, mpmath.sinh, spread(-88, 88), 8, 8),
    "cosh": (lax.cosh, mpmath.cosh, spread(-88, 88), 8, 8),
    "asinh": (lax.asinh, mpmath.asinh, spread(-1e8, 1e8), 5, 5),
    "acosh": (lax.acosh, mpmath.acosh, 1 + np.abs(spread(1e-3, 1e7)), 5, 5),
    "atanh": (lax.atanh, mpmath.atanh, spread(-0.999, 0.999), 5, 5),
    "asin": (lax.asin, mpmath.asin, spread(-1, 1), 5, 5),
    "acos": (lax.acos, mpmath.acos, spread(-1, 1), 5, 5),
    "atan": (lax.atan, mpmath.atan, spread(-100, 100), 5, 5),
}


def expanded(function, *inputs):
    specs = [A(*x.shape, d=x.dtype) for x in inputs]
    text = jax.jit(function).lower(*specs).as_text()
    done = subprocess.run([OPT, "expand_chlo"], input=text.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert "chlo." not in done.stdout.decode()
    return execute(done.stdout.decode(), inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPS)
def test_ulps(name, dtype):
    function, exact, points, f32_limit, f64_limit = OPS[name]
    x = points.astype(dtype)
    (got,) = expanded(function, x)
    wanted = [exact(mpmath.mpf(float(v))) for v in x]
    # one more ulp of slack for XLA's own exp, log and atan2
    scale = [float(np.spacing(dtype(abs(float(w))))) for w in wanted]
    ulps = [
        abs(float((mpmath.mpf(float(g)) - w) / s))
        for g, w, s in zip(got, wanted, scale, strict=True)
    ]
    worst = int(np.argmax(ulps))
    assert ulps[worst] <= (f32_limit if dtype == np.float32 else f64_limit), (
        x[worst],
        got[worst],
        ulps[worst],
    )


def test_digamma_absolute():
    x = np.concatenate([spread(0.01, 100), -0.5 - np.arange(20) - np.linspace(-0.3, 0.3, 20)])
    for dtype, limit in ((np.float32, 3e-6), (np.float64, 3e-14)):
        (got,) = expanded(lax.digamma, x.astype(dtype))
        wanted = np.array([float(mpmath.digamma(float(v))) for v in x.astype(dtype)])
        assert np.max(np.abs(got - wanted) / np.maximum(1, np.abs(wanted))) < limit


def test_special_values():
    inf, nan = np.inf, np.nan
    x = np.array([0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 2.0, -2.0], np.float32)
    expect = {
        lax.erf: [0.0, -0.0, 1, -1, nan],
        lax.erfc: [1, 1, 0, 2, nan],
        lax.erf_inv: [0.0, -0.0, nan, nan, nan, inf, -inf, nan, nan],
        lax.lgamma: [inf, inf, inf, inf, nan, 0, inf, 0, inf],
        lax.digamma: [-inf, inf, inf, nan, nan],
        lax.sinh: [0.0, -0.0, inf, -inf, nan],
        lax.cosh: [1, 1, inf, inf, nan],
        lax.asinh: [0.0, -0.0, inf, -inf, nan],
        lax.acosh: [nan, nan, inf, nan, nan, 0, nan],
        lax.atanh: [0.0, -0.0, nan, nan, nan, inf, -inf, nan, nan],
        lax.asin: [0.0, -0.0, nan, nan, nan],
    }
    for function, values in expect.items():
        (got,) = expanded(function, x)
        for g, w in zip(got, values, strict=False):
            assert (np.isnan(g) and np.isnan(w)) or (
                g == w and np.signbit(g) == np.signbit(np.float32(w))
            ), (
                function,
                got,
            )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_next_after(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    v = np.array(
        [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, tiny, -tiny, np.finfo(dtype).max], dtype
    )
    x, y = (a.ravel() for a in np.meshgrid(v, v))
    (got,) = expanded(lax.nextafter, x, y)
    assert np.array_equal(got, np.nextafter(x, y), equal_nan=True)


def test_top_k():
    x = np.array([[3, np.nan, 1, 3, -np.inf], [0, 1, 2, 3, 4]], np.float32)
    values, indices = expanded(lambda a: lax.top_k(a, 3), x)
    assert indices.tolist() == [[1, 0, 3], [4, 3, 2]]
    assert np.array_equal(values, np.take_along_axis(x, indices, 1), equal_nan=True)
