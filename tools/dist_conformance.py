"""Runs PyTorch's own distributed tests on ranks of tpu_dist; writes docs/reports/dist.md.

    python tools/dist_conformance.py --report docs/reports/dist.md
    python tools/dist_conformance.py --only 'all_reduce|send' --verbose

The tests are those that the installed torch brings (DistributedTest._DistTestBase). They know some
backends by name and "cuda" as the device, so their text is read with "cuda" spelled "tpu", and in
four roles: `nccl`, `mpi` and `gloo`, with that name spelled "tpu_dist", and `own`, where the
backend's name is one that they do not know. Where a test names no device the default device is tpu,
except in the role `nccl`. A test counts in the first role in which it passes, otherwise in the
first in which its own decorators let it run. Two ranks run them, four or eight those that skip
themselves for so few.
"""

from __future__ import annotations

import argparse
import ast
import collections
import datetime
import importlib.util
import json
import os
import pathlib
import re
import sys
import tempfile
import traceback
import types

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = "torch.testing._internal.distributed.distributed_test"
ROLES = ("nccl", "own", "mpi", "gloo")
WORLDS = (2, 4, 8)  # ranks
OUTCOMES = ("pass", "fail", "timeout", "skip")
# What a test says that makes groups of another backend, whatever its role.
ELSEWHERE = (
    "Distributed package doesn't have",
    "has no attribute 'ProcessGroupNCCL'",
)


def test_names() -> list[str]:
    """The names of all tests, in the order of the file."""
    text = pathlib.Path(importlib.util.find_spec(SOURCE).origin).read_text()
    return [
        part.name
        for base in ast.walk(ast.parse(text))
        if isinstance(base, ast.ClassDef) and base.name == "_DistTestBase"
        for part in base.body
        if isinstance(part, ast.FunctionDef) and part.name.startswith("test_")
    ]


# --- a rank ---------------------------------------------------------------------------------------


def allow_device() -> None:
    """Makes the helpers that look for CUDA devices look for tpu devices."""
    from torch.testing._internal import common_distributed as common

    def enough(count: int, **_):
        return lambda fn: fn if torch.tpu.device_count() >= count else common.skip_if_no_gpu(fn)

    common.skip_if_lt_x_gpu = enough
    common.nccl_skip_if_lt_x_gpu = lambda _backend, count: enough(count)
    common.skip_if_no_gpu = lambda fn: fn
    common.init_multigpu_helper = lambda size, _backend: {rank: [rank] for rank in range(size)}
    for feature in ("gpu", "tpu", "ddp", "subgroup", "plugin"):
        common.DistTestCases.backend_feature.setdefault(feature, set()).add("tpu_dist")
    common.DistTestCases.skip_collective["cpu barrier"].add("tpu_dist")


def load_tests(role: str) -> type:
    """The class of the tests, from the text as `role` reads it."""
    from torch.testing._internal.common_utils import TestCase

    origin = importlib.util.find_spec(SOURCE).origin
    text = re.sub(r"\bcuda\b", "tpu", pathlib.Path(origin).read_text())
    if role != "own":
        text = text.replace(f'"{role}"', '"tpu_dist"')
    module = types.ModuleType("distributed_test_on_tpu")
    sys.modules[module.__name__] = module
    exec(compile(text, origin, "exec", dont_inherit=True), module.__dict__)

    class Tests(module.DistributedTest._DistTestBase, TestCase):
        barrier = module.Barrier
        limits = module.CUSTOM_PG_TIMEOUT

        @property
        def world_size(self) -> str:  # text, as where the tests come from
            return os.environ["WORLD_SIZE"]

        @property
        def init_method(self) -> str:
            return f"file://{self.file_name}"

    return Tests


def run_test(tests: type, name: str, rank: int, folder: str) -> tuple[str, str]:
    """Runs one test in a group of its own; its outcome and what it said."""
    import unittest

    from torch.testing._internal import common_distributed as common
    from torch.testing._internal.common_utils import set_rng_seed

    os.environ["TEMP_DIR"] = folder
    os.environ.pop("TORCH_DISTRIBUTED_DEBUG", None)  # what an earlier test left
    dist.set_debug_level_from_env()
    tests.barrier.barrier_id = 0
    test = tests(name)
    test.rank, test.file_name = rank, f"{folder}/store"
    if getattr(getattr(test, name), "__unittest_skip__", False):
        return "skip", getattr(test, name).__unittest_skip_why__
    torch.tpu.set_device(rank)
    seconds = tests.limits.get(name, 30)
    dist.init_process_group(
        backend="tpu_dist",
        init_method=test.init_method,
        rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=datetime.timedelta(seconds=seconds),
    )
    set_rng_seed()
    try:
        test._barrier()
        getattr(test, name)()
        test._barrier()
    except unittest.SkipTest as reason:
        return "skip", str(reason)
    except SystemExit as end:
        for skip in common.TEST_SKIPS.values():
            if skip.exit_code == end.code:
                return "skip", skip.message
        return "fail", f"the test ends its process with {end.code}"
    except BaseException as error:
        traceback.print_exc()
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        return "fail", f"{type(error).__name__}: {lines[0]}"
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return "pass", ""


def serve(rank: int, role: str) -> None:
    """Runs the tests that stdin names (`NAME FOLDER` a line); ends after one that fails."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print is no answer
    torch.set_num_threads(1)
    allow_device()
    tests = load_tests(role)
    if role != "nccl":
        torch.set_default_device("tpu")
    for line in sys.stdin:
        name, folder = line.split()
        print(f"--- {name} as {role} on rank {rank}", file=sys.stderr, flush=True)
        outcome, detail = run_test(tests, name, rank, folder)
        answers.write(json.dumps({"outcome": outcome, "detail": detail}) + "\n")
        answers.flush()
        if outcome == "fail":
            os._exit(1)  # the peer may be waiting: it is told that this rank died


# --- the sweep ------------------------------------------------------------------------------------


class Ranks:
    """Those of one role, kept over many tests and made anew after a failure."""

    def __init__(self, role: str, size: int):
        self.role, self.size, self.world = role, size, None

    def close(self) -> None:
        if self.world:
            for rank in self.world.ranks:
                rank.kill()
            self.world.close()
        self.world = None

    def run(self, name: str, seconds: float) -> tuple[str, str]:
        from test_dist import World

        if not self.world:
            self.world = World(self.size, program=[__file__, "--serve", self.role])
        with tempfile.TemporaryDirectory() as folder:
            for part in ("barrier", "test_dir", "init_dir"):
                pathlib.Path(folder, part).mkdir()
            answers = self.world.run(name, folder, timeout=seconds)
        for answer in answers:
            if "error" in answer:
                late = "no answer" in answer["error"]
                answer["outcome"] = "timeout" if late else "fail"
                answer["detail"] = f"no answer within {seconds:g} s" if late else "a rank died"
        # The first cause, not what the peer says about its death.
        answers.sort(key=lambda a: "died" in a["detail"])
        said = {a["outcome"]: a["detail"] for a in reversed(answers)}
        worst = next(o for o in ("fail", "timeout", "pass", "skip") if o in said)
        if worst in ("fail", "timeout"):
            self.close()
        return worst, said[worst]


def sweep(
    names: list[str], size: int, seconds: float, verbose: bool
) -> list[tuple[str, str, str, str]]:
    """Name, role, outcome and detail of each test, run by so many ranks."""
    os.environ |= {"WORLD_SIZE": str(size), "TORCHTPU_NUM_DEVICES": str(size)}
    rows: dict[str, tuple[str, str, str, str]] = {}
    for role in ROLES:
        ranks = Ranks(role, size)
        for name in names:
            before = rows[name][2] if name in rows else "skip"
            if before in ("pass", "timeout"):
                continue
            row = (name, role, *ranks.run(name, seconds))
            if before == "skip" or row[2] == "pass":
                rows[name] = row
            if verbose:
                print(*row, flush=True)
        ranks.close()
    return [
        (name, role, "skip", f"asks for another backend: {detail}")
        if outcome == "fail" and any(what in detail for what in ELSEWHERE)
        else (name, role, outcome, detail)
        for name, role, outcome, detail in (rows[name] for name in names)
    ]


def sweep_all(names: list[str], seconds: float, verbose: bool) -> list[tuple[str, str, str, str]]:
    """The same; what skips itself for the number of ranks is run again by more."""
    rows = {row[0]: row for row in sweep(names, WORLDS[0], seconds, verbose)}
    for size in WORLDS[1:]:
        again = [n for n, _, o, why in rows.values() if o == "skip" and "world size" in why]
        for name, role, *rest in sweep(again, size, seconds, verbose):
            rows[name] = (name, f"{role}, {size} ranks", *rest)
    return [rows[name] for name in names]


def table(head: list[str], rows: list[list]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines]


def report(rows: list[tuple[str, str, str, str]], total: int) -> str:
    """The report's text."""
    ran = [r for r in rows if r[2] != "skip"]
    passed = sum(r[2] == "pass" for r in ran)
    counts = collections.Counter((r[1], r[2]) for r in rows)
    skips: dict[str, list[str]] = collections.defaultdict(list)
    for name, _, outcome, detail in rows:
        if outcome == "skip":
            skips[detail].append(f"`{name}`")
    roles = [
        [role, sum(counts[role, o] for o in OUTCOMES[:3]), *(counts[role, o] for o in OUTCOMES[:3])]
        for role in (*ROLES, *sorted({r[1] for r in ran} - set(ROLES)))
    ]
    return "\n".join(
        [
            "# PyTorch's own distributed tests",
            "",
            f"Generated by `tools/dist_conformance.py` on {datetime.date.today()} with torch "
            f"{torch.__version__} and Python {sys.version.split()[0]}: {WORLDS[0]} ranks of "
            f"`tpu_dist` on the software TPU (4 or 8 where a test skips itself for so few), a "
            f"process group for each test.",
            "",
            f"{total} tests come with the installed torch (`DistributedTest._DistTestBase`); "
            f"{len(rows)} were tried, {len(ran)} ran, **{passed} passed "
            f"({100 * passed / max(len(ran), 1):.1f} % of those that ran)**, "
            f"{len(rows) - len(ran)} skipped themselves.",
            "",
            "The tests know some backends by name and one device, so their text is read with "
            '"cuda" spelled "tpu", and in four roles: *nccl*, *mpi* and *gloo*, with that name '
            'spelled "tpu_dist", and *own*, under a name of a backend that they do not know. Where '
            "a test names no device, tpu is the default one (not in the role *nccl*). A test "
            "counts in the first role in which it passes, otherwise in the first in which its own "
            "decorators let it run. Nothing else of the tests is changed. torch's other "
            "distributed test modules have no tests of collectives (`common_fsdp`, "
            "`common_dtensor`: bases of tests that are not installed) or none for devices "
            "(`rpc`).",
            "",
            *table(["role", "ran", *OUTCOMES[:3]], roles),
            "",
            "## What does not pass",
            "",
            *table(
                ["test", "role", "outcome", "first line"],
                [[f"`{n}`", r, o, d[:160]] for n, r, o, d in ran if o != "pass"],
            ),
            "",
            "## What skips itself",
            "",
            *table(
                ["reason (in one of the roles)", "tests", "which"],
                [
                    [why, len(which), ", ".join(which)]
                    for why, which in sorted(skips.items(), key=lambda item: -len(item[1]))
                ],
            ),
            "",
            "## What passes",
            "",
            ", ".join(f"`{n}` ({r})" for n, r, o, _ in ran if o == "pass"),
            "",
        ]
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="tests whose names match this expression")
    parser.add_argument("--seconds", type=float, default=60, help="limit of one test")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true", help="say each outcome as it comes")
    parser.add_argument("--serve", metavar="ROLE", help=argparse.SUPPRESS)
    args, rest = parser.parse_known_args()
    if args.serve:
        serve(int(rest[0]), args.serve)
        return 0
    os.environ |= {"BACKEND": "tpu_dist", "MASTER_ADDR": "localhost"}
    sys.path.insert(0, str(ROOT / "tests"))
    names = test_names()
    rows = sweep_all([n for n in names if re.search(args.only, n)], args.seconds, args.verbose)
    print(dict(collections.Counter(outcome for _, _, outcome, _ in rows)))
    if args.report:
        args.report.write_text(report(rows, len(names)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
