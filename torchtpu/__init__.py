"""TorchTPU: the device "tpu" for PyTorch.

``import torch`` loads this package by itself (the ``torch.backends`` entry point);
``import torchtpu`` does the same by hand. Nothing here starts the device: its first use does.
"""

from pkgutil import extend_path

# Imported from a source folder, the native module is the installed package's.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"


def _autoload() -> None:
    """Entry point of the group ``torch.backends``; importing the package does the work.

    Defined first: where this package is imported before torch, torch asks for it half-way.
    """


from torchtpu import _load  # noqa: E402

_load.register()

from torchtpu import tpu  # noqa: E402  (needs the registered device)

_load.attach(tpu)

from torchtpu import _default, _launcher  # noqa: E402  (need torch.tpu)

_default.apply_environment()
_launcher.install()


def __getattr__(name: str):
    # Subpackages that cost time to import are loaded when they are first named.
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"torchtpu.{name}")
    raise AttributeError(f"module 'torchtpu' has no attribute {name!r}")


_LAZY = ("aot", "cli", "compile", "decompositions", "distributed", "profiler", "zoo")
