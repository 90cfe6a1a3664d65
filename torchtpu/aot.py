"""Ahead of time: a PyTorch function as one StableHLO program, and Google's compiler's word on it.

Needs the package libtpu for compiling (it runs on any x86-64 Linux machine); tracing needs nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from torchtpu._capture import capture

State = torch.nn.Module | torch.optim.Optimizer | torch.Tensor


def _tensors_of(state: State) -> list[torch.Tensor]:
    if isinstance(state, torch.nn.Module):
        return [*state.parameters(), *state.buffers()]
    if isinstance(state, torch.optim.Optimizer):
        return [t for s in state.state.values() for t in s.values() if torch.is_tensor(t)]
    return [state]


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """A sharded tensor's part that is here, a functional collective's result when it is there."""
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return tensor.trigger_wait() if hasattr(tensor, "trigger_wait") else tensor


@contextlib.contextmanager
def _kept(inputs: Sequence[torch.Tensor], state: Sequence[State]) -> Iterator[None]:
    """What a trace leaves on the host is undone: gradients, which hold no values, and state that is
    there (an optimizer counts its steps).
    """
    tensors = [*inputs, *(t for s in state for t in _tensors_of(s))]
    for s in state:
        if isinstance(s, torch.optim.Optimizer):
            tensors += [p for group in s.param_groups for p in group["params"]]
    gradients = [(t, t.grad) for t in tensors if t.is_leaf]
    on_host = [(t, t.detach().clone()) for t in tensors if t.device.type == "cpu"]
    try:
        yield
    finally:
        with torch.no_grad():
            for t, gradient in gradients:
                t.grad = gradient
            for t, value in on_host:
                t.copy_(value)


def world(size: int) -> contextlib.AbstractContextManager:
    """This process as rank 0 of `size` replicas of a program, of which no other is there.

    Inside, DDP, FSDP2, DTensor and collectives work as under a launcher, and `trace` records them
    as one program that all replicas run; `compile_text(..., replicas=size)` compiles it. A step
    that does other things on other ranks (messages, a vocabulary cut into shards) is not one:
    `trace` refuses it.
    """
    from torchtpu import distributed

    return distributed.imagined_world(size)


def trace(
    function: Callable,
    *inputs: torch.Tensor,
    state: Sequence[State] = (),
    located: bool = False,
    compare_ranks: bool = True,
) -> str:
    """The StableHLO text of what `function(*inputs)` does on tpu tensors; nothing is run.

    `state` names the modules, optimizers and tensors that the function writes besides its inputs.
    All of them keep their values; in the program what is written is a donated argument and an
    output. Other tensors that the function reads are arguments too. Raises NotImplementedError
    where the function reads a value on the host or writes a tensor that is not named. `located`:
    the text tells the Python line of each op, and so do the compiler's messages.

    In a `world` the collectives that the function calls are collectives of the program, and tensors
    that PyTorch's wrappers own (DDP's buckets) count as named. There the function is traced as the
    last rank too (`compare_ranks`): NotImplementedError names the first operation that differs.
    What a rank decided before the trace, and the values of tensors, are not compared.
    """
    from torchtpu import _C, _ranks, distributed

    written = [t for s in state for t in _tensors_of(s) if t.device.type == "tpu"]
    if not inputs or any(t.device.type != "tpu" for t in inputs):
        raise ValueError("trace takes at least one input, all of them tpu tensors")
    size = distributed.imagined_size()

    def once(located: bool) -> _ranks.Trace:
        # Autograd would otherwise run the backward pass on a thread of its own.
        with _kept(inputs, state), torch.autograd.set_multithreading_enabled(False):
            program, _ = capture(
                lambda: tree_map_only(torch.Tensor, _local, function(*inputs)),
                [*inputs, *(_local(t.detach()) for t in written)],
                located,
                open_=size > 0,
            )
        return _ranks.Trace(_C.capture_text(program), _C.capture_scalars(program))

    if size > 1 and compare_ranks:
        return _ranks.same_on_all(once, located, size).text
    return once(located).text


def compile_text(
    text: str,
    topology: str = "v5e:1x1",
    *,
    replicas: int = 1,
    level: int | None = None,
    options: Sequence[str] = (),
    timeout: float = 600,
    optimized: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """Compiles StableHLO for a TPU topology that is not there: "v5e:2x2", "v4:1x1x1", ...

    Returns the compiler's report: "accepted", and memory in bytes by class, FLOPs, estimated
    cycles; or "accepted": False with "error". `replicas` chips run the program.
    `level` 9 compiles fast, for acceptance only. `optimized` names a file for the compiler's own
    program (torchtpu.hlo reads it). The compiler runs in a process of its own, since it can abort.
    """
    from torchtpu import _C

    command = [str(pathlib.Path(_C.__file__).with_name("tt_aot")), "--topology", topology]
    command += ["--replicas", str(replicas), "--timeout", str(timeout)] + (
        ["--level", str(level)] if level is not None else []
    )
    command += ["--optimized", str(optimized)] if optimized else []
    for option in options:
        command += ["--option", option]
    done = subprocess.run(
        [*command, "-"], input=text, capture_output=True, text=True, env=_environment()
    )
    if done.returncode or not done.stdout.strip():
        raise RuntimeError(f"tt_aot failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def _environment() -> dict[str, str]:
    """The process's, with the place of the package libtpu where nothing else names one."""
    environment = dict(os.environ)
    spec = importlib.util.find_spec("libtpu")
    if spec and spec.submodule_search_locations and "TPU_LIBRARY_PATH" not in environment:
        library = pathlib.Path(spec.submodule_search_locations[0]) / "libtpu.so"
        environment["TPU_LIBRARY_PATH"] = str(library)
    return environment
