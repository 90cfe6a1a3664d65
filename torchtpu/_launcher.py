"""`torchrun --tpu script.py`: the launcher's processes get tpu as their default device.

PyTorch has no hook for a launcher's flags. In a process that is the launcher, and in no other, the
argument parser that takes `training_script` is made with the flag.
"""

from __future__ import annotations

import argparse
import os
import sys

from torchtpu import _default

_MODULES = ("torch.distributed.run", "torch.distributed.launch")


def _is_launcher() -> bool:
    """`torchrun ...` or `python -m torch.distributed.run ...`, before any of its code has run."""
    words = sys.orig_argv[1:]
    for i, word in enumerate(words):
        if word == "-m":
            return words[i + 1 : i + 2] != [] and words[i + 1] in _MODULES
        if not word.startswith("-"):
            return os.path.basename(word).removesuffix(".exe") == "torchrun"
    return False


class _Tpu(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, True)
        os.environ.update(_default.environment())


def install() -> None:
    """Teaches the launcher the flag, where this process is one."""
    if not _is_launcher():
        return
    add = argparse.ArgumentParser.add_argument

    def add_argument(self, *names, **options):
        if names == ("training_script",):
            text = "Make tpu the device of tensors and modules that name none."
            add(self, "--tpu", action=_Tpu, nargs=0, default=False, help=text)
        return add(self, *names, **options)

    argparse.ArgumentParser.add_argument = add_argument  # type: ignore[method-assign]
