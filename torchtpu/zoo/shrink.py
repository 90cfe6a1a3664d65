"""Makes a configuration of transformers tiny: the same architecture with small sizes.

A configuration's attributes are named by habit, not by a rule; what an attribute counts is told
from its name. Not every architecture survives being made that small, so there are levels, from all
sizes to only depth and vocabulary.
"""

from __future__ import annotations

import re
from typing import Any

LEVELS = 4
VOCABULARY = 128

# (what the name looks like, the largest value), first match wins.
_LIMITS = [
    (r"key_value_heads|kv_heads?$|n_head_kv|multi_query_group", 2),
    (r"shared_experts?", 1),
    (r"experts?_per_tok|num_selected_experts|moe_k$|moe_topk|top_?k_experts|experts_top_?k", 2),
    (r"n_group$|topk_group|expert_group", 1),
    (r"n_groups$", 2),
    (r"upsample_groups", 8),
    (r"experts$", 4),
    (r"heads?$|attention_heads", 4),
    (r"layers?$|^depth$|_depth$|^n_layer|blocks?$|num_hidden_layers|_layers_", 2),
    (r"head_dim$|head_size|d_kv$|kv_channels|dim_head|attention_key_dim|_head_dim$", 8),
    (r"_rank$|dt_rank", 16),
    (r"intermediate|ffn|d_ff$|feed_?forward|d_inner|n_inner|mlp_(dim|hidden)|ff_dim|inter_dim", 64),
    (r"vocab_size|num_embeddings$|codebook_size|num_codes|vocab_size_per_layer", VOCABULARY),
    (
        r"hidden_size|d_model|n_embd|embed_dim|hidden_dim|embedding_(size|dim)|emb_dim|model_dim"
        r"|projection_dim|proj_(dim|size)|out_hidden|output_dim|fpn_hidden|mask_feature|mask_dim"
        r"|feature_size|d_embed|_width$|^width$|embed_size|conv_dim$|hidden_channels|lru_width"
        r"|^dim$|encoder_dim|decoder_dim|decoder_hidden|encoder_hidden|codebook_dim",
        32,
    ),
    (
        r"position_embeddings|source_positions|target_positions|n_positions|max_seq|seq_length"
        r"|max_length|2d_position|n_ctx|context_length|max_window|num_positions",
        512,
    ),
]
# Numbers that are no sizes, whatever else is in their names.
_KEEP = re.compile(
    r"token_id|_id$|dropout|eps$|range|std|theta|base$|_act|temperature|scal|bias|stride|kernel"
    r"|num_labels|patch_embed|feat_extract|loss|prob|version|hop|sampling|threshold|ratio|factor|period|offset|window"
)
_WIDTH_LISTS = re.compile(
    r"hidden_sizes|embed_dims?|channels|widths|dims?$|encoder_in|decoder_hidden|upsample_initial"
)
_DEPTH_LISTS = re.compile(r"depths?$|blocks|num_layers|layers$|repeats|layer_nums")
_INDEX_LISTS = re.compile(r"index|indices|_at|return|select|global|out_features|stage_names")
_LAYER_LISTS = re.compile(r"layer|block|type|rope|pattern|window|mlp|moe|sparse|schedule")
# What a model needs though the configuration says None.
_ABSENT = {
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "vocab_size": VOCABULARY,
    "prediction_length": 8,
    "image_token_index": 101,
}
_DEPTH_NAMES = (
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "n_layers",
    "encoder_layers",
    "num_blocks",
)


def _number(name: str, value: int, level: int) -> int:
    if value <= 2 or _KEEP.search(name):
        return value
    for pattern, limit in _LIMITS:
        if re.search(pattern, name):
            depth = "layer" in pattern
            vocabulary = limit == VOCABULARY
            if (level == 2 and depth) or (level == 3 and not (depth or vocabulary)):
                return value
            return min(value, limit)
    return value


def _list(name: str, value: list, level: int, depth: int | None) -> list:
    if depth and len(value) == depth and level != 2 and _LAYER_LISTS.search(name):
        # One entry a layer: two layers of different kinds where there are any.
        kinds = [x for i, x in enumerate(value) if x not in value[:i]][:2]
        return (kinds + value)[: min(2, len(value))] if len(kinds) < 2 else kinds
    if level > 0 or not all(isinstance(x, int) and not isinstance(x, bool) for x in value):
        return value
    if _INDEX_LISTS.search(name):
        return value
    if _DEPTH_LISTS.search(name) and max(value) <= 64:
        return [min(x, 1) for x in value]
    if _WIDTH_LISTS.search(name) and min(value) >= 8 and not re.search("image|kernel", name):
        divisor = max(1, min(value) // 16)
        return [max(8, x // divisor // 8 * 8) for x in value]
    if "heads" in name:
        return [min(x, 4) if x % 2 == 0 else 1 for x in value]
    return value


def _special_tokens(value: Any, name: str) -> Any:
    """A token's number inside the small vocabulary, another one for each name."""
    if isinstance(value, int) and value >= VOCABULARY:
        return 100 + sum(name.encode()) % 27
    if isinstance(value, list) and any(isinstance(x, int) and x >= VOCABULARY for x in value):
        return 2
    return value


def _rope(parameters: dict[str, Any], head: int) -> dict[str, Any]:
    """Rotary settings that fit heads of size `head`. The sections of time, height and width, which
    models that have them otherwise take from their code, do not disturb the others.
    """
    fitted: dict[str, Any] = {
        k: _rope(v, head) if isinstance(v, dict) else v for k, v in parameters.items()
    }
    if "rope_type" in fitted:
        count = len(fitted.get("mrope_section") or range(3))
        half = int(head * (fitted.get("partial_rotary_factor") or 1.0)) // 2
        rest = half // count
        fitted["mrope_section"] = [half - rest * (count - 1)] + [rest] * (count - 1)
    return fitted


def overrides(config: Any, level: int) -> dict[str, Any]:
    """The arguments with which the configuration's class makes a tiny one."""
    from transformers.configuration_utils import PreTrainedConfig

    values = dict(vars(config))
    depth = next((values[n] for n in _DEPTH_NAMES if isinstance(values.get(n), int)), None)
    if isinstance(values.get("depths"), (list, tuple)):
        depth = None  # counts stages
    small: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith("_") or name in ("transformers_version", "architectures", "dtype"):
            continue
        if isinstance(value, PreTrainedConfig):
            small[name] = {**_own(value), **overrides(value, level), "model_type": value.model_type}
            continue
        changed: Any = value
        if re.search(r"token_ids?$|token_index$", name):
            changed = _special_tokens(value, name) if level < LEVELS else value
        elif isinstance(value, int) and not isinstance(value, bool):
            changed = _number(name, value, level)
        elif isinstance(value, (list, tuple)) and value:
            changed = _list(name, list(value), level, depth)  # a list, as a file would have it
        if changed != value:
            small[name] = changed
    _reconcile(values, small, level)
    _reconcile_stages(config, values, small)
    for name, value in values.items():
        if isinstance(value, PreTrainedConfig):
            _repeat_widths(vars(value), small[name], values, small)
    return small


def _own(part: Any) -> dict[str, Any]:
    """What a part's configuration says that its class by itself would not."""
    try:
        usual = vars(type(part)())
    except Exception:  # cannot be made without what the whole says: all of it is its own
        usual = {}
    nested = {n for n, v in vars(part).items() if hasattr(v, "model_type")}
    return {
        name: value
        for name, value in vars(part).items()
        if name not in usual or (name not in nested and value != usual[name])
        if not name.startswith("_") and name not in ("transformers_version", "stage_names")
    }


def _reconcile_stages(config: Any, values: dict[str, Any], small: dict[str, Any]) -> None:
    """Which stages a backbone gives. Where a stage is a layer, as many layers as are given."""
    given = list(values.get("_out_indices") or ())
    if not given:
        return
    names = values.get("stage_names") or ()
    depth = next((n for n in _DEPTH_NAMES if isinstance(values.get(n), int)), None)
    if depth and depth in small and len(names) == values[depth] + 1:
        small[depth] = len(given)
        given = list(range(1, len(given) + 1))
    small["out_indices"] = given


def _repeat_widths(
    part: dict[str, Any], small_part: dict[str, Any], values: dict[str, Any], small: dict[str, Any]
) -> None:
    """A list of the whole that repeats some of its part's widths, made small in the same way."""
    for name, widths in part.items():
        if not (_WIDTH_LISTS.search(name) and isinstance(widths, (list, tuple)) and widths):
            continue
        fitted = dict(zip(widths, small_part.get(name, widths), strict=True))
        for other, repeated in values.items():
            is_list = isinstance(repeated, (list, tuple)) and len(repeated) > 1
            if is_list and _WIDTH_LISTS.search(other) and all(x in fitted for x in repeated):
                small[other] = [fitted[x] for x in repeated]


def _reconcile_heads(values: dict[str, Any], small: dict[str, Any], width: Any) -> None:
    """Sizes of heads that are sums and quotients of others."""
    now = {**values, **small}
    if now.get("num_key_value_heads", 0) is None:
        small["num_key_value_heads"] = now.get("num_attention_heads")
    both = (now.get("qk_nope_head_dim"), now.get("qk_rope_head_dim"))
    parts = [n for n in both if isinstance(n, int)]
    if len(parts) == 2:
        whole = values["qk_nope_head_dim"] + values["qk_rope_head_dim"]
        small.update({n: sum(parts) for n in ("qk_head_dim", "head_dim") if values.get(n) == whole})
    if not isinstance(width, int):
        return
    # Mamba 2: its heads share the widened state.
    for count, size, factor in (
        ("num_heads", "head_dim", "expand"),
        ("mamba_n_heads", "mamba_d_head", "mamba_expand"),
    ):
        if all(isinstance(now.get(n), int) for n in (count, factor)) and size in now:
            if now.get("mamba_d_ssm") is not None:
                small["mamba_d_ssm"] = now[factor] * width
            small[size] = now[factor] * width // now[count]
    if values.get("attention_hidden_size") == 2 * values.get("hidden_size", 0):
        small["attention_hidden_size"] = 2 * width


def _reconcile(values: dict[str, Any], small: dict[str, Any], level: int) -> None:
    """What must hold between attributes."""

    def now(*names: str) -> Any:
        found = (small.get(n, values.get(n)) for n in names)
        return next((x for x in found if x and isinstance(x, int)), None)

    for name in ("num_key_value_heads", "encoder_num_key_value_heads"):
        heads = name.replace("key_value", "attention")
        if values.get(name) is not None and values.get(name) == values.get(heads):
            small[name] = now(heads)
    width, heads = now("hidden_size", "d_model", "n_embd"), now("num_attention_heads", "n_head")
    head = now("head_dim") or (width // heads if width and heads else None)
    if "head_dim" in values and values["head_dim"] is None and isinstance(head, int):
        small["head_dim"] = head
    if isinstance(values.get("rotary_dim"), int) and level < 3:
        small["rotary_dim"] = min(values["rotary_dim"], 4)
    if isinstance(values.get("rope_parameters"), dict) and isinstance(head, int) and level < 3:
        small["rope_parameters"] = _rope(values["rope_parameters"], head)
    if isinstance(values.get("num_kv_shared_layers"), int) and level != 2:
        small["num_kv_shared_layers"] = 0  # would be all of so few
    if isinstance(values.get("attn_layer_period"), int):
        small["attn_layer_period"], small["attn_layer_offset"] = 2, 1
    if isinstance(values.get("attn_layer_indices"), list):
        small["attn_layer_indices"] = [1]
    small.update({n: v for n, v in _ABSENT.items() if n in values and values[n] is None})
    if values.get("languages") and values.get("default_language", "") is None:
        small["default_language"] = values["languages"][0]
    if "layer_types" in values and values["layer_types"] is None and "conv_L_cache" in values:
        small["layer_types"] = ["conv", "full_attention"]
    _reconcile_heads(values, small, width)
    image, patch = values.get("image_size"), values.get("patch_size")
    if isinstance(image, int) and isinstance(patch, int) and image > 64 and level < 2:
        small["image_size"] = patch * max(2, -(-32 // patch))
