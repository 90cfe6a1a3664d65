"""Corners of the elementwise ops, where results must equal the CPU's bit for bit."""

import math

import pytest
import torch

import torchtpu  # noqa: F401

NAN, INF = math.nan, math.inf


def _flushes_denormals() -> bool:
    """XLA's CPU plugins do; the software TPU computes with them, as the CPU does."""
    return bool((torch.tensor([1e-40], device="tpu") * 1 == 0).item())


def representable(x):
    """Those of `x` that the device tells from zero."""
    return x[(x == 0) | (x.abs() >= 2.0**-126) | x.isnan()] if FLUSHES else x


FLUSHES = _flushes_denormals()
CORNERS = representable(
    torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, 1e-40, 3e38])
)


def _extreme(x):
    return (x != 0) & (x.abs() < 1e-38) | x.isfinite() & (x.abs() > 1e38)


def both(fn, *args, **kwargs):
    """fn on the CPU and on the device; exact comparison, signed zeros included."""
    expected = fn(*args, **kwargs)
    moved = [a.to("tpu") if isinstance(a, torch.Tensor) else a for a in args]
    actual = fn(*moved, **kwargs).cpu()
    if FLUSHES and expected.is_floating_point():
        actual, expected = (torch.where(x.abs() < 2.0**-126, x * 0, x) for x in (actual, expected))
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    if expected.is_floating_point():
        number = ~expected.isnan()
        assert torch.equal(actual.signbit()[number], expected.signbit()[number])


@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "neg",
        "sign",
        "ceil",
        "floor",
        "round",
        "trunc",
        "frac",
        "isnan",
        "isinf",
        "isfinite",
        "signbit",
        "isposinf",
        "isneginf",
        "logical_not",
        "reciprocal",
        "nan_to_num",
    ],
)
def test_unary_corners(name):
    both(getattr(torch, name), CORNERS)


@pytest.mark.parametrize(
    "name",
    [
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "add",
        "sub",
        "mul",
        "div",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "copysign",
        "fmod",
        "remainder",
        "floor_divide",
        "heaviside",
        "logical_and",
        "logical_xor",
        "nextafter",
    ],
)
def test_binary_corners(name):
    x, y = CORNERS.repeat_interleave(len(CORNERS)), CORNERS.repeat(len(CORNERS))
    if name == "maximum" or name == "minimum" or name == "fmax" or name == "fmin":
        # Which of 0.0 and -0.0 is larger is nobody's business.
        keep = (x != 0) | (y != 0)
        x, y = x[keep], y[keep]
    if name in ("fmod", "remainder", "floor_divide"):
        keep = ~_extreme(x) & ~_extreme(y)  # the CPU's vector code is wrong there
        x, y = x[keep], y[keep]
    both(getattr(torch, name), x, y)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.uint8])
@pytest.mark.parametrize("mode", ["trunc", "floor", "remainder", "fmod"])
def test_integer_division(dtype, mode):
    values = torch.tensor([7, -7, 5, -5, 1, -1, 3, 100], dtype=torch.int64).to(dtype)
    x, y = values.repeat_interleave(len(values)), values.repeat(len(values))
    if mode in ("trunc", "floor"):
        both(lambda a, b: torch.div(a, b, rounding_mode=mode), x, y)
    else:
        both(getattr(torch, mode), x, y)


def test_integer_division_by_zero_raises():
    x, y = torch.tensor([1, 2], device="tpu"), torch.tensor([1, 0], device="tpu")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.remainder(x, y).cpu()
    # The device goes on.
    assert (x + 1).tolist() == [2, 3]


def test_integers_wrap():
    both(
        torch.add,
        torch.tensor([127, -128], dtype=torch.int8),
        torch.tensor([1, -1], dtype=torch.int8),
    )
    both(torch.mul, torch.tensor([2**62]), torch.tensor([4]))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 1.5])
def test_pow_scalar(exponent):
    x = torch.tensor([0.25, 1.0, 2.0, 3.5])
    torch.testing.assert_close((x.to("tpu") ** exponent).cpu(), x**exponent)


def test_integer_pow_with_negative_exponents():
    both(torch.pow, torch.tensor([1, -1, -1, 2, 0, 5]), torch.tensor([-3, -3, -2, -1, -1, -7]))


@pytest.mark.parametrize(
    "low,high", [(-1.0, 1.0), (None, 0.5), (0.0, None), (1.0, -1.0), (NAN, 1.0)]
)
def test_clamp(low, high):
    x = CORNERS[CORNERS != 0]
    both(lambda t: t.clamp(low, high), x)


def test_promotion_of_numbers():
    x = torch.arange(4, device="tpu")
    assert (x + 1).dtype == torch.int64
    assert (x + 1.5).dtype == torch.float32
    assert (x / 2).dtype == torch.float32
    assert (x.to(torch.bfloat16) * 0.1).dtype == torch.bfloat16
    both(lambda t: t * 0.1, torch.arange(100).to(torch.bfloat16))
    both(lambda t: t + 0.3, torch.linspace(-3, 3, 50).to(torch.float16))


def test_log2_is_exact_on_powers_of_two():
    both(torch.log2, representable(torch.tensor([2.0**k for k in range(-149, 128)])))


def test_comparisons_of_extreme_integers():
    both(torch.lt, torch.tensor([2**62 + 1, -(2**63)]), torch.tensor([2**62, 2**63 - 1]))


def test_frexp():
    x = representable(torch.tensor([1.0, 0.75, -8.0, 0.0, 1e-40, INF]))
    for expected, actual in zip(torch.frexp(x), torch.frexp(x.to("tpu"))):
        assert torch.equal(actual.cpu(), expected)


def test_shifts_past_the_width():
    x, by = (
        torch.tensor([5, -5, 1], dtype=torch.int32),
        torch.tensor([40, 40, 31], dtype=torch.int32),
    )
    both(torch.bitwise_left_shift, x, by)
    both(torch.bitwise_right_shift, x, by)


def test_in_place_and_out():
    x = torch.arange(6.0, device="tpu").reshape(2, 3)
    view = x[:, 1]
    view.mul_(10).add_(1)
    assert x.tolist() == [[0, 11, 2], [3, 41, 5]]
    out = torch.empty(0, device="tpu")
    torch.add(x, 1, out=out)
    assert out.tolist() == [[1, 12, 3], [4, 42, 6]]
