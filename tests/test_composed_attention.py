"""Attention in blocks of queries against PyTorch's on the CPU, and when it is taken."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from torchtpu import composed_attention, tpu

attention = torch.ops.aten._scaled_dot_product_fused_attention_overrideable


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed_attention, "BLOCK", 300)  # 2 of 17 rows


def _mask(kind: str) -> torch.Tensor | None:
    if kind == "added":
        return torch.randn(17, 23)
    if kind == "hidden":  # one row sees nothing
        hidden = torch.rand(2, 1, 17, 23) < 0.3
        hidden[0, 0, 2] = True
        return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)
    return None


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["", "causal", "added", "hidden"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_gradients(dtype: torch.dtype, kind: str, compiled: bool) -> None:
    torch.manual_seed(0)
    shapes = ((2, 3, 17, 8), (2, 3, 23, 8), (2, 3, 23, 12))
    host = [torch.randn(s).to(dtype).float().requires_grad_() for s in shapes]
    mask, causal = _mask(kind), kind == "causal"
    want = F.scaled_dot_product_attention(*host, attn_mask=mask, is_causal=causal, scale=0.4)
    weights = torch.randn(want.shape)
    (want * weights).sum().backward()

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor | None):
        return attention(q, k, v, m, 0.0, causal, scale=0.4)[0]

    device = [x.detach().to("tpu", dtype).requires_grad_() for x in host]
    function = torch.compile(run, backend="tpu") if compiled else run
    got = function(*device, None if mask is None else mask.to("tpu", dtype))
    (got * weights.to("tpu")).sum().backward()
    tolerance = 1e-5 if dtype == torch.float32 else 4e-2
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(got.cpu().float(), want, **close)
    for x, y in zip(device, host, strict=True):
        assert x.grad is not None and x.grad.dtype == dtype
        torch.testing.assert_close(x.grad.cpu().float(), y.grad, **close)


def test_layout_and_dropout() -> None:
    """The result lies as the query does: a model's transpose and view of it go on working."""
    q = torch.randn(2, 17, 3, 8, device="tpu").transpose(1, 2)
    out = attention(q, q, q)[0]
    assert out.stride() == q.stride()
    assert out.transpose(1, 2).is_contiguous()
    with pytest.raises(NotImplementedError, match="dropout"):
        attention(q, q, q, None, 0.5)


def test_large_scores_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^28 scores, 1 GiB in float32: eight blocks of them, each in a few temporaries."""
    monkeypatch.setattr(composed_attention, "BLOCK", 1 << 23)
    q, k = (torch.randn(1, 1, 1 << 14, 2, device="tpu") for _ in range(2))
    with torch.no_grad():
        tpu.synchronize()
        tpu.reset_peak_memory_stats()
        before = tpu.memory_allocated()
        out = F.scaled_dot_product_attention(q, k, k)
        tpu.synchronize()
        assert tpu.max_memory_allocated() - before < 1 << 28
    part = F.scaled_dot_product_attention(q[:, :, :64].cpu(), k.cpu(), k.cpu())
    torch.testing.assert_close(out[:, :, :64].cpu(), part, rtol=1e-4, atol=1e-4)


def test_choice() -> None:
    """Scores that fit go through the composite, whatever kernels are allowed; so does all under
    sdpa_kernel(MATH). Nothing is computed here: a trace says which op was called.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def ops(rows: int, **options) -> set:
        with FakeTensorMode():
            q = torch.empty(1, 4, rows, 16, device="tpu")
            traced = make_fx(lambda x: F.scaled_dot_product_attention(x, x, x, **options))(q)
        return {n.target for n in traced.graph.nodes}

    blocks = attention.default
    assert blocks in ops(1 << 13) and blocks not in ops(1 << 12)
    assert blocks not in ops(1 << 13, dropout_p=0.1)
    with sdpa_kernel(SDPBackend.MATH):
        assert blocks not in ops(1 << 13)
