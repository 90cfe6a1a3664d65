"""Makes PyTorch know the device: the native module, its name, its methods, its module."""

import sys

import torch

_NAME = "tpu"


def register() -> None:
    if torch._C._get_privateuse1_backend_name() != _NAME:
        torch.utils.rename_privateuse1_backend(_NAME)
    from torchtpu import (
        _C,  # noqa: F401  (registers allocator, guard, hooks and kernels)
        grouped,  # noqa: F401  (products of groups)
        meta,  # noqa: F401  (meta kernels that PyTorch lacks)
        meta_checks,  # noqa: F401  (... and those that check less than the CPU's kernels)
        nested,  # noqa: F401  (kernels of nested tensors)
        sparse,  # noqa: F401  (kernels of sparse tensors)
        windows,  # noqa: F401  (window functions)
    )


def _dlpack_device() -> None:
    """PyTorch's own looks for the name "privateuse1", which a renamed device does not have."""
    original = torch.Tensor.__dlpack_device__

    def dlpack_device(self):
        if self.device.type != _NAME:
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index or 0

    torch.Tensor.__dlpack_device__ = dlpack_device  # type: ignore[method-assign]


def attach(module) -> None:
    if not hasattr(torch, _NAME):
        torch._register_device_module(_NAME, module)
        sys.modules.setdefault(f"torch.{_NAME}", module)
    if not hasattr(torch.Tensor, f"is_{_NAME}"):
        torch.utils.generate_methods_for_privateuse1_backend(
            for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
        )
    torch.set_autocast_dtype(_NAME, torch.bfloat16)
    _dlpack_device()
    # torch.compile finds its backend through the entry point group torch_dynamo_backends.
    from torchtpu import _default_backend, distributed, parallel
    from torchtpu.tpu import types

    _default_backend.install()
    parallel.install()
    types.install()
    distributed.register()
