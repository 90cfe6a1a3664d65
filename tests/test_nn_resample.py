"""Interpolation and grid sampling with gradients."""

import pytest
import torch
import torch.nn.functional as F
from nn_compare import agree

import torchtpu  # noqa: F401

MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
}
CASES = [(mode, rank) for mode, ranks in MODES.items() for rank in ranks]


@pytest.mark.parametrize("mode,rank", CASES)
@pytest.mark.parametrize(
    "options", [{"size": 7}, {"size": 3}, {"scale_factor": 1.7}, {"scale_factor": 2}], ids=str
)
def test_interpolate(mode, rank, options):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *(5, 6, 4)[:rank])
    agree(lambda v: F.interpolate(v, mode=mode, **options), x)
    if "nearest" not in mode:
        agree(lambda v: F.interpolate(v, mode=mode, align_corners=True, **options), x)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (9, 2), (12, 15)])
def test_antialias(mode, size):
    agree(lambda v: F.interpolate(v, size, mode=mode, antialias=True), torch.randn(2, 3, 10, 11))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(7, 9), (5, 31), (40, 33)])
@pytest.mark.parametrize("antialias", [False, True])
def test_bytes(mode, size, antialias):
    x = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    for align in (False, True):
        options = {"mode": mode, "antialias": antialias, "align_corners": align}
        want = F.interpolate(x, size, **options)
        assert torch.equal(F.interpolate(x.to("tpu"), size, **options).cpu(), want)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
def test_grid(mode, padding, align):
    torch.manual_seed(0)

    def sample(x, grid):
        return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=align)

    agree(sample, torch.randn(2, 3, 5, 6), 2.6 * torch.rand(2, 4, 4, 2) - 1.3)
    if mode != "bicubic":
        agree(sample, torch.randn(2, 3, 4, 5, 6), 2.6 * torch.rand(2, 3, 4, 4, 3) - 1.3)


def test_affine_grid():
    agree(lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=False), torch.randn(2, 2, 3))
