"""Numbers that a model draws itself, the same on every device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_NEW = ("rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial")
_LIKE = {"rand_like": "rand", "randn_like": "randn", "randint_like": "randint"}


def _as_new(name: str, args: tuple, kwargs: dict) -> tuple[str, tuple]:
    """The call without the tensor whose shape and type it takes."""
    like, *rest = args
    kwargs.setdefault("dtype", like.dtype)
    kwargs.pop("memory_format", None)
    return _LIKE[name], (*rest, like.shape)


class HostRandom:
    """Within it torch's functions that draw do so from one CPU generator, whatever the device:
    numbers of two devices differ by design, and then nothing could be compared.

    The functions are replaced where a model finds them, `torch.randn` and its kind; a compiled
    model calls them between its graphs. (A TorchFunctionMode would have Dynamo trace it once for
    every call of the model, and fail on calls that it otherwise knows.)
    """

    def __init__(self) -> None:
        self._generator = torch.Generator().manual_seed(0)
        self._original = {name: getattr(torch, name) for name in (*_NEW, *_LIKE)}

    def __enter__(self) -> None:
        for name in self._original:
            setattr(torch, name, self._drawing(name))

    def __exit__(self, *_: object) -> None:
        for name, function in self._original.items():
            setattr(torch, name, function)

    def _drawing(self, name: str) -> Callable[..., torch.Tensor]:
        @torch.compiler.disable
        @functools.wraps(self._original[name])
        def draw(*args: Any, **kwargs: Any) -> torch.Tensor:
            device = kwargs.pop("device", None)
            if device is None:
                device = next((a.device for a in args if torch.is_tensor(a)), None)
            function, kwargs = name, {**kwargs, "generator": self._generator}
            if name in _LIKE:
                function, args = _as_new(name, args, kwargs)
            host = (a.cpu() if torch.is_tensor(a) else a for a in args)
            made = self._original[function](*host, **kwargs)
            return made if device is None else made.to(device)

        return draw
