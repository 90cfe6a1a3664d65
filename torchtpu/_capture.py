"""Recording what a function does on the device as one program: what compile and aot share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def capture(
    function: Callable[[], Any],
    inputs: list[torch.Tensor],
    located: bool = False,
    *,
    device: int | None = None,
    open_: bool = False,
) -> tuple[Any, Any]:
    """(captured program, what `function()` returned). The tensors of the result are its outputs.

    `function` must do its work on this thread. Raises NotImplementedError where it reads a value
    on the host; inputs hold afterwards what they held before. 0-d CPU tensors may be inputs: a
    program takes their values anew each run. `device` is that of the inputs where there are any.
    `located`: the program's text tells the Python line of each op. `open_`: other tensors that are
    written become inputs too; such a program is only printed.
    """
    from torch.utils._pytree import tree_leaves

    from torchtpu import _C

    if device is None:
        device = next(t.device.index or 0 for t in inputs if t.device.type == "tpu")
    program = _C.capture_begin(device, inputs, located, open_)
    try:
        result = function()
        # A program's output is memory: a lazy conjugate is worked out.
        outputs = [t.detach() for t in tree_leaves(result) if torch.is_tensor(t)]
        _C.capture_end(program, [t.resolve_conj().resolve_neg() for t in outputs])
    except BaseException:
        _C.capture_cancel(program)
        raise
    return program, result
