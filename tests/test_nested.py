"""Strided nested tensors: PyTorch's kernels on the device's buffers, and the fused encoder."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torchtpu  # noqa: F401


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors are a prototype
        torch.set_default_device(None)  # fast paths are for calls that no mode looks at
        yield


def plain(value):
    return value.to_padded_tensor(0.0) if value.is_nested else value


def agree(f):
    torch.tpu.fallback_stats(reset=True)
    results = []
    for device in ("cpu", "tpu"):
        torch.manual_seed(0)
        value = f(device)
        results.append(value if isinstance(value, (tuple, list)) else [value])
    for x, y in zip(*results, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.is_nested == y.is_nested and y.is_tpu
            torch.testing.assert_close(plain(y).cpu(), plain(x), rtol=1e-5, atol=1e-5)
    assert torch.tpu.fallback_stats() == {}


def make(device):
    return torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], device=device)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2 + x,
        lambda x: F.gelu(x),
        lambda x: F.linear(x, torch.ones(5, 4, device=x.device)),
        lambda x: x.softmax(-1),
        lambda x: x @ x.transpose(1, 2),
        lambda x: x.sum(-1, keepdim=True),
        lambda x: x[1],
        lambda x: x.unbind(),
        lambda x: x.half().float(),
    ],
    ids=range(9),
)
def test_ops_and_gradients(f):
    def run(device):
        rows = [torch.randn(n, 4).to(device).requires_grad_() for n in (2, 3)]
        result = f(torch.nested.as_nested_tensor(rows))
        parts = result if isinstance(result, (tuple, list)) else [result]
        sum(plain(y).square().sum() for y in parts).backward()
        return [y.detach() for y in parts] + [r.grad for r in rows if r.grad is not None]

    agree(run)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_zeroes_padding(norm_first, activation):
    def run(device):
        layer = nn.TransformerEncoderLayer(
            16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
        )
        encoder = nn.TransformerEncoder(layer, 2).to(device).eval()
        padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]).bool()
        with torch.no_grad():
            return encoder(
                torch.randn(3, 5, 16).to(device), src_key_padding_mask=padding.to(device)
            )

    agree(run)


@pytest.mark.parametrize("options", [(False, True), (True, True), (True, False)])
def test_multihead_attention(options):
    def run(device):
        module = nn.MultiheadAttention(4, 2, batch_first=True).to(device).eval()
        x = make(device)
        with torch.no_grad():
            return module(x, x, x, need_weights=options[0], average_attn_weights=options[1])

    agree(run)


def test_layer_norm():
    def run(device):
        rows = [torch.randn(n, 4).to(device).requires_grad_() for n in (2, 3)]
        norm = nn.LayerNorm(4).to(device)
        result = norm(torch.nested.as_nested_tensor(rows))
        plain(result).pow(3).sum().backward()
        return [result.detach(), norm.weight.grad, norm.bias.grad] + [r.grad for r in rows]

    agree(run)


def test_copies():
    x = make("tpu")
    assert x.device.type == "tpu" and x.cpu().to("tpu").is_tpu
    assert "nested_tensor" in repr(x)
    torch.testing.assert_close(plain(x.cpu()), plain(x).cpu())
