"""Runs models one after another, each in a process of its own with a limit of time and memory.

The parent imports torch and transformers once and forks: nothing starts threads before the first
use of a device, so a child is as good as a fresh process and costs milliseconds. A child that dies
or hangs costs the way it was at; the next ways run in another child.
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    seconds: float = 120.0
    bytes: int = 6 << 30


@dataclass(frozen=True)
class Entry:
    """One model to run: `make()` gives it, in the child."""

    name: str
    family: str
    make: Callable[[], Any]


def _child(entry: Entry, ways: list[str], pipe: int) -> None:
    """Writes one JSON line an answer: {"way", "status", ...}; "cpu" comes first."""
    import torch

    from torchtpu.zoo import check

    out = os.fdopen(pipe, "w", buffering=1)

    def tell(**facts: Any) -> None:
        out.write(json.dumps(facts) + "\n")

    torch.set_num_threads(1)
    start = time.monotonic()
    tell(begin="cpu")
    try:
        made = entry.make()
        reference = check.Reference(made.model, made.inputs)
    except Exception as error:
        detail = f"{type(error).__name__}: {str(error)[:600]}"
        tell(way="cpu", status="not made", detail=detail, seconds=time.monotonic() - start)
        return
    parameters = sum(p.numel() for p in made.model.parameters())
    finite = all(bool(t.isfinite().all()) for t in reference.want.values())
    facts = {"what": made.what, "parameters": parameters, "finite": finite}
    tell(way="cpu", status="made", seconds=time.monotonic() - start, **facts)
    for way in ways:
        tell(begin=way)
        start = time.monotonic()
        try:
            answer = check.check(reference, way)
        except check.Unstable as error:
            tell(way="cpu", status="not made", detail=f"the CPU's runs differ: {error}")
            return
        tell(way=way, seconds=time.monotonic() - start, **answer)


def _fork(entry: Entry, ways: list[str]) -> tuple[int, int]:
    sys.stdout.flush()
    sys.stderr.flush()
    mine, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, mine
    status = 1
    try:
        os.close(mine)
        quiet = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        os.environ["TORCHTPU_NUM_THREADS"] = "1"
        _child(entry, ways, theirs)
        status = 0
    finally:
        # Past all handlers at exit: they are the parent's.
        os._exit(status)


def _resident(pid: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _lines(pid: int, pipe: int, limits: Limits, reason: list[str]) -> Iterator[dict]:
    """The child's answers until it ends; `reason` gets why it was ended."""
    buffer = b""
    deadline = time.monotonic() + limits.seconds
    while True:
        ready, _, _ = select.select([pipe], [], [], 0.25)
        if ready:
            data = os.read(pipe, 1 << 16)
            if not data:
                return
            buffer += data
            *whole, buffer = buffer.split(b"\n")
            for line in whole:
                deadline = time.monotonic() + limits.seconds
                yield json.loads(line)
        if time.monotonic() > deadline:
            reason.append("timeout")
        elif _resident(pid) > limits.bytes:
            reason.append("memory")
        else:
            continue
        os.kill(pid, signal.SIGKILL)
        return


def run_entry(entry: Entry, ways: Sequence[str], limits: Limits) -> dict[str, Any]:
    """One line of the results: {"name", "family", "cpu": {...}, "strict": {...}, ...}."""
    result: dict[str, Any] = {"name": entry.name, "family": entry.family}
    left = list(ways)
    while left:
        pid, pipe = _fork(entry, left)
        reason: list[str] = []
        at = "cpu"
        for line in _lines(pid, pipe, limits, reason):
            if "begin" in line:
                at = line["begin"]
                continue
            result[line.pop("way")] = line
        os.close(pipe)
        _, status = os.waitpid(pid, 0)
        if at not in result:
            result[at] = _ended(reason, status, limits)
        if result["cpu"]["status"] != "made":
            break
        left = [way for way in left if way not in result]
    return result


def _ended(reason: list[str], status: int, limits: Limits) -> dict[str, Any]:
    if reason == ["timeout"]:
        return {"status": "timeout", "detail": f"no answer within {limits.seconds:.0f} s"}
    if reason == ["memory"]:
        return {"status": "memory", "detail": f"more than {limits.bytes >> 20} MiB"}
    if os.WIFSIGNALED(status):
        return {"status": "crash", "detail": f"signal {os.WTERMSIG(status)}"}
    return {"status": "crash", "detail": f"exit status {os.WEXITSTATUS(status)}"}


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """The results so far; of a model and way the last. Half-written lines are skipped."""
    found: dict[str, dict] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                result = json.loads(line)
            except ValueError:
                continue
            found.setdefault(result["name"], {}).update(result)
    return list(found.values())


def sweep(
    entries: Iterable[Entry],
    ways: Sequence[str],
    path: pathlib.Path,
    limits: Limits,
    progress: Callable[[int, dict[str, Any]], None],
) -> None:
    """Appends a line for each entry that the file does not have in all of the ways yet."""
    done = {result["name"]: result for result in read(path)}
    with path.open("a") as out:
        for number, entry in enumerate(entries, 1):
            before = done.get(entry.name, {})
            missing = [way for way in ways if way not in before]
            if not missing or before.get("cpu", {}).get("status", "made") != "made":
                progress(number, before)
                continue
            result = run_entry(entry, missing, limits)
            out.write(json.dumps(result) + "\n")
            out.flush()
            progress(number, result)
