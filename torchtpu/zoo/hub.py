"""The architectures of the installed transformers, each as a tiny model with random weights."""

from __future__ import annotations

import copy
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchtpu.zoo import inputs, shrink

MOST_PARAMETERS = 40_000_000
# The base model first; then what has a head that most architectures have.
_FIRST = (
    "MODEL_MAPPING_NAMES",
    "MODEL_FOR_PRETRAINING_MAPPING_NAMES",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
)


@dataclass
class Made:
    """A model on the CPU with inputs that it runs with."""

    model: torch.nn.Module
    inputs: dict[str, Any]
    what: str  # class, level and inputs


class NotMade(Exception):
    """The architecture cannot be built or run on the CPU."""


def preload() -> None:
    """Imports what every model needs: done once, before the processes part."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import torch._dynamo
    import torch._functorch.aot_autograd  # noqa: F401
    import transformers.modeling_utils  # noqa: F401
    import transformers.models.bert.modeling_bert
    import transformers.models.llama.modeling_llama
    import transformers.models.vit.modeling_vit  # noqa: F401


def architectures() -> list[str]:
    """All model types that have at least one class."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return [name for name in CONFIG_MAPPING_NAMES if class_names(name)]


def class_names(model_type: str) -> list[str]:
    """The model classes of an architecture, the one to try first first."""
    from transformers.models.auto import modeling_auto

    rest = sorted(
        k
        for k in vars(modeling_auto)
        if k.startswith("MODEL_") and k.endswith("_MAPPING_NAMES") and k not in _FIRST
    )
    found: list[str] = []
    for mapping in (*_FIRST, *rest):
        value = getattr(modeling_auto, mapping, {}).get(model_type)
        found += [value] if isinstance(value, str) else list(value or ())
    return list(dict.fromkeys(found))


def _class(model_type: str, name: str) -> type:
    import transformers
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    module = importlib.import_module(f"transformers.models.{model_type_to_module_name(model_type)}")
    return getattr(module, name, None) or getattr(transformers, name)


def _config(model_type: str, level: int) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = CONFIG_MAPPING[model_type]
    return kind(**shrink.overrides(kind(), level))


def _build(model_type: str, class_name: str, level: int) -> tuple[Any, torch.nn.Module]:
    config = _config(model_type, level)
    kind: Any = _class(model_type, class_name)
    with torch.device("meta"):
        count = sum(p.numel() for p in kind(config).parameters())
    if count > MOST_PARAMETERS:
        raise NotMade(f"{count} parameters at level {level}")
    return config, with_weights(lambda: kind(config))


def with_weights(build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """The model with random weights, the same each time.

    A matrix that its initialisation leaves constant gets some too: a router of zeros would rate all
    experts alike, and which of equals comes first is for each device to say.
    """
    torch.manual_seed(0)
    model = build().eval().float()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1 and p.numel() > 1 and bool((p == p.flatten()[0]).all()):
                p.add_(torch.randn_like(p), alpha=0.02)
    return model


def make(model_type: str) -> Made:
    """The first of class, level and inputs that runs on the CPU. Raises NotMade."""
    from torchtpu.zoo.check import forward

    problems: list[str] = []
    for class_name in class_names(model_type)[:3]:
        for level in range(shrink.LEVELS):
            try:
                config, model = _build(model_type, class_name, level)
            except Exception as error:
                problems.append(f"{class_name}, level {level}: {type(error).__name__}: {error}")
                continue
            for label, arguments in inputs.candidates(config, model):
                try:
                    with torch.no_grad():
                        forward(copy.deepcopy(model), arguments)
                except Exception as error:
                    what = f"{class_name}, level {level}, {label}"
                    problems.append(f"{what}: {type(error).__name__}: {error}")
                    continue
                return Made(model, arguments, f"{class_name}, level {level}, {label}")
    raise NotMade(problems[0][:500] if problems else "no class")
