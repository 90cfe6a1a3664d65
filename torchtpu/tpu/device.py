"""Devices: how many, which one, what they are."""

import atexit
from dataclasses import dataclass
from functools import lru_cache

import torch

from torchtpu import _C
from torchtpu.tpu._device_index import check_not_forked, constant, device_index


@constant
def is_available() -> bool:
    """True where ``torch.empty(0, device="tpu")`` would work; starts no device threads."""
    return _C.device_count() > 0


@constant
def device_count() -> int:
    return _C.device_count()


def is_initialized() -> bool:
    return _C.is_started() and not _C.in_bad_fork()


def init() -> None:
    """Starts the device now instead of at its first use."""
    check_not_forked()
    _C.start()


def _lazy_init() -> None:
    if not is_initialized():
        init()


def _is_in_bad_fork() -> bool:
    return _C.in_bad_fork()


def current_device() -> int:
    return torch.accelerator.current_device_index()  # Dynamo knows this one


def set_device(device) -> None:
    index = device_index(device)
    if index >= 0:
        torch._C._accelerator_setDeviceIndex(index)


class device:
    """Context manager: ``device`` is the current one inside. None and -1 change nothing."""

    def __init__(self, device=None):
        negative = isinstance(device, int) and device < 0
        self.idx = -1 if device is None or negative else device_index(device)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = current_device()
            if self.prev_idx != self.idx:
                set_device(self.idx)
        return self

    def __exit__(self, *_):
        if self.idx >= 0 and self.prev_idx != self.idx:
            set_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager: the current device is that of ``obj``, if that is on tpu."""

    def __init__(self, obj):
        on_tpu = getattr(getattr(obj, "device", None), "type", None) == "tpu"
        super().__init__(obj.device.index if on_tpu else None)


def _exchange_device(index: int) -> int:
    before = current_device()
    if index >= 0:
        set_device(index)
    return before


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


def synchronize(device=None) -> None:
    """Waits for all work on ``device``; an error of that work is raised here."""
    if not torch.compiler.is_dynamo_compiling():
        check_not_forked()
    torch.accelerator.synchronize(device_index(device))


@atexit.register
def _settle_autograd() -> None:
    """Lets autograd's device threads drop what their last backward held.

    A device thread lets go of a finished backward only after it has told the caller. A backward
    started from Python holds a Python object, and a thread that drops one while the interpreter
    ends takes the whole process down. One more backward, of nothing and holding nothing, takes its
    place: that is why it goes straight to the engine.
    """
    if not is_initialized():
        return
    engine = torch.autograd.Variable._execution_engine
    with torch.inference_mode(False):
        for index in range(device_count()):
            nothing = torch.empty(0, device=f"tpu:{index}", requires_grad=True)
            engine.run_backward(
                (nothing,),
                (nothing.detach(),),
                keep_graph=False,
                create_graph=False,
                inputs=(),
                allow_unreachable=True,
                accumulate_grad=True,
            )


@dataclass(frozen=True)
class DeviceProperties:
    name: str
    platform: str
    platform_version: str
    total_memory: int
    multi_processor_count: int
    major: int = 1
    minor: int = 0

    @property
    def is_integrated(self) -> bool:
        return self.platform == "softtpu"


@lru_cache
def _properties(index: int) -> DeviceProperties:
    import os

    info = _C.device_info(index)
    cores = len(os.sched_getaffinity(0)) if info["is_soft"] else 1
    return DeviceProperties(
        info["kind"], info["platform"], info["platform_version"], info["total_memory"], cores
    )


@constant
def get_device_properties(device=None) -> DeviceProperties:
    return _properties(device_index(device))


@constant
def get_device_name(device=None) -> str:
    return get_device_properties(device).name


@constant
def get_device_capability(device=None) -> tuple[int, int]:
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device, peer_device) -> bool:
    count = device_count()
    a, b = device_index(device), device_index(peer_device)
    if not (0 <= a < count and 0 <= b < count):
        raise AssertionError("Invalid device index")
    return a != b
