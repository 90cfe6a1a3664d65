"""The command line `torchtpu`: one module a command.

A command's module has a docstring (its help), `add_arguments(parser)` and `run(arguments)`, which
returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from torchtpu.cli import aot, environment, info, scale, script, zoo

COMMANDS = {"info": info, "env": environment, "run": script, "aot": aot, "scale": scale, "zoo": zoo}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchtpu", description="The device tpu for PyTorch.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        text = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process's exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        return COMMANDS[parsed.command].run(parsed)
    except BrokenPipeError:
        # The reader (`| head`) has enough; Python's own flush at the end must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
