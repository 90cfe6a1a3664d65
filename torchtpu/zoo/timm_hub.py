"""The families of the installed timm: the smallest model of each, with random weights."""

from __future__ import annotations

import copy
from typing import Any

import torch

from torchtpu.zoo.hub import MOST_PARAMETERS, Made, NotMade, with_weights

_VARIANTS = 40  # of a family, looked at


def families() -> list[str]:
    import timm

    return [name for name in timm.list_modules() if timm.list_models(module=name)]


def _smallest(family: str) -> str:
    import timm

    sizes = {}
    for name in timm.list_models(module=family)[:_VARIANTS]:
        try:
            with torch.device("meta"):
                sizes[name] = sum(p.numel() for p in timm.create_model(name).parameters())
        except Exception:  # some cannot be made without data; another one of the family will do
            continue
    if not sizes or min(sizes.values()) > MOST_PARAMETERS:
        raise NotMade("no variant is small enough and builds")
    return min(sizes, key=lambda name: sizes[name])


def make(family: str) -> Made:
    """The smallest model of the family, at the smallest image that it takes."""
    import timm

    name = _smallest(family)
    model: Any = with_weights(lambda: timm.create_model(name))
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
        return Made(model, {"x": image}, f"{name}, {side} pixels")
    raise NotMade(f"{name}: {type(problem).__name__}: {problem}")
