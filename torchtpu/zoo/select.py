"""Which architectures a sweep of limited length takes, and in which order.

Two levels. Adoption: the downloads of all models of an architecture put it into a tier (the ones
that half of all downloads go to, those up to nine tenths, the rest), and a tier comes before the
next. Balance: within a tier, families take turns, so that twenty variants of one do not crowd out
the others; an architecture whose model class another one has already brought is left out.
"""

from __future__ import annotations

import collections
import csv
import pathlib
import re
from collections.abc import Mapping, Sequence

TIERS = (0.5, 0.9, 1.0)


def read_weights(path: pathlib.Path) -> dict[str, float]:
    """{model type: downloads} of a file with the columns model id, downloads, model type."""
    weights: collections.Counter[str] = collections.Counter()
    with path.open(newline="") as lines:
        dialect = "excel-tab" if "\t" in lines.readline() else "excel"
        lines.seek(0)
        for row in csv.reader(lines, dialect):
            if len(row) >= 3 and row[1].strip().isdigit():
                weights[row[2].strip()] += int(row[1])
    return dict(weights)


def fetch_weights(path: pathlib.Path, count: int = 2000) -> None:
    """Writes such a file of the most downloaded models that the Hugging Face Hub lists."""
    from huggingface_hub import HfApi

    listed = HfApi().list_models(sort="downloads", limit=count, expand=["config", "downloads"])
    with path.open("w", newline="") as out:
        table = csv.writer(out, "excel-tab")
        for model in listed:
            kind = (model.config or {}).get("model_type")
            if kind:
                table.writerow((model.id, model.downloads or 0, kind))


def family(name: str) -> str:
    """What variants share: "qwen2_5_vl_text" and "qwen3_moe" are of the family "qwen"."""
    first = re.split(r"[_.-]", name)[0]
    return re.sub(r"v?\d+.*$", "", first) or first


def _tiers(names: Sequence[str], weights: Mapping[str, float]) -> list[list[str]]:
    total = sum(weights.get(name, 0) for name in names)
    if not total:
        return [list(names)]
    ordered = sorted(names, key=lambda name: -weights.get(name, 0))
    tiers: list[list[str]] = [[] for _ in TIERS]
    seen = 0.0
    for name in ordered:
        place = next(
            i for i, share in enumerate(TIERS) if seen < share * total or i + 1 == len(TIERS)
        )
        tiers[place].append(name)
        seen += weights.get(name, 0)
    return tiers


def choose(
    names: Sequence[str],
    classes: Mapping[str, str],
    weights: Mapping[str, float],
    limit: int | None = None,
) -> list[str]:
    """`names` in order of interest, near-duplicates left out, at most `limit`."""
    chosen: list[str] = []
    seen: set[str] = set()
    for tier in _tiers(names, weights):
        families: dict[str, collections.deque[str]] = {}
        for name in tier:
            if classes.get(name, name) not in seen:
                seen.add(classes.get(name, name))
                families.setdefault(family(name), collections.deque()).append(name)
        while families:
            for key in list(families):
                chosen.append(families[key].popleft())
                if not families[key]:
                    del families[key]
    return chosen[:limit]
