"""`tpu_dist`, the c10d backend: registered on import, so `init_process_group()` picks it for `tpu`.

The collectives are C (src/dist): shared memory between the processes of a host.
"""

from __future__ import annotations

import datetime

import torch.distributed as dist


def _create(store, rank: int, size: int, timeout: datetime.timedelta):
    from torchtpu import _C

    return _C.process_group_create(store, rank, size, timeout.total_seconds())


def register() -> None:
    """Makes the names `tpu_dist` and `tpu` known to torch.distributed; again is harmless."""
    if not dist.is_available():
        return
    for name in ("tpu_dist", "tpu"):
        if not hasattr(dist.Backend, name.upper()):
            dist.Backend.register_backend(name, _create, devices=["tpu"])
    # What `init_process_group()` without a backend takes for a tpu device.
    dist.Backend.default_device_backend_map["tpu"] = "tpu_dist"
