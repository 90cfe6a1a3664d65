"""Random numbers: ranges, moments, independence of draws, and what a seed fixes."""

import pytest
import torch

import torchtpu  # noqa: F401

N = 200_000


def moments(x):
    x = x.double().cpu()
    return x.mean().item(), x.std().item()


def near(value, expected, spread):
    """Within five standard errors of a mean over N draws."""
    return abs(value - expected) < 5 * spread / N**0.5


def test_uniform():
    x = torch.empty(N, device="tpu").uniform_(-2, 3)
    mean, std = moments(x)
    assert x.min().item() >= -2 and x.max().item() < 3
    assert near(mean, 0.5, 1.45) and abs(std - 5 / 12**0.5) < 0.01


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_uniform_in_small_floats_stays_below_one(dtype):
    x = torch.rand(N, device="tpu", dtype=dtype)
    assert 0 <= x.min().item() and x.max().item() < 1
    assert near(moments(x)[0], 0.5, 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal(dtype):
    x = torch.randn(N, device="tpu", dtype=dtype)
    mean, std = moments(x)
    assert near(mean, 0, 1) and abs(std - 1) < 0.01
    fourth = (x.double().cpu() ** 4).mean().item()
    assert abs(fourth - 3) < 0.15
    assert 3.5 < x.abs().max().item() < 7


def test_neighbours_do_not_correlate():
    x = torch.randn(N + 1, device="tpu").cpu()
    assert abs(torch.corrcoef(torch.stack([x[1:], x[:-1]]))[0, 1].item()) < 0.012
    half = (N + 1) // 2
    assert abs(torch.corrcoef(torch.stack([x[:half], x[half : 2 * half]]))[0, 1].item()) < 0.017


def test_seed_fixes_the_sequence():
    torch.manual_seed(7)
    first, second = torch.rand(100, device="tpu"), torch.rand(100, device="tpu")
    torch.manual_seed(7)
    again = torch.rand(100, device="tpu")
    assert torch.equal(first.cpu(), again.cpu())
    assert not torch.equal(first.cpu(), second.cpu())
    torch.manual_seed(8)
    assert not torch.equal(first.cpu(), torch.rand(100, device="tpu").cpu())


def test_bernoulli_and_dropout():
    p = torch.full((N,), 0.3, device="tpu")
    assert near(torch.bernoulli(p).cpu().mean().item(), 0.3, 0.46)
    x = torch.ones(N, device="tpu", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    values = sorted(set(y.detach().cpu().tolist()))
    assert values[0] == 0 and values[1] == pytest.approx(4 / 3)
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert near((y != 0).float().mean().item(), 0.75, 0.45)


@pytest.mark.parametrize("low,high", [(0, 10), (-5, 5), (0, 2**40)])
def test_random_integers(low, high):
    x = torch.randint(low, high, (N,), device="tpu").cpu()
    assert low <= x.min() and x.max() < high
    assert near(x.double().mean().item(), (low + high - 1) / 2, (high - low) / 3.4)


def test_randperm():
    x = torch.randperm(1000, device="tpu").cpu()
    assert torch.equal(x.sort().values, torch.arange(1000))
    assert not torch.equal(x, torch.arange(1000))


def test_other_distributions():
    e = torch.empty(N, device="tpu")
    assert near(moments(e.exponential_(2.0))[0], 0.5, 0.5)
    assert near(moments(e.geometric_(0.25))[0], 4, 3.5)
    assert near(e.log_normal_(0.0, 0.5).log().mean().item(), 0, 0.5)
    assert abs(e.cauchy_(1.0, 2.0).median().item() - 1) < 0.05
    assert near(moments(torch.poisson(torch.full((N,), 3.5, device="tpu")))[0], 3.5, 1.9)
    mean, std = moments(torch.poisson(torch.full((N,), 50.0, device="tpu")))
    assert near(mean, 50, 7.1) and abs(std - 50**0.5) < 0.1
    for count, prob in ((8.0, 0.3), (200.0, 0.6)):
        mean, std = moments(
            torch.binomial(
                torch.full((N,), count, device="tpu"), torch.full((N,), prob, device="tpu")
            )
        )
        assert near(mean, count * prob, std) and abs(std - (count * prob * (1 - prob)) ** 0.5) < 0.1
    for alpha in (0.4, 3.0):
        mean, std = moments(torch._standard_gamma(torch.full((N,), alpha, device="tpu")))
        assert near(mean, alpha, std) and abs(std - alpha**0.5) < 0.05


def test_multinomial():
    p = torch.tensor([0.1, 0.0, 0.6, 0.3], device="tpu")
    drawn = torch.multinomial(p, N, replacement=True).cpu()
    share = torch.bincount(drawn, minlength=4) / N
    assert share[1] == 0 and torch.allclose(share, p.cpu(), atol=0.01)
    rows = torch.multinomial(p.expand(50, 4), 3).cpu()
    assert all(sorted(row) == [0, 2, 3] for row in rows.tolist())
    with pytest.raises(RuntimeError, match="probability tensor contains"):
        torch.multinomial(torch.tensor([0.5, -1.0], device="tpu"), 1).cpu()


def test_rrelu_in_place():
    x = -torch.ones(N, device="tpu")
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True, inplace=True)
    assert -0.3 <= y.min().item() and y.max().item() <= -0.1
    assert near(moments(y)[0], -0.2, 0.06)
