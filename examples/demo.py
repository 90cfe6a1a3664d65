"""`make demo`: one training script on the CPU and on `tpu` in its three eager modes.

Runs examples/train_gpt.py once a configuration, each in its own process, prints a table, checks
that the loss curves agree and writes them to out/demo.png.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CONFIGURATIONS = [
    ("CPU", "cpu", None),
    ("tpu strict", "tpu", "strict"),
    ("tpu debug", "tpu", "debug"),
    ("tpu defer_and_fuse", "tpu", "defer_and_fuse"),
]


def run(name: str, device: str, mode: str | None, steps: int, out: pathlib.Path) -> dict:
    path = out / f"{name.replace(' ', '_')}.json"
    env = dict(os.environ)
    if mode:
        env["TORCHTPU_EAGER_MODE"] = mode
    command = [sys.executable, str(HERE / "train_gpt.py"), "--device", device]
    command += ["--steps", str(steps), "--sample", "120", "--json", str(path)]
    print(f"\n=== {name}", flush=True)
    subprocess.run(command, env=env, check=True)
    return json.loads(path.read_text())


def plot(results: dict[str, dict], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for i, (name, r) in enumerate(results.items()):
        axes.plot(r["losses"], label=name, lw=3 - 0.6 * i, alpha=0.8)
    axes.set(xlabel="step", ylabel="loss", title="Character GPT: the same curve on every device")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"))
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    results = {n: run(n, d, m, args.steps, args.out) for n, d, m in CONFIGURATIONS}

    print(f"\n{'':20s} {'tokens/s':>9s} {'step ms':>8s} {'first step s':>12s} "
          f"{'peak MB':>8s} {'programs':>8s} {'last loss':>9s} {'worst rel':>9s}")  # fmt: skip
    reference = results["CPU"]["losses"][:50]
    failures = []
    for name, r in results.items():
        worst = max(abs(a - b) / abs(b) for a, b in zip(r["losses"], reference))
        peak = f"{r['peak_bytes'] / 1e6:.1f}" if "peak_bytes" in r else "-"
        programs = r.get("cache", {}).get("programs_compiled", "-")
        print(f"{name:20s} {r['tokens_per_s']:9.0f} {1e3 * r['steady_step_s']:8.1f} "
              f"{r['first_step_s']:12.2f} {peak:>8s} {programs!s:>8s} {r['losses'][-1]:9.4f} "
              f"{worst:9.1e}")  # fmt: skip
        if worst > 1e-3:
            failures.append(f"{name}: losses differ from the CPU's by {worst:.1e}")
        if r.get("fallbacks"):
            print(f"{'':20s} CPU fallbacks: {r['fallbacks']}")
    strict, fused = results["tpu strict"], results["tpu defer_and_fuse"]
    speed = strict["steady_step_s"] / fused["steady_step_s"]
    memory = fused["peak_bytes"] / strict["peak_bytes"]
    print(f"\ndefer_and_fuse against strict: {speed:.2f}x a step, {memory:.2f}x the peak memory")
    plot(results, args.out / "demo.png")
    print(f"loss curves: {args.out / 'demo.png'}")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
