"""Results lie in memory as the CPU's do: strides of functional, in-place and out= forms."""

import pytest
import torch
import torch.nn.functional as F

import torchtpu  # noqa: F401

LAYOUTS = {
    "transposed": lambda d: torch.randn(3, 4).to(d).t(),
    "permuted": lambda d: torch.randn(3, 2, 4).to(d).permute(1, 0, 2),
    "channels_last": lambda d: torch.randn(2, 3, 4, 5).to(d).to(memory_format=torch.channels_last),
    "strided": lambda d: torch.randn(4, 6).to(d)[:, ::2],
    "strided_t": lambda d: torch.randn(6, 4).to(d)[::2].t(),
    "expanded": lambda d: torch.randn(4, 1).to(d).expand(4, 3),
}


def empty(x, dtype=None):
    return torch.empty(0, device=x.device, dtype=dtype)


OPS = {
    "logsigmoid": F.logsigmoid,
    "rrelu": F.rrelu,
    "roll": lambda x: x.roll(1, 0),
    "roll_two": lambda x: x.roll((1, 2), (0, 1)),
    "roll_flat": lambda x: x.roll(1),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0], device=x.device), 1.0),
    "relu": F.relu,
    "softmax": lambda x: x.softmax(-1),
    "cumsum": lambda x: x.cumsum(0),
    "add_out": lambda x: torch.add(x, 1, out=empty(x)),
    "where_out": lambda x: torch.where(x > 0, x, x, out=empty(x)),
    "cat_out": lambda x: torch.cat([x, x], out=empty(x)),
    "sort_out": lambda x: torch.sort(x, 0, out=(empty(x), empty(x, torch.int64)))[0],
    "sum_out": lambda x: torch.sum(x, 0, out=empty(x)),
    "nonzero_out": lambda x: torch.nonzero(x, out=empty(x, torch.int64)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_strides(op, layout):
    results = []
    for device in ("cpu", "tpu"):
        torch.manual_seed(0)
        results.append(OPS[op](LAYOUTS[layout](device)))
    want, given = results
    assert given.stride() == want.stride()
    torch.testing.assert_close(given.cpu(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss])
def test_strides_of_gradients(loss, reduction):
    strides = []
    for device in ("cpu", "tpu"):
        x = torch.randn(3, 4).to(device).t().requires_grad_()
        result = loss(x, torch.randn(4, 3).to(device), reduction=reduction)
        result.sum().backward()
        strides.append((result.stride(), x.grad.stride()))
    assert strides[0] == strides[1]
