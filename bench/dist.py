"""all_reduce between two processes: tpu_dist on tpu tensors beside gloo on CPU tensors, in one run.

    python bench/dist.py

The two take turns at each size and the best of the repeats counts: both see the same machine.
Prints microseconds a call and tpu_dist's share of gloo's time; below 1 tpu_dist is faster. "cpu" is
the same share of the processor time that a call takes of one rank, which other work on the machine
changes less.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

SIZES = [1 << k for k in range(10, 27, 2)]  # bytes: 1 KB to 64 MB


def seconds_a_call(t: torch.Tensor, number: int) -> tuple[float, float]:
    """Wall clock and processor time."""
    dist.barrier()
    start, used = time.perf_counter(), time.process_time()
    for _ in range(number):
        dist.all_reduce(t)
    if t.is_tpu:
        torch.tpu.synchronize()
    return (time.perf_counter() - start) / number, (time.process_time() - used) / number


def measure(sizes: list[int], repeats: int) -> list[dict]:
    rows = []
    for size in sizes:
        number = max(2, min(200, (8 << 20) // size))
        on_tpu, on_cpu = torch.zeros(size // 4, device="tpu"), torch.zeros(size // 4)
        times: dict[str, list[tuple[float, float]]] = {"tpu_dist": [], "gloo": []}
        for _ in range(repeats):
            times["tpu_dist"].append(seconds_a_call(on_tpu, number))
            times["gloo"].append(seconds_a_call(on_cpu, number))
        (ours, our_cpu), (gloo, gloo_cpu) = (
            [min(column) for column in zip(*times[name][1:])] for name in ("tpu_dist", "gloo")
        )
        rows.append({"bytes": size, "tpu_dist_us": ours * 1e6, "gloo_us": gloo * 1e6})
        rows[-1] |= {"ratio": ours / gloo, "cpu_ratio": our_cpu / gloo_cpu}
        if dist.get_rank() == 0:
            print(
                f"{size >> 10:8d} KB  tpu_dist {ours * 1e6:10.1f} us  gloo {gloo * 1e6:10.1f} us"
                f"  {ours / gloo:5.2f}x  cpu {our_cpu / gloo_cpu:5.2f}x",
                flush=True,
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest size in bytes")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rank = os.environ.get("BENCH_DIST_RANK")
    if rank is None:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [
                subprocess.Popen(
                    [sys.executable, *sys.argv],
                    env=os.environ | {"BENCH_DIST_RANK": str(r), "BENCH_DIST_STORE": folder},
                )
                for r in range(2)
            ]
            return max(r.wait() for r in ranks)
    torch.set_num_threads(1)
    dist.init_process_group(
        "cpu:gloo,tpu:tpu_dist",
        init_method=f"file://{os.environ['BENCH_DIST_STORE']}/store",
        rank=int(rank),
        world_size=2,
    )
    rows = measure([s for s in SIZES if s <= args.most], max(args.repeats, 2))
    if args.json and rank == "0":
        args.json.write_text(json.dumps(rows, indent=1))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
