"""What of a graph is one program: what is between collectives and others' ops, and of it the
device's work.

AOTAutograd's graphs mix the two: an optimizer's step counts and a learning rate are CPU tensors.
The host's part is small and runs first, op by op; 0-d results enter the device's part as run-time
values, larger ones are brought to the device.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

_PLAIN = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, int, float, type(None))


class _Side(Enum):
    NEITHER = 0  # sizes: ints computed from ints
    HOST = 1
    DEVICE = 2


@dataclass
class Parts:
    """How to run a graph: `host(*arguments)`, then `device` on some of its values.

    The device's part takes arguments[i] for i in `arguments`, then the host values
    [0, crossing). `copies` are (argument, host value) of CPU arguments that the graph overwrites,
    done last. `results` says where each result is: (True, i) the device's i-th, (False, i) a host
    value.
    """

    host: fx.GraphModule | None
    device: fx.GraphModule
    index: int
    arguments: list[int]
    crossing: int
    copies: list[tuple[int, int]]
    results: list[tuple[bool, int]]


@dataclass
class Step:
    """A piece of a graph that runs on values told apart by numbers: `reads` and `writes`."""

    graph: fx.GraphModule
    reads: list[int]
    writes: list[int]
    forgets: list[int]  # of reads, those that nothing needs any more
    is_apart: bool  # one node, run as it is


class NotSplit(Exception):
    """The graph cannot be one program; says why."""


def _is_plain(value: object) -> bool:
    """Whether programs take it. A ragged tensor's length, known by who it is, they do not."""
    ragged = isinstance(value, torch.SymInt) and isinstance(value.node.hint, torch.SymInt)
    return isinstance(value, _PLAIN) and not ragged


def _tensors(value: object) -> list[torch.Tensor]:
    return [v for v in tree_leaves(value) if isinstance(v, torch.Tensor)]


def _value(module: fx.GraphModule, node: fx.Node) -> object:
    if node.op == "get_attr":
        holder: object = module
        for name in str(node.target).split("."):
            holder = getattr(holder, name)
        return holder
    return node.meta.get("val", node.meta.get("example_value"))


def _own_side(tensors: list[torch.Tensor], devices: set[int]) -> _Side:
    """By what a node is or makes."""
    types = {t.device.type for t in tensors}
    if not types:
        return _Side.NEITHER
    if not types <= {"tpu", "cpu"} or len(types) > 1:
        raise NotSplit(f"a value is on {' and '.join(sorted(types))}")
    if types == {"cpu"}:
        return _Side.HOST
    devices.update(t.device.index or 0 for t in tensors)
    return _Side.DEVICE


def _sides(module: fx.GraphModule) -> tuple[dict[fx.Node, _Side], int]:
    """Where each node runs, and the device's index."""
    runs: dict[fx.Node, _Side] = {}
    lives: dict[fx.Node, _Side] = {}  # where its result is
    devices: set[int] = set()
    for node in module.graph.nodes:
        if node.op == "output":
            continue
        value = _value(module, node)
        if node.op == "placeholder" and not _is_plain(value):
            raise NotSplit(f"an argument is a {type(value).__name__}")
        own = _own_side(_tensors(value), devices)
        used = {lives[n] for n in node.all_input_nodes}
        if _Side.DEVICE in used:
            runs[node] = _Side.DEVICE
            if own is _Side.HOST:
                raise NotSplit(f"{node.target} brings a value to the host")
        else:
            runs[node] = _Side.HOST if _Side.HOST in used else own
        lives[node] = runs[node] if own is _Side.NEITHER else own
    if len(devices) != 1:
        raise NotSplit("several devices are used" if devices else "the device is not used")
    return runs, devices.pop()


def _copies(nodes: list[fx.Node]) -> dict[fx.Node, tuple[fx.Node, fx.Node]]:
    """The host's nodes that overwrite an argument: (the argument, with what)."""
    copies = {}
    for node in nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.is_mutable:
            continue
        is_copy = node.target is torch.ops.aten.copy_.default
        to, value = node.args[:2] if is_copy else (None, None)
        if not isinstance(to, fx.Node) or to.op != "placeholder" or node.users:
            raise NotSplit(f"{node.target} writes a CPU tensor")
        assert isinstance(value, fx.Node)
        copies[node] = (to, value)
    return copies


def _part(
    module: fx.GraphModule, keep: list[fx.Node], given: list[fx.Node], outputs: list
) -> fx.GraphModule:
    """The nodes `keep` as a graph of its own over `given`."""
    graph = fx.Graph()
    new = {node: graph.placeholder(node.name) for node in given}
    for node, placeholder in new.items():
        placeholder.meta = dict(node.meta)
    for node in keep:
        new[node] = graph.node_copy(node, lambda n: new[n])
    graph.output([new[n] if isinstance(n, fx.Node) else n for n in outputs])
    return fx.GraphModule(module, graph)


def _upload(
    module: fx.GraphModule, values: list[fx.Node], host: fx.GraphModule, index: int
) -> None:
    """Brings those of the host's first results that are no scalars to the device."""
    output = next(n for n in host.graph.nodes if n.op == "output")
    results = list(output.args[0])
    with host.graph.inserting_before(output):
        for i, node in enumerate(values):
            on_host = [t for t in _tensors(_value(module, node)) if t.device.type == "cpu"]
            if all(t.dim() == 0 for t in on_host):
                continue
            to: dict[str, Any] = {"device": torch.device("tpu", index)}
            results[i] = host.graph.call_function(
                torch.ops.aten._to_copy.default, (results[i],), to
            )
    output.args = (results,)
    host.recompile()


def split(module: fx.GraphModule) -> Parts:
    """The parts of AOTAutograd's graph. Raises NotSplit where it cannot be one program."""
    nodes = list(module.graph.nodes)
    final = list(nodes[-1].args[0])
    sides, index = _sides(module)
    placeholders = [n for n in nodes if n.op == "placeholder"]
    inner = [n for n in nodes if n.op not in ("placeholder", "output")]
    host = [n for n in inner if sides[n] is _Side.HOST]
    on_host = [n for n in placeholders if sides[n] is _Side.HOST]
    if not host and not on_host:
        everything = [(True, i) for i in range(len(final))]
        return Parts(None, module, index, list(range(len(placeholders))), 0, [], everything)
    copies = _copies(host)
    device = [n for n in inner if sides[n] is not _Side.HOST]
    used = {u for n in device for u in n.all_input_nodes}
    crossing = [n for n in (*on_host, *host) if n in used]
    kept = [n for n in final if sides.get(n) is _Side.HOST]
    staying = list(dict.fromkeys([*(v for _, v in copies.values()), *kept]))
    place = {n: len(crossing) + i for i, n in enumerate(staying)}
    for_device = [n for n in placeholders if sides[n] is not _Side.HOST]
    before = [n for n in inner if sides[n] is not _Side.DEVICE and n not in copies]
    host_part = _part(module, before, placeholders, crossing + staying)
    _upload(module, crossing, host_part, index)
    device_final = [n for n in final if sides.get(n) is not _Side.HOST]
    return Parts(
        host=host_part,
        device=_part(module, device, for_device + crossing, device_final),
        index=index,
        arguments=[placeholders.index(n) for n in for_device],
        crossing=len(crossing),
        copies=[(placeholders.index(to), place[v]) for to, v in copies.values()],
        results=_places(final, sides, place),
    )


def _places(
    final: list, sides: dict[fx.Node, _Side], place: dict[fx.Node, int]
) -> list[tuple[bool, int]]:
    places, next_device = [], 0
    for node in final:
        if isinstance(node, fx.Node) and sides[node] is _Side.HOST:
            places.append((False, place[node]))
        else:
            places.append((True, next_device))
            next_device += 1
    return places


# --- between what runs apart ----------------------------------------------------------------------

_COLLECTIVES = ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d")
# PyTorch's own: what they do is what they record. Kernels of any others are code that may do
# anything else as well (count, read Python's state), so they are called each time. `streams` acts
# on the device's queues, now.
_RECORDED = (
    *("_dtensor", "_quantized", "aten", "fsdp", "higher_order", "inductor_prims", "mkldnn"),
    *("prim", "prims", "profiler", "quantized", "quantized_decomposed", "rngprims"),
)


def _is_apart(node: fx.Node) -> bool:
    """A collective, a wait for one, someone else's op, or a result out of the list of one's."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, fx.Node) and _is_apart(source)
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return any(_calls_others(node, argument) for argument in node.args)
    return isinstance(node.target, torch._ops.OpOverload) and _is_others(node.target)


def _is_others(op: torch._ops.OpOverload) -> bool:
    return op.namespace in _COLLECTIVES or op.namespace not in _RECORDED


def _calls_others(node: fx.Node, argument: object) -> bool:
    """Whether a higher-order op does through `argument`: an op, or the graph of a branch."""
    if isinstance(argument, torch._ops.OpOverload):
        return _is_others(argument)
    if not isinstance(argument, fx.Node) or argument.op != "get_attr":
        return False
    module = node.graph.owning_module
    inner = _value(module, argument) if module else None
    return isinstance(inner, fx.GraphModule) and any(_is_apart(n) for n in inner.graph.nodes)


def _final(module: fx.GraphModule, result: object, number: dict[fx.Node, int]) -> object:
    if not isinstance(result, fx.Node):
        return (result,)
    return (_value(module, result),) if result.op == "get_attr" else number[result]


def is_cut(module: fx.GraphModule) -> bool:
    """Whether something of it runs apart, or it hands things through that no program takes
    (meshes, the lengths of ragged tensors)."""
    return any(
        _is_apart(n) or (n.op == "placeholder" and not _is_plain(_value(module, n)))
        for n in module.graph.nodes
    )


def cut(module: fx.GraphModule) -> tuple[list[Step], list]:
    """The graph as steps in its order and its results: numbers of values, or constants as
    (constant,). The arguments are the first values.
    """
    *nodes, output = module.graph.nodes
    given = [n for n in nodes if n.op == "placeholder"]
    pieces: list[list[fx.Node]] = []
    for node in (n for n in nodes if n.op not in ("placeholder", "get_attr")):
        if not pieces or _is_apart(node) or _is_apart(pieces[-1][-1]):
            pieces.append([])
        pieces[-1].append(node)
    number = {n: i for i, n in enumerate(given)}
    last: dict[fx.Node, int] = {}  # the piece that reads it last
    for i, piece in enumerate(pieces):
        last.update((read, i) for node in piece for read in node.all_input_nodes)
    last.update((read, len(pieces)) for read in output.all_input_nodes)
    steps = []
    for i, piece in enumerate(pieces):
        inside = set(piece)
        inputs = list(dict.fromkeys(read for node in piece for read in node.all_input_nodes))
        constants = [n for n in inputs if n.op == "get_attr"]  # each piece gets its own
        reads = [n for n in inputs if n.op != "get_attr" and n not in inside]
        made = [n for n in piece if last.get(n, i) > i]
        graph = _part(module, constants + piece, reads, made)
        first = len(number)
        number.update((n, first + k) for k, n in enumerate(made))
        forgets = [number[n] for n in reads if last[n] == i]
        writes = [number[n] for n in made]
        apart = _is_apart(piece[0])
        steps.append(Step(graph, [number[n] for n in reads], writes, forgets, apart))
    return steps, [_final(module, n, number) for n in output.args[0]]
