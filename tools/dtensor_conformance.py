"""Runs PyTorch's op samples as DTensors on two ranks of tpu_dist; writes docs/reports/dtensor.md.

    python tools/dtensor_conformance.py --report docs/reports/dtensor.md
    python tools/dtensor_conformance.py --only '^(sum|nn.functional.linear)$' --verbose

For every op of PyTorch's list (`op_db`) and some of its float32 samples, each tensor of the sample
is replicated or cut along each dimension that two ranks can cut evenly, in all combinations
(`DTensorConverter` of torch.testing). Each combination runs on a mesh of the CPU (gloo) and, where
that gives the values of the plain op, on a mesh of tpu devices: results and gradients must be the
plain op's.
What DTensor does not do on the CPU either is counted apart.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import itertools
import json
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_flatten, tree_map

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE = 2  # ranks
SAMPLES, COMBINATIONS = 3, 8  # of an op, of a sample: the first ones


# --- a rank ---------------------------------------------------------------------------------------


def map_tensors(fn: Callable[[torch.Tensor], object], tree: object) -> object:
    """The tree with fn of each of its tensors."""
    return tree_map(lambda x: fn(x) if isinstance(x, torch.Tensor) else x, tree)


def full(x: torch.Tensor) -> torch.Tensor:
    """The whole value on the CPU, whatever the tensor is."""
    from torch.distributed.tensor import DTensor

    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def run(op: Callable, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """The op's results and, where it has them, the gradients of their sum."""
    results = [r for r in tree_flatten(op(*args, **kwargs))[0] if isinstance(r, torch.Tensor)]
    leaves = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    leaves = [x for x in leaves if x.requires_grad]
    values = [full(r) for r in results]
    roots = [r for r in results if r.requires_grad and r.is_floating_point()]
    if leaves and roots:
        grads = torch.autograd.grad([r.sum() for r in roots], leaves, allow_unused=True)
        values += [full(g) for g in grads if g is not None]
    return values


def moved(x: torch.Tensor, device: str) -> torch.Tensor:
    """A leaf of the same value there."""
    return x.detach().to(device).requires_grad_(x.requires_grad)


def combinations(mesh: dist.DeviceMesh, args: tuple, kwargs: dict) -> Iterator[tuple]:
    """The sample's tensors as DTensors, in all combinations of placements."""
    from torch.testing._internal.distributed._tensor.common_dtensor import DTensorConverter

    fresh = map_tensors(lambda x: moved(x, mesh.device_type), (args, kwargs))
    converter = DTensorConverter(mesh, *fresh)
    return itertools.islice(converter, COMBINATIONS)


def same(got: list[torch.Tensor], want: list[torch.Tensor]) -> bool:
    """Whether they are equal but for the order of sums."""
    try:
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4, equal_nan=True)
    except AssertionError:
        return False
    return True


def attempt(op: Callable, combination: Callable) -> list[torch.Tensor] | Exception:
    """What a combination gives, or the error."""
    try:
        return run(op, *combination())
    except Exception as error:
        return error


def is_right(got: object, want: object) -> bool:
    """Whether neither is an error, and they are the same."""
    return not isinstance(got, Exception) and not isinstance(want, Exception) and same(got, want)


def agreed(opinion: bool) -> bool:
    """Whether all ranks say so: they go on alike."""
    votes = torch.tensor(int(opinion))
    dist.all_reduce(votes, dist.ReduceOp.MIN)
    return bool(votes)


def run_op(info: object, meshes: dict[str, dist.DeviceMesh]) -> dict[str, object]:
    """Counts by outcome, and what the first failure says."""
    counts: collections.Counter = collections.Counter()
    detail = ""
    torch.manual_seed(0)
    grad = info.supports_autograd and torch.float32 in info.supported_backward_dtypes("cpu")
    for sample in itertools.islice(
        info.sample_inputs("cpu", torch.float32, requires_grad=grad), SAMPLES
    ):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        op = info.op
        want, again = (attempt(op, lambda: (args, kwargs)) for _ in range(2))  # noqa: B023
        on_tpu = attempt(op, lambda: map_tensors(lambda x: moved(x, "tpu"), (args, kwargs)))  # noqa: B023
        if not agreed(all(is_right(v, want) for v in (want, again, on_tpu))):
            counts["apart"] += 1
            continue
        cpu, tpu = (combinations(mesh, args, kwargs) for mesh in meshes.values())
        while True:
            expected = attempt(op, lambda: next(cpu))  # noqa: B023
            got_next = []
            with contextlib.suppress(StopIteration):
                got_next = [next(tpu)]
            if isinstance(expected, StopIteration) or not got_next:
                break
            if not agreed(is_right(expected, want)):
                counts["unsupported"] += 1
                continue
            got = attempt(op, lambda: got_next[0])  # noqa: B023
            good = is_right(got, want)
            counts["pass" if good else "fail"] += 1
            if not good and not detail:
                placed = [getattr(x, "placements", "") for x in tree_flatten(got_next[0])[0]]
                said = f"{type(got).__name__}: {got}" if isinstance(got, Exception) else "values"
                detail = f"{[str(p) for p in placed if p]}: {said.splitlines()[0]}"
    return {"counts": dict(counts), "detail": detail}


def serve(rank: int, store: str) -> None:
    """Runs the ops that stdin names, one a line."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    dist.init_process_group(
        "cpu:gloo,tpu:tpu_dist",
        init_method=f"file://{store}",
        rank=rank,
        world_size=SIZE,
        timeout=datetime.timedelta(seconds=20),
    )
    torch.tpu.set_device(rank)
    meshes = {kind: dist.init_device_mesh(kind, (SIZE,)) for kind in ("cpu", "tpu")}
    infos = {full_name(info): info for info in op_db}
    for line in sys.stdin:
        name = line.split()[0]
        answer = {"error": ""}
        try:
            answer |= run_op(infos[name], meshes)
        except Exception as error:
            answer["error"] = f"{type(error).__name__}: {error}"
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


# --- the sweep ------------------------------------------------------------------------------------


def full_name(info: object) -> str:
    """An op's name and its variant's."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def sweep(names: list[str], seconds: float, verbose: bool) -> dict[str, dict]:
    """Each op's answer; "lost": why it has none."""
    from test_dist import World

    answers, world = {}, None
    for name in names:
        if not world:
            world = World(SIZE, program=[__file__, "--serve"])
        both = world.run(name, timeout=seconds)
        errors = [a["error"] for a in both if a["error"]]
        counts = [a.get("counts") for a in both]
        if errors:
            answers[name] = {"counts": {}, "detail": "", "lost": errors[0]}
            for rank in world.ranks:
                rank.kill()
            world.close()
            world = None
        else:
            worst = max(both, key=lambda a: a["counts"].get("fail", 0))
            answers[name] = worst | ({} if counts[0] == counts[1] else {"lost": "the ranks differ"})
        if verbose:
            print(name, answers[name], flush=True)
    if world:
        world.close()
    return answers


def report(answers: dict[str, dict]) -> str:
    """The report's text."""
    from dist_conformance import table

    total = sum((collections.Counter(a["counts"]) for a in answers.values()), collections.Counter())
    ran = {n: a for n, a in answers.items() if a["counts"].get("pass") or a["counts"].get("fail")}
    failed = {n: a for n, a in ran.items() if a["counts"].get("fail")}
    lost = {n: a["lost"] for n, a in answers.items() if a.get("lost")}
    none = [n for n in answers if n not in ran and n not in lost]
    tried = total["pass"] + total["fail"]
    return "\n".join(
        [
            "# PyTorch's ops as DTensors",
            "",
            f"Generated by `tools/dtensor_conformance.py` on {datetime.date.today()} with torch "
            f"{torch.__version__}: {SIZE} ranks of `tpu_dist` on the software TPU, {len(answers)} "
            f"entries of `op_db`, of each up to {SAMPLES} float32 samples in up to {COMBINATIONS} "
            "combinations of placements. Results and gradients are compared with the plain op on "
            "the CPU, where DTensor on the CPU (gloo) gives those.",
            "",
            f"{tried} combinations of {len(ran)} ops ran: **{total['pass']} passed "
            f"({100 * total['pass'] / max(tried, 1):.2f} %)**, {len(ran) - len(failed)} ops "
            f"whole. {total['unsupported']} combinations are nothing that DTensor does on the CPU "
            f"either; {total['apart']} samples are random, or of types that the device lacks: the "
            "plain op has no one value.",
            "",
            "## What fails",
            "",
            *table(
                ["op", "failed", "passed", "first failure"],
                [
                    [f"`{n}`", a["counts"]["fail"], a["counts"].get("pass", 0), a["detail"][:160]]
                    for n, a in failed.items()
                ],
            ),
            "",
            "## No answer",
            "",
            *table(["op", "why"], [[f"`{n}`", why] for n, why in lost.items()]),
            "",
            "## Nothing to compare",
            "",
            ", ".join(f"`{n}`" for n in none),
            "",
            "## What passes",
            "",
            ", ".join(f"`{n}`" for n in ran if n not in failed),
            "",
        ]
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="ops whose names match this expression")
    parser.add_argument("--seconds", type=float, default=90, help="limit of one op")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true", help="say each outcome as it comes")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args, rest = parser.parse_known_args()
    if args.serve:
        serve(int(rest[0]), rest[2])
        return 0
    from torch.testing._internal.common_methods_invocations import op_db

    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
    os.environ["TORCHTPU_NUM_DEVICES"] = str(SIZE)
    names = sorted({full_name(info) for info in op_db if re.search(args.only, full_name(info))})
    answers = sweep(names, args.seconds, args.verbose)
    total = sum((collections.Counter(a["counts"]) for a in answers.values()), collections.Counter())
    print(dict(total), "lost:", sum("lost" in a for a in answers.values()))
    if args.report:
        args.report.write_text(report(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
