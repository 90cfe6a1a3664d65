"""Eager modes: when recorded ops become programs."""

import enum
import threading

from torchtpu import _C


class EagerMode(enum.IntEnum):
    """The members with DEFER in their names are what other TPU backends call the same modes."""

    STRICT = 0
    DEBUG = 1
    DEFER_AND_FUSE = 2
    DEFER_NEVER = 0
    DEFER_NEVER_AND_LAUNCH_BLOCKING = 1


def _parse(mode) -> EagerMode:
    if isinstance(mode, EagerMode):
        return mode
    if isinstance(mode, str) and mode.upper() in EagerMode.__members__:
        return EagerMode[mode.upper()]
    names = ", ".join(repr(name.lower()) for name in ("STRICT", "DEBUG", "DEFER_AND_FUSE"))
    raise ValueError(f"eager mode must be one of {names} or a torch.tpu.EagerMode, not {mode!r}")


def get_eager_mode() -> EagerMode:
    return EagerMode(_C.mode())


def set_eager_mode(mode) -> None:
    """Work recorded so far is submitted first. The mode is the process's, not a thread's."""
    _C.set_mode(int(_parse(mode)))


class eager_mode:
    """``with torch.tpu.eager_mode("defer_and_fuse"): ...``"""

    def __init__(self, mode):
        self.mode = _parse(mode)
        self._before = threading.local()

    def __enter__(self):
        stack = self._before.__dict__.setdefault("stack", [])
        stack.append(get_eager_mode())
        set_eager_mode(self.mode)
        return self.mode

    def __exit__(self, *_):
        set_eager_mode(self._before.stack.pop())
        return False


def set_check_finite(on: bool) -> None:
    """Debug mode: look for NaN and Inf in every op's results."""
    _C.set_check_finite(bool(on))


def flush(device=None) -> None:
    """Submits what DeferAndFuse has recorded; does not wait."""
    from torchtpu.tpu._device_index import device_index

    _C.flush(device_index(device))
