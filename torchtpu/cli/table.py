"""Plain text tables and figures with units, as all commands print them."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> str:
    """Columns under a header. `right` holds an "r" for each column set to the right, else " "."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    sides = right.ljust(len(header))

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides)
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), line(["-" * w for w in widths]), *map(line, rows)])


def format_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a table in a page."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def format_bytes(count: float | None) -> str:
    """Binary units, three digits: 1.50 GiB."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def format_count(count: float | None, unit: str = "") -> str:
    """Decimal units, three digits: 12.3 TFLOP."""
    return _scaled(count, 1000, tuple(prefix + unit for prefix in ("", "k", "M", "G", "T", "P")))


def format_seconds(seconds: float | None) -> str:
    """1.20 s, 3.45 ms, 6.70 us."""
    if seconds is None:
        return "?"
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _scaled(count: float | None, step: int, units: Sequence[str]) -> str:
    if count is None:
        return "?"
    for unit in units[:-1]:
        if abs(count) < step:
            return f"{count:.4g} {unit}".rstrip()
        count /= step
    return f"{count:.4g} {units[-1]}"
