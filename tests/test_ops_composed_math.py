"""Least squares, and gradients through gamma and Dirichlet samples."""

import pytest
import torch

import torchtpu  # noqa: F401


@pytest.fixture(autouse=True)
def on_the_device():
    torch.tpu.fallback_stats(reset=True)
    yield
    assert torch.tpu.fallback_stats() == {}


def problem(kind):
    a, b = torch.randn(2, 5, 3), torch.randn(2, 5, 2)
    return {
        "tall": (a[0], b[0]),
        "wide": (a[0].T, b[0][:3]),
        "vector": (a[0], b[0, :, 0]),
        "batch": (a, b),
        "broadcast": (a, b[:1]),
        "complex": (torch.complex(a, a.cos()), torch.complex(b, b.sin())),
        "double": (a.double(), b.double()),
        "deficient": (torch.ones(4, 2), torch.arange(4.0).unsqueeze(1)),
        "empty": (torch.ones(0, 2), torch.ones(0, 1)),
    }[kind]


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize(
    "kind",
    "tall wide vector batch broadcast complex double deficient empty".split(),
)
def test_least_squares(kind, driver):
    if (kind, driver) == ("deficient", "gels"):
        pytest.skip("gels is for full rank only")
    operands = problem(kind)
    want = torch.linalg.lstsq(*operands, driver=driver)
    given = torch.linalg.lstsq(*(t.to("tpu") for t in operands), driver=driver)
    for x, y in zip(want, given, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        torch.testing.assert_close(y.cpu(), x, rtol=1e-4, atol=1e-4)


def test_least_squares_gradients():
    grads = []
    for device in ("cpu", "tpu"):
        torch.manual_seed(0)
        a, b = (torch.randn(5, n).to(device).requires_grad_() for n in (3, 2))
        torch.linalg.lstsq(a, b).solution.square().sum().backward()
        grads.append([a.grad.cpu(), b.grad.cpu()])
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "a, b, words",
    [
        ((5, 3), (3, 2), "should match"),
        ((3,), (3, 2), "at least 2 dimensions"),
        ((2, 5, 3), (5,), "input.dim"),
    ],
)
def test_wrong_systems(a, b, words):
    for device in ("cpu", "tpu"):
        with pytest.raises(RuntimeError, match=words):
            torch.linalg.lstsq(torch.ones(a, device=device), torch.ones(b, device=device))


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.0, 40.0, 1e4])
def test_gamma_gradient(alpha):
    a = torch.full((50,), alpha, dtype=torch.float64)
    x = torch._standard_gamma(a).clamp(min=1e-12)
    given = torch._standard_gamma_grad(a.to("tpu"), x.to("tpu")).cpu()
    # PyTorch's own approximation is good to about 5e-4.
    torch.testing.assert_close(given, torch._standard_gamma_grad(a, x), rtol=1e-3, atol=1e-12)
    if 0.5 <= alpha <= 40:
        step, normal = 1e-5, torch.exp((a - 1) * x.log() - x - torch.lgamma(a))
        ends = [torch.special.gammainc(a + d, x) for d in (step, -step)]
        exact = (ends[1] - ends[0]) / (2 * step) / normal
        torch.testing.assert_close(given, exact, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "alpha", [(0.05, 0.1, 0.3), (1.0, 1.0, 1.0), (0.5, 2.0, 5.0), (3e3, 9e3, 1e2)]
)
def test_dirichlet_gradient(alpha):
    a = torch.tensor(alpha, dtype=torch.float64).repeat(50, 1)
    x = torch._sample_dirichlet(a).clamp(1e-12, 1 - 1e-12)
    total = a.sum(-1, keepdim=True).expand_as(a)
    given = torch._dirichlet_grad(*(t.to("tpu") for t in (x, a, total))).cpu()
    # PyTorch's own approximation is good to about 2e-3.
    torch.testing.assert_close(given, torch._dirichlet_grad(x, a, total), rtol=5e-3, atol=1e-12)


def test_distributions_have_gradients():
    for make in (
        lambda a: torch.distributions.Gamma(a, 1 + a),
        lambda a: torch.distributions.Beta(a, 1 + a),
        lambda a: torch.distributions.Dirichlet(a),
        lambda a: torch.distributions.StudentT(a),
    ):
        a = torch.tensor([0.5, 2.0, 7.0], device="tpu", requires_grad=True)
        make(a).rsample((5,)).square().sum().backward()
        assert a.grad.isfinite().all() and a.grad.abs().sum() > 0


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_distances_of_batched_gradients(p):
    """As vmap asks for them: only the gradient has a batch dimension."""
    x, y, grad = torch.randn(3, 4), torch.randn(5, 4), torch.randn(2, 3, 5)
    far = torch.cdist(x, y, p)
    want = torch.stack([torch.ops.aten._cdist_backward(g, x, y, p, far) for g in grad])
    given = torch.ops.aten._cdist_backward(*(t.to("tpu") for t in (grad, x, y)), p, far.to("tpu"))
    torch.testing.assert_close(given.cpu(), want, rtol=1e-4, atol=1e-5)
