"""The training example's loss curve in every way of running it, compared with one CPU process.

    python tools/train_curves.py                  # all of them, 30 steps, as a Markdown table
    python tools/train_curves.py --only ddp-2     # some of them

Exits with 1 when a curve is off by more than the tolerance, and with the script's output when one
fails. The script is the same each time; only its flags and the launcher change.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "examples" / "train_gpt.py"

# name: (ranks, 0: without torchrun; eager mode; flags)
RUNS: dict[str, tuple[int, str, list[str]]] = {
    "tpu-strict": (0, "strict", []),
    "tpu-debug": (0, "debug", []),
    "tpu-defer_and_fuse": (0, "defer_and_fuse", []),
    "tpu-compiled": (0, "strict", ["--compile"]),
    "ddp-1": (1, "strict", []),
    "ddp-2": (2, "strict", []),
    "ddp-2-defer_and_fuse": (2, "defer_and_fuse", []),
    "ddp-2-compiled": (2, "strict", ["--compile"]),
    "ddp-4": (4, "strict", []),
    "fsdp-2": (2, "strict", ["--parallel", "fsdp"]),
    "fsdp-2-defer_and_fuse": (2, "defer_and_fuse", ["--parallel", "fsdp"]),
    "fsdp_tp-2x2": (4, "strict", ["--parallel", "fsdp_tp", "--tp", "2"]),
    "fsdp_tp-2x2-defer_and_fuse": (4, "defer_and_fuse", ["--parallel", "fsdp_tp", "--tp", "2"]),
}


def losses(ranks: int, mode: str, flags: list[str], folder: str) -> list[float]:
    """The losses of one run. Raises SystemExit with its output when it fails."""
    result = pathlib.Path(folder) / "losses.json"
    launcher = [sys.executable]
    if ranks:
        launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    done = subprocess.run(
        [*launcher, str(SCRIPT), *flags, "--json", str(result)],
        env=os.environ | {"TORCHTPU_EAGER_MODE": mode, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(flags)} on {ranks} ranks failed:\n{done.stdout}{done.stderr}")
    return json.loads(result.read_text())["losses"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    size = [f"--{name}={getattr(args, name)}" for name in ("steps", "layers", "width")]
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        want = losses(0, "strict", [*size, "--device", "cpu"], folder)
        print("| run | ranks | first loss | last loss | largest relative difference | seconds |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        print(f"| cpu | 1 | {want[0]:.5f} | {want[-1]:.5f} | | |", flush=True)
        for name in args.only:
            ranks, mode, flags = RUNS[name]
            start = time.perf_counter()
            got = losses(ranks, mode, [*size, "--device", "tpu", *flags], folder)
            off = max(abs(g - w) / abs(w) for g, w in zip(got, want, strict=True))
            worst = max(worst, off)
            took = time.perf_counter() - start
            print(
                f"| {name} | {max(ranks, 1)} | {got[0]:.5f} | {got[-1]:.5f} | {off:.1e}"
                f" | {took:.0f} |",
                flush=True,
            )
    return int(worst > args.tolerance)


if __name__ == "__main__":
    sys.exit(main())
