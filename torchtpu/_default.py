"""tpu as the device of a script that names none: what `torchtpu run` and `torchrun --tpu` turn on.

They set TORCHTPU_DEFAULT_DEVICE for the script's process: the script then runs as it always does
(its own __main__, arguments, tracebacks and exit code), and so do the processes that it starts.
"""

import os

import torch
from torch.utils._device import DeviceContext

from torchtpu import tpu

VARIABLE = "TORCHTPU_DEFAULT_DEVICE"


class _Default(DeviceContext):
    """torch.set_default_device's mode, except where tpu could only be an error."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.lost = False  # this is a child forked after the device started
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.lost = tpu._is_in_bad_fork()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if kwargs.get("device") is None and self._is_host_work(kwargs):
            return func(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def _is_host_work(self, kwargs: dict) -> bool:
        """A draw from a CPU generator (every shuffling DataLoader), a DataLoader's worker process
        (its batches travel through shared memory), or any child forked after the device started.
        """
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != self.device.type:
            return True
        return self.lost or torch.utils.data.get_worker_info() is not None


def set_default(device: str = "tpu") -> None:
    """Like torch.set_default_device(device), and later calls of that replace it."""
    torch.set_default_device(None)
    context = _Default(device)
    if context.device.type != "tpu":
        raise ValueError(f"expected a tpu device, got {device!r}")
    context.__enter__()
    torch._GLOBAL_DEVICE_CONTEXT.device_context = context


def apply_environment() -> None:
    """What importing the package does: follows the variable, where it is set."""
    device = os.environ.get(VARIABLE)
    if not device:
        return
    try:
        set_default(device)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{VARIABLE}={device!r}: {error}") from None


def environment(device: str = "tpu") -> dict[str, str]:
    """This process's environment, for a child that is to have `device` as its default."""
    return {**os.environ, VARIABLE: device}
