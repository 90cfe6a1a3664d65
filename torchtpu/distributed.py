"""`tpu_dist`, the c10d backend: registered on import, so `init_process_group()` picks it for `tpu`.

The collectives are C (src/dist): shared memory between the processes of a host.
"""

from __future__ import annotations

import datetime
import functools

import torch.distributed as dist


def _create(store, rank: int, size: int, timeout: datetime.timedelta):
    from torchtpu import _C

    return _C.process_group_create(store, rank, size, timeout.total_seconds())


def _set_defaults() -> None:
    """Makes tpu_dist the default backend of every group that has it.

    PyTorch 2.13 takes gloo for the default of a group that names no backend, and none at all for
    one that names several ("cpu:gloo,tpu:tpu_dist"). DDP asks for the default and fails on both.
    """
    c10d = dist.distributed_c10d
    make = c10d._new_process_group_helper
    if hasattr(make, "__wrapped__"):
        return

    @functools.wraps(make)
    def make_with_default(*args, **kwargs):
        made = make(*args, **kwargs)
        group = made[0]
        if isinstance(group, dist.ProcessGroup) and any(
            device.type == "tpu" for device in group._device_types
        ):
            group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        return made

    c10d._new_process_group_helper = make_with_default


def register() -> None:
    """Makes `tpu_dist` and `tpu` known to torch.distributed. Calling it again is harmless."""
    if not dist.is_available():
        return
    for name in ("tpu_dist", "tpu"):
        if not hasattr(dist.Backend, name.upper()):
            dist.Backend.register_backend(name, _create, devices=["tpu"])
    # What `init_process_group()` without a backend takes for a tpu device.
    dist.Backend.default_device_backend_map["tpu"] = "tpu_dist"
    _set_defaults()
