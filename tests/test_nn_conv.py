"""Convolutions of every rank with their gradients."""

import pytest
import torch
from nn_compare import agree
from torch import nn

import torchtpu  # noqa: F401

SIZES = {1: (11,), 2: (9, 8), 3: (6, 5, 7)}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2, "padding": 2, "bias": False},
        {"groups": 2},
        {"groups": 4, "stride": 2, "padding": 1},
        {"padding": "same"},
    ],
)
def test_forward(rank, options):
    torch.manual_seed(0)
    module = getattr(nn, f"Conv{rank}d")(4, 8, 3, **options)
    agree(module, torch.randn(2, 4, *SIZES[rank]), atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "output_padding": 1},
        {"stride": 3, "padding": 2, "dilation": 2},
        {"groups": 2},
    ],
)
def test_transposed(rank, options):
    torch.manual_seed(0)
    module = getattr(nn, f"ConvTranspose{rank}d")(4, 6, 3, **options)
    agree(module, torch.randn(2, 4, *(s // 2 + 1 for s in SIZES[rank])), atol=1e-4)


def test_channels_last_strides():
    module = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    want = agree(module, x, atol=1e-4)
    assert module.to("tpu")(x.to("tpu")).stride() == want.stride()


def test_unbatched_and_empty():
    agree(nn.Conv2d(3, 4, 3), torch.randn(3, 6, 6), atol=1e-4)
    agree(nn.Conv2d(3, 4, 3), torch.randn(0, 3, 6, 6), grad=False)


def test_conv_tbc():
    agree(torch.conv_tbc, torch.randn(5, 2, 3), torch.randn(3, 3, 4), torch.randn(4), 1, grad=False)
