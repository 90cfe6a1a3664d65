"""`tpu_dist`, the c10d backend: registered on import, so `init_process_group()` picks it for `tpu`.

The collectives are C (src/dist): shared memory between the processes of a host.
"""

from __future__ import annotations

import contextlib
import functools

import torch.distributed as dist

_imagined = 0  # ranks of the world that imagined_world() makes up


def _create(options, _backend_options):
    from torchtpu import _C

    def link(name: str):
        """What joins the ranks where they are on several hosts: PyTorch's gloo."""
        store = dist.PrefixStore(f"tpu_dist/{name}", options.store)
        return dist.ProcessGroupGloo(store, options.group_rank, options.group_size, options.timeout)

    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    return _C.process_group_create(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout.total_seconds(),
        ranks if _imagined else [],
        _imagined,
        link,
    )


def imagined_size() -> int:
    """Ranks of the world that is made up (see `imagined_world`); 0: there is none."""
    return _imagined


@contextlib.contextmanager
def imagined_world(size: int):
    """Makes this process rank 0 of `size` ranks of which no other is there.

    For programs of several replicas: what `torchtpu.aot.trace` records of a collective is a
    collective of the program. Outside a trace every rank is taken to hold what this one holds, and
    reductions change nothing.
    """
    global _imagined
    if dist.is_initialized():
        raise RuntimeError("a world cannot be imagined while a process group exists")
    _imagined = size
    try:
        dist.init_process_group("tpu_dist", store=dist.HashStore(), rank=0, world_size=size)
        yield dist.group.WORLD
    finally:
        _imagined = 0
        if dist.is_initialized():
            dist.destroy_process_group()


def _set_defaults() -> None:
    """Makes tpu_dist the default backend of every group that has it.

    PyTorch 2.13 takes gloo for the default of a group that names no backend, and none at all for
    one that names several ("cpu:gloo,tpu:tpu_dist"). DDP asks for the default and fails on both.
    Of a group that keeps its `device_id` a DeviceMesh expects that it can be split.
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
            group.bound_device_id = None
        return made

    c10d._new_process_group_helper = make_with_default


def register() -> None:
    """Makes `tpu_dist` and `tpu` known to torch.distributed. Calling it again is harmless."""
    if not dist.is_available():
        return
    for name in ("tpu_dist", "tpu"):
        if not hasattr(dist.Backend, name.upper()):
            dist.Backend.register_backend(name, _create, extended_api=True, devices=["tpu"])
    # What `init_process_group()` without a backend takes for a tpu device.
    dist.Backend.default_device_backend_map["tpu"] = "tpu_dist"
    _set_defaults()
