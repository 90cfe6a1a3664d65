"""torch.compile on the device: one captured program a graph and concrete shape.

AOTAutograd's graph is run once through the same recorder that eager uses; what it recorded becomes
one program. A call with other sizes is captured anew (milliseconds on the software TPU), never
recompiled by Dynamo. Collectives and other libraries' ops run by themselves: a graph with some is
several programs, before, between and after them.
A graph that reads values on the host cannot be one program: it runs op by op, and says so once.
"""

from __future__ import annotations

import logging
import operator
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn

from torchtpu import _C
from torchtpu._capture import capture
from torchtpu._split import NotSplit, Parts, Step, cut, is_cut, split

_log = logging.getLogger("torchtpu.compile")

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_MOST_PROGRAMS = 1024  # of one graph; then they are forgotten and captured anew


class Program:
    """Runs the device's part of a graph. Takes one list of arguments, which it empties."""

    def __init__(self, graph: fx.GraphModule, index: int) -> None:
        self._graph = graph
        self._index = index
        self._programs = _C.programs_create()
        self._count = 0
        self._whole = True  # the graph can be captured, as far as is known

    def __call__(self, arguments: list) -> list:
        results = _C.programs_run(self._programs, arguments)
        return self._first(arguments) if results is None else results

    def _first(self, arguments: list) -> list:
        """A call with arguments that no program is known for."""
        results = None
        if self._whole:
            try:
                self._add(arguments)
                results = _C.programs_run(self._programs, arguments)
            except NotImplementedError as reason:
                self._whole = False
                self._programs = _C.programs_create()  # without one that was refused when it ran
                _log.warning("a compiled graph runs op by op: %s%s", reason, _node_of(reason))
        return _op_by_op(self._graph)(arguments) if results is None else results

    def _add(self, arguments: list) -> None:
        program, results = self._capture(arguments)
        if any(_is_host(a) for a in arguments):
            other, _ = self._capture([_changed(a) if _is_host(a) else a for a in arguments])
            if not _C.capture_same(program, other):
                raise NotImplementedError("the value of a CPU tensor shapes what it does")
        if self._count == _MOST_PROGRAMS:
            self._programs = _C.programs_create()
        self._count = _C.programs_add(self._programs, arguments, program, results)

    def _capture(self, arguments: list) -> tuple[Any, list]:
        plain = [_plain(a) for a in arguments]
        inputs = [a for a in plain if isinstance(a, torch.Tensor)]
        with torch.no_grad():
            return capture(lambda: list(self._graph(*plain)), inputs, device=self._index)


def _node_of(error: BaseException) -> str:
    """The line of the graph's code that raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith("<eval_with_key>") and frame.line:
            return f" ({frame.line.split(';')[0]})"
    return ""


def _is_host(argument: object) -> bool:
    return isinstance(argument, torch.Tensor) and argument.device.type == "cpu"


def _changed(scalar: torch.Tensor) -> torch.Tensor:
    """The same with another value."""
    if scalar.dtype == torch.bool:
        return ~scalar
    if scalar.is_floating_point() or scalar.is_complex():
        return scalar * 0.5 + 0.375
    return scalar + 3


def _plain(argument: Any) -> Any:
    """A subclass that only changes Python's side is a tensor like any other inside a graph."""
    if not isinstance(argument, torch.Tensor) or type(argument) in (torch.Tensor, nn.Parameter):
        return argument
    overrides = type(argument).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    return argument if overrides else argument.as_subclass(torch.Tensor)


def _op_by_op(graph: fx.GraphModule) -> Callable[[list], list]:
    def run(arguments: list) -> list:
        taken = [_plain(a) for a in arguments]
        arguments.clear()
        return list(graph(*taken))

    return run


def _with_host(parts: Parts, program: Program) -> Callable[[list], list]:
    """The host's work, then the program, then what the host overwrites."""
    host = parts.host
    assert host is not None

    def run(arguments: list) -> list:
        with torch.no_grad():
            values = host(*arguments)
            taken = [arguments[i] for i in parts.arguments] + values[: parts.crossing]
            to = [(arguments[i], values[v]) for i, v in parts.copies]
            arguments.clear()
            results = program(taken)
            for argument, value in to:
                argument.copy_(value)
        return [results[i] if on_device else values[i] for on_device, i in parts.results]

    return run


def _relax_views(graph: fx.GraphModule) -> None:
    """Views become reshapes: they hold whatever strides a tensor has.

    A graph is traced with the layouts of PyTorch's decompositions, and for some ops (the backward
    of softplus on operands of two layouts) a kernel's differs; a view of that may not exist.
    """
    views = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
    found = [n for n in graph.graph.nodes if n.op == "call_function" and n.target in views]
    for node in found:
        node.target = torch.ops.aten.reshape.default
    if found:
        graph.recompile()


def _in_steps(steps: list[Step], final: list) -> Callable[[list], list]:
    """The programs between what runs apart, and that, one after the other."""
    functions = [_op_by_op(s.graph) if s.is_apart else _compile(s.graph) for s in steps]

    def run(arguments: list) -> list:
        values: dict[int, Any] = dict(enumerate(arguments))
        arguments.clear()
        for step, function in zip(steps, functions, strict=True):
            taken = [values[i] for i in step.reads]
            for i in step.forgets:
                del values[i]
            values.update(zip(step.writes, function(taken), strict=True))
        return [f[0] if isinstance(f, tuple) else values[f] for f in final]

    return run


def _compile(graph: fx.GraphModule) -> Callable[[list], list]:
    try:
        parts = split(graph)
    except NotSplit as reason:
        _log.info("a compiled graph runs op by op: %s", reason)
        return _op_by_op(graph)
    program = Program(parts.device, parts.index)
    return program.__call__ if parts.host is None else _with_host(parts, program)


def compile_graph(graph: fx.GraphModule, _examples: Sequence = ()) -> Callable[[list], list]:
    """AOTAutograd's compiler: a function of one list of arguments."""
    _relax_views(graph)
    function = _in_steps(*cut(graph)) if is_cut(graph) else _compile(graph)

    def compiled(arguments: list) -> list:
        return function(arguments)

    compiled._boxed_call = True  # type: ignore[attr-defined]
    return compiled


def _partition(joint: fx.GraphModule, *args: object, **kwargs: object) -> tuple:
    """PyTorch's partitioner; random numbers are kept for the backward graph, not drawn again."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch.utils.checkpoint import CheckpointPolicy

    def keep(node: fx.Node) -> None:
        if node.target is operator.getitem or not isinstance(node.meta.get("val"), torch.Tensor):
            node.meta.pop("recompute")
        else:
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE

    for node in joint.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if "recompute" in node.meta and torch.Tag.nondeterministic_seeded in tags:
            for each in (node, *(u for u in node.users if u.target is operator.getitem)):
                keep(each)
    return min_cut_rematerialization_partition(joint, *args, **kwargs)


def compile_backend(
    graph: fx.GraphModule,
    example_inputs: Sequence,
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable:
    """The Dynamo backend `tpu` (also named `torchtpu`).

    `mode` is one of torch.compile's; all mean the same here. There are no options.
    """
    from torch._dynamo.backends.common import aot_autograd

    if options:
        raise ValueError(f"the tpu backend has no options, got {sorted(options)}")
    if mode is not None:
        if mode not in _MODES:
            raise ValueError(f"unrecognized mode={mode!r}, should be one of: {', '.join(_MODES)}")
        _log.info("mode %r makes no difference to the tpu backend", mode)
    return aot_autograd(
        fw_compiler=compile_graph,
        partition_fn=_partition,
        keep_inference_input_mutations=True,
    )(graph, example_inputs)
