"""Programs of several replicas: collectives traced in an imagined world, run by the reference
executor as several devices, and compiled by the real TPU's compiler."""

import collections
import importlib.util
import re
import sys

import numpy as np
import pytest
import torch
import torch.distributed as dist
from test_aot import EXAMPLES
from torch import nn
from torch.nn import functional as F

from torchtpu import aot

sys.path.insert(0, str(EXAMPLES))


def runner():
    """reference_harness, which runs a program's text on several devices; skips where it cannot."""
    import reference_harness

    if reference_harness.lib is None:
        pytest.skip("libttrun.so is not built (make test-c)")
    return reference_harness.Program


def collectives(text: str) -> dict[str, int]:
    found = re.findall(r"stablehlo\.(all_\w+|reduce_scatter|collective_\w+)", text)
    return dict(collections.Counter(found))


def ranks(size: int, shape=(4, 3)) -> list[torch.Tensor]:
    return [torch.arange(12.0).reshape(shape) * (k + 1) - 5 * k for k in range(size)]


def all_reduce_average(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    dist.all_reduce(y, dist.ReduceOp.AVG)
    return y


def all_reduce_max_of_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    dist.all_reduce(y[1:3].t(), dist.ReduceOp.MAX)
    return y


def broadcast_from_2(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    dist.broadcast(y, 2)
    return y


def all_gather_list(x: torch.Tensor) -> torch.Tensor:
    outs = [torch.empty_like(x) for _ in range(4)]
    dist.all_gather(outs, x)
    return torch.stack(outs)


def all_gather_into_tensor(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(16, 3, device=x.device)
    dist.all_gather_into_tensor(out, x)
    return out


def reduce_scatter_list(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(3, device=x.device)
    dist.reduce_scatter(out, [row.clone() for row in x])
    return out


def reduce_scatter_tensor(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(1, 3, device=x.device)
    dist.reduce_scatter_tensor(out, x)
    return out


def all_to_all_single(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    return out


def rows_of_a_mesh(x: torch.Tensor) -> torch.Tensor:
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("tpu", (2, 2), mesh_dim_names=("data", "tensor"))
    y, z = x.clone(), x + x
    dist.all_reduce(y, group=mesh.get_group("data"))
    dist.all_reduce(z, group=mesh.get_group("tensor"))
    return torch.stack([y, z])


# What each gives on rank r, from all ranks' inputs.
MEANING = {
    all_reduce_average: lambda xs, r: sum(xs) / 4,
    all_reduce_max_of_a_view: lambda xs, r: torch.cat(
        [xs[r][:1], torch.stack(xs).amax(0)[1:3], xs[r][3:]]
    ),
    broadcast_from_2: lambda xs, r: xs[2],
    all_gather_list: lambda xs, r: torch.stack(xs),
    all_gather_into_tensor: lambda xs, r: torch.cat(xs),
    reduce_scatter_list: lambda xs, r: sum(xs)[r],
    reduce_scatter_tensor: lambda xs, r: sum(xs)[r : r + 1],
    all_to_all_single: lambda xs, r: torch.stack([x[r] for x in xs]),
    rows_of_a_mesh: lambda xs, r: torch.stack(
        [xs[r % 2] + xs[r % 2 + 2], 2 * sum(xs[r - r % 2 :][:2])]
    ),
}


@pytest.mark.parametrize("function", list(MEANING), ids=lambda f: f.__name__)
def test_collective_of_the_program(function) -> None:
    xs = ranks(4)
    with aot.world(4):
        text = aot.trace(function, xs[0].tpu())
    for r, (got,) in enumerate(runner()(text)(*[[x.numpy()] for x in xs])):
        torch.testing.assert_close(torch.from_numpy(got), MEANING[function](xs, r))


def run_by_shape(text: str, scalars: list[float], replicas: list[dict]) -> list[dict]:
    """Runs a program whose arrays are told apart by their shapes; scalars come in their order."""
    program = runner()(text)
    assert f"num_replicas = {len(replicas)} " in text
    numbers = iter(
        np.array(v, d) for v, (s, d) in zip(scalars, program.inputs[-len(scalars) :]) if not s
    )
    scalars_of = {i: next(numbers) for i, (s, _) in enumerate(program.inputs) if not s}
    rows = [
        [scalars_of.get(i, of.get(shape)) for i, (shape, _) in enumerate(program.inputs)]
        for of in replicas
    ]
    shapes = [shape for shape, _ in program.outputs]
    assert len(set(shapes)) == len(shapes), shapes
    return [dict(zip(shapes, row, strict=True)) for row in program(*rows)]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(3)
    return torch.randn(14, 5, generator=draw), torch.randn(14, 4, generator=draw)


def step_alone(x: torch.Tensor, y: torch.Tensor) -> nn.Linear:
    torch.manual_seed(0)
    model = nn.Linear(5, 4)
    F.mse_loss(model(x), y).backward()
    torch.optim.SGD(model.parameters(), lr=0.5).step()
    return model


def trace_step(model: nn.Module, net: nn.Module) -> str:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)

    def step(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    x, y = (t[:7].tpu() for t in batch())
    step(x, y)
    step(x, y)  # DDP rebuilds its buckets after the first one
    return aot.trace(step, x, y, state=[model])


def test_ddp_step_is_the_step_on_the_whole_batch() -> None:
    x, y = batch()
    torch.manual_seed(0)
    start = nn.Linear(5, 4)
    with aot.world(2):
        model = nn.Linear(5, 4).tpu()
        text = trace_step(model, nn.parallel.DistributedDataParallel(model))
    assert collectives(text) == {"all_reduce": 1}
    known = {(4, 5): start.weight.detach().numpy(), (4,): start.bias.detach().numpy()}
    known[(24,)] = torch.zeros(24).numpy()  # the bucket
    halves = [{(7, 5): x[h].numpy(), (7, 4): y[h].numpy()} for h in (slice(7), slice(7, 14))]
    want = step_alone(x, y)
    for got in run_by_shape(text, [1, 0.5, 0.5, -0.5], [known | half for half in halves]):
        torch.testing.assert_close(torch.from_numpy(got[(4, 5)]), want.weight.detach())
        torch.testing.assert_close(torch.from_numpy(got[(4,)]), want.bias.detach())


def test_fsdp_step_is_the_step_on_the_whole_batch() -> None:
    from torch.distributed.fsdp import fully_shard

    x, y = batch()
    torch.manual_seed(0)
    start = nn.Linear(5, 4)
    with aot.world(2):
        model = nn.Linear(5, 4).tpu()
        fully_shard(model)
        text = trace_step(model, model)
    assert collectives(text) == {"all_gather": 1, "reduce_scatter": 1}
    replicas = [
        {
            (2, 5): start.weight.detach()[2 * r :][:2].numpy(),
            (2,): start.bias.detach()[2 * r :][:2].numpy(),
            (7, 5): x[7 * r :][:7].numpy(),
            (7, 4): y[7 * r :][:7].numpy(),
        }
        for r in range(2)
    ]
    want = step_alone(x, y)
    for r, got in enumerate(run_by_shape(text, [1, -0.5], replicas)):
        weight, bias = want.weight.detach()[2 * r :][:2], want.bias.detach()[2 * r :][:2]
        torch.testing.assert_close(torch.from_numpy(got[(2, 5)]), weight)
        torch.testing.assert_close(torch.from_numpy(got[(2,)]), bias)


def test_messages_are_no_part_of_one_program() -> None:
    x = torch.ones(3, device="tpu")
    with aot.world(4):
        with pytest.raises(NotImplementedError, match="send differs between the ranks"):
            aot.trace(lambda t: dist.send(t, 1), x)
        dist.send(x, 1)  # to a rank that is imagined: nothing
        dist.barrier()
    assert not dist.is_initialized()


def rows_of_the_rank(x: torch.Tensor) -> torch.Tensor:
    first = dist.get_rank()
    return x[first : first + 1] * 2


def number_of_the_rank(x: torch.Tensor) -> torch.Tensor:
    return (x.abs() - (5 + dist.get_rank())).relu()


def one_more_on_others(x: torch.Tensor) -> torch.Tensor:
    return x.exp() if dist.get_rank() == 0 else x.exp().exp()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (rows_of_the_rank, (r"rank 0: .*stablehlo\.", r"rank 3: .*stablehlo\.")),
        (number_of_the_rank, (r"rank 0: %arg1 is 5 in .*stablehlo\.", r"rank 3: %arg1 is 8")),
        (one_more_on_others, (r"rank 0: return", r"rank 3: .*stablehlo\.exponential")),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_program_of_one_rank_is_refused(function, words: tuple[str, str]) -> None:
    x = torch.ones(4, 3, device="tpu")
    with aot.world(4):
        with pytest.raises(NotImplementedError, match="the program depends on the rank") as raised:
            aot.trace(function, x)
        assert dist.get_rank() == 0
        assert "stablehlo" in aot.trace(function, x, compare_ranks=False)
    said = str(raised.value).splitlines()[-2:]
    for line, word in zip(said, words, strict=True):
        assert re.search(word, line), said
    line = function.__code__.co_firstlineno
    lines = {int(n) for n in re.findall(r"test_aot_world\.py:(\d+) in", "\n".join(said))}
    assert lines and all(0 < n - line < 4 for n in lines), said


def test_place_in_a_mesh_is_of_the_rank() -> None:
    from torch.distributed.device_mesh import init_device_mesh

    x = torch.ones(4, 3, device="tpu")
    with aot.world(6):
        mesh = init_device_mesh("tpu", (2, 3), mesh_dim_names=("data", "tensor"))
        told = []

        def step(x: torch.Tensor) -> torch.Tensor:
            places = [mesh.get_local_rank(name) for name in ("data", "tensor")]
            told.append((mesh.get_rank(), *places, *mesh["tensor"].get_coordinate()))
            told.append((*mesh.get_coordinate(), dist.get_rank(mesh.get_group("tensor"))))
            y = x.clone()
            dist.broadcast(y, group=mesh.get_group("tensor"), group_src=1)
            return y

        assert collectives(aot.trace(step, x)) == {"collective_broadcast": 1}
        assert told == [(0, 0, 0, 0), (0, 0, 0), (5, 1, 2, 2), (1, 2, 2)]
        assert mesh.get_coordinate() == (0, 0) and mesh.get_local_rank("data") == 0


def test_vocabulary_in_shards_is_refused() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module

    index = torch.tensor([[1, 5, 11]], device="tpu")
    with aot.world(4):
        model = nn.Sequential(nn.Embedding(12, 8)).tpu()
        mesh = init_device_mesh("tpu", (4,))
        parallelize_module(model, mesh, {"0": RowwiseParallel(input_layouts=Replicate())})
        with pytest.raises(NotImplementedError, match="rank 3: %arg[0-9]+ is 9$"):
            aot.trace(model, index)
        text = aot.trace(model, index, compare_ranks=False)
        assert collectives(text) == {"all_reduce": 1}


def test_what_differs_from_call_to_call_is_not_the_ranks() -> None:
    """An optimizer's bias corrections and a schedule's rates; dropout; a first call's own ops."""
    x = torch.ones(4, 8, device="tpu")
    with aot.world(4):
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).tpu()
        net = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        seen = []

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            return loss if seen else seen.append(1) or loss + 1

        step(x), step(x)
        seen.clear()
        counts = [s["step"].clone() for s in optimizer.state.values()]
        text = aot.trace(step, x, state=[net, optimizer])
        assert collectives(text) == {"all_reduce": 1}
        assert counts == [s["step"] for s in optimizer.state.values()]


def test_world_is_the_only_one() -> None:
    with aot.world(2), pytest.raises(RuntimeError, match="while a process group exists"):
        with aot.world(2):
            pass


def example_step(parallel: str, size: int) -> str:
    import train_gpt

    torch.manual_seed(0)
    with aot.world(size):
        model = train_gpt.GPT(100, 128, 128, 5, 4).to("tpu")
        if parallel == "ddp":
            net: nn.Module = nn.parallel.DistributedDataParallel(model)
        else:
            train_gpt.shard(model, "tpu", 1)
            net = model
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

        def step(rows: torch.Tensor) -> torch.Tensor:
            loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            loss = loss.detach()
            dist.all_reduce(loss, dist.ReduceOp.AVG)
            return loss

        rows = torch.randint(100, (1, 129)).to("tpu")
        step(rows)
        step(rows)
        return aot.trace(step, rows, state=[net, optimizer])


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="the package libtpu is absent")
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_real_compiler_accepts_the_example_on_16_chips(parallel: str) -> None:
    text = example_step(parallel, 16)
    kinds = {"ddp": {"all_reduce"}, "fsdp": {"all_gather", "reduce_scatter", "all_reduce"}}
    assert set(collectives(text)) == kinds[parallel]
    report = aot.compile_text(text, "v5e:4x4", replicas=16, level=9)
    assert report["accepted"], report
    assert report["devices"] == 16
    whole = 3 * 4 * 1_000_000  # parameters and both moments, about a million each
    assert (report["memory"]["argument"] > whole) == (parallel == "ddp")
