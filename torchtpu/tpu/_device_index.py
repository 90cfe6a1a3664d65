"""Every way a user may name a tpu device, as its index."""

from collections.abc import Callable
from typing import TypeVar

import torch

from torchtpu import _C

_Function = TypeVar("_Function", bound=Callable)


def constant(function: _Function) -> _Function:
    """torch.compiler.assume_constant_result, without loading Dynamo: a compiled graph may ask."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def device_index(device=None, *, optional: bool = True) -> int:
    """``device``: None (the current one), an index, "tpu", "tpu:1" or a torch.device."""
    index = _index(device, optional)
    if index > 0 and index >= _C.device_count():
        raise RuntimeError(f"invalid device ordinal: tpu:{index} of {_C.device_count()} device(s)")
    return index


def _index(device, optional: bool) -> int:
    if device is None:
        if not optional:
            raise ValueError("Expected a torch.device with an index or an integer, but got: None")
        return torch.accelerator.current_device_index()
    if isinstance(device, int):
        return torch.accelerator.current_device_index() if device < 0 else device
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device):
        raise ValueError(f"Expected a torch.device, an index or a string, but got: {device!r}")
    if device.type != "tpu":
        raise ValueError(f"Expected a tpu device, but got: {device}")
    return torch.accelerator.current_device_index() if device.index is None else device.index


def check_not_forked() -> None:
    if _C.in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize TPU in forked subprocess. To use TPU with multiprocessing, you "
            "must use the 'spawn' start method"
        )
