"""The compiler's optimised program (an HloModuleProtoWithConfig): its instructions, what it expects
each to cost, and the Python line each comes from.

Reads the few fields that it needs from the protocol buffer's wire format, so that no schema and no
package are needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Field numbers of hlo.proto and xla_data.proto.
_PROGRAM_MODULE, _MODULE_COMPUTATIONS, _COMPUTATION_INSTRUCTIONS = 1, 3, 2
_NAME, _OPCODE, _METADATA, _BACKEND_CONFIG = 1, 2, 7, 43
_METADATA_OP_NAME = 2
_CYCLES = re.compile(rb'"estimated_cycles":\s*"?(\d+)')
# The compiler writes a huge number where it has no estimate.
_MOST_CYCLES = 1 << 50


@dataclass(frozen=True)
class Instruction:
    """One instruction of one computation. `cycles` is None where the compiler gives no estimate."""

    name: str
    opcode: str
    origin: str  # "bert.py:52 in forward: linear"
    cycles: int | None


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(number, bytes) of the length-delimited fields of one message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("not a program: a field is longer than its message")
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind == 0:
            _, at = _varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"not a program: wire type {kind}")


def _instruction(data: memoryview) -> Instruction:
    name = opcode = origin = ""
    cycles = None
    for number, body in _fields(data):
        if number == _NAME:
            name = bytes(body).decode()
        elif number == _OPCODE:
            opcode = bytes(body).decode()
        elif number == _METADATA:
            names = (bytes(b).decode() for n, b in _fields(body) if n == _METADATA_OP_NAME)
            origin = next(names, "")
        elif number == _BACKEND_CONFIG:
            found = _CYCLES.search(body)
            if found and int(found[1]) < _MOST_CYCLES:
                cycles = int(found[1])
    return Instruction(name, opcode, origin, cycles)


def instructions(data: bytes) -> list[Instruction]:
    """All instructions of all computations of the program."""
    return [
        _instruction(body)
        for place, module in _fields(memoryview(data))
        if place == _PROGRAM_MODULE
        for number, computation in _fields(module)
        if number == _MODULE_COMPUTATIONS
        for inner, body in _fields(computation)
        if inner == _COMPUTATION_INSTRUCTIONS
    ]
