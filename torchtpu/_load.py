"""Makes PyTorch know the device: the native module, its name, its methods, its module."""

import os
import sys

import torch

_NAME = "tpu"


def register() -> None:
    plugin = os.path.join(os.path.dirname(__file__), "libsofttpu.so")
    if os.path.exists(plugin):
        os.environ.setdefault("TORCHTPU_SOFT_PLUGIN", plugin)
    if torch._C._get_privateuse1_backend_name() != _NAME:
        torch.utils.rename_privateuse1_backend(_NAME)
    from torchtpu import _C  # noqa: F401  (registers allocator, guard, hooks and kernels)


def attach(module) -> None:
    if not hasattr(torch, _NAME):
        torch._register_device_module(_NAME, module)
        sys.modules.setdefault(f"torch.{_NAME}", module)
    if not hasattr(torch.Tensor, f"is_{_NAME}"):
        torch.utils.generate_methods_for_privateuse1_backend(
            for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
        )
    torch.set_autocast_dtype(_NAME, torch.bfloat16)
    _register_compile_backends()
    _register_distributed()


def _register_compile_backends() -> None:
    """torch.compile finds backends through entry points; from a source tree there are none."""
    try:
        from torchtpu import _hooks
    except ImportError:
        return
    _hooks.register_compile_backends()


def _register_distributed() -> None:
    try:
        from torchtpu import _hooks
    except ImportError:
        return
    _hooks.register_distributed()
