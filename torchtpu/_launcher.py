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
_FILES = tuple(os.path.join(*module.split(".")) + ".py" for module in _MODULES)
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")  # Python's options of two words


def _is_launcher() -> bool:
    """`torchrun ...` or `python -m torch.distributed.run ...`, before any of its code has run."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-m":
            return next(words, None) in _MODULES
        elif word == "-c":
            return False
        elif not word.startswith("-"):
            path = os.path.abspath(word)
            return os.path.basename(word).removesuffix(".exe") == "torchrun" or path.endswith(
                _FILES
            )
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
