"""Reductions, scans, sorting and losses where OpInfo's samples do not reach."""

import pytest
import torch

import torchtpu  # noqa: F401


def both(fn, *args, **kwargs):
    expected = fn(*args, **kwargs)
    actual = fn(*(a.to("tpu") if isinstance(a, torch.Tensor) else a for a in args), **kwargs)
    torch.testing.assert_close(
        tuple(t.cpu() for t in actual) if isinstance(actual, tuple) else actual.cpu(),
        tuple(expected) if isinstance(expected, tuple) else expected,
        equal_nan=True,
    )


NANS = torch.tensor([[1.0, float("nan"), 3.0, 3.0], [2.0, 5.0, -1.0, 5.0]])


@pytest.mark.parametrize(
    "name", ["max", "min", "median", "nanmedian", "cummax", "cummin", "sort", "mode"]
)
def test_nan_and_ties_along_a_dimension(name):
    if name in ("sort", "median", "nanmedian", "mode"):
        both(lambda x: getattr(torch, name)(x, 1)[0], NANS)
    else:
        both(getattr(torch, name), NANS, 1)


@pytest.mark.parametrize(
    "name", ["argmax", "argmin", "amax", "amin", "sum", "nansum", "mean", "prod", "any", "all"]
)
def test_full_reduction_with_nan(name):
    both(getattr(torch, name), NANS)


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "mean"])
def test_empty_reductions(name):
    both(getattr(torch, name), torch.empty(0, 3))


@pytest.mark.parametrize("name", ["max", "argmax", "amax"])
def test_empty_extremes_raise(name):
    with pytest.raises((RuntimeError, IndexError), match="numel"):
        getattr(torch, name)(torch.empty(0, device="tpu"))


def test_arange_of_the_same_form_has_its_own_size():
    assert torch.arange(-0.5, 0.5, 0.5, device="tpu").tolist() == [-0.5, 0.0]
    assert torch.arange(-1.0, 0.5, 0.5, device="tpu").tolist() == [-1.0, -0.5, 0.0]
    both(lambda x: x + torch.arange(0, 1, 0.1, device=x.device), torch.zeros(10))


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_scans(n):
    x = torch.linspace(-1, 1.5, n, dtype=torch.float64)
    both(torch.cumsum, x, 0)
    both(torch.cumprod, x, 0)
    both(torch.logcumsumexp, x, 0)
    both(torch.cumsum, torch.ones(3, n, dtype=torch.bool), 1)


def test_searchsorted_with_nan_and_sides():
    edges = torch.tensor([1.0, 2.0, 2.0, 3.0])
    values = torch.tensor([0.0, 1.0, 2.0, 2.5, 4.0, float("nan")])
    for right in (False, True):
        both(lambda e, v, right=right: torch.searchsorted(e, v, right=right), edges, values)
        both(lambda v, e, right=right: torch.bucketize(v, e, right=right), values, edges)


def test_stable_sort_keeps_order():
    x = torch.tensor([2, 1, 2, 1, 2, 0] * 20)
    for descending in (False, True):
        both(lambda t, d=descending: torch.sort(t, stable=True, descending=d)[1], x)


@pytest.mark.parametrize("pad", [(1, 2), (-1, 1), (0, 3)])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
def test_pads_and_their_gradients(mode, pad):
    def run(x):
        x = x.clone().requires_grad_()
        y = torch.nn.functional.pad(x, pad, mode=mode)
        weights = torch.arange(1.0, y.numel() + 1).reshape(y.shape).to(y.device)
        return y.detach(), torch.autograd.grad((y * weights).sum(), x)[0]

    both(run, torch.arange(10.0).reshape(1, 2, 5))


def test_nll_loss_target_out_of_range():
    x, target = torch.randn(3, 4, device="tpu"), torch.tensor([0, 4, 1], device="tpu")
    with pytest.raises(IndexError, match="out of bounds"):
        torch.nn.functional.nll_loss(x, target).cpu()
    ignored = torch.tensor([0, -100, 1])
    both(torch.nn.functional.nll_loss, x.cpu(), ignored)


def test_bce_out_of_range():
    x = torch.tensor([0.5, 1.5], device="tpu")
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        torch.nn.functional.binary_cross_entropy(x, torch.ones(2, device="tpu")).cpu()


def test_softmax_of_infinities():
    x = torch.tensor([[float("-inf"), 0.0, 1.0], [float("-inf")] * 3])
    both(torch.softmax, x, 1)
    both(torch.log_softmax, x, 1)
