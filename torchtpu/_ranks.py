"""Whether a program of several replicas is the same on every rank: it is traced as another one too.

A trace sees one rank's Python run. What it did because of its rank (an offset into a vocabulary, a
slice of its own) would be wrong on the others, and nothing in the program says so.
"""

from __future__ import annotations

import contextlib
import random
import re
import sys
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

_SCALAR = 16  # bytes of one in Trace.scalars
_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "ui8": torch.uint8,
    "i1": torch.bool,
}
_PLACE = re.compile(r' loc\("(.*)"\)$')


class Trace(NamedTuple):
    """A program's text, and the numbers that its last arguments had while it was traced."""

    text: str
    scalars: bytes

    def scalar(self, i: int) -> bytes:
        return self.scalars[i * _SCALAR :][:_SCALAR]


# --- another rank ---------------------------------------------------------------------------------


def _beside(rank: int, ranks: list[int]) -> dict[int, int]:
    """The group of `rank` in the mesh's dimension that `ranks` is a group of: {global: in it}."""
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    first = rank - rank // stride % len(ranks) * stride
    return {first + k * stride: k for k in range(len(ranks))}


@contextlib.contextmanager
def as_rank(rank: int) -> Iterator[None]:
    """What asks PyTorch for this process's rank, in groups and meshes, is told another one.

    For an imagined world only: its groups are dimensions of meshes. What was made before (shards,
    offsets that a module keeps) stays what it was. FSDP2 is told the truth: it gathers in place, so
    that its rank says where in the result its part is put, all of which the gather then writes.
    """
    from torch.distributed.device_mesh import DeviceMesh

    groups = dist.distributed_c10d._world.pg_group_ranks
    own = dict(groups)
    group_class: Any = dist.ProcessGroup
    mesh_class: Any = DeviceMesh
    own_rank, method = group_class.rank, vars(group_class)["rank"]
    coordinates: dict[int, tuple[int, ...] | None] = {}

    def rank_of(group: dist.ProcessGroup) -> int:
        asks = sys._getframe(1).f_globals.get("__name__", "")
        if group not in own or asks.startswith("torch.distributed.fsdp."):
            return own_rank(group)
        return groups[group][rank]

    def coordinate(mesh: DeviceMesh) -> tuple[int, ...] | None:
        if id(mesh) not in coordinates:
            coordinates[id(mesh)] = mesh._compute_coordinates_from_mesh(mesh.mesh, rank)
        return coordinates[id(mesh)]

    def keep(mesh: DeviceMesh, value: tuple[int, ...] | None) -> None:
        vars(mesh)["_coordinate_on_dim"] = value

    groups.update({group: _beside(rank, sorted(ranks)) for group, ranks in own.items()})
    group_class.rank = rank_of
    mesh_class._coordinate_on_dim = property(coordinate, keep)
    try:
        yield
    finally:
        del mesh_class._coordinate_on_dim
        group_class.rank = method
        groups.update(own)


# --- comparing ------------------------------------------------------------------------------------


def _body(text: str) -> list[str]:
    """The lines of the operations."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if not line.startswith(("module ", "func.func "))]


def _without_place(line: str | None) -> str | None:
    return line and _PLACE.sub("", line)


def _told(lines: list[str], i: int) -> str:
    """Operation `i` and its Python line, which stands behind its regions."""
    if i >= len(lines):
        return "nothing more"
    operation = _PLACE.sub("", lines[i])
    place = next((found[1] for line in lines[i:] if (found := _PLACE.search(line))), "")
    operation = operation if len(operation) <= 160 else operation[:157] + "..."
    return f"{operation}   ({place})" if place else operation


def _number(trace: Trace, argument: int, i: int) -> str:
    found = re.search(rf"%arg{argument}: tensor<(\w+)>", trace.text)
    dtype = _DTYPES.get(found[1]) if found else None
    if dtype is None:
        return "0x" + trace.scalar(i)[::-1].hex().lstrip("0")
    return str(torch.frombuffer(bytearray(trace.scalar(i)), dtype=dtype, count=1).item())


def _other_operation(mine: Trace, other: Trace) -> tuple[str, str] | None:
    """The first operation that differs, as each has it."""
    a, b = _body(mine.text), _body(other.text)
    for i, (x, y) in enumerate(zip_longest(a, b)):
        if _without_place(x) != _without_place(y):
            return _told(a, i), _told(b, i)
    return None


def _other_number(mine: Trace, other: Trace, after: Trace) -> tuple[str, str] | None:
    """Of traces that differ in numbers alone the first that differs and counts, as each has it. One
    that differs between `mine` and `after`, of the same rank, is no rank's doing.
    """
    lines = _body(mine.text)
    signature = mine.text.split("@main(", 1)[1].split("\n", 1)[0]
    count = len(mine.scalars) // _SCALAR
    first = len(re.findall(r"%arg\d+: ", signature)) - count
    for i in range(count):
        if mine.scalar(i) == other.scalar(i) or mine.scalar(i) != after.scalar(i):
            continue
        reads = re.compile(rf"%arg{first + i}\b")
        at = next((k for k, line in enumerate(lines) if reads.search(line)), None)
        if at is not None:
            a, b = (f"%arg{first + i} is {_number(t, first + i, i)}" for t in (mine, other))
            return f"{a} in {_told(lines, at)}", b
    return None


def same_on_all(trace: Callable[[bool], Trace], located: bool, size: int) -> Trace:
    """What `trace` gives on this rank, with Python lines or without. Raises NotImplementedError
    where the last of `size` ranks does something else.

    Where the two differ they are made again: what differs between this rank's own traces (what a
    first call makes, a schedule's rate) is not held against the rank. The host's random numbers are
    the same for each.
    """
    of_torch, of_python, last = torch.get_rng_state(), random.getstate(), size - 1

    def again(located: bool, rank: int) -> Trace:
        torch.set_rng_state(of_torch)
        random.setstate(of_python)
        try:
            with as_rank(rank):
                return trace(located)
        except Exception as error:
            error.add_note(f"(while the program was traced as rank {rank} of {size})")
            raise

    first = trace(located)
    if again(located, last) == first:
        return first
    mine, other = again(True, 0), again(True, last)
    found = _other_operation(mine, other)
    if not found and mine.scalars != other.scalars:
        found = _other_number(mine, other, again(True, 0))
    if found:
        raise NotImplementedError(
            "aot: the program depends on the rank, and the replicas of one program do the same; "
            f"the first operation that differs:\n  rank 0: {found[0]}\n  rank {last}: {found[1]}"
        )
    return first
