"""Window functions whose kernels PyTorch writes once a device."""

import torch
from torch import Tensor

_library = torch.library.Library("aten", "IMPL")


def _kaiser(length: int, periodic: bool, beta: float, dtype, layout, device) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    if length < 0:
        raise RuntimeError(f"kaiser_window requires non-negative window_length, got {length}")
    if layout not in (None, torch.strided) or not dtype.is_floating_point:
        raise RuntimeError(
            f"kaiser_window expects a floating point dtype and a strided layout, got {dtype}"
        )
    if length <= 1:
        return torch.ones(length, dtype=dtype, device=device)
    points = length + 1 if periodic else length
    wide = dtype if dtype == torch.float64 else torch.float32
    x = torch.arange(length, dtype=wide, device=device) * (2 / (points - 1)) - 1
    window = torch.special.i0(beta * (1 - x.square()).clamp(min=0).sqrt())
    return (window / torch.special.i0(torch.tensor(beta, dtype=wide, device=device))).to(dtype)


def _window(length, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _kaiser(length, True, 12.0, dtype, layout, device)


def _periodic(length, periodic, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _kaiser(length, periodic, 12.0, dtype, layout, device)


def _beta(length, periodic, beta, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _kaiser(length, periodic, beta, dtype, layout, device)


_library.impl("kaiser_window", _window, "PrivateUse1")
_library.impl("kaiser_window.periodic", _periodic, "PrivateUse1")
_library.impl("kaiser_window.beta", _beta, "PrivateUse1")
