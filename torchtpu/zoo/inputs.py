"""Inputs that a model of transformers may take, told from its forward's signature and its
configuration: the likely ones first, until one runs on the CPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch

BATCH, TIME, WAVE = 2, 16, 4000


def find(config: Any, names: tuple[str, ...], default: Any = None) -> Any:
    """The first value by one of the names, here or in a part's configuration."""
    from transformers.configuration_utils import PreTrainedConfig

    parts = [config]
    while parts:
        part = parts.pop(0)
        for name in names:
            value = getattr(part, name, None)
            if value is not None and not isinstance(value, (dict, PreTrainedConfig)):
                return value
        parts += [v for v in vars(part).values() if isinstance(v, PreTrainedConfig)]
    return default


def _count(config: Any, default: int, *names: str) -> int:
    value = find(config, names, default)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


class Maker:
    """Makes tensors for argument names; the same name gets the same numbers."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.vocabulary = min(_count(config, 90, "vocab_size", "text_vocab_size"), 90)
        self.channels = _count(config, 3, "num_channels", "in_channels", "in_chans")
        size = find(config, ("image_size", "img_size", "crop_size"), 32)
        if isinstance(size, dict):
            size = [size.get("height", 32), size.get("width", size.get("height", 32))]
        sides = list(size) if isinstance(size, (list, tuple)) else [size]
        self.height, self.breadth = (max(int(n), 32) for n in (sides[0], sides[-1]))
        self.frames = _count(config, 4, "num_frames", "frames_per_clip")
        self.width = _count(config, 32, "hidden_size", "d_model", "n_embd", "dim")
        self.mel = _count(
            config, 80, "num_mel_bins", "input_feat_per_channel", "feature_size", "n_mels",
            "feature_projection_input_dim", "input_dim", "input_feat_size",
        )  # fmt: skip
        lags = find(config, ("lags_sequence",), ())
        self.past = _count(config, 32, "context_length") + max(lags, default=0)
        self.ahead = _count(config, 8, "prediction_length")
        series = _count(config, 1, "num_input_channels", "input_size")
        self.series = () if lags and series == 1 else (series,)

    def ids(self, *shape: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(5)
        return torch.randint(3, max(4, self.vocabulary), shape, generator=generator)

    def floats(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=torch.Generator().manual_seed(7))

    def pixels(self, size: int | None = None) -> torch.Tensor:
        sides = (size, size) if size else (self.height, self.breadth)
        return self.floats(BATCH, self.channels, *sides)

    def boxes(self) -> torch.Tensor:
        corners = torch.randint(0, 30, (BATCH, TIME, 4), generator=torch.Generator().manual_seed(9))
        return torch.cat([corners[..., :2], corners[..., :2] + corners[..., 2:]], -1)

    def tensor(self, name: str) -> torch.Tensor | None:
        """For an argument of that name; None where nothing is known."""
        flat = self.channels * _count(self.config, 16, "patch_size") ** 2
        makers = {
            "input_ids": lambda: self.ids(BATCH, TIME),
            "decoder_input_ids": lambda: self.ids(BATCH, TIME),
            "attention_mask": lambda: torch.ones(BATCH, TIME, dtype=torch.long),
            "decoder_attention_mask": lambda: torch.ones(BATCH, TIME, dtype=torch.long),
            "token_type_ids": lambda: torch.zeros(BATCH, TIME, dtype=torch.long),
            "bbox": self.boxes,
            "pixel_values": self.pixels,
            "images": self.pixels,
            "pixel_values_videos": lambda: self.video(),
            "pixel_mask": lambda: torch.ones(BATCH, self.height, self.breadth, dtype=torch.long),
            "input_features": lambda: self.floats(BATCH, 64, self.mel),
            "audio_values": lambda: self.floats(BATCH, 64, self.mel),
            "input_values": lambda: self.floats(BATCH, WAVE),
            "past_values": lambda: self.floats(BATCH, self.past, *self.series),
            "past_observed_mask": lambda: torch.ones(BATCH, self.past, *self.series),
            "past_time_features": lambda: self.times(self.past),
            "future_values": lambda: self.floats(BATCH, self.ahead, *self.series),
            "future_time_features": lambda: self.times(self.ahead),
            "qformer_input_ids": lambda: self.ids(BATCH, TIME),
            "inputs": lambda: self.floats(BATCH, TIME, self.width),
            "inputs_embeds": lambda: self.floats(BATCH, TIME, self.width),
            "hidden_states": lambda: self.floats(BATCH, TIME, self.width),
            "encoder_hidden_states": lambda: self.floats(BATCH, TIME, self.width),
            "query_embeds": lambda: self.floats(BATCH, TIME, self.width),
            "grid_thw": lambda: torch.tensor([[1, 4, 4], [1, 4, 4]]),
            "image_grid_thw": lambda: torch.tensor([[1, 4, 4], [1, 4, 4]]),
            "merge_sizes": lambda: torch.tensor([1, 1]),
            "input_features_mask": lambda: torch.ones(BATCH, 64, dtype=torch.long),
            "flattened_patches": lambda: torch.cat(
                [self.ids(BATCH, 6, 2).remainder(5).float() + 1, self.floats(BATCH, 6, flat)], -1
            ),
            "input_points": lambda: self.floats(BATCH, 1, 2, 2),
            "latents": lambda: self.floats(BATCH, self.width, 8),
            "audio_mel": lambda: self.floats(BATCH, 64, self.mel),
            "audio_mel_mask": lambda: torch.zeros(BATCH, 64, dtype=torch.bool),
        }
        if name in makers:
            return makers[name]()
        if name.endswith(("_embeds", "_hidden_states")):
            return self.floats(BATCH, TIME, self.width)
        return None

    def image_places(self) -> Iterator[tuple[int, torch.Tensor]]:
        """(how many, words of which so many in each row stand for the image)."""
        token = find(self.config, ("image_token_id", "image_token_index", "media_token_id"))
        if not isinstance(token, int):
            return
        size = _count(self.config, 16, "patch_size")
        patches = self.height // size * (self.breadth // size)
        merge = _count(self.config, 1, "spatial_merge_size", "downsample_factor", "scale_factor")
        told = ("image_seq_length", "mm_tokens_per_image", "num_query_tokens", "image_seq_len")
        counts = [find(self.config, (name,)) for name in told]
        for count in dict.fromkeys([*counts, patches, patches + 1, patches // merge**2]):
            if isinstance(count, int) and count:
                image = torch.full((BATCH, count), token)
                yield count, torch.cat([self.ids(BATCH, 4), image, self.ids(BATCH, 4)], 1)

    def times(self, count: int) -> torch.Tensor:
        return self.floats(BATCH, count, _count(self.config, 0, "num_time_features"))

    def video(self, frames: int | None = None) -> torch.Tensor:
        return self.pixels().unsqueeze(1).repeat(1, frames or self.frames, 1, 1, 1)

    def trajectory(self) -> dict[str, torch.Tensor]:
        """States, what was done in them, and what it brought."""
        states, actions = (_count(self.config, 4, f"{n}_dim") for n in ("state", "act"))
        return {
            "states": self.floats(BATCH, TIME, states),
            "actions": self.floats(BATCH, TIME, actions),
            "rewards": self.floats(BATCH, TIME, 1),
            "returns_to_go": self.floats(BATCH, TIME, 1),
            "timesteps": torch.arange(TIME).repeat(BATCH, 1),
            "attention_mask": torch.ones(BATCH, TIME),
        }

    def seen(self) -> dict[str, torch.Tensor]:
        """What a detector saw, and where."""
        count = _count(self.config, 2048, "visual_feat_dim")
        return {
            "visual_feats": self.floats(BATCH, TIME, count),
            "visual_pos": self.floats(BATCH, TIME, 4),
        }

    def flat_patches(self) -> dict[str, torch.Tensor]:
        """Images of 4 by 4 patches, each patch a row."""
        size = self.channels * _count(self.config, 16, "patch_size") ** 2
        return {
            "pixel_values": self.floats(BATCH, 16, size),
            "pixel_attention_mask": torch.ones(BATCH, 16, dtype=torch.long),
            "spatial_shapes": torch.tensor([[4, 4]] * BATCH),
        }


def candidates(config: Any, model: torch.nn.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    """(what it is, keyword arguments), the likely ones first."""
    make = Maker(config)
    parameters = inspect.signature(model.forward).parameters
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [n for n, p in parameters.items() if p.kind in kinds]
    required = [n for n in names if parameters[n].default is inspect.Parameter.empty]
    main = getattr(model, "main_input_name", "input_ids")
    base: dict[str, Any] = {}
    for name in dict.fromkeys([*required, *([main] if main in names else [])]):
        tensor = make.tensor(name)
        if tensor is not None:
            base[name] = tensor
    if "use_cache" in names:
        base["use_cache"] = False
    decoder = {"decoder_input_ids": make.ids(BATCH, TIME)} if "decoder_input_ids" in names else {}

    if "grid_thw" in required or "image_grid_thw" in required:
        yield from _patches(make, names, base)
    yield "required", dict(base)
    if decoder:
        yield "with decoder_input_ids", {**base, **decoder}
    if "input_ids" in names:
        yield "with input_ids", {**base, "input_ids": make.ids(BATCH, TIME)}
        yield "input_ids alone", {"input_ids": make.ids(BATCH, TIME)}
        if "bbox" in names:
            boxes = {"input_ids": make.ids(BATCH, TIME), "bbox": make.boxes(), **decoder}
            yield "with bbox", {**base, **boxes}
    yield from _special(make, names, base)
    if "pixel_values" in names:
        yield from _images(make, names, base)
    if "input_features" in names:
        yield from _features(make, names, {**base, **decoder})
    if "input_values" in names:
        for label, values in (
            ("waves with a channel", make.floats(BATCH, 1, WAVE)),
            ("a spectrogram", make.floats(BATCH, 1024, 128)),
            ("codes", make.ids(BATCH, TIME)),
        ):
            yield label, {**base, "input_values": values}
    if "inputs_embeds" in names:
        yield "inputs_embeds", {"inputs_embeds": make.floats(BATCH, TIME, make.width)}
    dummy = getattr(model, "dummy_inputs", None)
    if isinstance(dummy, dict):
        yield "the model's dummy_inputs", dict(dummy)


def _special(make: Maker, names: list[str], base: dict) -> Iterator[tuple[str, dict]]:
    """Arguments that only go together."""
    ids = {"input_ids": make.ids(BATCH, TIME)} if "input_ids" in names else {}
    for label, argument, parts in (
        ("a trajectory", "returns_to_go", make.trajectory),
        ("what was seen", "visual_feats", make.seen),
        ("flat patches", "spatial_shapes", make.flat_patches),
    ):
        if argument in names:
            yield label, {**base, **ids, **parts()}
    if "future_time_features" in names:
        future = {n: make.tensor(n) for n in ("future_values", "future_time_features")}
        yield "with the future", {**base, **future}
    if "encoder_hidden_states" in names:
        seen = make.floats(BATCH, TIME, _count(make.config, make.width, "encoder_hidden_size"))
        yield "with encoder_hidden_states", {**base, "encoder_hidden_states": seen}


def _patches(make: Maker, names: list[str], base: dict) -> Iterator[tuple[str, dict]]:
    patch = _count(make.config, 14, "patch_size")
    for time in dict.fromkeys((_count(make.config, 1, "temporal_patch_size"), 1, 2)):
        for main in ("hidden_states", "pixel_values"):
            if main in names:
                flat = make.floats(32, make.channels * time * patch * patch)
                yield f"patches of {time} frames", {**base, main: flat}


def _images(make: Maker, names: list[str], base: dict) -> Iterator[tuple[str, dict]]:
    yield "pixels", {**base, "pixel_values": make.pixels()}
    yield "frames", {**base, "pixel_values": make.video()}
    yield "pairs", {**base, "pixel_values": make.video(2)}
    for size in (64, 224, 256):
        yield f"{size} pixels", {**base, "pixel_values": make.pixels(size)}
    if "input_ids" in names:
        both = {**base, "input_ids": make.ids(BATCH, TIME), "pixel_values": make.pixels()}
        if "bbox" in names:
            both["bbox"] = make.boxes()
        yield "ids and pixels", both
        for count, ids in make.image_places():
            yield f"{count} words for an image", {**both, "input_ids": ids}


def _features(make: Maker, names: list[str], base: dict) -> Iterator[tuple[str, dict]]:
    mel = base["input_features"].shape[-1] if "input_features" in base else make.mel
    longest = find(make.config, ("max_source_positions",))
    times = [64, 128, 1024] + ([2 * longest] if isinstance(longest, int) else [])
    for time in times:
        for shape in ((BATCH, mel, time), (BATCH, time, mel), (BATCH, 1, time, mel)):
            features = {**base, "input_features": make.floats(*shape)}
            yield f"features {shape}", features
            if "input_features_mask" in names:
                mask = torch.ones(BATCH, time, dtype=torch.long)
                yield f"features {shape}, masked", {**features, "input_features_mask": mask}
