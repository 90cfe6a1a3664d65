"""Graphs whose work depends on the values of their inputs: each call's, not the first one's."""

import pytest
import torch
from compile_helpers import _fresh_dynamo, same  # noqa: F401
from torch import nn

from torchtpu import aot


@pytest.fixture(autouse=True)
def _one_graph():
    """What would break a graph is captured in it."""
    with torch._dynamo.config.patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    ):
        yield


MASKS = [torch.tensor(m) for m in ([True, False, True], [True, True, True], [False, False, False])]
FLAGS = [torch.tensor(f) for f in (True, False, True)]
COUNTS = [torch.tensor(k) for k in (1, 2, 0)]
REPEATS = [torch.tensor(k) for k in ([1, 2, 0], [0, 0, 3], [1, 1, 1])]
READERS = {
    "cond": (lambda x, p: torch.cond(p, torch.sin, lambda y: y * 5, (x,)), FLAGS),
    "mask": (lambda x, m: x[m] * 2, MASKS),
    "masked_select": (lambda x, m: x.masked_select(m), MASKS),
    "nonzero": (lambda x, m: (x + 1, m.nonzero()), MASKS),
    "repeat_interleave": (torch.repeat_interleave, REPEATS),
    "item_fills": (lambda x, n: x + torch.full((), n.item(), device=x.device), COUNTS),
    "item_is_an_index": (lambda x, n: x[n.item()], COUNTS),
    "item_is_a_length": (lambda x, n: torch.arange(n.item(), device=x.device), COUNTS),
    "item_is_alpha": (lambda x, n: torch.add(x, x, alpha=n.item()), COUNTS),
    "item_of_a_view": (lambda x, n: x * torch.zeros(n.view(1)[0].item() + 1).numel(), COUNTS),
}


@pytest.mark.parametrize("name", READERS)
def test_inputs_that_decide(name):
    f, values = READERS[name]
    compiled = torch.compile(f, backend="tpu", fullgraph=True)
    x = torch.randn(3)
    for value in values:
        same(compiled(x.to("tpu"), value.to("tpu")), f(x, value))


def test_branches_train():
    """The backward graph takes the predicate as an input."""

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return torch.cond(x.sum() > 0, self.a, lambda y: self.b(y).relu(), (x,))

    model = Branches().to("tpu")
    compiled = torch.compile(model, fullgraph=True)
    for sign in (1, -1, 1):
        x = sign * torch.ones(3, 4, device="tpu")
        expected = model.a(x) if sign > 0 else model.b(x).relu()
        parameters = list((model.a if sign > 0 else model.b).parameters())
        wanted = torch.autograd.grad(expected.square().sum(), parameters)
        result = compiled(x)
        same(result, expected)
        same(torch.autograd.grad(result.square().sum(), parameters), wanted)


def test_traces_refuse_to_read_an_input():
    def f(x, n):
        return x * 2 if n.item() > 0 else x

    x, n = torch.ones(2, device="tpu"), torch.tensor(1, device="tpu")
    with pytest.raises(NotImplementedError, match="a value is read"):
        aot.trace(f, x, n)
    assert f(x, n).tolist() == [2, 2]
