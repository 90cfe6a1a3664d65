"""Streams and events; torch.Stream and torch.Event on this device do the work."""

import torch

from torchtpu.tpu._device_index import device_index

# What torch.Stream calls the device's type.
_DEVICE_TYPE = torch._C._autograd.DeviceType.PrivateUse1.value


class Stream(torch.Stream):
    """Work submitted to one stream runs in order; streams wait for each other through events."""

    def __new__(cls, device=None, priority: int = 0, **kwargs):
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        index = device_index(device)
        return super().__new__(cls, device=torch.device("tpu", index), priority=priority)

    def __repr__(self) -> str:
        return f"<torch.tpu.Stream device={self.device} id={self.stream_id}>"


class _EventType(type):
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "tpu"


class Event(metaclass=_EventType):
    """Makes a torch.Event of the device; torch wants events of exactly that type."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ):
        if interprocess:
            raise NotImplementedError("tpu events cannot be shared between processes")
        return torch.Event(device="tpu", enable_timing=enable_timing, blocking=blocking)


def _wrap(stream: torch.Stream) -> Stream:
    return Stream(
        stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
    )


def is_current_stream_capturing() -> bool:
    """Streams have no graphs to capture into; ``torch.compile`` makes programs."""
    return False


def current_stream(device=None) -> Stream:
    return _wrap(torch._C._accelerator_getStream(device_index(device)))


def default_stream(device=None) -> Stream:
    index = device_index(device)
    return Stream(stream_id=0, device_index=index, device_type=_DEVICE_TYPE)


def set_stream(stream: torch.Stream | None) -> None:
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class stream:
    """Context manager: ``stream`` is the current one inside. None changes nothing."""

    def __init__(self, stream: torch.Stream | None):
        self.stream = stream
        self.previous = None

    def __enter__(self):
        if self.stream is not None:
            self.previous = current_stream(self.stream.device)
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *_):
        if self.previous is not None:
            set_stream(self.previous)
        return False


StreamContext = stream
