"""What `torchtpu aot` compiles: a user's function that makes a model, as a step on tpu tensors."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

CONTRACT = """the function must return (model, inputs) or (model, inputs, loss):
  model   a torch.nn.Module or any callable
  inputs  a tensor, a tuple of tensors, or a dict of keyword arguments
  loss    for training: loss(model's result) -> one number; not needed where the result is that
          number itself or has it as .loss"""


class CaseError(Exception):
    """The file, the function or what it returned is not what the contract asks for."""


def load(spec: str) -> Callable[[], Any]:
    """The function that "FILE.py:function" names."""
    path, _, name = spec.rpartition(":")
    file = pathlib.Path(path)
    if not path or not name:
        raise CaseError(f"expected FILE.py:function, got {spec!r}")
    if not file.is_file():
        raise CaseError(f"there is no file {path}")
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    assert module_spec and module_spec.loader
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent.resolve()))
    module_spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise CaseError(f"{path} has no function {name!r}")
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise CaseError(f"{name} is called without arguments: {error}") from None
    except ValueError:
        pass  # a built-in that does not say
    return function


@dataclass
class Case:
    """A step over tpu tensors: `step(*inputs)` writes what `state` names."""

    step: Callable[..., Any]
    inputs: list[torch.Tensor]
    state: list[Any]
    parameters: int  # elements


@dataclass
class _Mover:
    """Puts tensors on tpu, each once, so that tied weights stay tied. A meta tensor has no values:
    its place is taken by zeros.
    """

    done: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in self.done:
            self.done[id(tensor)] = (tensor, self._move(tensor))
        return self.done[id(tensor)][1]

    def _move(self, tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if tensor.is_meta:
                there = torch.zeros_like(tensor, device="tpu")
            else:
                there = tensor.detach().to("tpu")
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(there, tensor.requires_grad)
        return there

    def module(self, module: torch.nn.Module) -> None:
        for part in module.modules():
            tables: tuple[dict[str, Any], ...] = (part._parameters, part._buffers)
            for table in tables:
                for name, tensor in table.items():
                    if tensor is not None:
                        table[name] = self(tensor)

    def optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["params"] = [self(p) for p in group["params"]]
        # A step count stays where the optimizer put it: a number for the host.
        moved = {
            self(p): {
                k: self(v) if torch.is_tensor(v) and v.dim() > 0 else v for k, v in entry.items()
            }
            for p, entry in optimizer.state.items()
        }
        optimizer.state.clear()
        optimizer.state.update(moved)


def _called_from(place: str) -> Callable[[Callable[[], Any]], Any]:
    """A function that calls its argument; the line that the program's text tells for the ops of
    that call is `place`. Autograd's and the optimizer's ops have no line of the user's.
    """
    names: dict[str, Any] = {}
    exec(compile("def run(function):\n    return function()\n", place, "exec"), names)
    return names["run"]


_backward, _optimize = _called_from("backward"), _called_from("optimizer")


def _loss_of(result: Any, loss: Callable | None) -> torch.Tensor:
    if loss is not None:
        value = loss(result)
    else:
        value = result["loss"] if isinstance(result, Mapping) else getattr(result, "loss", result)
    if not torch.is_tensor(value) or value.numel() != 1:
        raise CaseError(f"training needs a loss, one number, but got {type(value).__name__}")
    return value


def _optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    """With its state made, on the model's device, by one step over zero gradients."""
    kind = getattr(torch.optim, name, None)
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
        raise CaseError(f"torch.optim has no optimizer {name!r}")
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer: torch.optim.Optimizer = cast(Any, kind)(parameters)
    for p in parameters:
        p.grad = torch.zeros_like(p)
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def build(function: Callable, train: bool, optimizer_name: str, meta: bool) -> Case:
    """Calls the user's function and moves what it made to tpu. `meta`: it makes meta tensors, which
    cost nothing; their values are zeros then, which no compiler looks at.
    """
    if meta:
        with torch.device("meta"):
            made = function()
    else:
        made = function()
    if not isinstance(made, (tuple, list)) or len(made) not in (2, 3) or not callable(made[0]):
        raise CaseError(CONTRACT)
    model, inputs, loss = (*made, None)[:3]
    arguments = (inputs,) if torch.is_tensor(inputs) else inputs
    leaves, shape = tree_flatten(arguments)
    places = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf)]
    if not places:
        raise CaseError("there is no tensor among the inputs\n" + CONTRACT)

    move = _Mover()
    state: list[Any] = []
    module = model if isinstance(model, torch.nn.Module) else None
    optimizer = None
    if module is not None:
        module.train(train)
        if train and optimizer_name.lower() != "none":
            optimizer = _optimizer(optimizer_name, module)
        move.module(module)
        state.append(module)
    if optimizer is not None:
        move.optimizer(optimizer)
        state.append(optimizer)

    def call(tensors: tuple[torch.Tensor, ...]) -> Any:
        whole = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            whole[place] = tensor
        these = tree_unflatten(whole, shape)
        return model(**these) if isinstance(these, dict) else model(*these)

    def infer(*tensors: torch.Tensor) -> Any:
        with torch.no_grad():
            return call(tensors)

    def train_step(*tensors: torch.Tensor) -> Any:
        value = _loss_of(call(tensors), loss)
        _backward(value.backward)
        if optimizer is None:
            assert module is not None
            return value, [p.grad for p in module.parameters() if p.grad is not None]
        _optimize(optimizer.step)
        optimizer.zero_grad()
        return value

    if train and module is None:
        raise CaseError("training needs a torch.nn.Module\n" + CONTRACT)
    step = train_step if train else infer
    count = sum(p.numel() for p in module.parameters()) if module is not None else 0
    return Case(step, [move(leaves[i]) for i in places], state, count)
