"""Products of groups of rows, as a mixture of experts has them, without a read on the host.

PyTorch's kernel reads where the groups end and multiplies one after another. Here the rows go into
equal blocks, each of one group, as many as there can be at most; so all shapes are known before
the offsets are, and the products are one batch. At most twice the rows and weights are touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_library = torch.library.Library("aten", "IMPL")
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass
class _Blocks:
    """`group[b]` is the group of a block, `rows[b, i]` a row of it where `inside[b, i]`."""

    group: Tensor
    rows: Tensor
    inside: Tensor
    place: Tensor  # of each row among the blocks' rows
    held: Tensor  # whether any group has the row


def _blocks(ends: Tensor, length: int) -> _Blocks:
    groups = ends.size(0)
    filled = min(groups, length)
    size = -(-length // filled)
    count = (length - filled) // size + filled
    starts = F.pad(ends[:-1], (1, 0))
    used = torch.div(ends - starts + size - 1, size, rounding_mode="floor")
    last = used.cumsum(0, dtype=ends.dtype)
    first = last - used

    def group_of(bounds: Tensor, places: Tensor) -> Tensor:
        return torch.searchsorted(bounds, places, right=True, out_int32=True).clamp(max=groups - 1)

    block = torch.arange(count, device=ends.device, dtype=ends.dtype)
    group = group_of(last, block)
    begin = starts.index_select(0, group) + (block - first.index_select(0, group)) * size
    rows = begin.unsqueeze(1) + torch.arange(size, device=ends.device, dtype=ends.dtype)
    inside = rows < ends.index_select(0, group).unsqueeze(1)
    row = torch.arange(length, device=ends.device, dtype=ends.dtype)
    own = group_of(ends, row)
    place = first.index_select(0, own) * size + row - starts.index_select(0, own)
    rows, place = rows.clamp(0, length - 1), place.clamp(0, count * size - 1)
    return _Blocks(group, rows, inside, place, row < ends[-1])


def _take(x: Tensor, blocks: _Blocks) -> Tensor:
    return x.index_select(0, blocks.rows.flatten()).reshape(*blocks.rows.shape, x.size(1))


def _by_rows(x: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
    """Each row of x times the matrix of its group; zeros for a row that no group has."""
    blocks = _blocks(ends, x.size(0))
    products = torch.bmm(_take(x, blocks), weights.index_select(0, blocks.group))
    rows = products.flatten(0, 1).index_select(0, blocks.place)
    return torch.where(blocks.held.unsqueeze(1), rows, 0)


def _by_terms(a: Tensor, b: Tensor, ends: Tensor) -> Tensor:
    """For each group the product of its columns of a with its rows of b."""
    blocks = _blocks(ends, b.size(0))
    inside = blocks.inside.unsqueeze(2)
    left = torch.where(inside, _take(a.t(), blocks), 0).float()
    right = torch.where(inside, _take(b, blocks), 0).float()
    sums = left.new_zeros(ends.size(0), a.size(0), b.size(1))
    return sums.index_add(0, blocks.group, torch.bmm(left.mT, right)).to(a.dtype)


def _check(a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype) -> None:
    for name, x in (("mat_a", a), ("mat_b", b)):
        if x.dtype not in _DTYPES:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {x.dtype}"
            )
        if x.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    flat = a.dim() == 2 or b.dim() == 2
    if a.dim() + b.dim() > 4 and a.size(-1) != b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if flat != (offs is not None):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None and (offs.dim() != 1 or offs.dtype != torch.int32):
        raise RuntimeError("offs has to be 1D" if offs.dim() != 1 else "Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


def _grouped_mm(
    a: Tensor, b: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype=None
) -> Tensor:
    _check(a, b, offs, bias, out_dtype)
    split = {(2, 3): a.size(0), (3, 2): b.size(-1), (2, 2): b.size(0)}.get((a.dim(), b.dim()), 0)
    meta = (None if x is None else x.to("meta") for x in (a, b, offs))
    like = torch.ops.aten._grouped_mm.default(*meta)
    if offs is None:
        result = torch.bmm(a, b)
    elif not offs.numel() or not split or not like.numel():
        result = a.new_zeros(like.shape)
    elif a.dim() == 2:
        result = _by_rows(a, b, offs) if b.dim() == 3 else _by_terms(a, b, offs)
    else:
        result = _by_rows(b.t(), a.mT, offs).t()
    if result.stride() == like.stride():
        return result
    return result.new_empty_strided(like.shape, like.stride()).copy_(result)


_library.impl("_grouped_mm", _grouped_mm, "PrivateUse1")
