"""Ahead of time: a PyTorch function as one StableHLO program, and Google's compiler's word on it.

Needs the package libtpu for compiling (it runs on any x86-64 Linux machine); tracing needs nothing.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchtpu._capture import capture


def trace(function: Callable, *inputs: torch.Tensor) -> str:
    """The StableHLO text of what `function(*inputs)` does on tpu tensors; nothing is run.

    Tensors that the function uses without getting them (parameters, optimizer state) are arguments of
    the program too. Inputs and such tensors keep their values; those that the function writes are
    donated arguments. Raises NotImplementedError where the function reads a value on the host.
    """
    from torchtpu import _C

    tensors = list(inputs)
    if not tensors or any(t.device.type != "tpu" for t in tensors):
        raise ValueError("trace takes at least one input, all of them tpu tensors")
    # Autograd would otherwise run the backward pass on a thread of its own.
    with torch.autograd.set_multithreading_enabled(False):
        program, _ = capture(lambda: function(*tensors), tensors)
    return _C.capture_text(program)


def compile_text(
    text: str,
    topology: str = "v5e:1x1",
    *,
    level: int | None = None,
    options: Sequence[str] = (),
    timeout: float = 600,
) -> dict[str, Any]:
    """Compiles StableHLO for a TPU topology ("v5e:2x2", "v4:1x1x1", "tpu7x:1x1x1") that is not there.

    Returns the compiler's report: "accepted", and memory in bytes by class, FLOPs, estimated cycles;
    or "accepted": False with "error". `level` 9 compiles fast, for acceptance only. The compiler runs
    in a process of its own, since it can abort.
    """
    command = [str(pathlib.Path(__file__).with_name("tt_aot")), "--topology", topology]
    command += ["--timeout", str(timeout)] + (["--level", str(level)] if level is not None else [])
    for option in options:
        command += ["--option", option]
    done = subprocess.run([*command, "-"], input=text, capture_output=True, text=True)
    if done.returncode or not done.stdout.strip():
        raise RuntimeError(f"tt_aot failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)
