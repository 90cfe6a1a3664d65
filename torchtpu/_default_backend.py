"""torch.compile without a backend, for graphs on the device.

PyTorch's default backend, inductor, has no code generator for the device. torch.compile makes one
wrapper object for it and calls that with every graph; here a graph that has tpu tensors goes to our
backend, and any other to inductor as ever. PyTorch has no interface for a default per device (its
torch.compiler.set_default_backend is for the whole process, and would take CPU graphs too).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch


def install() -> None:
    """Once, at import. Loads nothing: neither Dynamo nor inductor."""
    wrapper = getattr(torch, "_TorchCompileInductorWrapper", None)
    if wrapper is None or hasattr(wrapper.__call__, "_torchtpu"):
        return
    inductor = wrapper.__call__

    @functools.wraps(inductor)
    def call(self, graph, inputs, **keywords):
        if _is_on_device(graph, inputs):
            from torchtpu.compile import compile_backend

            return compile_backend(graph, inputs)
        return inductor(self, graph, inputs, **keywords)

    call._torchtpu = True  # type: ignore[attr-defined]
    wrapper.__call__ = call


def _is_on_device(graph: torch.fx.GraphModule, inputs: Sequence) -> bool:
    if any(isinstance(i, torch.Tensor) and i.device.type == "tpu" for i in inputs):
        return True
    values = (node.meta.get("example_value") for node in graph.graph.nodes)
    return any(isinstance(v, torch.Tensor) and v.device.type == "tpu" for v in values)
