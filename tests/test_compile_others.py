"""torch.compile with what is not PyTorch's own: custom ops, subclasses, modules of the device."""

import pytest
import torch
from compile_helpers import _fresh_dynamo, graphs, same  # noqa: F401
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.utils.checkpoint import checkpoint

STATE = {"calls": 0, "scale": 1.0}  # what PyTorch cannot know of


@torch.library.custom_op("tpu_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    STATE["calls"] += 1
    return x * STATE["scale"]


scaled.register_fake(torch.empty_like)
scaled.register_autograd(lambda _, g: (scaled(g),))


@torch.library.custom_op("tpu_tests::scale_", mutates_args=("x",))
def scale_(x: torch.Tensor) -> None:
    STATE["calls"] += 1
    x.mul_(STATE["scale"])


@torch.library.custom_op("tpu_tests::positive", mutates_args=())
def positive(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    STATE["calls"] += 1
    return x[x > 0], x + STATE["scale"]


@positive.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size()), torch.empty_like(x)


def written_between(x):
    y = x * 2
    scale_(y)
    scale_(y[0])
    scale_(x)
    return y + 1, x.view(-1)


def of_unknown_length(x):
    kept, moved = positive(x * 2)
    return kept.sum() + x.mean(), moved.t()


def in_a_scan(x):
    zeros = torch.zeros(3, device=x.device)
    return scan(lambda c, v: (c + v, scaled(c * v)), zeros, x, dim=0)[1]


FUNCTIONS = {
    "alone": lambda x: scaled(x.sin()).cos(),
    "recomputed": lambda x: checkpoint(lambda y: scaled(y.sin()).cos(), x, use_reentrant=False),
    "written": written_between,
    "of_unknown_length": of_unknown_length,
    "in_a_branch": lambda x: torch.cond(x.sum() > 0, lambda y: scaled(y) + 1, torch.sin, (x,)),
    "in_a_scan": in_a_scan,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_custom_ops_are_called_each_time(name):
    """As often as on the CPU, with what they read then."""
    f, trains = FUNCTIONS[name], name in ("alone", "recomputed")

    def run(device, backend):
        torch._dynamo.reset()
        torch.manual_seed(2)
        STATE["calls"] = 0
        compiled, found = torch.compile(f, backend=backend, fullgraph=True), []
        for k in range(3):
            STATE["scale"] = k + 1.0
            x = torch.randn(4, 3).to(device).requires_grad_(trains)
            out = compiled(x)
            if trains:
                out.sum().backward()
            found.append((out, x, x.grad))
        return found, STATE["calls"]

    (results, calls), (expected, expected_calls) = run("tpu", "tpu"), run("cpu", "aot_eager")
    same(results, expected)
    assert calls == expected_calls


def test_around_a_custom_op_are_programs(programs):
    compiled = torch.compile(lambda x: scaled(x.sin() + 1).cos() * 2, fullgraph=True)
    STATE["scale"] = 1.0
    x = torch.randn(3)
    for _ in range(2):
        same(compiled(x.to("tpu")), (x.sin() + 1).cos() * 2)
    assert graphs() == 1 and [(p._whole, p._count) for p in programs] == [(True, 1)] * 2


def test_kernels_of_a_library():
    library, calls = torch.library.Library("tpu_tests_old", "DEF"), []
    library.define("twice(Tensor x) -> Tensor")

    def kernel(x):
        calls.append(x.shape)
        return x * 2

    library.impl("twice", kernel, "PrivateUse1")
    library.impl("twice", torch.empty_like, "Meta")
    compiled = torch.compile(lambda x: torch.ops.tpu_tests_old.twice(x) + 1, fullgraph=True)
    for _ in range(3):
        assert compiled(torch.ones(2, device="tpu")).tolist() == [3, 3]
    assert len(calls) == 3


def test_subclasses_without_a_dispatch():
    class Named(torch.Tensor):
        pass

    x = torch.randn(3).to("tpu")
    result = torch.compile(lambda x: x * 2 + 1)(x.as_subclass(Named))
    assert type(result) is Named
    same(result.as_subclass(torch.Tensor), x * 2 + 1)
    module = nn.Linear(3, 3).to("tpu")
    same(torch.compile(module)(x.as_subclass(Named)).as_subclass(torch.Tensor), module(x))


def test_ragged_tensors():
    x = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(5, 4)], layout=torch.jagged)
    compiled = torch.compile(lambda x: x.sin() * 2)
    for _ in range(2):
        result = compiled(x.to("tpu"))
        assert result.is_nested and result.device.type == "tpu"
        same(result.values(), x.values().sin() * 2)


def test_what_a_whole_graph_may_ask_the_device():
    def f(x):
        torch.tpu.synchronize()
        with torch.tpu.device(0):
            y = x * torch.tpu.device_count() + torch.tpu.current_device()
        named = torch.tpu.get_device_name() and torch.tpu.get_device_properties(0).name
        return y if torch.tpu.is_available() and named else x - 100

    x = torch.ones(2, device="tpu")
    same(torch.compile(f, fullgraph=True)(x), x * torch.tpu.device_count())


def test_unknown_modes():
    with pytest.raises(Exception, match="unrecognized mode='fastest', should be one of: default"):
        torch.compile(lambda x: x * 2, backend="tpu", mode="fastest")(torch.ones(2, device="tpu"))
