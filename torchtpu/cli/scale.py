"""what a training step costs on 8 to 8,192 chips, by the model in docs/scale.md

MODEL is a number of parameters (340e6, 7e9) or FILE.py:FUNCTION as `torchtpu aot` takes it. Nothing
is measured: published rates of chips and links, and a model of collectives.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from torchtpu.chips import CHIPS
from torchtpu.cli.table import format_bytes, format_count, format_seconds, format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--chip", choices=sorted(CHIPS), default="v5p")
    parser.add_argument("--chips", type=int, nargs="+", default=[1 << i for i in range(3, 14)])
    parser.add_argument("--layers", type=int, default=32, help="pieces that are sent one by one")
    parser.add_argument("--tokens", type=int, default=8192, help="a chip and step")
    parser.add_argument(
        "--efficiency", type=float, default=0.5, help="share of the peak of a chip alone"
    )
    parser.add_argument("--gradient-bytes", type=int, default=4, help="of one gradient as sent")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _parameters(model: str) -> float:
    if ".py:" not in model:
        try:
            return float(model)
        except ValueError:
            raise ValueError(
                f"{model!r} is no number of parameters and no FILE.py:FUNCTION"
            ) from None
    import torch

    from torchtpu import _aot_case

    with torch.device("meta"):
        made = _aot_case.load(model)()
    if not isinstance(made, (tuple, list)) or not isinstance(made[0], torch.nn.Module):
        raise _aot_case.CaseError(_aot_case.CONTRACT)
    return float(sum(p.numel() for p in made[0].parameters()))


def run(arguments: argparse.Namespace) -> int:
    from torchtpu import scale
    from torchtpu._aot_case import CaseError

    try:
        job = scale.Job(
            _parameters(arguments.model),
            layers=arguments.layers,
            tokens=arguments.tokens,
            efficiency=arguments.efficiency,
            gradient_bytes=arguments.gradient_bytes,
        )
        meshes = [scale.mesh(CHIPS[arguments.chip], n) for n in arguments.chips]
    except (ValueError, CaseError) as error:
        print(f"torchtpu scale: {error}", file=sys.stderr)
        return 2
    steps = {
        "data parallel": [scale.data_parallel(m, job) for m in meshes],
        "fully sharded": [scale.fully_sharded(m, job) for m in meshes],
    }
    if arguments.json:
        whole = {name: [_facts(step, job) for step in rows] for name, rows in steps.items()}
        print(json.dumps({"chip": arguments.chip, "parameters": job.parameters, **whole}, indent=2))
        return 0
    chip = CHIPS[arguments.chip]
    print(
        f"{format_count(job.parameters)} parameters, {job.tokens} tokens a chip and step,", end=" "
    )
    print(f"{chip.name}: {format_seconds(job.compute(chip))} of computing at {job.efficiency:.0%}")
    for name, rows in steps.items():
        print(f"\n{name}\n{_table(rows, job)}")
    print("\nA model, not a measurement: see docs/scale.md. state: weights, gradients and moments,")
    print(f"without activations; (!) where that alone exceeds the {format_bytes(chip.hbm_bytes)}.")
    return 0


def _facts(step: Any, job: Any) -> dict[str, Any]:
    return {
        "chips": step.mesh.chips,
        "mesh": str(step.mesh),
        "compute_seconds": step.compute,
        "communication_seconds": step.communication,
        "exposed_seconds": step.exposed,
        "step_seconds": step.seconds,
        "efficiency": step.efficiency,
        "tokens_per_second": step.mesh.chips * job.tokens / step.seconds,
        "state_bytes": step.state_bytes,
        "fits": step.fits,
    }


def _table(steps: list, job: Any) -> str:
    header = (
        "chips",
        "mesh",
        "communication",
        "exposed",
        "step",
        "efficiency",
        "tokens/s",
        "state",
    )
    rows = [
        (
            str(s.mesh.chips),
            str(s.mesh),
            format_seconds(s.communication),
            format_seconds(s.exposed),
            format_seconds(s.seconds),
            f"{100 * s.efficiency:.1f} %",
            format_count(s.mesh.chips * job.tokens / s.seconds),
            format_bytes(s.state_bytes) + ("" if s.fits else " (!)"),
        )
        for s in steps
    ]
    return format_table(header, rows, "r rrrrrr")
