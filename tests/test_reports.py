"""More public bug reports of other backends, as short checks against the CPU."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

REPORTS: list = []


def report(function):
    REPORTS.append(function)
    return function


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@report  # intel/torch-xpu-ops#889
def to_narrow_integers_wraps(d):
    x = torch.tensor([57.76, 215.26, -158.8, 300.0, 70000.0, -1.0], device=d)
    narrow = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.uint32)
    low = torch.tensor([torch.finfo(torch.float32).min, -0.5], device=d)
    return [y.to(t) for t in narrow for y in (x, x.double())] + [low.to(torch.int8)]


@report
def float8_stops_at_its_largest(d):
    x = torch.tensor([460.0, 465.0, -1e9, float("inf"), float("nan"), 0.001], device=d)
    small = (torch.float8_e4m3fn, torch.float8_e5m2)
    types = (torch.float32, torch.bfloat16, torch.float64)
    return [x.to(s).to(t).float() for s in types for t in small] + [
        torch.tensor([1000, -3], device=d).to(t).float() for t in small
    ]


@report  # pytorch/pytorch#183825
def norm_weights_alone_have_a_gradient(d):
    x = draw(2, 4, 3).to(d)
    w, b = (torch.ones(4, device=d).requires_grad_() for _ in range(2))
    normed = (
        F.layer_norm(x.mT, (4,), w, b),
        F.batch_norm(x, None, None, w, b, training=True),
        F.batch_norm(x, torch.zeros(4, device=d), torch.ones(4, device=d), w, b),
        F.group_norm(x, 2, w, b),
    )
    return [torch.autograd.grad(y.pow(3).sum(), (w, b)) for y in normed]


@report  # intel/torch-xpu-ops#3349
def batch_norm_in_eval_saves_nothing(d):
    x, v = draw(2, 3, 4).to(d), torch.ones(3, device=d)
    return torch.native_batch_norm(x, v, v, v, v, False, 0.1, 1e-5)


@report  # pytorch/pytorch#195074
def accumulation_into_a_misaligned_view(d):
    base = torch.zeros(3, 9, dtype=torch.bool, device=d)
    index, ones = torch.tensor([0, 2], device=d), torch.ones(2, dtype=torch.bool, device=d)
    base[0].narrow(0, 1, 4).scatter_add_(0, index, ones)
    base[1].narrow(0, 2, 4).index_add_(0, index, ones)
    base[2].narrow(0, 3, 4).index_put_((index,), ones, accumulate=True)
    return base


@report  # pytorch/pytorch#166237, #160845
def the_last_of_equal_indices_wins(d):
    i, s, x = torch.tensor([0, 2, 0, 2, 1, 0]).to(d), torch.arange(6.0).to(d), torch.zeros(4).to(d)
    z = torch.complex(x, x).index_add(0, i, torch.complex(s, -s))
    return x.index_copy(0, i, s), x.index_put((i,), s), x.scatter(0, i, s), z


@report  # pytorch/pytorch#195595
def unique_of_large_integers_inverts(d):
    keys = (torch.arange(500) * 7919 % 769 * 591361).to(d)
    values, inverse = keys.unique(return_inverse=True)
    return values, inverse, values[inverse] == keys


@report  # pytorch/pytorch#187521
def a_zero_beta_hides_nan(d):
    n, a = torch.full((2, 2), float("nan")).to(d), draw(2, 2).to(d)
    plain = torch.addmm(n, a, a, beta=0), torch.addmv(n[0], a, a[0], beta=0)
    return *plain, torch.baddbmm(n[None], a[None], a[None], beta=0)


@pytest.mark.parametrize("mode", ["strict", "defer_and_fuse"])
@pytest.mark.parametrize("function", REPORTS, ids=lambda f: f.__name__)
def test_gives_the_cpu_result(function, mode):
    torch.tpu.set_eager_mode(mode)
    given = tree_leaves(function("tpu"))
    for got, wanted in zip(given, tree_leaves(function("cpu")), strict=True):
        torch.testing.assert_close(got.cpu(), wanted, equal_nan=True)


def expanded(d):
    return torch.zeros(3, 1, device=d).expand(3, 4)


def row(d):
    return torch.arange(6.0, device=d)


WRONG_WRITES = {
    "uniform_": lambda d: expanded(d).uniform_(),
    "relu_": lambda d: expanded(d).relu_(),
    "abs_": lambda d: expanded(d).abs_(),
    "cumsum_": lambda d: expanded(d).cumsum_(0),
    "addmm_": lambda d: expanded(d).addmm_(torch.ones(3, 2).to(d), torch.ones(2, 4).to(d)),
    "add out": lambda d: torch.add(expanded(d), 1, out=expanded(d)),
    "exp out": lambda d: (x := row(d), torch.exp(x[:-1], out=x[1:])),
    "cat out": lambda d: (x := row(d), torch.cat([x[:3], x[3:]], out=x)),
    "copy_": lambda d: (x := row(d), x[1:].copy_(x[:-1])),
    "copy_ of the transpose": lambda d: (x := row(d)[:4].view(2, 2), x.copy_(x.mT)),
    "add_": lambda d: (x := row(d), x[1:].add_(x[:-1])),
    "rsub of bool": lambda d: 1 - torch.tensor([True], device=d),
    "var of integers": lambda d: torch.arange(3, device=d).var(),
    "std of integers": lambda d: torch.arange(3, device=d).std(0),
}


@pytest.mark.parametrize("function", WRONG_WRITES.values(), ids=WRONG_WRITES)
def test_raises_as_on_the_cpu(function):
    """Writes through overlapping elements, and what no dtype defines."""
    messages = []
    for d in ("cpu", "tpu"):
        with pytest.raises(RuntimeError) as error:
            function(d)
        messages.append(str(error.value).splitlines()[0])
    assert messages[0] in messages[1]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill_(x[0, 0] + 1),
        lambda x: x[0].fill_(x[0, 1]),
        lambda x: x.masked_fill_(x > 2, x[0, 1]),
        lambda x: x.add_(x),
        lambda x: x.copy_(x),
        lambda x: torch.mul(x, x, out=x),
        lambda x: x[:, 0].copy_(x[:, 1]),
        lambda x: x[0].add_(x[1]),
    ],
)
def test_writes_that_may_share(write):
    wanted, given = row("cpu").view(2, 3), row("tpu").view(2, 3)
    write(wanted), write(given)
    assert torch.equal(given.cpu(), wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z[1:],
        lambda z: z.view(3, 1).mH,
        torch.view_as_real,
        lambda z: z.real,
        lambda z: (z.imag[1:], z.real.view(torch.int32), z),
        lambda z: (torch.view_as_real(z), z.abs(), z * 2),
    ],
)
def test_compiled_views_of_an_input(function):
    """A graph with no op of its own, and results of another element type over an input."""
    torch._dynamo.reset()
    z = torch.complex(draw(3), draw(3, seed=1))
    other = z.to("tpu")
    wanted, given = function(z), torch.compile(function, backend="tpu")(other)
    z.mul_(2), other.mul_(2)  # the views follow
    for a, b in zip(tree_leaves(wanted), tree_leaves(given), strict=True):
        torch.testing.assert_close(b.cpu(), a)


@pytest.mark.parametrize("data", [[float("nan"), 1.0], [float("inf"), 1.0]])
def test_histogram_of_what_is_not_finite(data):
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histc(torch.tensor(data, device="tpu")).cpu()
    assert torch.histc(torch.tensor([1.0, 2.0], device="tpu"), 2).tolist() == [1, 1]


def test_mode_of_nothing():
    with pytest.raises(IndexError, match="dim 0 to have non-zero size"):
        torch.zeros(0, 3, device="tpu").mode(0)
