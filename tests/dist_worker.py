"""One rank of test_dist.py: runs the cases that its stdin names, and says how each went.

Started as `dist_worker.py RANK SIZE STORE_FILE`. Each line of stdin is `CASE MODE`, each answer one
line of JSON.
Every rank knows every rank's inputs (`data`), so each checks its own results against the CPU.
"""

import datetime
import functools
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable

import torch
import torch.distributed as dist
from dist_cases import CASES, DTYPES, case, data, everyone, same
from dist_training import make_model  # and its cases
from torch import nn
from torch.distributed import ReduceOp

# --- reductions -----------------------------------------------------------------------------------

OPS = {
    "SUM": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}


def reduced(op: str, parts: list[torch.Tensor]) -> torch.Tensor:
    """What c10d defines: a bool's sum is or, an integer's average truncates."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        fold = {"SUM": torch.logical_or, "PRODUCT": torch.logical_and}.get(op, OPS.get(op))
        if op in ("MIN", "MAX"):
            fold = torch.logical_and if op == "MIN" else torch.logical_or
        return functools.reduce(fold, parts)
    if op == "AVG":
        total = functools.reduce(torch.add, parts)
        exact = dtype.is_floating_point or dtype.is_complex
        return total / len(parts) if exact else total // len(parts)
    return functools.reduce(OPS[op], parts)


def defined(op: str, dtype: torch.dtype) -> bool:
    if op in ("BAND", "BOR", "BXOR"):
        return not (dtype.is_floating_point or dtype.is_complex)
    if dtype.is_complex:
        return op in ("SUM", "AVG")  # PyTorch itself refuses the product
    return not (op == "AVG" and dtype == torch.bool)


@case(sizes=(2, 3))
def all_reduce(rank: int, size: int) -> None:
    for dtype in DTYPES:
        for op in (*OPS, "AVG"):
            t = data(rank, dtype=dtype).to("tpu")
            if not defined(op, dtype):
                try:
                    dist.all_reduce(t, getattr(ReduceOp, op))
                except (RuntimeError, ValueError) as e:
                    assert op in str(e).upper(), e
                    assert "not defined for" in str(e) or "does not support" in str(e), e
                else:
                    raise AssertionError(f"{op} of {dtype} went through")
                continue
            dist.all_reduce(t, getattr(ReduceOp, op))
            tolerance = {"rtol": 1e-2, "atol": 1e-2} if op == "AVG" else {}
            same(t, reduced(op, everyone(size, dtype=dtype)), **tolerance)


@case()
def all_reduce_premul(rank: int, size: int) -> None:
    for factor in (0.5, torch.tensor([3.0], device="tpu")):
        t = data(rank).to("tpu")
        dist.all_reduce(t, dist._make_nccl_premul_sum(factor))
        same(t, sum(everyone(size)) * float(factor))


@case()
def all_reduce_views(rank: int, size: int) -> None:
    base = data(rank, (6, 8)).to("tpu")
    view = base[1:5, ::2].t()
    dist.all_reduce(view)
    want = data(rank, (6, 8))
    want[1:5, ::2] = sum(everyone(size, (6, 8)))[1:5, ::2]
    same(base, want)
    empty = torch.empty(0, 4, device="tpu")
    dist.all_reduce(empty)
    assert empty.shape == (0, 4)
    scalar = torch.tensor(float(rank + 1), device="tpu")
    dist.all_reduce(scalar)
    assert scalar.item() == size * (size + 1) / 2


@case(sizes=(2, 3))
def all_reduce_large(rank: int, size: int) -> None:
    """Longer than a staging slot, and not a multiple of one."""
    t = data(rank, (700_001,)).to("tpu")
    dist.all_reduce(t)
    same(t, sum(everyone(size, (700_001,))))


@case(sizes=(2, 3))
def reduce(rank: int, size: int) -> None:
    for root in range(size):
        t = data(rank).to("tpu")
        dist.reduce(t, root, ReduceOp.MAX)
        same(t, reduced("MAX", everyone(size)) if rank == root else data(rank))


@case(sizes=(2, 3))
def reduce_scatter(rank: int, size: int) -> None:
    shapes = [(k + 2, 3) for k in range(size)]
    ins = [data(rank * 10 + k, shapes[k]).to("tpu") for k in range(size)]
    out = torch.empty(shapes[rank], device="tpu")
    dist.reduce_scatter(out, ins)
    same(out, sum(data(r * 10 + rank, shapes[rank]) for r in range(size)))
    out = torch.empty(2, 3, dtype=torch.bfloat16, device="tpu")
    whole = everyone(size, (2 * size, 3), torch.bfloat16)
    dist.reduce_scatter_tensor(out, whole[rank].to("tpu"), ReduceOp.AVG)
    want = (sum(w.float() for w in whole) / size)[2 * rank : 2 * rank + 2].bfloat16()
    same(out, want, rtol=1e-2, atol=1e-2)


@case(sizes=(2, 3))
def all_reduce_sparse(rank: int, size: int) -> None:
    """As many entries as the rank says, some of them twice; of a matrix and of rows."""
    for dense in ((), (2,)):
        parts = []
        for k in range(size):
            places = torch.tensor([[i % 4 for i in range(2 * k)], [k % 3] * (2 * k)])
            values = data(k, (2 * k, *dense))
            parts.append(torch.sparse_coo_tensor(places.reshape(2, -1), values, (4, 3, *dense)))
        t = parts[rank].to("tpu")
        dist.all_reduce(t)
        assert t.layout == torch.sparse_coo and t.is_coalesced()
        same(t.to_dense(), sum(p.to_dense() for p in parts))
    message = message_of(lambda: dist.all_reduce(t, ReduceOp.MAX))
    assert "sparse" in message.lower() and "SUM and AVG" in message, message
    other = torch.sparse_coo_tensor(torch.zeros(1, 1), torch.ones(1), (4 + rank,)).to("tpu")
    assert "another shape" in message_of(lambda: dist.all_reduce(other))


def finished(op: str, parts: list[torch.Tensor]) -> torch.Tensor:
    """`reduced`, but that halves are rounded once."""
    dtype = parts[0].dtype
    half = dtype in (torch.bfloat16, torch.float16)
    return reduced(op, [p.float() for p in parts] if half else parts).to(dtype)


@case(sizes=(3,), modes=("strict",))
def reductions(rank: int, size: int) -> None:
    """Every reduction of few and of many elements, in every op, to every root, in uneven parts."""
    for dtype in (torch.float32, torch.bfloat16, torch.int8, torch.bool, torch.complex64):
        # Dividing a complex number may round elsewhere.
        tolerance = {"rtol": 1e-6, "atol": 1e-6} if dtype.is_complex else {}
        check = functools.partial(same, **tolerance)
        for op in (o for o in (*OPS, "AVG") if defined(o, dtype)):
            reduce_op = getattr(ReduceOp, op)
            for rows in (2, 7001) if op in ("SUM", "AVG", "MAX") else (2,):
                parts = everyone(size, (rows * size + 1, 2), dtype)
                t = parts[rank].to("tpu")
                dist.all_reduce(t, reduce_op)
                check(t, finished(op, parts))
                root = rows % size
                t = parts[rank].to("tpu")
                dist.reduce(t, root, reduce_op)
                check(t, finished(op, parts) if rank == root else parts[rank])
                t = torch.empty(rows, 2, dtype=dtype, device="tpu")
                dist.reduce_scatter_tensor(t, parts[rank].to("tpu")[:-1], reduce_op)
                check(t, finished(op, [p[rank * rows :][:rows] for p in parts]))
                cut = [rows] * (size - 1) + [rows + 1]
                t = torch.empty(cut[rank], 2, dtype=dtype, device="tpu")
                dist.reduce_scatter(t, list(parts[rank].to("tpu").split(cut)), reduce_op)
                check(t, finished(op, [p.split(cut)[rank] for p in parts]))


@case(sizes=(2, 3), modes=("strict",))
def averages_do_not_wrap(rank: int, size: int) -> None:
    t = torch.full((9,), 100 + rank, dtype=torch.int8, device="tpu")
    dist.all_reduce(t, ReduceOp.AVG)
    assert t.tolist() == [100 + (size - 1) // 2] * 9, t
    t = torch.full((9,), 2.0**15, dtype=torch.float16, device="tpu")
    dist.all_reduce(t, ReduceOp.AVG)
    assert t.tolist() == [2.0**15] * 9, t


@case(sizes=(2, 3), modes=("strict",))
def halves_round_once(rank: int, size: int) -> None:
    """Parts that each rounding would lose: 256 + 1/2 + 1/2 ... in bfloat16."""
    t = torch.full((30_000,), 256.0 if rank == 0 else 1.0, dtype=torch.bfloat16, device="tpu")
    dist.all_reduce(t)
    want = (torch.tensor(256.0) + (size - 1)).bfloat16().item()
    assert t.unique().tolist() == [want], t


# --- data movement --------------------------------------------------------------------------------


@case(sizes=(3,), modes=("strict",))
def movements(rank: int, size: int) -> None:
    """Broadcast and all_gather of nothing, few and many elements, even and uneven, into views."""
    for rows in (0, 1, 3, 40_001):
        for dtype in (torch.float32, torch.bfloat16, torch.bool):
            for root in range(size):
                t = data(rank, (rows, 2), dtype).to("tpu")
                dist.broadcast(t, root)
                same(t, data(root, (rows, 2), dtype))
            parts = everyone(size, (rows, 2), dtype)
            flat = torch.empty(rows * size, 2, dtype=dtype, device="tpu")
            dist.all_gather_into_tensor(flat, parts[rank].to("tpu"))
            same(flat, torch.cat(parts))
            flat.zero_()
            into = [flat[k * rows : (k + 1) * rows] for k in reversed(range(size))]
            dist.all_gather(into, parts[rank].to("tpu"))
            same(flat, torch.cat(parts[::-1]))
            parts = [data(k, (rows * k + 1, 2), dtype) for k in range(size)]
            outs = [torch.empty_like(p, device="tpu") for p in parts]
            dist.all_gather(outs, parts[rank].to("tpu"))
            for out, part in zip(outs, parts, strict=True):
                same(out, part)


@case(sizes=(2, 3))
def broadcast(rank: int, size: int) -> None:
    for root in range(size):
        for dtype in DTYPES:
            t = data(rank, dtype=dtype).to("tpu")
            dist.broadcast(t, root)
            same(t, data(root, dtype=dtype))


@case(sizes=(2, 3))
def all_gather(rank: int, size: int) -> None:
    for dtype in DTYPES:
        outs = [torch.zeros(5, 3, dtype=dtype, device="tpu") for _ in range(size)]
        dist.all_gather(outs, data(rank, dtype=dtype).to("tpu"))
        for k, out in enumerate(outs):
            same(out, data(k, dtype=dtype))
    outs = [torch.zeros(k, 2, device="tpu") for k in range(size)]  # rank 0 has nothing
    dist.all_gather(outs, data(rank, (rank, 2)).to("tpu"))
    for k, out in enumerate(outs):
        same(out, data(k, (k, 2)))


@case(sizes=(2, 3))
def all_gather_into_tensor(rank: int, size: int) -> None:
    mine = data(rank, (4, 3)).to("tpu").t().contiguous().t()
    flat, stacked = torch.empty(4 * size, 3, device="tpu"), torch.empty(size, 4, 3, device="tpu")
    dist.all_gather_into_tensor(flat, mine)
    dist.all_gather_into_tensor(stacked, mine)
    same(flat, torch.cat(everyone(size, (4, 3))))
    same(stacked, torch.stack(everyone(size, (4, 3))))
    line = torch.empty(1, 12 * size, device="tpu")  # only the number of elements counts
    dist.all_gather_into_tensor(line, mine)
    same(line, torch.cat(everyone(size, (4, 3))).reshape(1, -1))
    part = torch.empty(12, device="tpu")
    dist.reduce_scatter_tensor(part, line)
    same(part, size * data(rank, (4, 3)).flatten())


@case(sizes=(2, 3))
def all_to_all(rank: int, size: int) -> None:
    def part(source: int, to: int) -> torch.Tensor:
        return data(10 * source + to, (source + 2 * to + 1, 2))

    outs = [torch.empty(k + 2 * rank + 1, 2, device="tpu") for k in range(size)]
    dist.all_to_all(outs, [part(rank, k).to("tpu") for k in range(size)])
    for k, out in enumerate(outs):
        same(out, part(k, rank))
    # One tensor each, cut unevenly, then evenly.
    out_splits = [k + 2 * rank + 1 for k in range(size)]
    in_splits = [rank + 2 * k + 1 for k in range(size)]
    out = torch.empty(sum(out_splits), 2, device="tpu")
    whole = torch.cat([part(rank, k) for k in range(size)]).to("tpu")
    dist.all_to_all_single(out, whole, out_splits, in_splits)
    same(out, torch.cat([part(k, rank) for k in range(size)]))
    out = torch.empty(2 * size, device="tpu")
    dist.all_to_all_single(out, data(rank, (2 * size,)).to("tpu"))
    same(out, torch.cat([data(k, (2 * size,))[2 * rank : 2 * rank + 2] for k in range(size)]))


@case(sizes=(2, 3))
def gather_scatter(rank: int, size: int) -> None:
    root = size - 1
    outs = [torch.empty(5, 3, device="tpu") for _ in range(size)] if rank == root else None
    dist.gather(data(rank).to("tpu"), outs, dst=root)
    for k, out in enumerate(outs or []):
        same(out, data(k))
    ins = [t.to("tpu") for t in everyone(size)] if rank == root else None
    out = torch.empty(5, 3, device="tpu")
    dist.scatter(out, ins, src=root)
    same(out, data(rank))


@case(sizes=(2, 3))
def barriers(rank: int, size: int) -> None:
    late = 0.2 if rank == 1 else 0.0
    dist.barrier()
    start = time.monotonic()
    time.sleep(late)
    dist.barrier()
    assert time.monotonic() - start > 0.15
    group = dist.new_group(timeout=datetime.timedelta(seconds=20))
    dist.barrier(group=group, async_op=True).wait()
    group._get_backend(torch.device("tpu")).monitored_barrier()  # dist's own wants gloo


@case(sizes=(3,), modes=("strict",))
def large_reductions(rank: int, size: int) -> None:
    """To one rank and in parts of different lengths, some of them none."""
    for dtype in (torch.bfloat16, torch.int64):
        for op in ("SUM", "MAX", "AVG"):
            shapes = [(50_001 * (size - 1 - k),) for k in range(size)]
            ins = [data(rank * 10 + k, shapes[k], dtype).to("tpu") for k in range(size)]
            out = torch.empty(shapes[rank], dtype=dtype, device="tpu")
            dist.reduce_scatter(out, ins, getattr(ReduceOp, op))
            parts = [data(r * 10 + rank, shapes[rank], dtype) for r in range(size)]
            same(out, finished(op, parts))
            for root in range(size):
                t = data(rank, (40_001,), dtype).to("tpu")
                dist.reduce(t, root, getattr(ReduceOp, op))
                if rank == root:
                    same(t, finished(op, everyone(size, (40_001,), dtype)))


# What crosses between two hosts, for a test that counts it: parts of 1 MB, all of 4 MB.


@case(modes=())
def counted_broadcast(rank: int, size: int) -> None:
    t = torch.full((1 << 20,), float(rank), device="tpu")
    dist.broadcast(t, size - 1)
    same(t, torch.full((1 << 20,), size - 1.0))


@case(modes=())
def counted_all_gather(rank: int, size: int) -> None:
    outs = torch.empty(size, 1 << 18, device="tpu")
    dist.all_gather_into_tensor(outs, torch.full((1 << 18,), float(rank), device="tpu"))
    same(outs, torch.arange(size).float()[:, None].expand(size, 1 << 18))


@case(modes=())
def counted_reduce_scatter(rank: int, size: int) -> None:
    out = torch.empty(1 << 18, dtype=torch.int32, device="tpu")
    dist.reduce_scatter_tensor(out, torch.ones(size << 18, dtype=torch.int32, device="tpu"))
    same(out, torch.full((1 << 18,), size, dtype=torch.int32))


# --- messages -------------------------------------------------------------------------------------


@case(sizes=(2, 3))
def send_receive(rank: int, size: int) -> None:
    to, source = (rank + 1) % size, (rank - 1) % size
    got = torch.empty(5, 3, device="tpu")
    if rank == 0:
        dist.send(data(rank).to("tpu"), to)
        assert dist.recv(got, source) == source
    else:
        dist.recv(got, source)
        dist.send(data(rank).to("tpu"), to)
    same(got, data(source))
    large = torch.empty(300_000, device="tpu")  # more than a ring holds, both ways at once
    works = [dist.isend(data(rank, (300_000,)).to("tpu"), to), dist.irecv(large, source)]
    for work in works:
        work.wait()
    same(large, data(source, (300_000,)))


@case(sizes=(2,))
def tags(rank: int, size: int) -> None:
    if rank == 0:
        dist.send(data(1).to("tpu"), 1, tag=1)
        dist.send(data(2).to("tpu"), 1, tag=2)
    else:
        second, first = torch.empty(5, 3, device="tpu"), torch.empty(5, 3, device="tpu")
        dist.recv(second, 0, tag=2)
        dist.recv(first, 0, tag=1)
        same(first, data(1))
        same(second, data(2))


@case(sizes=(2, 3))
def overtaking(rank: int, size: int) -> None:
    """A message waits for none of another tag: neither sent, nor received, nor from any rank."""
    got = [torch.empty(5, 3, device="tpu") for _ in range(6)]
    if rank == 0:
        late = dist.isend(data(1).to("tpu"), 1, tag=1)  # the last that is received
        dist.send(data(2).to("tpu"), 1, tag=2)
        dist.send(data(5).to("tpu"), 1, tag=5)
        dist.recv(got[3], 1, tag=3)
        dist.send(data(4).to("tpu"), 1, tag=4)
        late.wait()
        same(got[3], data(3))
    elif rank == 1:
        pending = dist.irecv(got[4], 0, tag=4)
        dist.recv(got[2], 0, tag=2)
        assert dist.recv(got[5], tag=5) == 0
        assert not pending.is_completed()
        dist.send(data(3).to("tpu"), 0, tag=3)
        pending.wait()
        dist.recv(got[1], 0, tag=1)
        for k in (1, 2, 4, 5):
            same(got[k], data(k))


@case(sizes=(2, 3), modes=("strict",))
def other_message(rank: int, size: int) -> None:
    """One message that is not what is expected is lost; those after it come."""
    if rank == 0:
        for _ in range(4):
            dist.send(torch.arange(4.0, device="tpu"), 1)
    elif rank == 1:
        for wrong in (torch.empty(4, dtype=torch.int32), torch.empty(8, dtype=torch.bfloat16)):
            message = message_of(lambda: dist.recv(wrong.to("tpu"), 0))  # noqa: B023
            kind = "i32" if wrong.dtype == torch.int32 else "bf16"
            assert f"sent 4 x f32, rank 1 expects {wrong.numel()} x {kind}" in message, message
        assert "expects 3 x f32" in message_of(lambda: dist.recv(torch.empty(3, device="tpu")))
        got = torch.empty(4, device="tpu")
        dist.recv(got, 0)
        same(got, torch.arange(4.0))


@case(sizes=(2, 3), modes=("strict",))
def ends_while_receiving(rank: int, size: int) -> None:
    """Ending a group does not wait for messages that nobody will send."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=60))
    t = torch.ones(4, device="tpu")
    dist.all_reduce(t, group=group)
    works = []
    if rank == 1:
        works = [dist.irecv(torch.empty(3, device="tpu"), 0, group=group, tag=k) for k in range(2)]
        works.append(dist.irecv(torch.empty(3, device="tpu"), group=group, tag=7))
        time.sleep(0.2)
    start = time.monotonic()
    dist.destroy_process_group(group)
    assert time.monotonic() - start < 20
    for work in works:
        message_of(work.wait)
    dist.barrier()


@case(sizes=(2, 3))
def batch_isend_irecv(rank: int, size: int) -> None:
    to, source = (rank + 1) % size, (rank - 1) % size
    got = torch.empty(5, 3, device="tpu")
    ops = [
        dist.P2POp(dist.isend, data(rank).to("tpu"), to),
        dist.P2POp(dist.irecv, got, source),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    same(got, data(source))


@case()
def batch_to_itself(rank: int, size: int) -> None:
    got = [torch.empty(5, 3, device="tpu") for _ in range(size)]
    ops = [dist.P2POp(dist.irecv, got[k], k) for k in range(size)]
    ops += [dist.P2POp(dist.isend, data(rank).to("tpu"), k) for k in range(size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for k in range(size):
        same(got[k], data(k))


@case(sizes=(2, 3))
def receive_any(rank: int, size: int) -> None:
    if rank != 0:
        dist.send(data(rank).to("tpu"), 0, tag=9)
        return
    seen = []
    for _ in range(size - 1):
        got = torch.empty(5, 3, device="tpu")
        seen.append(dist.recv(got, tag=9))
        same(got, data(seen[-1]))
    assert sorted(seen) == list(range(1, size))


# --- asynchronous work ----------------------------------------------------------------------------


@case(modes=("strict",))
def collective_in_callback(rank: int, size: int) -> None:
    """What is called back at a collective's end starts another and waits for it."""
    x, y = torch.ones(4, device="tpu"), torch.ones(3, device="tpu")

    def again(future: torch.futures.Future) -> torch.Tensor:
        return dist.all_reduce(y, async_op=True).get_future().wait()[0] + future.value()[0][:3]

    for _ in range(20):
        x.fill_(1), y.fill_(1)
        chained = dist.all_reduce(x, async_op=True).get_future().then(again)
        after = dist.all_reduce(torch.ones(2, device="tpu"), async_op=True)
        same(chained.wait(), torch.full((3,), 2.0 * size))
        after.wait()


@case(modes=("strict",))
def power_sgd(rank: int, size: int) -> None:
    """A hook that waits for collectives in callbacks."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    torch.manual_seed(0)
    net = nn.parallel.DistributedDataParallel(nn.Linear(8, 6).to("tpu"))
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, min_compression_rate=1)
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        net.zero_grad()
        net(data(rank, (5, 8)).to("tpu")).sum().backward()
    # The gradient of a sum has rank 1, which is all that is kept of it.
    want = sum(data(k, (5, 8)).sum(0) for k in range(size)) / size
    same(net.module.weight.grad, want.expand(6, 8), rtol=1e-4, atol=1e-4)


@case(modes=("strict",))
def profiler_events(rank: int, size: int) -> None:
    """An event a collective, also of one that only its futures outlive."""
    t = torch.ones(4, device="tpu")
    with torch.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(t)
        work = dist.all_reduce(t, async_op=True)
        futures = [work.get_future(), work.get_future()]
        del work
        for future in futures:
            same(future.wait()[0], torch.full((4,), float(size**2)))
        dist.broadcast(t, 0)
    names = [e.name for e in profile.events() if e.name.startswith("tpu_dist:")]
    assert sorted(names) == ["tpu_dist:all_reduce"] * 2 + ["tpu_dist:broadcast"], names
    assert all(e.input_shapes == [[4]] for e in profile.events() if e.name in names)


@case()
def async_work(rank: int, size: int) -> None:
    t = data(rank).to("tpu")
    work = dist.all_reduce(t, async_op=True)
    t_before = data(rank).to("tpu") + 1  # other work goes on meanwhile
    assert work.wait() and work.is_completed() and work.is_success()
    same(t, sum(everyone(size)))
    same(t_before, data(rank) + 1)
    u = data(rank).to("tpu")
    future = dist.all_reduce(u, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    same(future.wait(), 2 * sum(everyone(size)))
    # Fired at once, waited for at the end: the order of submission is the order of execution.
    v = torch.ones(3, device="tpu")
    works = [dist.all_reduce(v, async_op=True) for _ in range(1)]
    many = [torch.full((2,), float(i), device="tpu") for i in range(20)]
    works += [dist.all_reduce(m, async_op=True) for m in many]
    for work in works:
        work.wait()
    for i, m in enumerate(many):
        same(m, torch.full((2,), float(i * size)))


@case(modes=("strict",))
def what_autograd_saved(rank: int, size: int) -> None:
    """A collective that overwrites what a backward needs is an error there, as elsewhere."""
    x = torch.ones(2, device="tpu", requires_grad=True)
    whole = torch.ones(2 * size, device="tpu")
    for call in (
        lambda out: dist.all_gather([out] * size, x.detach()),
        lambda out: dist.reduce_scatter_tensor(out, whole),
        lambda out: dist.all_to_all([out, *[out + 0] * (size - 1)], [x.detach()] * size),
    ):
        saved = torch.ones(2, device="tpu")
        y = (x * saved).sum()
        call(saved)
        assert "modified by an inplace operation" in message_of(y.backward)


@case(modes=("strict",))
def source_of_no_message(rank: int, size: int) -> None:
    sparse = torch.eye(2).to_sparse().to("tpu")
    for t in (torch.ones(2, device="tpu"), sparse):
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        assert "recv" in message_of(work._source_rank)


@case(modes=("strict",))
def interrupted(rank: int, size: int) -> None:
    """Ctrl-C ends any wait for a rank that does not come, and the group can be given up at once."""
    t = torch.ones(2, device="tpu")  # made before: its first use imports much
    torch.tpu.synchronize()
    calls = (
        lambda group: dist.all_reduce(t, group=group),
        lambda group: dist.recv(t, group=group, group_src=1),
        lambda group: dist.barrier(group=group, async_op=True).wait(),
    )
    for call in calls:
        group = private_group(60)
        if rank == 0:
            interrupt_soon(lambda: call(group))  # noqa: B023
        dist.barrier()
        start = time.monotonic()
        dist.destroy_process_group(group)
        assert time.monotonic() - start < 20
    if rank == 0:
        options = {"rank": 0, "size": 2, "timeout": datetime.timedelta(seconds=60)}
        with tempfile.NamedTemporaryFile() as file:
            store = dist.FileStore(file.name, 2)
            interrupt_soon(lambda: lonely_group(store, **options))


def lonely_group(store: dist.Store, rank: int, size: int, timeout: datetime.timedelta) -> None:
    from torchtpu import _C

    _C.process_group_create(store, rank, size, timeout.total_seconds(), [], 0, None)


def interrupt_soon(call: Callable[[], object]) -> None:
    start = time.monotonic()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        assert time.monotonic() - start < 20
    else:
        raise AssertionError("not interrupted")


@case()
def async_reads_at_submission(rank: int, size: int) -> None:
    """The input is the value at the call, whatever is written to the tensor later."""
    t, outs = data(rank).to("tpu"), [torch.empty(5, 3, device="tpu") for _ in range(size)]
    work = dist.all_gather(outs, t, async_op=True)
    t.zero_()
    work.wait()
    for k, out in enumerate(outs):
        same(out, data(k))


@case()
def coalescing(rank: int, size: int) -> None:
    from torch.distributed.distributed_c10d import _coalescing_manager

    ts = [data(rank, (k + 1,)).to("tpu") for k in range(3)]
    with _coalescing_manager(device=torch.device("tpu")):
        for t in ts:
            dist.all_reduce(t)
    for k, t in enumerate(ts):
        same(t, sum(everyone(size, (k + 1,))))
    outs = [torch.empty((k + 1) * size, device="tpu") for k in range(3)]
    with _coalescing_manager(device=torch.device("tpu"), async_ops=True) as manager:
        for k in range(3):
            dist.all_gather_into_tensor(outs[k], data(rank, (k + 1,)).to("tpu"))
    manager.wait()
    for k in range(3):
        same(outs[k], torch.cat(everyone(size, (k + 1,))))


@case(sizes=(2, 3))
def functional(rank: int, size: int) -> None:
    import torch.distributed._functional_collectives as fc

    group = dist.group.WORLD
    t = data(rank, (2 * size, 3)).to("tpu")
    parts = everyone(size, (2 * size, 3))
    same(fc.all_reduce(t, "sum", group) + 0, sum(parts))
    same(fc.all_gather_tensor(t, 0, group) + 0, torch.cat(parts))
    same(
        fc.reduce_scatter_tensor(t, "sum", 0, group) + 0,
        sum(parts)[2 * rank : 2 * rank + 2],
    )
    same(
        fc.all_to_all_single(t, None, None, group) + 0,
        torch.cat([p[2 * rank : 2 * rank + 2] for p in parts]),
    )
    same(fc.broadcast(t, 1, group) + 0, parts[1])
    reduced_list = fc.all_reduce_coalesced([t, t + 1], "sum", group)
    same(reduced_list[1] + 0, sum(parts) + size)
    same(t, parts[rank])  # functional: the input is left alone


# --- groups and objects ---------------------------------------------------------------------------


@case(sizes=(3,))
def subgroups(rank: int, size: int) -> None:
    pair, alone = dist.new_group([0, 2]), dist.new_group([1])
    t = data(rank).to("tpu")
    if rank != 1:
        dist.all_reduce(t, group=pair)
        same(t, data(0) + data(2))
        u = data(rank).to("tpu")
        dist.broadcast(u, src=2, group=pair)
        same(u, data(2))
        assert dist.get_rank(pair) == (0 if rank == 0 else 1)
    else:
        dist.all_reduce(t, group=alone)
        same(t, data(1))


@case(modes=("strict",))
def mesh_of_a_bound_world(rank: int, size: int) -> None:
    """`init_process_group(device_id=...)`, then a mesh: its groups are made, none is split."""
    make = dist.distributed_c10d._new_process_group_helper
    with tempfile.TemporaryDirectory() as folder:
        where = [folder if rank == 0 else None]
        dist.broadcast_object_list(where, src=0)
        store = dist.FileStore(f"{where[0]}/store", size)
        timeout = datetime.timedelta(seconds=30)
        device = torch.device("tpu", 0)
        group, _ = make(
            size, rank, [], "tpu_dist", store, "bound", timeout=timeout, device_id=device
        )
        assert group.bound_device_id is None
        t = data(rank).to("tpu")
        group.allreduce([t]).wait()
        same(t, sum(everyone(size)))
        group.shutdown()
        dist.barrier()


@case(sizes=(2, 3))
def objects(rank: int, size: int) -> None:
    mine = {"rank": rank, "text": "x" * (10 + 1000 * rank)}
    all_of = [{"rank": k, "text": "x" * (10 + 1000 * k)} for k in range(size)]
    got: list = [None] * size
    dist.all_gather_object(got, mine)
    assert got == all_of
    listed = [mine, 3] if rank == 1 else [None, None]
    dist.broadcast_object_list(listed, src=1)
    assert listed == [all_of[1], 3]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(mine, gathered, dst=0)
    assert rank != 0 or gathered == all_of
    out: list = [None]
    dist.scatter_object_list(out, all_of if rank == 0 else None, src=0)
    assert out == [mine]


@case(modes=("strict",))
def backend_names(rank: int, size: int) -> None:
    """The world was made without naming a backend; then with gloo beside it, and by each name."""
    assert dist.get_backend_config() == "tpu:tpu_dist"
    assert dist.group.WORLD._get_backend(torch.device("tpu")).name() == "tpu_dist"
    assert dist.get_default_backend_for_device("tpu") == "tpu_dist"
    for name in ("tpu_dist", "tpu", "cpu:gloo,tpu:tpu_dist"):
        group = dist.new_group(backend=name)
        t = data(rank).to("tpu")
        dist.all_reduce(t, group=group)
        same(t, sum(everyone(size)))
        model = nn.parallel.DistributedDataParallel(make_model().to("tpu"), process_group=group)
        model(torch.ones(1, 8, device="tpu")).sum().backward()
    on_cpu = data(rank)
    dist.all_reduce(on_cpu, group=group)
    torch.testing.assert_close(on_cpu, sum(everyone(size)))


@case(modes=("strict",))
def sync_batch_norm(rank: int, size: int) -> None:
    """As one process with the whole batch."""
    x = data(0, (4 * size, 3, 5))
    torch.manual_seed(0)
    alone = nn.BatchNorm1d(3)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3))).to("tpu")
    shared = nn.parallel.DistributedDataParallel(model)
    weights = data(1, (4 * size, 3, 5))
    (alone(x) * weights).sum().backward()
    mine = x.chunk(size)[rank].to("tpu")
    (shared(mine) * weights.chunk(size)[rank].to("tpu")).sum().mul(size).backward()
    norm = model[0]
    for got, want in ((norm.weight.grad, alone.weight.grad), (norm.bias.grad, alone.bias.grad)):
        same(got, want, rtol=1e-4, atol=1e-4)
    same(norm.running_var, alone.running_var, rtol=1e-5, atol=1e-5)


@case(modes=("strict",))
def refused(rank: int, size: int) -> None:
    """What is wrong on one rank alone is found before anything is sent."""
    bad = {
        "dense tpu tensors|No backend": lambda: dist.all_reduce(torch.ones(2)),
        "expects|part has|cannot be cut|must|equal": lambda: dist.all_gather_into_tensor(
            torch.empty(3, device="tpu"), torch.ones(2, device="tpu")
        ),
        "a split of -1 rows|must be|negative": lambda: dist.all_to_all_single(
            torch.empty(size, device="tpu"),
            torch.ones(size, device="tpu"),
            output_split_sizes=[size + 1, -1],
            input_split_sizes=[size + 1, -1],
        ),
        f"{size + 1} tensors given for {size} ranks": lambda: dist.all_gather(
            [torch.empty(2, device="tpu") for _ in range(size + 1)], torch.ones(2, device="tpu")
        ),
    }
    t = torch.ones(size, device="tpu")
    for wrong in (-1, size):
        for call in (
            lambda: dist.broadcast(t, wrong),  # noqa: B023
            lambda: dist.reduce(t, wrong),  # noqa: B023
            lambda: dist.send(t, wrong),  # noqa: B023
            lambda: dist.recv(t, wrong),  # noqa: B023
        ):
            assert f"invalid rank {wrong} in a group of {size}" in message_of(call)
    for count in (size - 1, size + 1):
        message = message_of(lambda: dist.all_to_all_single(t + 0, t, [size] * count, [1] * size))  # noqa: B023
        assert "Number of tensor splits not equal to group size" in message, message
    same_place = torch.ones(1, device="tpu").expand(size)
    message = message_of(lambda: dist.all_gather([same_place] * size, t))
    assert "single memory location" in message, message
    leaf = torch.ones(size, device="tpu", requires_grad=True)
    message = message_of(lambda: dist.all_gather([leaf] * size, t))
    assert "leaf Variable that requires grad" in message, message
    some = torch.ones(size, device="tpu")
    uneven = [some, *(some[: k + 1] for k in range(size - 1))]
    if rank == 0:
        bad["gather: the part of rank 1 has 1 elements"] = lambda: dist.gather(some, uneven)
        bad["scatter: the part of rank 1 has 1 elements"] = lambda: dist.scatter(some + 0, uneven)
    for words, call in bad.items():
        try:
            call()
        except (RuntimeError, ValueError) as e:
            assert any(w in str(e) for w in words.split("|")), e
        else:
            raise AssertionError(f"no error with {words}")
    t = torch.ones(2, device="tpu")
    dist.all_reduce(t)  # the group works on
    same(t, torch.full((2,), float(size)))


# --- faults: each breaks a group of its own; test_dist.py says what the error must name -----------


def private_group(seconds: float) -> dist.ProcessGroup:
    group = dist.new_group(timeout=datetime.timedelta(seconds=seconds))
    dist.barrier(group=group, async_op=True).wait()
    return group


def message_of(call: Callable[[], object]) -> str:
    try:
        call()
    except RuntimeError as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError("no error")


@case(modes=())
def other_dtype(rank: int, size: int) -> str:
    group = private_group(20)
    t = torch.ones(4, dtype=torch.float32 if rank == 0 else torch.bfloat16, device="tpu")
    return message_of(lambda: dist.all_reduce(t, group=group))


@case(modes=())
def other_shape(rank: int, size: int) -> str:
    group = private_group(20)
    t = torch.ones(4 + rank, device="tpu")
    return message_of(lambda: dist.all_reduce(t, group=group))


@case(modes=())
def other_collective(rank: int, size: int) -> str:
    group = private_group(20)
    t = torch.ones(4, device="tpu")
    if rank == 0:
        return message_of(lambda: dist.all_reduce(t, group=group))
    return message_of(lambda: dist.broadcast(t, 0, group=group))


@case(modes=())
def stopped(rank: int, size: int) -> str:
    """Rank 1 stops itself; the test lets it go on when rank 0 has answered."""
    group = private_group(2)
    if rank == 1:
        os.kill(os.getpid(), 19)  # SIGSTOP
        return ""
    time.sleep(0.3)
    return message_of(lambda: dist.all_reduce(torch.ones(4, device="tpu"), group=group))


@case(modes=())
def killed_all_reduce(rank: int, size: int) -> str:
    if rank == 1:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), 9)).start()
    t = torch.ones(1 << 18, device="tpu")

    def forever() -> None:
        while True:
            dist.all_reduce(t, ReduceOp.MAX)

    return message_of(forever)


@case(modes=())
def killed_in_turns(rank: int, size: int) -> str:
    """Rank 1 dies in any of several collectives."""
    if rank == 1:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), 9)).start()
    t = torch.ones(size << 18, dtype=torch.int32, device="tpu")

    def forever() -> None:
        while True:
            dist.broadcast(t, 0)
            dist.all_gather_into_tensor(t, t[: 1 << 18])
            dist.reduce_scatter_tensor(t[: 1 << 18], t)

    return message_of(forever)


@case(modes=())
def killed_barrier(rank: int, size: int) -> str:
    if rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), 9)
    return message_of(dist.barrier)


@case(modes=())
def killed_receive_any(rank: int, size: int) -> str:
    if rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), 9)
    return message_of(lambda: dist.recv(torch.empty(4, device="tpu")))


@case(modes=())
def silent(rank: int, size: int) -> str:
    group = private_group(2)
    if rank == size - 1:
        time.sleep(20)
    return message_of(lambda: dist.all_reduce(torch.ones(4, device="tpu"), group=group))


@case(modes=())
def gone(rank: int, size: int) -> str:
    dist.barrier()
    if rank == size - 1:
        os.kill(os.getpid(), 9)
    return message_of(lambda: dist.broadcast(torch.ones(4, device="tpu"), 0))


def serve(rank: int, size: int, store: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    torch.set_num_threads(1)
    dist.init_process_group(
        init_method=f"file://{store}",
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=30),
    )
    for line in sys.stdin:
        name, mode = line.split()
        torch.tpu.set_eager_mode(mode)
        torch.manual_seed(0)
        answer = {"error": None, "value": None}
        try:
            answer["value"] = CASES[name]["fn"](rank, size)
        except BaseException:
            answer["error"] = traceback.format_exc()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
