"""What the tests of torch.compile share."""

import copy

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch.set_default_device(None)  # any other is a mode that Dynamo has to trace through
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def on_host(value):
    move = lambda t: t.detach().cpu() if isinstance(t, torch.Tensor) else t  # noqa: E731
    return torch.utils._pytree.tree_map(move, value)


def same(actual, expected, rtol=1e-4, atol=1e-5) -> None:
    torch.testing.assert_close(on_host(actual), on_host(expected), rtol=rtol, atol=atol)


def graphs() -> int:
    return counters["stats"]["unique_graphs"]


def pair(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    return model, copy.deepcopy(model).to("tpu")


def mlp(*extra: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), *extra, nn.GELU(), nn.Linear(16, 4))
