"""torch.compile(backend="tpu"): one captured program a graph and concrete shape.

AOTAutograd's graph is run once through the same recorder that eager uses; what it recorded becomes
one program. A call with other sizes is captured anew (milliseconds on the software TPU), never
recompiled by Dynamo. A graph that reads values on the host cannot be one program: it runs op by op,
and says so once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch import fx

from torchtpu._capture import capture

_log = logging.getLogger("torchtpu.compile")


class Program:
    """Runs an FX graph as captured programs. Takes one list of arguments (a boxed call)."""

    _boxed_call = True

    def __init__(self, graph: fx.GraphModule) -> None:
        self._graph = graph
        self._programs: dict[tuple, list] = {}
        self._whole = True  # the graph can be captured, as far as is known

    def __call__(self, arguments: list) -> Sequence:
        inputs = [a for a in arguments if isinstance(a, torch.Tensor)]
        others = tuple(a for a in arguments if not isinstance(a, torch.Tensor))
        if self._whole and inputs and all(t.device.type == "tpu" for t in inputs):
            return self._run(arguments, inputs, others)
        return self._graph(*arguments)

    def _run(self, arguments: list, inputs: list[torch.Tensor], others: tuple) -> Sequence:
        from torchtpu import _C

        programs = self._programs.setdefault(others, [])
        for program, rebuild in programs:
            outputs = _C.capture_run(program, inputs)
            if outputs is not None:
                arguments.clear()
                return rebuild(outputs)
        try:
            programs.append(self._capture(arguments, inputs))
        except NotImplementedError as reason:
            self._whole = False
            _log.warning("a compiled graph runs op by op: %s", reason)
            return self._graph(*arguments)
        outputs = _C.capture_run(programs[-1][0], inputs)
        if outputs is None:
            raise RuntimeError(
                "internal: a program refuses the inputs it was captured with; please report"
            )
        arguments.clear()
        return programs[-1][1](outputs)

    def _capture(self, arguments: list, inputs: list[torch.Tensor]) -> tuple:
        """(program, function that puts the tensors among the graph's other results)."""
        with torch.no_grad():
            program, results = capture(lambda: list(self._graph(*arguments)), inputs)
        places = [i for i, r in enumerate(results) if isinstance(r, torch.Tensor)]
        if len(places) == len(results):
            return program, _identity
        rest = [None if isinstance(r, torch.Tensor) else r for r in results]

        def rebuild(outputs: list) -> list:
            whole = list(rest)
            for place, tensor in zip(places, outputs, strict=True):
                whole[place] = tensor
            return whole

        return program, rebuild


def _identity(outputs: list) -> list:
    return outputs


def compile_backend(graph: fx.GraphModule, example_inputs: Sequence, **options: object) -> Callable:
    """The Dynamo backend `tpu` (also named `torchtpu`)."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    if options:
        raise ValueError(f"the tpu backend has no options, got {sorted(options)}")

    def compile_graph(module: fx.GraphModule, _examples: Sequence) -> Program:
        return Program(module)

    return aot_autograd(
        fw_compiler=compile_graph,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )(graph, example_inputs)
