"""The cases of dist_worker.py that train models, in every way that PyTorch shards them."""

import contextlib
import functools
import logging
import tempfile
from collections.abc import Callable

import torch
import torch.distributed as dist
from dist_cases import case, data, everyone, same
from torch import nn
from torch.distributed import ReduceOp


def make_model(width: int = 16) -> nn.Module:
    torch.manual_seed(3)
    layers = [nn.Linear(8, width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width)]
    return nn.Sequential(*layers, nn.Linear(width, 4))


def batches(steps: int, rows: int = 8) -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(11)
    return [
        (torch.randn(rows, 8, generator=draw), torch.randn(rows, 4, generator=draw))
        for _ in range(steps)
    ]


def train_alone(
    steps: int, accumulate: int = 1, losses: list[float] | None = None
) -> dict[str, torch.Tensor]:
    """The reference: the whole batch in one process, on the CPU. Its losses go into `losses`."""
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for i, (x, y) in enumerate(batches(steps)):
        loss = nn.functional.mse_loss(model(x), y)
        if losses is not None:
            losses.append(loss.item())
        (loss / accumulate).backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return {k: v.detach() for k, v in model.state_dict().items()}


def close(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> None:
    assert got.keys() == want.keys()
    for name, value in want.items():
        same(got[name].detach(), value, rtol=2e-4, atol=2e-5)


def share(t: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    return t.chunk(size)[rank].to("tpu")


def train_ddp(rank: int, size: int, steps: int = 3, accumulate: int = 1, **options) -> None:
    model = nn.parallel.DistributedDataParallel(make_model().to("tpu"), **options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for i, (x, y) in enumerate(batches(steps)):
        last = (i + 1) % accumulate == 0
        with contextlib.nullcontext() if last else model.no_sync():
            output = model(share(x, rank, size))
            (nn.functional.mse_loss(output, share(y, rank, size)) / accumulate).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    close(model.module.state_dict(), train_alone(steps, accumulate))
    assert model._get_ddp_logging_data()["avg_backward_compute_time"] > 0  # ns, by device events


@case()
def ddp(rank: int, size: int) -> None:
    train_ddp(rank, size)


@case(modes=("strict",))
def ddp_small_buckets(rank: int, size: int) -> None:
    train_ddp(rank, size, bucket_cap_mb=0.0005)


@case(sizes=(2, 3))
def ddp_sparse_gradients(rank: int, size: int) -> None:
    """An embedding whose gradients are sparse, of other rows on each rank."""

    def train(ranks: list[int], device: str, wrap: Callable) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 2)).to(device)
        wrapped = wrap(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(3):
            tokens = torch.tensor([[k, k + 1 + step, k] for k in ranks], device=device)
            wrapped(tokens).square().mean().backward()
            assert model[0].weight.grad.layout == torch.sparse_coo
            optimizer.step()
            optimizer.zero_grad()
        return model[0].weight.detach()

    alone = train(list(range(size)), "cpu", lambda model: model)
    got = train([rank], "tpu", nn.parallel.DistributedDataParallel)
    same(got, alone, rtol=1e-5, atol=1e-6)


@case()
def ddp_bucket_view(rank: int, size: int) -> None:
    train_ddp(rank, size, gradient_as_bucket_view=True)


@case(modes=("strict",))
def ddp_no_sync(rank: int, size: int) -> None:
    train_ddp(rank, size, steps=4, accumulate=2)


@case(modes=("strict",))
def ddp_static_graph(rank: int, size: int) -> None:
    train_ddp(rank, size, static_graph=True)


@case(modes=("strict",))
def ddp_comm_hook(rank: int, size: int) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = nn.parallel.DistributedDataParallel(make_model().to("tpu"))
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    x, y = batches(1)[0]
    nn.functional.mse_loss(model(share(x, rank, size)), share(y, rank, size)).backward()
    alone = make_model()
    nn.functional.mse_loss(alone(x), y).backward()
    for p, q in zip(model.module.parameters(), alone.parameters()):
        same(p.grad, q.grad, rtol=3e-2, atol=3e-2)


@case(modes=("strict",))
def ddp_join(rank: int, size: int) -> None:
    """Rank r has r + 1 batches: who is done shadows the others' collectives."""
    model = nn.parallel.DistributedDataParallel(make_model().to("tpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    seen = 0
    with model.join():
        for x, y in batches(rank + 1):
            nn.functional.mse_loss(model(x.to("tpu")), y.to("tpu")).backward()
            optimizer.step()
            optimizer.zero_grad()
            seen += 1
    assert seen == rank + 1
    for p in model.module.parameters():
        both = [torch.empty_like(p) for _ in range(size)]
        dist.all_gather(both, p.detach())
        same(both[0], both[1].cpu())


@case()
def fsdp2(rank: int, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("tpu", (size,))
    model = make_model().to("tpu")
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for x, y in batches(3):
        nn.functional.mse_loss(model(share(x, rank, size)), share(y, rank, size)).backward()
        optimizer.step()
        optimizer.zero_grad()
    close({k: v.full_tensor() for k, v in model.state_dict().items()}, train_alone(3))


@case(sizes=(4,), modes=("strict",))
def fsdp2_and_tensor_parallel(rank: int, size: int) -> None:
    """A mesh of 2x2: the layers are cut over one dimension, the shards of that and the batch over
    the other, and between the layers the rows over the first.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor import parallel as tpl

    mesh = init_device_mesh("tpu", (2, 2), mesh_dim_names=("data", "tensor"))
    plan = {
        "0": tpl.ColwiseParallel(),
        "2": tpl.RowwiseParallel(output_layouts=Shard(0)),
        "3": tpl.SequenceParallel(sequence_dim=0),
        "4": tpl.ColwiseParallel(input_layouts=Shard(0), output_layouts=Replicate()),
    }
    model = tpl.parallelize_module(make_model().to("tpu"), mesh["tensor"], plan)
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    assert model[0].weight.to_local().shape == (4, 8), "16 rows over both dimensions"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    want: list[float] = []
    alone = train_alone(3, losses=want)
    group = mesh.get_group("data")
    for (x, y), loss_alone in zip(batches(3), want, strict=True):
        x, y = (share(t, dist.get_rank(group), 2) for t in (x, y))
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean, ReduceOp.AVG, group=group)
        same(mean, torch.tensor(loss_alone), rtol=1e-5, atol=0)
    close({k: v.full_tensor() for k, v in model.state_dict().items()}, alone)


@case(modes=("strict",))
def fsdp2_mixed_precision(rank: int, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model = make_model().to("tpu")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    fully_shard(model, mesh=init_device_mesh("tpu", (size,)), mp_policy=policy)
    x, y = batches(1)[0]
    loss = nn.functional.mse_loss(model(share(x, rank, size)).float(), share(y, rank, size))
    loss.backward()
    alone = make_model()
    nn.functional.mse_loss(alone(x), y).backward()
    for p, q in zip(model.parameters(), alone.parameters()):
        same(p.grad.full_tensor(), q.grad, rtol=0.1, atol=3e-2)


@case()
def dtensor(rank: int, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("tpu", (size,))
    a, b = data(0, (4, 6)), data(1, (6, 4))
    da = distribute_tensor(a.to("tpu"), mesh, [Shard(1)])
    db = distribute_tensor(b.to("tpu"), mesh, [Shard(0)])
    product = da @ db  # partial sums
    same(product.full_tensor(), a @ b)
    rows = product.redistribute(mesh, [Shard(0)])
    same(rows.to_local(), (a @ b).chunk(size)[rank])
    columns = rows.redistribute(mesh, [Shard(1)])  # all_to_all
    same(columns.to_local(), (a @ b).chunk(size, 1)[rank])
    same(columns.redistribute(mesh, [Replicate()]).to_local(), a @ b)


@case()
def tensor_parallel(rank: int, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    torch.manual_seed(5)
    alone = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    model.load_state_dict(alone.state_dict())
    model = parallelize_module(
        model.to("tpu"),
        init_device_mesh("tpu", (size,)),
        {"0": ColwiseParallel(), "2": RowwiseParallel()},
    )
    x, y = batches(1)[0]
    got = model(x.to("tpu"))
    same(got.detach(), alone(x).detach(), rtol=1e-5, atol=1e-6)
    nn.functional.mse_loss(got, y.to("tpu")).backward()
    nn.functional.mse_loss(alone(x), y).backward()
    for p, q in zip(model.parameters(), alone.parameters()):
        same(p.grad.full_tensor(), q.grad, rtol=1e-4, atol=1e-6)


def loads_checkpoint(path: str, mesh) -> None:
    """A model of zeros, sharded over the mesh, becomes make_model()'s from the checkpoint."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard

    model = make_model().to("tpu")
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    fully_shard(model, mesh=mesh)
    state = model.state_dict()
    dcp.load(state, checkpoint_id=path)
    model.load_state_dict(state)
    close({k: v.full_tensor() for k, v in model.state_dict().items()}, make_model().state_dict())


@case(modes=("strict",))
def checkpoint(rank: int, size: int) -> None:
    """A sharded model saved by both ranks and loaded into another one, sharded too."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    where = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(where, src=0)
    mesh = init_device_mesh("tpu", (size,))
    model = make_model().to("tpu")
    fully_shard(model, mesh=mesh)
    dcp.save(model.state_dict(), checkpoint_id=where[0])
    torch.manual_seed(99)
    loads_checkpoint(where[0], mesh)


@case(modes=("strict",))
def fsdp2_cpu_offload(rank: int, size: int) -> None:
    """Parameters and optimizer live on the CPU, each layer's work is on the device."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    model = make_model()
    fully_shard(model, mesh=init_device_mesh("tpu", (size,)), offload_policy=CPUOffloadPolicy())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for x, y in batches(3):
        nn.functional.mse_loss(model(share(x, rank, size)), share(y, rank, size)).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert all(p.device.type == "cpu" for p in model.parameters())
    close({k: v.to("tpu").full_tensor() for k, v in model.state_dict().items()}, train_alone(3))


@case(modes=("strict",))
def pipelines(rank: int, size: int) -> None:
    """Two stages, each on its rank: the gradients are those of the whole model."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    x, y = batches(1)[0]
    alone = make_model()
    nn.functional.mse_loss(alone(x), y).backward()
    for schedule in (ScheduleGPipe, Schedule1F1B):
        whole = make_model()
        part = whole[:2] if rank == 0 else whole[2:]
        stage = PipelineStage(part.to("tpu"), rank, size, torch.device("tpu"))
        run = schedule(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
        if rank == 0:
            run.step(x.to("tpu"))
        else:
            losses: list[torch.Tensor] = []
            run.step(target=y.to("tpu"), losses=losses)
            assert len(losses) == 4
        want = (alone[:2] if rank == 0 else alone[2:]).parameters()
        for p, q in zip(part.parameters(), want, strict=True):
            same(p.grad, q.grad, rtol=1e-4, atol=1e-6)


@case(modes=("strict",))
def sampler(rank: int, size: int) -> None:
    """DistributedSampler: the ranks' batches are the data set, each sample once."""
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    samples = TensorDataset(torch.arange(12))
    shares = DistributedSampler(samples, shuffle=True, seed=5)
    seen = []
    for epoch in range(2):
        shares.set_epoch(epoch)
        mine = torch.cat([b for (b,) in DataLoader(samples, batch_size=2, sampler=shares)])
        everyones = torch.empty(12, dtype=torch.int64, device="tpu")
        dist.all_gather_into_tensor(everyones, mine.to("tpu"))
        assert sorted(everyones.tolist()) == list(range(12))
        seen.append(everyones.tolist())
    assert seen[0] != seen[1]


@case(sizes=(3,), modes=("strict",))
def checkpoint_of_another_size(rank: int, size: int) -> None:
    """Saved by two ranks, loaded by three."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import fully_shard

    where = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(where, src=0)
    pair = DeviceMesh("tpu", [0, 1])
    if rank < 2:
        model = make_model().to("tpu")
        fully_shard(model, mesh=pair)
        dcp.save(model.state_dict(), checkpoint_id=where[0], process_group=pair.get_group())
    dist.barrier()
    loads_checkpoint(where[0], init_device_mesh("tpu", (size,)))


@case(modes=("strict",))
def compiled_functional(rank: int, size: int) -> None:
    """Functional collectives inside torch.compile(backend="tpu")."""
    import torch.distributed._functional_collectives as fc

    group = dist.group.WORLD

    def function(t: torch.Tensor) -> torch.Tensor:
        total = fc.all_reduce(t * 2, "sum", group)
        return fc.all_gather_tensor(total + 1, 0, group)

    with programs_only():
        got = torch.compile(function, backend="tpu", fullgraph=True)(data(rank).to("tpu"))
    same(got + 0, torch.cat([2 * sum(everyone(size)) + 1] * size))

    def list_and_host(t: torch.Tensor, factor: torch.Tensor) -> tuple:
        a, b = fc.all_reduce_coalesced([t * factor, t + 1], "sum", group)
        return a - b, t.shape[0], torch.ones(2, device=t.device), factor + 1

    factor = torch.tensor(3.0)  # on the host
    with programs_only():
        compiled = torch.compile(list_and_host, backend="tpu", fullgraph=True)
        got, rows, ones, more = compiled(data(rank).to("tpu"), factor)
    same(got + 0, 2 * sum(everyone(size)) - size)
    same(ones, torch.ones(2))
    assert (rows, more.item()) == (5, 4)


@contextlib.contextmanager
def programs_only():
    """Fails where a compiled graph runs op by op."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("torchtpu.compile")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert not said, said


def losses_of(model: nn.Module, parts: list[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    losses = []
    for x, y in parts:
        loss = nn.functional.mse_loss(model(x.to("tpu")), y.to("tpu"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@case(modes=("strict",))
def compiled_training(rank: int, size: int) -> None:
    """DDP, FSDP2 and tensor parallel under torch.compile: eager's losses to the last bits."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    def ddp(compile_: Callable, inner: Callable) -> nn.Module:
        return compile_(nn.parallel.DistributedDataParallel(inner(make_model().to("tpu"))))

    def fsdp(compile_: Callable, inner: Callable) -> nn.Module:
        model = make_model().to("tpu")
        for layer in (model[0], model[2]):
            fully_shard(inner(layer))
        return compile_(fully_shard(model))

    def tensor_parallel(compile_: Callable, inner: Callable) -> nn.Module:
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        mesh = init_device_mesh("tpu", (size,))
        return compile_(parallelize_module(make_model().to("tpu"), mesh, plan))

    def in_place(module: nn.Module) -> nn.Module:
        module.compile(backend="tpu")
        return module

    compiled = functools.partial(torch.compile, backend="tpu")
    as_it_is = lambda module: module  # noqa: E731
    sharded = [(share(x, rank, size), share(y, rank, size)) for x, y in batches(4)]
    for make, parts in ((ddp, sharded), (fsdp, sharded), (tensor_parallel, batches(4))):
        torch.manual_seed(0)
        want = losses_of(make(as_it_is, as_it_is), parts)
        for compile_, inner in ((compiled, as_it_is), (as_it_is, in_place)):
            torch._dynamo.reset()
            torch.manual_seed(0)
            with programs_only():
                got = losses_of(make(compile_, inner), parts)
            torch.testing.assert_close(got, want, rtol=1e-6, atol=0)


@case(modes=("strict", "defer_and_fuse"))
def ranks_run_different_programs(rank: int, size: int) -> None:
    """Rank 0 evaluates, logs and saves while the other goes on to the next step's collective."""
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(make_model().to("tpu"))
    for x, y in batches(3):
        nn.functional.mse_loss(model(share(x, rank, size)), share(y, rank, size)).backward()
        if rank == 0:
            with torch.no_grad(), tempfile.TemporaryFile() as file:
                accuracy = (model.module(x.to("tpu")).argmax(1) == y.argmax(1).to("tpu")).sum()
                assert 0 <= accuracy.item() <= len(x)
                torch.save(model.module.state_dict(), file)
                file.seek(0)
                saved = torch.load(file)
                same(saved["0.weight"], model.module[0].weight.detach().cpu())
