"""One rank of test_dist_faults.py: meets the others, meets its fate, and tells what it was told.

Started as `dist_fault_worker.py CASE RANK STORE_FILE`. Prints one line of JSON: the error, the
seconds from the start of the faulty call to it, and what of the group is left in the process.
"""

import datetime
import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist


def remains() -> list[str]:
    """Mappings and open files of shared memory of a group."""
    with open("/proc/self/maps") as maps:
        found = [line.split()[-1] for line in maps if "memfd:tpu_dist" in line]
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
        if "memfd:tpu_dist" in target or target == "anon_inode:[pidfd]":
            found.append(target)
    return found


class Fate(dist.Store):
    """A store that sends this process a signal when it publishes a key with `word`."""

    def __init__(self, store: dist.Store, word: str, number: int):
        super().__init__()
        self.store, self.word, self.number = store, word, number

    def set(self, key, value):
        if self.word in key:
            os.kill(os.getpid(), self.number)
        self.store.set(key, value)

    def get(self, key):
        return self.store.get(key)

    def add(self, key, value):
        return self.store.add(key, value)

    def check(self, keys):
        return self.store.check(keys)

    def wait(self, keys, timeout=datetime.timedelta(seconds=30)):
        self.store.wait(keys, timeout)

    def set_timeout(self, timeout):
        self.store.set_timeout(timeout)


def meet(rank: int, path: str, size: int = 2, seconds: float = 30, store=None) -> None:
    dist.init_process_group(
        "tpu_dist",
        store=store or dist.FileStore(path, -1),
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=seconds),
    )


def reduce_forever(rank: int) -> None:
    t = torch.ones(1 << 16, device="tpu")
    while True:
        dist.all_reduce(t)


# Each returns the call that should fail on the ranks that live; what is before it should not.
def absent(rank: int, path: str) -> Callable[[], object]:
    """Rank 1 never comes (the test does not start it)."""
    return lambda: meet(rank, path, seconds=2)


def killed_while_meeting(rank: int, path: str) -> Callable[[], object]:
    file = dist.FileStore(path, -1)
    store = Fate(file, "mapped", signal.SIGKILL) if rank == 1 else file
    return lambda: meet(rank, path, store=store)


def stopped_while_meeting(rank: int, path: str) -> Callable[[], object]:
    file = dist.FileStore(path, -1)
    store = Fate(file, "mapped", signal.SIGSTOP) if rank == 1 else file
    return lambda: meet(rank, path, seconds=2, store=store)


def no_memory(rank: int, path: str) -> Callable[[], object]:
    """Rank 1 may not make files (shared memory is one) of more than 1 MB."""

    def call() -> None:
        if rank == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        meet(rank, path)

    return call


def world_sizes(rank: int, path: str) -> Callable[[], object]:
    return lambda: meet(rank, path, size=2 + rank)


def same_rank(rank: int, path: str) -> Callable[[], object]:
    return lambda: meet(0, path, seconds=4)


def ended_by_exception(rank: int, path: str) -> Callable[[], object]:
    """Rank 1's script fails; its process ends without destroying the group."""
    meet(rank, path)
    dist.barrier()
    if rank == 1:
        raise SystemExit(3)
    return lambda: reduce_forever(rank)


def die_soon(rank: int) -> None:
    """Rank 1 is killed while it is in the middle of something."""
    if rank == 1:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process
        signal.setitimer(signal.ITIMER_REAL, 0.3)


def killed_all_gather(rank: int, path: str) -> Callable[[], object]:
    def forever() -> None:
        outs = [torch.empty(1000, device="tpu") for _ in range(2)]
        while True:
            dist.all_gather(outs, torch.ones(1000, device="tpu"))

    meet(rank, path)
    dist.barrier()
    die_soon(rank)
    return forever


def killed_send(rank: int, path: str) -> Callable[[], object]:
    def forever() -> None:
        while True:  # more than the ring holds: waits for rank 1 to read
            dist.send(torch.ones(1 << 18, device="tpu"), 1) if rank == 0 else time.sleep(1)

    meet(rank, path)
    dist.barrier()
    die_soon(rank)
    return forever


def killed_ddp(rank: int, path: str) -> Callable[[], object]:
    """In the middle of DDP's steps, with buckets in flight."""
    meet(rank, path)
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).tpu())
    x = torch.ones(8, 64, device="tpu")
    model(x).sum().backward()
    die_soon(rank)

    def forever() -> None:
        while True:
            model(x).sum().backward()

    return forever


def main() -> None:
    name, rank, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    call = globals()[name](rank, path)
    start, error = time.monotonic(), None
    try:
        call()
    except (RuntimeError, ValueError) as e:
        error = f"{type(e).__name__}: {e}"
    took = time.monotonic() - start
    if dist.is_initialized():
        dist.destroy_process_group()
    gc.collect()
    print(json.dumps({"error": error, "seconds": took, "remains": remains()}), flush=True)


if __name__ == "__main__":
    main()
