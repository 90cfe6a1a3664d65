"""What a sweep found: counts, and failures grouped by their cause, as Markdown and as HTML."""

from __future__ import annotations

import collections
import html
import re
from collections.abc import Sequence
from typing import Any

from torchtpu.cli.table import format_markdown
from torchtpu.zoo.check import WAYS

Results = Sequence[dict[str, Any]]
# "untraced": Dynamo fails on it on the CPU too.
STATUSES = ("equal", "differs", "error", "crash", "timeout", "memory", "untraced")
_KINDS = {
    "differs": "wrong value",
    "crash": "crash",
    "timeout": "timeout",
    "memory": "memory",
    "untraced": "Dynamo fails, on the CPU too",
}


def made(results: Results) -> list[dict[str, Any]]:
    """The results of models that the CPU can build and run."""
    return [r for r in results if r.get("cpu", {}).get("status") == "made"]


def cause(answer: dict[str, Any]) -> str:
    """The group that a failure belongs to: what it says, without the numbers of the one model."""
    kind = _KINDS.get(answer["status"])
    detail = answer.get("detail", "")
    if kind and answer["status"] not in ("differs", "untraced"):
        return f"{kind}: {detail}"
    if answer["status"] == "differs":
        what = re.sub(r"^\d+ of \d+: ", "", detail).split(":")[0]
        return f"{kind} in {re.sub(r' of .*| [0-9]+$', '', what)}s"
    missing = re.search(r"aten[:.]+(\w+(?:\.\w+)?)", detail)
    if missing and re.search(r"not implemented|no lowering|NotImplemented|not supported", detail):
        return f"missing op: {missing[1]}"
    text = re.sub(r"\d+(\.\d+)?(e-?\d+)?", "#", detail.split("\n")[0])
    return f"{kind or 'error'}: {text[:160]}"


def groups(results: Results, way: str) -> list[tuple[str, list[str]]]:
    """(cause, models), the cause that blocks most models first."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for result in made(results):
        answer = result.get(way)
        if answer and answer["status"] != "equal":
            found[cause(answer)].append(result["name"])
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def fallbacks(results: Results) -> list[tuple[str, list[str]]]:
    """(op that ran on the CPU, models), the op that most models need first."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for result in made(results):
        ops = {op for way in WAYS for op in result.get(way, {}).get("fallbacks", {})}
        for op in ops:
            found[op].append(result["name"])
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def counts(results: Results) -> list[tuple[str, ...]]:
    """A row a way: how many models, of which how many ended how."""
    rows = []
    for way in WAYS:
        tally = collections.Counter(r[way]["status"] for r in made(results) if way in r)
        total = sum(tally.values())
        share = f"{100 * tally['equal'] / total:.1f} %" if total else "-"
        rows.append((way, str(total), *(str(tally[s]) for s in STATUSES), share))
    return rows


def graph_note(results: Results) -> str:
    """How much of the compiled models Dynamo put into how many graphs."""
    told = [r["compiled"] for r in made(results) if "graphs" in r.get("compiled", {})]
    if not told:
        return ""
    whole = sum(a["graphs"] == 1 and a["graph_breaks"] == 0 for a in told)
    breaks = sum(a["graph_breaks"] > 0 for a in told)
    return (
        f"Of {len(told)} compiled models {whole} are one graph without a break; {breaks} have "
        "breaks, for the most part where a model reads a value on the host."
    )


_HEADER = ("way", "models", *STATUSES, "equal")


def _some(names: Sequence[str], most: int = 12) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def markdown(results: Results, title: str) -> str:
    """The report as a page of the documentation."""
    ready = made(results)
    parts = [
        f"# {title}",
        f"{len(results)} architectures, each a tiny model with random weights; {len(ready)} of "
        "them are built and run on the CPU (forward, loss, backward) by this program. Each of "
        "those ran on `tpu` in a process of its own, and its outputs, its loss and all gradients "
        "were compared with the CPU's.",
        format_markdown(_HEADER, counts(results)),
        *filter(None, [graph_note(results)]),
    ]
    for way in WAYS:
        found = groups(results, way)
        if found:
            rows = [(str(len(n)), c.replace("|", "\\|"), _some(n)) for c, n in found]
            parts += [f"## What fails: {way}", format_markdown(("models", "cause", "which"), rows)]
    ops = [(str(len(n)), f"`{op}`", _some(n)) for op, n in fallbacks(results)]
    parts.append("## Ops that ran on the CPU")
    parts.append(
        format_markdown(("models", "op", "which"), ops) if ops else "None: no fallback was used."
    )
    equal = [
        f"{r['name']} ({len(ways)})"
        for r in ready
        if (ways := [w for w in WAYS if w in r]) and all(r[w]["status"] == "equal" for w in ways)
    ]
    parts.append("## Equal in every way that was run (how many)")
    parts.append(", ".join(equal) or "None.")
    unmade = collections.Counter(
        re.sub(r"\d+", "#", r["cpu"].get("detail", r["cpu"]["status"]).split(": ", 2)[-1])[:90]
        for r in results
        if r.get("cpu", {}).get("status") != "made"
    )
    parts.append("## Not built or not run on the CPU")
    first = [
        (str(n), text.replace("|", "\\|").replace("\n", " ")) for text, n in unmade.most_common(25)
    ]
    parts.append(format_markdown(("architectures", "first problem"), first))
    return "\n\n".join(parts) + "\n"


_STYLE = """
body{font:15px system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.25rem .6rem}
td{vertical-align:top}th{background:#f3f3f3;text-align:left}summary{cursor:pointer;margin:.4rem 0}
pre{white-space:pre-wrap;background:#f7f7f7;padding:.5rem;margin:.2rem 0 .8rem}
.equal{background:#dff2dd}.differs{background:#fdeec4}.error,.crash,.timeout,.memory,.untraced{background:#f8d4d0}
"""


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _html_group(results: Results, way: str, told: str, names: Sequence[str]) -> str:
    by_name = {r["name"]: r for r in results}
    details = "".join(
        f"<b>{html.escape(n)}</b><pre>{html.escape(by_name[n][way].get('detail', ''))}</pre>"
        for n in names
    )
    summary = f"{len(names)} &times; {html.escape(told)}"
    return f"<details><summary>{summary}</summary>{details}</details>"


def _html_models(results: Results) -> str:
    rows = []
    for r in made(results):
        cells = f"<td>{html.escape(r['name'])}</td><td>{html.escape(r['cpu'].get('what', ''))}</td>"
        for way in WAYS:
            answer = r.get(way, {"status": ""})
            status, detail = answer["status"], html.escape(answer.get("detail", ""))
            cells += f'<td class="{status}" title="{detail}">{status}</td>'
        rows.append(f"<tr>{cells}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("architecture", "what was run", *WAYS))
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def page(results: Results, title: str) -> str:
    """The report as one HTML file that needs nothing else."""
    parts = [f"<h1>{html.escape(title)}</h1>", _html_table(_HEADER, counts(results))]
    for way in WAYS:
        found = groups(results, way)
        if found:
            parts.append(f"<h2>{way}: what fails</h2>")
            parts += [_html_group(results, way, told, names) for told, names in found]
    ops = [(str(len(n)), op, _some(n, 30)) for op, n in fallbacks(results)]
    parts += ["<h2>Ops that ran on the CPU</h2>", _html_table(("models", "op", "which"), ops)]
    parts += ["<h2>All models</h2>", _html_models(results)]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body>{''.join(parts)}</body></html>\n"
