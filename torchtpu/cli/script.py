"""runs a script with tpu as its default device

Tensors and modules that name no device are made on tpu. The script is otherwise run as
`python SCRIPT ...` runs it, in this very process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from torchtpu import _default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="tpu", help="tpu (the default), or tpu:1, ...")
    parser.add_argument(
        "-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m"
    )
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")


def _is_tpu(device: str) -> bool:
    import torch

    try:
        return torch.device(device).type == "tpu"
    except RuntimeError:
        return False


def run(arguments: argparse.Namespace) -> int:
    if not _is_tpu(arguments.device):
        print(f"torchtpu run: --device {arguments.device}: no tpu device", file=sys.stderr)
        return 2
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    command = [sys.executable, *flags]
    command += ["-m"] if arguments.module else []
    command += [arguments.script, *arguments.arguments]
    sys.stdout.flush()
    os.execve(command[0], command, _default.environment(arguments.device))
