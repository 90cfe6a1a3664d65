"""What a compiled backward pass does with the memory of saved activations."""

import pytest
import torch
import torch._functorch.config
from compile_helpers import _fresh_dynamo, same  # noqa: F401
from torch import nn


def model() -> nn.Module:
    layers = [layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.GELU())]
    return nn.Sequential(*layers).to("tpu")


def backward_bytes(loss: torch.Tensor, **keywords) -> int:
    """How much more was in use at once than before."""
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    torch.tpu.reset_peak_memory_stats()
    loss.backward(**keywords)
    torch.tpu.synchronize()
    return torch.tpu.max_memory_allocated() - before


@pytest.fixture
def any_number_of_backwards():
    """By default AOTAutograd refuses retain_graph once a backward has used the activations up."""
    with torch._functorch.config.patch(donated_buffer=False):
        yield


def test_activations_are_given_up(any_number_of_backwards):
    net = model()
    compiled = torch.compile(net, fullgraph=True)
    x = torch.randn(1024, 64).to("tpu").requires_grad_()
    gradients, used = [], {}
    for keep in (False, True, False, True):
        x.grad = None
        loss = compiled(x).square().mean()
        used[keep] = backward_bytes(loss, retain_graph=keep)
        gradients.append(x.grad.clone())
        if keep:  # and what was kept is as it was
            loss.backward()
            same(x.grad, 2 * gradients[0], 1e-6, 0)
        net.zero_grad()
    assert used[False] < used[True]
    assert all(torch.equal(g, gradients[0]) for g in gradients)
    x.grad = None
    net(x).square().mean().backward()
    same(x.grad, gradients[0])


def test_two_backwards_of_one_graph():
    """Where the first one keeps the graph, AOTAutograd has nothing donated."""
    net = model()
    loss = torch.compile(net)(torch.randn(8, 64).to("tpu")).sum()
    loss.backward(retain_graph=True)
    once = net[0].weight.grad.clone()
    loss.backward()
    same(net[0].weight.grad, 2 * once, 1e-6, 0)


def test_activations_that_others_hold():
    """Hooks, views and results keep what they have."""
    held = []

    def keep(t):
        held.append((t, t.detach().cpu()))
        return t

    def f(x, w):
        y = (x @ w).sin()
        z = (y @ w).cos()
        return z, y.t(), (z @ w).exp().sum()

    x, w = torch.randn(32, 32).to("tpu"), torch.randn(32, 32).to("tpu").requires_grad_()
    compiled = torch.compile(f, fullgraph=True)
    for hooked in (False, True, False):
        if hooked:
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
                z, y, loss = compiled(x, w)
        else:
            z, y, loss = compiled(x, w)
        before = [t.detach().cpu() for t in (x, w, z, y)]
        loss.backward()
        same([x, w, z, y], before, 0, 0)
    assert held
    for tensor, value in held:
        same(tensor, value, 0, 0)
