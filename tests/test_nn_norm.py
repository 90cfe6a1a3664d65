"""Normalisations, their gradients and running statistics."""

import pytest
import torch
from nn_compare import agree
from torch import nn

import torchtpu  # noqa: F401


@pytest.mark.parametrize(
    "module,shape",
    [
        (nn.BatchNorm1d(5), (6, 5)),
        (nn.BatchNorm2d(3), (2, 3, 4, 5)),
        (nn.BatchNorm3d(3, momentum=None), (2, 3, 2, 4, 3)),
        (nn.BatchNorm2d(3, affine=False), (2, 3, 4, 4)),
        (nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 4)),
        (nn.BatchNorm2d(3).eval(), (2, 3, 4, 4)),
        (nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
        (nn.LayerNorm(8), (2, 3, 8)),
        (nn.LayerNorm((3, 8), bias=False), (2, 3, 8)),
        (nn.LayerNorm(8, elementwise_affine=False), (2, 8)),
        (nn.RMSNorm(8), (2, 3, 8)),
        (nn.RMSNorm(8, elementwise_affine=False), (2, 8)),
        (nn.GroupNorm(2, 4), (2, 4, 6)),
        (nn.GroupNorm(4, 4, affine=False), (2, 4, 3, 3)),
        (nn.LocalResponseNorm(2), (2, 4, 3, 3)),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (2, 4)),
    ],
    ids=str,
)
def test_modules(module, shape):
    torch.manual_seed(0)
    agree(module, torch.randn(shape), atol=2e-5)


def test_running_statistics_move():
    torch.manual_seed(0)
    a, b = nn.BatchNorm2d(3), nn.BatchNorm2d(3).to("tpu")
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5) * 3 + 1
        a(x)
        b(x.to("tpu"))
    torch.testing.assert_close(b.running_mean.cpu(), a.running_mean)
    torch.testing.assert_close(b.running_var.cpu(), a.running_var)
    assert b.num_batches_tracked.item() == 3


def test_bfloat16_layer_norm():
    module = nn.LayerNorm(64).bfloat16()
    x = torch.randn(4, 64).bfloat16()
    agree(module, x, rtol=1e-2, atol=1e-2, grad=False)
