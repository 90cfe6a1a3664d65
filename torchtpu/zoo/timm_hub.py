"""The families of the installed timm: the smallest model of each, with random weights."""

from __future__ import annotations

import copy
from typing import Any

import torch

from torchtpu.zoo.hub import MOST_PARAMETERS, Made, NotMade, with_weights

_VARIANTS = 40  # of a family, looked at
_MOST = 140_000_000  # parameters, of a family that has nothing smaller


def families() -> list[str]:
    import timm

    return [name for name in timm.list_modules() if timm.list_models(module=name)]


def _smallest(family: str) -> tuple[str, dict[str, int]]:
    """The family's smallest model, and what makes it smaller where it is large for all that."""
    import timm

    sizes: dict[tuple[str, tuple], int] = {}
    for options in ({}, {"depth": 2}):
        for name in timm.list_models(module=family)[:_VARIANTS]:
            try:
                with torch.device("meta"):
                    model = timm.create_model(name, **options)
            except Exception:  # not without data, or no such option; another one will do
                continue
            sizes[name, tuple(options.items())] = sum(p.numel() for p in model.parameters())
        if sizes and min(sizes.values()) <= MOST_PARAMETERS:
            break
    if not sizes or min(sizes.values()) > _MOST:
        raise NotMade("no variant is small enough and builds")
    name, made = min(sizes, key=lambda key: sizes[key])
    return name, dict(made)


def make(family: str) -> Made:
    """The smallest model of the family, at the smallest image that it takes."""
    import timm

    name, options = _smallest(family)
    model: Any = with_weights(lambda: timm.create_model(name, **options))
    channels, *size = model.default_cfg.get("input_size", (3, 224, 224))
    problem: Exception | None = None
    for side in dict.fromkeys((64, 32, size[-1])):
        image = torch.randn(2, channels, side, side, generator=torch.Generator().manual_seed(7))
        try:
            with torch.no_grad():
                copy.deepcopy(model)(image)
        except Exception as error:
            problem = error
            continue
        told = "".join(f", {key} {value}" for key, value in options.items())
        return Made(model, {"x": image}, f"{name}{told}, {side} pixels")
    raise NotMade(f"{name}: {type(problem).__name__}: {problem}")
