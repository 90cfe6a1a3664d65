"""Side-by-side measurements in one run, `make bench`: nanoseconds or milliseconds, and ratios.

Nothing here is a test: machines differ, ratios inside one run are what is worth comparing.
"""

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Callable

import torch

MODES = ("strict", "defer_and_fuse")


def best(fn: Callable[[], object], number: int, repeats: int = 7, after=lambda: None) -> float:
    """Seconds a call, the smallest of `repeats` means over `number` calls; `after` is not timed."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            fn()
        times.append((time.perf_counter() - start) / number)
        after()
    return min(times)


def dispatch() -> list[dict]:
    """`a + b` on one element from Python: nanoseconds an op, beside the CPU's own."""
    rows = []
    a, b = torch.ones(1), torch.ones(1)
    cpu = best(lambda: a + b, 20_000)
    rows.append({"what": "a + b, 1 element", "way": "cpu", "ns": cpu * 1e9, "ratio": 1.0})
    for mode in MODES:
        torch.tpu.set_eager_mode(mode)
        x, y = a.to("tpu"), b.to("tpu")
        seconds = best(lambda: x + y, 1_000, 21, torch.tpu.synchronize)
        rows.append(
            {"what": "a + b, 1 element", "way": mode, "ns": seconds * 1e9, "ratio": seconds / cpu}
        )
    return rows


def chain() -> list[dict]:
    """Thirteen elementwise ops with tanh over 4 Mi floats: milliseconds a run."""

    def work(x: torch.Tensor) -> torch.Tensor:
        y = x
        for i in range(4):
            y = torch.tanh(y * 1.01 + 0.1 * i)
        return y + x

    rows = []
    x = torch.randn(1 << 22)
    cpu = best(lambda: work(x), 2, 5)
    rows.append({"what": "13-op chain, 4 Mi f32", "way": "cpu", "ms": cpu * 1e3, "ratio": 1.0})
    for mode in MODES:
        torch.tpu.set_eager_mode(mode)
        t = x.to("tpu")

        def once() -> None:
            kept = work(t)  # a dead result would never be computed
            torch.tpu.synchronize()
            del kept

        seconds = best(once, 2, 5)
        rows.append(
            {
                "what": "13-op chain, 4 Mi f32",
                "way": mode,
                "ms": seconds * 1e3,
                "ratio": seconds / cpu,
            }
        )
    return rows


def matmul() -> list[dict]:
    """1024 x 1024 matrix product: milliseconds."""
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.randn(1024, 1024).to(dtype)
        cpu = best(lambda: a @ a, 5, 5)
        name = f"matmul 1024, {str(dtype)[6:]}"
        rows.append({"what": name, "way": "cpu", "ms": cpu * 1e3, "ratio": 1.0})
        for mode in MODES:
            torch.tpu.set_eager_mode(mode)
            t = a.to("tpu")

            def once() -> None:
                kept = t @ t  # a dead result would never be computed
                torch.tpu.synchronize()
                del kept

            seconds = best(once, 5, 5)
            rows.append({"what": name, "way": mode, "ms": seconds * 1e3, "ratio": seconds / cpu})
    return rows


def mlp_step() -> list[dict]:
    """A training step of a 3-layer MLP (batch 64, width 256) with AdamW: milliseconds."""

    def make(device: str) -> Callable[[], None]:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 256)]
        model = torch.nn.Sequential(*layers, torch.nn.GELU(), torch.nn.Linear(256, 10)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x = torch.randn(64, 256).to(device)
        y = torch.randint(10, (64,)).to(device)

        def step() -> None:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss.item()

        for _ in range(5):
            step()
        return step

    cpu = best(make("cpu"), 10, 5)
    rows = [{"what": "MLP step, batch 64", "way": "cpu", "ms": cpu * 1e3, "ratio": 1.0}]
    for mode in MODES:
        torch.tpu.set_eager_mode(mode)
        seconds = best(make("tpu"), 10, 5)
        rows.append(
            {"what": "MLP step, batch 64", "way": mode, "ms": seconds * 1e3, "ratio": seconds / cpu}
        )
    return rows


ENTRIES = {"dispatch": dispatch, "chain": chain, "matmul": matmul, "mlp_step": mlp_step}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("entries", nargs="*", help=f"which of {', '.join(ENTRIES)}; default all")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{torch.tpu.get_device_name()}"
    )
    for name in args.entries or ENTRIES:
        for row in ENTRIES[name]():
            value = f"{row['ns']:10.0f} ns" if "ns" in row else f"{row['ms']:10.3f} ms"
            print(f"{row['what']:24s} {row['way']:16s} {value}  {row['ratio']:6.2f}x", flush=True)
            rows.append(row)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
