"""torch.tpu.FloatTensor and its kin, shaped like torch.cuda's: types to make, cast and ask with."""

import torch

_DTYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


class _TensorType(type):
    dtype: torch.dtype

    def __call__(cls, *args) -> torch.Tensor:
        """Sizes give a tensor of that shape, data a copy of it, a tensor itself."""
        if all(isinstance(a, int) for a in args):
            return torch.empty(args or (0,), dtype=cls.dtype, device="tpu")
        (value,) = args
        if isinstance(value, torch.Size):
            return torch.empty(value, dtype=cls.dtype, device="tpu")
        if isinstance(value, torch.Tensor):
            return value.to("tpu", cls.dtype)
        return torch.tensor(value, dtype=cls.dtype, device="tpu")

    def __instancecheck__(cls, value) -> bool:
        is_tensor = isinstance(value, torch.Tensor)
        return is_tensor and value.device.type == "tpu" and value.dtype == cls.dtype


# Tensor.type() takes a class for its name.
_TYPES = {
    f"{name}Tensor": _TensorType(f"torch.tpu.{name}Tensor", (), {"dtype": dtype})
    for name, dtype in _DTYPES.items()
}
FloatTensor = _TYPES["FloatTensor"]
DoubleTensor = _TYPES["DoubleTensor"]
HalfTensor = _TYPES["HalfTensor"]
BFloat16Tensor = _TYPES["BFloat16Tensor"]
ByteTensor = _TYPES["ByteTensor"]
CharTensor = _TYPES["CharTensor"]
ShortTensor = _TYPES["ShortTensor"]
IntTensor = _TYPES["IntTensor"]
LongTensor = _TYPES["LongTensor"]
BoolTensor = _TYPES["BoolTensor"]


def install() -> None:
    """Teaches the deprecated ``torch.set_default_tensor_type`` these types."""
    original = torch.set_default_tensor_type

    def set_default_tensor_type(t) -> None:
        kind = _TYPES.get(t.removeprefix("torch.tpu."), t) if isinstance(t, str) else t
        if not isinstance(kind, _TensorType):
            return original(t)
        if not kind.dtype.is_floating_point:
            raise TypeError(f"only floating-point types are supported as the default type: {t}")
        torch.set_default_dtype(kind.dtype)
        torch.set_default_device("tpu")

    set_default_tensor_type.__doc__ = original.__doc__
    torch.set_default_tensor_type = set_default_tensor_type
