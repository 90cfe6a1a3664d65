"""Attention in blocks of queries, for scores too large to hold: scaled_dot_product_attention comes
here where bridge/attention.cpp says so.

The forward keeps the logarithm of each row's sum, not the probabilities; the backward makes those
again, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from torchtpu.composed import composes

BLOCK = 1 << 25  # scores at a time


def _blocks(query: Tensor, key: Tensor, is_causal: bool) -> Iterator[tuple[slice, slice]]:
    """Rows of queries, and the keys that they see."""
    count, keys = query.size(-2), key.size(-2)
    rows = max(1, BLOCK // max(1, math.prod(query.shape[:-2]) * keys))
    for start in range(0, count, rows):
        end = min(start + rows, count)
        yield slice(start, end), slice(0, min(end, keys) if is_causal else keys)


class _Scores:
    """Scores of a block in float32, scaled, with the bias and the causal mask."""

    def __init__(
        self, query: Tensor, key: Tensor, bias: Tensor | None, is_causal: bool, scale: float | None
    ) -> None:
        self.query, self.key, self.is_causal = query, key, is_causal
        self.scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
        wide = (*query.shape[:-1], key.size(-2))
        self.bias = None if bias is None else bias.expand(wide)

    def __call__(self, rows: slice, seen: slice) -> Tensor:
        keys = self.key[..., seen, :].transpose(-2, -1)
        scores = torch.matmul(self.query[..., rows, :], keys).float() * self.scale
        if self.bias is not None:
            scores = scores + self.bias[..., rows, seen].float()
        if self.is_causal:
            at = [torch.arange(s.start, s.stop, device=scores.device) for s in (rows, seen)]
            scores = scores.masked_fill(at[0][:, None] < at[1], -math.inf)
        return scores


@composes("_scaled_dot_product_fused_attention_overrideable")
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple:
    if dropout_p or return_debug_mask:
        raise NotImplementedError("tpu: attention in blocks has no dropout and no debug mask")
    make = _Scores(query, key, attn_bias, is_causal, scale)
    outs, sums = [], []
    for rows, seen in _blocks(query, key, is_causal):
        scores = make(rows, seen)
        total = torch.logsumexp(scores, -1)
        # A row that sees nothing gives zeros, as PyTorch's _safe_softmax does.
        p = torch.exp(scores - total.masked_fill(total == -math.inf, 0).unsqueeze(-1))
        outs.append(torch.matmul(p.to(value.dtype), value[..., seen, :]))
        sums.append(total)
    # In the query's layout, which is what traces of this op expect.
    out = torch.empty_like(query[..., :1].expand(*query.shape[:-1], value.size(-1)))
    out.copy_(torch.cat(outs, -2))
    seed = torch.zeros((), dtype=torch.long, device=query.device)
    counts = query.size(-2), key.size(-2)
    return out, torch.cat(sums, -1), None, None, *counts, seed, seed.clone(), None


@composes("_scaled_dot_product_fused_attention_overrideable_backward")
def _attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    grad_input_mask: list[bool],
    out: Tensor,
    logsumexp: Tensor,
    *rest: object,
    scale: float | None = None,
) -> tuple:
    is_causal = bool(rest[5])  # after cum_seq_q, cum_seq_k, max_q, max_k and dropout_p
    make = _Scores(query, key, attn_bias, is_causal, scale)
    inner = (grad_out.float() * out.float()).sum(-1, keepdim=True)
    total = logsumexp.masked_fill(logsumexp == -math.inf, 0).unsqueeze(-1)
    dk = torch.zeros_like(key, dtype=torch.float32)
    dv = torch.zeros_like(value, dtype=torch.float32)
    dqs = []
    for rows, seen in _blocks(query, key, is_causal):
        p = torch.exp(make(rows, seen) - total[..., rows, :])
        dy = grad_out[..., rows, :]
        dv[..., seen, :] += torch.matmul(p.to(dy.dtype).transpose(-2, -1), dy)
        dp = torch.matmul(dy, value[..., seen, :].transpose(-2, -1)).float()
        ds = (p * (dp - inner[..., rows, :]) * make.scale).to(query.dtype)
        dk[..., seen, :] += torch.matmul(ds.transpose(-2, -1), query[..., rows, :])
        dqs.append(torch.matmul(ds, key[..., seen, :]))
    return torch.cat(dqs, -2), dk.to(key.dtype), dv.to(value.dtype), None
