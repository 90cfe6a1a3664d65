"""What ``torch.nn.DataParallel`` asks of PyTorch's native module, which only has it with CUDA."""

import torch
from torch import Tensor


def _device(index: int) -> torch.device:
    return torch.device("tpu", index)


def _scatter(tensor: Tensor, devices, chunk_sizes=None, dim: int = 0, streams=None) -> list[Tensor]:
    if not devices:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    elif len(chunk_sizes) != len(devices):
        raise RuntimeError(
            "Expected devices and chunk_sizes to be of same length, but got len(devices) = "
            f"{len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}"
        )
    else:
        chunks = tensor.split(list(chunk_sizes), dim)
    return [chunk.to(_device(d), non_blocking=True) for chunk, d in zip(chunks, devices)]


def _scatter_out(tensor: Tensor, out, dim: int = 0, streams=None) -> list[Tensor]:
    for to, chunk in zip(out, tensor.split([t.size(dim) for t in out], dim), strict=True):
        to.copy_(chunk, non_blocking=True)
    return list(out)


def _gather(tensors, dim: int = 0, destination: int | None = None) -> Tensor:
    index = torch.accelerator.current_device_index() if destination is None else destination
    to = torch.device("cpu") if index == -1 else _device(index)
    return torch.cat([t.to(to, non_blocking=index != -1) for t in tensors], dim)


def _gather_out(tensors, out: Tensor, dim: int = 0) -> Tensor:
    return out.copy_(torch.cat([t.to(out.device) for t in tensors], dim))


def _broadcast(tensor: Tensor, devices) -> list[Tensor]:
    return [tensor.to(_device(d), non_blocking=True) for d in devices]


def _broadcast_out(tensor: Tensor, out) -> list[Tensor]:
    return [to.copy_(tensor, non_blocking=True) for to in out]


def _broadcast_coalesced(tensors, devices, buffer_size: int) -> list[list[Tensor]]:
    return [[t.to(_device(d), non_blocking=True) for t in tensors] for d in devices]


def install() -> None:
    """Adds the functions where PyTorch was built without them."""
    for function in (
        _scatter,
        _scatter_out,
        _gather,
        _gather_out,
        _broadcast,
        _broadcast_out,
        _broadcast_coalesced,
    ):
        if not hasattr(torch._C, function.__name__):
            setattr(torch._C, function.__name__, function)
