"""Pooling: windows, positions, gradients."""

import pytest
import torch
import torch.nn.functional as F
from nn_compare import agree

import torchtpu  # noqa: F401


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "kernel,options",
    [
        (2, {}),
        (3, {"stride": 1, "padding": 1}),
        (3, {"stride": 2, "ceil_mode": True}),
        (2, {"dilation": 2, "stride": 1}),
    ],
)
def test_max(rank, kernel, options):
    torch.manual_seed(0)
    pool = getattr(F, f"max_pool{rank}d")
    x = torch.randn(2, 3, *(9, 8, 7)[:rank])
    agree(lambda v: pool(v, kernel, return_indices=True, **options), x)


def test_max_of_nan_ties_and_infinity():
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 1, 1] = float("nan")
    x[0, 0, 2:, 2:] = -float("inf")
    agree(lambda v: F.max_pool2d(v, 2, return_indices=True), x, grad=False)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding": 1},
        {"padding": 1, "count_include_pad": False},
        {"stride": 2, "ceil_mode": True, "padding": 1},
    ],
)
def test_average(rank, options):
    pool = getattr(F, f"avg_pool{rank}d")
    agree(lambda v: pool(v, 3, **options), torch.randn(2, 3, *(9, 8, 7)[:rank]))


def test_divisor_override():
    agree(lambda v: F.avg_pool2d(v, 2, divisor_override=3), torch.randn(1, 2, 6, 6))


@pytest.mark.parametrize("out", [1, 3, 5, 8])
def test_adaptive(out):
    x = torch.randn(2, 3, 8, 7)
    agree(lambda v: F.adaptive_avg_pool2d(v, (out, 3)), x)
    agree(lambda v: F.adaptive_max_pool2d(v, (out, 3), return_indices=True), x)
    agree(lambda v: F.adaptive_avg_pool3d(v, (out, 3, 2)), torch.randn(2, 3, 8, 7, 5))


def test_unpool():
    x = torch.randn(2, 3, 6, 6)
    values, where = F.max_pool2d(x, 2, return_indices=True)
    agree(lambda v, i: F.max_unpool2d(v, i, 2), values, where)


def test_fractional():
    samples = torch.rand(2, 3, 2)
    agree(
        lambda v, s: F.fractional_max_pool2d(
            v, 2, output_size=4, _random_samples=s, return_indices=True
        ),
        torch.randn(2, 3, 9, 9),
        samples,
        grad=False,
    )
