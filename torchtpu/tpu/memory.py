"""Device memory: what is used, what was, what is left."""

import gc

import torch

from torchtpu import _C
from torchtpu.tpu._device_index import device_index


def empty_cache() -> None:
    """Drops Python's unreachable tensors; free blocks of every device go back to the system."""
    if _C.is_started():
        gc.collect()
        torch.accelerator.empty_cache()


def ipc_collect() -> None:
    """Tensors are not shared between processes, so nothing waits to be freed."""


def memory_stats(device=None) -> dict:
    if not _C.is_started():
        return {}
    return torch.accelerator.memory_stats(device_index(device))


def memory_stats_as_nested_dict(device=None) -> dict:
    return torch._C._accelerator_getDeviceStats(device_index(device)) if _C.is_started() else {}


def _stat(name: str, device) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device=None) -> int:
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device=None) -> int:
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device=None) -> int:
    return max(_stat("reserved_bytes.all.current", device), memory_allocated(device))


def max_memory_reserved(device=None) -> int:
    return max(_stat("reserved_bytes.all.peak", device), max_memory_allocated(device))


def reset_peak_memory_stats(device=None) -> None:
    if _C.is_started():
        torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device=None) -> None:
    if _C.is_started():
        torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def reset_max_memory_allocated(device=None) -> None:
    reset_peak_memory_stats(device)


def mem_get_info(device=None) -> tuple[int, int]:
    """(free, total) bytes."""
    return torch.accelerator.get_memory_info(device_index(device))


def memory_summary(device=None, abbreviated: bool = False) -> str:
    index = device_index(device)
    rows = [
        ("allocated", memory_allocated(index), max_memory_allocated(index)),
        ("reserved", memory_reserved(index), max_memory_reserved(index)),
    ]
    lines = [f"tpu:{index} memory", f"{'':<12}{'current':>16}{'peak':>16}"]
    lines += [f"{name:<12}{current:>16,}{peak:>16,}" for name, current, peak in rows]
    if not abbreviated:
        stats = memory_stats(index)
        lines.append(f"{'allocations':<12}{stats.get('num_device_alloc', 0):>16,}")
        lines.append(f"{'frees':<12}{stats.get('num_device_free', 0):>16,}")
    return "\n".join(lines)
