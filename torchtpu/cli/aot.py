"""asks the real TPU's compiler about a model, on a machine without a TPU

FILE.py:FUNCTION is called without arguments and returns (model, inputs) or (model, inputs, loss):
the model a torch.nn.Module or any callable; the inputs a tensor, a tuple of tensors or a dict of
keyword arguments. With --train the program is a whole training step: forward, loss, backward and
optimizer. loss(result) gives the loss where the model's result is not itself one number and has no
.loss.

Needs the package libtpu: pip install torchtpu[aot]. Its compiler runs in processes of its own.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import importlib.util
import json
import os
import pathlib
import re
import sys
import tempfile
import traceback
from typing import Any

from torchtpu.chips import CHIPS
from torchtpu.cli.table import format_bytes, format_count, format_seconds, format_table

_LOCATION = re.compile(r'"?([^"\s]+):(\d+) in ([^":]+)(?:: ([^")]+))?')
_LINE = re.compile(r":(\d+):\d+: ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE.py:FUNCTION")
    parser.add_argument(
        "--topology",
        nargs="+",
        default=["v5e:1x1"],
        help="one or more of v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, tpu7x:2x2x1, ...",
    )
    parser.add_argument("--train", action="store_true", help="a training step, not inference")
    parser.add_argument("--optimizer", default="AdamW", help="of torch.optim, or none")
    parser.add_argument("--level", type=int, help="9: compile fast, for acceptance only")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="a compiler option"
    )
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one topology")
    parser.add_argument("--top", type=int, default=10, help="how many lines and fusions to list")
    parser.add_argument("--program", metavar="FILE", help="write the StableHLO there")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def run(arguments: argparse.Namespace) -> int:
    # What the user's code prints is no part of the answer.
    with contextlib.redirect_stdout(sys.stderr if arguments.json else sys.stdout):
        status, answer, text = _answer(arguments)
    if arguments.json:
        print(json.dumps(answer, indent=2))
    elif "topologies" in answer:
        _print(answer)
    elif status == 2:
        print(f"torchtpu aot: {answer['error']['message']}", file=sys.stderr)
    else:
        print(f"not accepted: {answer['error']['code']}: {answer['error']['message']}")
        print(text, end="")
    return status


def _answer(arguments: argparse.Namespace) -> tuple[int, dict[str, Any], str]:
    """Exit status, what --json prints, and for a refused program the lines below that."""
    from torchtpu import _aot_case

    # The model's weights take their place; a model larger than the usual size is what one asks for.
    os.environ.setdefault("TORCHTPU_HBM_BYTES", "1024G")
    try:
        _check(arguments)
        program = _trace(arguments)
        text = program.pop("text")
        if arguments.program:
            pathlib.Path(arguments.program).write_text(text)
    except (_aot_case.CaseError, _Wrong) as error:
        wrong = {"code": "INVALID_ARGUMENT", "message": str(error), "line": None}
        return 2, {"accepted": False, "error": wrong}, ""
    except (Exception, SystemExit) as error:
        return _refused(error)
    # The compiler needs the memory that the model's tensors had.
    gc.collect()
    answers = []
    for name in arguments.topology:
        answers.append(_compile(text, name, arguments))
        told = "accepted" if answers[-1]["accepted"] else "not accepted"
        print(f"{name}: {told}", file=sys.stderr, flush=True)
    accepted = all(answer["accepted"] for answer in answers)
    return int(not accepted), {"accepted": accepted, **program, "topologies": answers}, ""


class _Wrong(Exception):
    """An argument that only a look at this machine tells."""


def _check(arguments: argparse.Namespace) -> None:
    library = os.environ.get("TPU_LIBRARY_PATH")
    if library and not pathlib.Path(library).is_file():
        raise _Wrong(f"TPU_LIBRARY_PATH={library!r}: there is no such file")
    if not library and not importlib.util.find_spec("libtpu"):
        raise _Wrong("needs Google's compiler: pip install torchtpu[aot]")
    for option in arguments.option:
        if not re.fullmatch(r"[^=]+=.*", option):
            raise _Wrong(f"--option {option}: NAME=VALUE is meant")
    if arguments.program and not pathlib.Path(arguments.program).absolute().parent.is_dir():
        raise _Wrong(f"--program {arguments.program}: there is no such folder")


def _trace(arguments: argparse.Namespace) -> dict[str, Any]:
    """The step's StableHLO, from meta tensors where the function can make them."""
    from torchtpu import _aot_case, aot

    function = _aot_case.load(arguments.function)
    for meta in (True, False):
        try:
            case = _aot_case.build(function, arguments.train, arguments.optimizer, meta)
            text = aot.trace(case.step, *case.inputs, state=case.state, located=True)
        except Exception:
            # What fails with real tensors too is the user's to see.
            if not meta:
                raise
            continue
        return {
            "function": arguments.function,
            "step": "training" if arguments.train else "inference",
            "parameters": case.parameters,
            "inputs": [f"{str(t.dtype)[6:]}{list(t.shape)}" for t in case.inputs],
            "operations": text.count(" = "),
            "text": text,
        }
    raise AssertionError("unreachable")


# --- errors ---------------------------------------------------------------------------------------


def _refused(error: BaseException) -> tuple[int, dict[str, Any], str]:
    """An error of the user's code, or of an op that cannot be traced: with the user's line."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not re.search(r"/(torch|torchtpu)/|^<", f.filename)
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
    told = {"code": type(error).__name__, "message": str(error), "line": where}
    text = f"  at {where}\n    {frames[-1].line}\n" if frames else ""
    return 1, {"accepted": False, "error": told}, text


def _lines_of(message: str, text: str) -> list[str]:
    """The Python lines that a compiler's message is about."""
    found = [m[0].strip('"') for m in _LOCATION.finditer(message)]
    lines = text.splitlines()
    for m in _LINE.finditer(message):
        if 0 < int(m[1]) <= len(lines):
            told = re.search(r'loc\("([^"]+)"\)', lines[int(m[1]) - 1])
            found += [told[1]] if told else []
    return list(dict.fromkeys(found))


_TYPE = re.compile(r'tensor<((?:\d+x)*)(\w+)>\)? loc\("([^"]+)"\)$')
_WIDTHS = {"i1": 1, "bf16": 2, "f64": 8, "c64": 8}


def _largest_values(text: str, count: int) -> list[dict[str, Any]]:
    """The program's largest values: what an out-of-memory answer is about."""
    sizes: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        m = _TYPE.search(line)
        if not m:
            continue
        digits = re.search(r"\d+", m[2])
        size = _WIDTHS.get(m[2]) or (int(digits[0]) // 8 if digits else 1) or 1
        for dim in m[1].split("x")[:-1]:
            size *= int(dim)
        sizes[m[3], f"{m[2]}[{m[1][:-1].replace('x', ', ')}]"] = size
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:count]
    return [{"line": line, "type": kind, "bytes": size} for (line, kind), size in largest]


# --- one topology ---------------------------------------------------------------------------------


def _compile(text: str, topology: str, arguments: argparse.Namespace) -> dict[str, Any]:
    from torchtpu import aot, hlo

    with tempfile.TemporaryDirectory() as folder:
        optimized = pathlib.Path(folder) / "optimized"
        report = aot.compile_text(
            text,
            topology,
            level=arguments.level,
            options=arguments.option,
            timeout=arguments.timeout,
            optimized=optimized,
        )
        report["topology"] = topology
        if not report["accepted"]:
            error = report["error"]
            error["lines"] = _lines_of(error["message"], text)
            if "emory" in error["message"] or error["code"] == "OUT_OF_MEMORY":
                error["largest_values"] = _largest_values(text, arguments.top)
            return report
        costs = [
            i
            for i in hlo.instructions(optimized.read_bytes() if optimized.exists() else b"")
            if i.cycles
        ]
    report["estimate"] = _estimate(report)
    report["lines"] = _by_line(costs)[: arguments.top]
    costs.sort(key=lambda i: -(i.cycles or 0))
    report["fusions"] = [
        {"name": i.name, "cycles": i.cycles, "origin": i.origin} for i in costs[: arguments.top]
    ]
    return report


def _by_line(costs: list) -> list[dict[str, Any]]:
    lines: collections.Counter[str] = collections.Counter()
    for i in costs:
        # Backward and optimizer have no line of their own: the op says more.
        place = re.sub(r"^(backward|optimizer):\d+ in run", r"\1", i.origin)
        key = place if place != i.origin else place.rpartition(": ")[0]
        lines[key or "(the compiler's own)"] += i.cycles or 0
    return [{"line": line, "cycles": cycles} for line, cycles in lines.most_common()]


def _estimate(report: dict[str, Any]) -> dict[str, Any]:
    """Seconds of a step on one device, three ways; None where a figure is not known."""
    chip = CHIPS.get(report["topology"].partition(":")[0])
    if chip is None:
        return {"compute": None, "memory": None, "step": None}
    sizes = [int(n) for n in re.findall(r"\d+", report["topology"].partition(":")[2])]
    chips = 1
    for n in sizes:
        chips *= n
    share = max(1, report["devices"] // chips)  # devices a chip: 2 where each core is one
    compute = report["flops"] / (chip.peak_flops / share) if report["flops"] else None
    bytes_ = report["bytes_accessed"]
    memory = bytes_ / (chip.hbm_bandwidth / share) if bytes_ else None
    cycles = report["estimated_cycles"]
    return {
        "devices_per_chip": share,
        "hbm_bytes": chip.hbm_bytes // share,
        "compute": compute,
        "memory": memory,
        "step": cycles / chip.cycles_per_second if cycles else None,
    }


# --- printing -------------------------------------------------------------------------------------

_NOTE = """
peak: the most HBM in use at once, and its share of the device's. FLOPs, bytes and cycles are the
compiler's own counts; loop bodies count once. step = its cycles over the rate at which its estimate
of a large bf16 product meets the chip's published peak (torchtpu/chips.py). For comparison,
compute = FLOPs over the published peak, memory = bytes over the published HBM bandwidth (bytes that
stay on the chip are counted too). No TPU was measured."""


def _short(origin: str) -> str:
    """Paths below the working folder and inside packages, without what all have in common."""
    origin = re.sub(r"^.*/site-packages/", "", origin)
    return origin.removeprefix(os.getcwd() + os.sep)


def _row(answer: dict[str, Any]) -> list[str]:
    if not answer["accepted"]:
        return [answer["topology"], "no"] + [""] * 10
    memory, estimate = answer["memory"], answer["estimate"]
    share = f" {100 * memory['peak'] / estimate['hbm_bytes']:.0f} %" if memory["peak"] else ""
    return [
        answer["topology"],
        "yes",
        *(format_bytes(memory[k]) for k in ("argument", "output", "alias", "temp", "code")),
        format_bytes(memory["peak"]) + share,
        format_count(answer["flops"]),
        format_bytes(answer["bytes_accessed"]),
        *(format_seconds(estimate[k]) for k in ("step",)),
        f"{format_seconds(estimate['compute'])} / {format_seconds(estimate['memory'])}",
    ]


def _print_details(answer: dict[str, Any]) -> None:
    if not answer["accepted"]:
        error = answer["error"]
        print(f"\n{answer['topology']}: {error['code']}: {error['message']}")
        for line in error["lines"]:
            print(f"  at {_short(line)}")
        if error.get("largest_values"):
            print("  the program's largest values:")
            for value in error["largest_values"]:
                place = _short(value["line"])
                print(f"    {format_bytes(value['bytes'])}  {value['type']}  {place}")
        return
    total = answer["estimated_cycles"]
    if not total:
        return
    share = answer["estimate"].get("devices_per_chip", 1)
    device = f", {share} devices a chip" if share > 1 else ""
    seconds = answer["compile_seconds"]
    print(
        f"\n{answer['topology']}: {answer['kind']}{device}, compiled in {seconds:.1f} s;", end=" "
    )
    print(f"{total} cycles in {answer['cycle_ops']} fusions")
    rows = [
        (f"{100 * line['cycles'] / total:.1f} %", str(line["cycles"]), _short(line["line"]))
        for line in answer["lines"]
    ]
    print(format_table(("share", "cycles", "Python line"), rows, "rr"))
    rows = [(str(f["cycles"]), f["name"], _short(f["origin"])) for f in answer["fusions"]]
    print("\n" + format_table(("cycles", "fusion", "from"), rows, "r"))


def _print(program: dict[str, Any]) -> None:
    answers = program["topologies"]
    count = format_count(program["parameters"])
    print(f"{program['function']}: {program['step']}, {count} parameters,", end=" ")
    print(f"{program['operations']} operations; inputs {', '.join(program['inputs'])}\n")
    memory = ("arguments", "outputs", "of them aliased", "temporaries", "code", "peak HBM")
    header = ("topology", "accepted", *memory, "FLOPs", "bytes", "step", "compute / memory")
    print(format_table(header, [_row(answer) for answer in answers]))
    print(_NOTE)
    for answer in answers:
        _print_details(answer)
