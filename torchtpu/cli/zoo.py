"""runs many architectures on tpu and compares them with the CPU

Tiny models with random weights of every architecture of the installed transformers (and with
--timm of every family of timm), each in a process of its own: forward, loss and backward in the
eager modes strict and defer_and_fuse and compiled. Nothing is downloaded. A sweep that was stopped
goes on where it was: the results are lines of JSON, appended one by one.

Needs transformers: pip install torchtpu[zoo].
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="architectures; default: all")
    parser.add_argument("--limit", type=int, metavar="N", help="the N that most is to be said for")
    parser.add_argument(
        "--weights",
        type=pathlib.Path,
        metavar="FILE",
        help="lines of model id, downloads, model type: what is used most comes first",
    )
    parser.add_argument(
        "--fetch-weights",
        type=pathlib.Path,
        metavar="FILE",
        help="write such a file from the Hugging Face Hub's listing, and end",
    )
    parser.add_argument("--ways", nargs="+", metavar="WAY", help="of the three; default: all")
    parser.add_argument("--timm", action="store_true", help="families of timm, not transformers")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("zoo.jsonl"))
    parser.add_argument("--html", type=pathlib.Path, metavar="FILE", help="write the report there")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="and as Markdown")
    parser.add_argument("--seconds", type=float, default=120, help="limit of one model and way")
    parser.add_argument("--memory", type=float, default=6, help="limit of one model, in GiB")
    parser.add_argument("--list", action="store_true", help="only say what would be run")
    parser.add_argument("--report-only", action="store_true", help="no runs: report the results")


def run(arguments: argparse.Namespace) -> int:
    from torchtpu.zoo import check, select

    if arguments.fetch_weights:
        select.fetch_weights(arguments.fetch_weights)
        return 0
    unknown = set(arguments.ways or ()) - set(check.WAYS)
    if unknown:
        return _wrong(f"no such way: {', '.join(sorted(unknown))}; there are {check.WAYS}")
    package = "timm" if arguments.timm else "transformers"
    if not arguments.report_only:
        if not importlib.util.find_spec(package):
            return _wrong(f"needs {package}: pip install torchtpu[zoo]")
        try:
            entries = _entries(arguments)
        except ValueError as error:
            return _wrong(str(error))
        if arguments.list:
            print("\n".join(entry.name for entry in entries))
            return 0
        _sweep(arguments, entries)
    return _report(arguments)


def _wrong(message: str) -> int:
    print(f"torchtpu zoo: {message}", file=sys.stderr)
    return 2


def _entries(arguments: argparse.Namespace) -> list[Any]:
    from torchtpu.zoo import hub, select, sweep

    hub.preload()
    if arguments.timm:
        from torchtpu.zoo import timm_hub

        known, classes = timm_hub.families(), {}
    else:
        known = hub.architectures()
        classes = {name: hub.class_names(name)[0] for name in known}
    unknown = set(arguments.names) - set(known)
    if unknown:
        raise ValueError(f"no such architecture: {', '.join(sorted(unknown))}")
    weights = select.read_weights(arguments.weights) if arguments.weights else {}
    names = arguments.names or select.choose(known, classes, weights, arguments.limit)
    make: Callable[[str], hub.Made] = timm_hub.make if arguments.timm else hub.make
    return [sweep.Entry(name, select.family(name), functools.partial(make, name)) for name in names]


def _sweep(arguments: argparse.Namespace, entries: list[Any]) -> None:
    from torchtpu.zoo import check, sweep

    ways = arguments.ways or check.WAYS
    start, bar = time.monotonic(), sys.stderr.isatty()

    def progress(number: int, result: dict[str, Any]) -> None:
        told = ", ".join(f"{w} {result[w]['status']}" for w in ("cpu", *ways) if w in result)
        line = f"{number}/{len(entries)} {result['name']}: {told}"
        if bar:
            filled = 30 * number // len(entries)
            left = (time.monotonic() - start) / number * (len(entries) - number)
            line = f"\r[{'#' * filled:<30}] {line}, {left / 60:.0f} min left\033[K"
        print(line, end="" if bar else "\n", file=sys.stderr, flush=True)

    limits = sweep.Limits(arguments.seconds, int(arguments.memory * (1 << 30)))
    sweep.sweep(entries, ways, arguments.results, limits, progress)
    if bar:
        print(file=sys.stderr)


def _report(arguments: argparse.Namespace) -> int:
    from torchtpu.cli.table import format_table
    from torchtpu.zoo import report, sweep

    results = sweep.read(arguments.results)
    title = "The zoo: timm" if arguments.timm else "The zoo: transformers"
    if arguments.html:
        arguments.html.write_text(report.page(results, title))
    if arguments.markdown:
        arguments.markdown.write_text(report.markdown(results, title))
    rows = report.counts(results)
    print(format_table(("way", "models", *report.STATUSES, "equal"), rows, " rrrrrrrrr"))
    for way, *_ in rows:
        for told, names in report.groups(results, way)[:10]:
            print(f"{way}: {len(names)} x {told}: {', '.join(names[:5])}")
    return 0
