"""Gathers, scatters, advanced indexing and embeddings."""

import pytest
import torch
import torch.nn.functional as F
from nn_compare import agree
from torch import nn

import torchtpu  # noqa: F401

X = torch.arange(60.0).reshape(3, 4, 5)
AT = torch.tensor([[0, -1], [2, 1]])


@pytest.mark.parametrize(
    "index",
    [
        (AT,),
        (slice(None), AT),
        (AT, slice(None), AT),
        (slice(None), AT, torch.tensor([1, 2])),
        (torch.tensor(1), AT),
        (..., AT),
        (torch.zeros(0, dtype=torch.long),),
        (torch.tensor([True, False, True]),),
        (X > 30,),
    ],
    ids=str,
)
def test_reading_and_writing(index):
    moved = tuple(i.to("tpu") if isinstance(i, torch.Tensor) else i for i in index)
    x, y = X.clone().requires_grad_(), X.to("tpu").requires_grad_()
    want, given = x[index], y[moved]
    assert torch.equal(given.cpu(), want)
    want.sum().backward()
    given.sum().backward()
    assert torch.equal(y.grad.cpu(), x.grad)
    a, b = X.clone(), X.to("tpu")
    a[index] = -1
    b[moved] = -1
    assert torch.equal(b.cpu(), a)


def test_accumulate():
    index = (torch.tensor([0, 0, 2]), torch.tensor([1, 1, -1]))
    agree(lambda x, v, i, j: x.index_put((i, j), v, accumulate=True), X, torch.randn(3, 5), *index)


def test_out_of_range_raises():
    x = X.to("tpu")
    with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 3"):
        x[torch.tensor([3], device="tpu")].cpu()
    with pytest.raises(RuntimeError):
        torch.gather(x, 1, torch.full((3, 1, 5), 7, device="tpu")).cpu()
    assert torch.equal(x.cpu(), X)  # the device stays usable


def test_along():
    index = torch.randint(0, 3, (2, 4, 5))
    agree(lambda x, i: torch.gather(x, 0, i), X, index)
    agree(
        lambda x, i, s: x.scatter(0, i, s), X, torch.arange(3).view(3, 1, 1).expand(3, 4, 5), X + 1
    )
    agree(lambda x, i, s: x.scatter_add(0, i, s), X, index, torch.randn(2, 4, 5))
    agree(lambda x, i: torch.take(x, i), X, torch.tensor([0, -1, 7]))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce, include_self):
    torch.manual_seed(0)
    index = torch.randint(0, 3, (3, 4, 5))
    agree(
        lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self),
        torch.randn(3, 4, 5),
        index,
        torch.randn(3, 4, 5),
    )


def test_slices():
    at = torch.tensor([2, 0, 2])
    source = torch.randn(3, 3, 5)
    agree(lambda x, i: x.index_select(1, i), X, at)
    agree(lambda x, i, s: x.index_add(1, i, s, alpha=2), X, at, source)
    agree(lambda x, i, s: x.index_copy(1, i, s), X, at[:2], source[:, :2])
    agree(lambda x, i: x.index_fill(1, i, 7.0), X, at)
    agree(lambda x, m, s: x.masked_scatter(m, s), X, X > 50, torch.randn(60))


def test_embeddings():
    torch.manual_seed(0)
    ids = torch.randint(10, (3, 5))
    agree(nn.Embedding(10, 4, padding_idx=2), ids)
    agree(nn.Embedding(10, 4, scale_grad_by_freq=True), ids)
    agree(nn.Embedding(10, 4, max_norm=1.0), ids)
    for mode in ("sum", "mean", "max"):
        agree(nn.EmbeddingBag(10, 4, mode=mode, padding_idx=1), ids)
        agree(
            nn.EmbeddingBag(10, 4, mode=mode, include_last_offset=True),
            ids.flatten(),
            torch.tensor([0, 4, 4, 15]),
        )
    weights = torch.rand(3, 5)
    agree(
        lambda w, p: F.embedding_bag(ids.to(w.device), w, mode="sum", per_sample_weights=p),
        torch.randn(10, 4),
        weights,
    )
