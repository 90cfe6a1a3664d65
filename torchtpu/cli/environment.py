"""every environment variable that is read, its value and its meaning"""

from __future__ import annotations

import argparse
import json
import os

from torchtpu.cli.table import format_markdown, format_table
from torchtpu.cli.variables import VARIABLES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object on stdout")
    form.add_argument("--markdown", action="store_true", help="the table of the documentation")


def markdown() -> str:
    """The table of docs/environment.md."""
    rows = [(f"`{v.name}`", v.values, v.default, v.meaning) for v in VARIABLES]
    return format_markdown(("variable", "values", "default", "meaning"), rows)


def run(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        print(markdown())
    elif arguments.json:
        rows = {v.name: {**v._asdict(), "value": os.environ.get(v.name)} for v in VARIABLES}
        print(json.dumps(rows, indent=2))
    else:
        values = [os.environ.get(v.name) for v in VARIABLES]
        print(
            format_table(
                ("variable", "value", "default", "meaning"),
                [
                    (v.name, "(unset)" if value is None else value, v.default, v.meaning)
                    for v, value in zip(VARIABLES, values)
                ],
            )
        )
    return 0
