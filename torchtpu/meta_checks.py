"""Meta kernels that find what PyTorch's CPU kernels find and its own meta kernels pass over, in the
words of the former. They run once a new combination of arguments, never on the hot path.
"""

import torch
from torch import Tensor

from torchtpu.meta import _meta

_COMPLEX = {
    torch.float16: torch.complex32,
    torch.float32: torch.complex64,
    torch.float64: torch.complex128,
}
_NAMES = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
    torch.uint8: "Byte",
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}


def _name(t: Tensor) -> str:
    return _NAMES.get(t.dtype, str(t.dtype))


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


@_meta("complex")
def _complex(real: Tensor, imag: Tensor) -> Tensor:
    _check(
        real.dtype in _COMPLEX and imag.dtype in _COMPLEX,
        "Expected both inputs to be Half, Float or Double tensors but got "
        f"{_name(real)} and {_name(imag)}",
    )
    _check(
        real.dtype == imag.dtype,
        f"Expected object of scalar type {_name(real)} but got scalar type {_name(imag)} for "
        "second argument",
    )
    return (real + imag).to(_COMPLEX[real.dtype])


@_meta("complex.out")
def _complex_out(real: Tensor, imag: Tensor, *, out: Tensor) -> Tensor:
    result = _complex(real, imag)
    _check(
        out.dtype == result.dtype,
        f"Expected object of scalar type {_name(result)} but got scalar type {_name(out)} for "
        "argument 'out'",
    )
    return out if out.shape == result.shape else out.resize_(result.shape)


def _check_scatter(self: Tensor, mask: Tensor, source: Tensor) -> None:
    _check(
        self.dtype == source.dtype,
        "masked_scatter: expected self and source to have same dtypes but got "
        f"{_name(self)} and {_name(source)}",
    )
    _check(
        mask.dtype == torch.bool,
        f"masked_scatter_ only supports boolean masks, but got mask with dtype {_name(mask)}",
    )


@_meta("masked_scatter")
def _masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    _check_scatter(self, mask, source)
    return self.new_empty(torch.broadcast_shapes(self.shape, mask.shape))


@_meta("masked_scatter_")
def _masked_scatter_in_place(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    _check_scatter(self, mask, source)
    mask.expand(self.shape)  # raises where it does not fit
    return self


def _check_rows(self: Tensor) -> tuple[int, int]:
    shape = list(self.shape)
    _check(
        self.dim() <= 2 and shape[-1:] != [0],
        f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}",
    )
    classes = shape[-1] if shape else 1
    return (shape[0] if self.dim() == 2 else 1), classes


@_meta("multi_margin_loss")
def _multi_margin(self: Tensor, target: Tensor, p=1, margin=1, weight=None, reduction: int = 1):
    rows, classes = _check_rows(self)
    _check(p in (1, 2), "only p == 1 and p == 2 supported")
    _check(
        target.dim() <= 1 and target.numel() == rows,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
        f"samples (batch size). Expected target size [{rows}] for input of size: "
        f"{list(self.shape)}, but got {list(target.shape)}",
    )
    if weight is not None:
        _check(
            weight.dim() <= 1 and weight.numel() == classes,
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}",
        )
    _check(target.dtype == torch.int64, f"expected scalar type Long but found {_name(target)}")
    return self.new_empty(target.shape if reduction == 0 and self.dim() == 2 else ())


@_meta("multilabel_margin_loss_forward")
def _multilabel_margin(self: Tensor, target: Tensor, reduction: int):
    _check_rows(self)
    _check(
        target.shape == self.shape or (self.dim() < 2 and target.numel() == self.numel()),
        f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}",
    )
    rows = self.shape[:-1] if reduction == 0 else ()
    return self.new_empty(rows), self.new_empty(target.shape)


def _drawn(self: Tensor, num_samples: int, replacement: bool) -> tuple[int, ...]:
    _check(self.dim() in (1, 2), "prob_dist must be 1 or 2 dim")
    _check(
        self.is_floating_point(),
        "multinomial only supports floating-point dtypes for input, got: " + _name(self),
    )
    _check(num_samples > 0, "cannot sample n_sample <= 0 samples")
    _check(
        replacement or num_samples <= self.size(-1),
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    _check(self.size(-1) <= 1 << 24, "number of categories cannot exceed 2^24")
    return (*self.shape[:-1], num_samples)


@_meta("multinomial")
def _multinomial(self: Tensor, num_samples: int, replacement: bool = False, *, generator=None):
    return self.new_empty(_drawn(self, num_samples, replacement), dtype=torch.int64)


@_meta("multinomial.out")
def _multinomial_out(
    self: Tensor, num_samples: int, replacement: bool = False, *, generator=None, out: Tensor
):
    _check(out.dtype == torch.int64, f"multinomial expects Long tensor out, got: {_name(out)}")
    shape = _drawn(self, num_samples, replacement)
    return out if out.shape == shape else out.resize_(shape)


@_meta("take.out")
def _take_out(self: Tensor, index: Tensor, *, out: Tensor) -> Tensor:
    storage = out.untyped_storage()._cdata
    _check(
        all(t.untyped_storage()._cdata != storage for t in (self, index)),
        "unsupported operation: some elements of the input tensor and the written-to tensor refer "
        "to a single memory location. Please clone() the tensor before performing the operation.",
    )
    return out if out.shape == index.shape else out.resize_(index.shape)
