"""Attention: the functional form, the modules, their fused inference paths."""

import pytest
import torch
import torch.nn.functional as F
from nn_compare import agree
from torch import nn

import torchtpu  # noqa: F401


def qkv(heads=(4, 4), queries=5, keys=7):
    torch.manual_seed(0)
    return [
        torch.randn(2, h, t, 8)
        for h, t in zip((heads[0], heads[1], heads[1]), (queries, keys, keys))
    ]


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"scale": 0.3}, {"enable_gqa": True}], ids=str
)
def test_functional(options):
    heads = (4, 2) if options.get("enable_gqa") else (4, 4)
    agree(lambda *x: F.scaled_dot_product_attention(*x, **options), *qkv(heads))


@pytest.mark.parametrize("shape", [(5, 7), (2, 1, 5, 7), (2, 4, 5, 7)])
def test_masks(shape):
    torch.manual_seed(1)
    agree(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), *qkv(), torch.randn(shape))
    agree(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        *qkv(),
        torch.rand(shape) > 0.3,
    )


def test_dropout_keeps_the_mean():
    q, k, v = (t.to("tpu") for t in qkv(keys=64))
    v = torch.ones_like(v)
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert abs(out.mean().item() - 1) < 0.2
    assert out.std().item() > 0


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm_first, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, activation=activation
    )
    x = torch.randn(3, 5, 8)
    agree(layer, x)
    torch.tpu.fallback_stats(reset=True)
    with torch.no_grad():
        agree(layer.eval(), x, grad=False)
        mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
        agree(lambda v, m: layer.to(v.device)(v, src_mask=m), x, mask, grad=False)
        layer.to("cpu")
    assert not any("encoder" in name for name in torch.tpu.fallback_stats())


@pytest.mark.parametrize("weights", [True, False])
def test_multihead_inference(weights):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def attend(x):
        return module.to(x.device)(x, x, x, need_weights=weights)

    with torch.no_grad():
        agree(attend, torch.randn(3, 5, 8), grad=False)
