"""What the benches share: a time, a row of a table, and a command line over named entries.

Nothing here is a test: machines differ, ratios inside one run are what is worth comparing.
"""

import argparse
import json
import pathlib
import time
from collections.abc import Callable

import torch

Row = dict[str, object]


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


def row(what: str, way: str, seconds: float, base: float) -> Row:
    return {"what": what, "way": way, "us": seconds * 1e6, "ratio": seconds / base}


def run(description: str, entries: dict[str, Callable[[], list[Row]]]) -> int:
    """Runs the entries that the command line names (all by default) and prints their rows."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("entries", nargs="*", help=f"which of {', '.join(entries)}; default all")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    args = parser.parse_args()
    if unknown := set(args.entries) - set(entries):
        parser.error(f"no such entry: {', '.join(sorted(unknown))}")
    device = torch.tpu.get_device_name()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {device}")
    rows: list[Row] = []
    for name in args.entries or entries:
        for r in entries[name]():
            print(
                f"{r['what']:32s} {r['way']:16s} {r['us']:12.2f} us {r['ratio']:7.2f}x", flush=True
            )
            rows.append(r)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 0
