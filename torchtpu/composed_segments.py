"""Reductions of segments, jagged tensors, and forms of lowered ops, made of device ops."""

import math

import torch
from torch import Tensor

from torchtpu.composed import composes

# --- segments -------------------------------------------------------------------------------------


def _lengths(lengths, offsets) -> Tensor:
    return offsets.diff(dim=-1) if lengths is None else lengths


def _segment_of(data: Tensor, lengths: Tensor, axis: int) -> Tensor:
    """The segment of every element, one past the last for what no segment holds."""
    ends = lengths.cumsum(-1)
    places = torch.arange(data.size(axis), device=data.device)
    places = places.to(ends.dtype).expand(*ends.shape[:-1], -1).contiguous()
    segment = torch.searchsorted(ends, places, right=True)
    trailing = (1,) * (data.dim() - axis - 1)
    return segment.reshape(*segment.shape, *trailing).expand(data.shape)


_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_SCATTER = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def _broadcast_lengths(lengths: Tensor, data: Tensor) -> Tensor:
    return lengths.reshape(*lengths.shape, *(1,) * (data.dim() - lengths.dim())).to(data.dtype)


@composes("segment_reduce")
def _segment_reduce(
    data,
    reduce: str,
    *,
    lengths=None,
    indices=None,
    offsets=None,
    axis: int = 0,
    unsafe: bool = False,
    initial=None,
):
    axis %= data.dim()
    counts = _lengths(lengths, offsets)
    if not unsafe and bool((counts < 0).any()):
        raise RuntimeError("lengths contains negative value!")
    if not unsafe and bool((counts.sum(-1) != data.size(axis)).any()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size("
            "lengths.dim()-1) when !unsafe."
        )
    shape = list(data.shape)
    shape[axis] = counts.size(-1) + 1
    start = data.new_full(shape, _START[reduce] if initial is None else initial)
    segment = _segment_of(data, counts, axis)
    result = start.scatter_reduce(axis, segment, data, _SCATTER[reduce], include_self=True)
    result = result.narrow(axis, 0, counts.size(-1))
    if reduce == "mean":
        size = _broadcast_lengths(counts, data)
        empty = math.nan if initial is None else initial
        result = torch.where(size > 0, result / size, empty)
    return result.contiguous()


@composes("_segment_reduce_backward")
def _segment_reduce_backward(
    grad, output, data, reduce: str, *, lengths=None, offsets=None, axis: int = 0, initial=None
):
    axis %= data.dim()
    counts = _lengths(lengths, offsets)
    segment = _segment_of(data, counts, axis)
    inside = segment < counts.size(-1)
    segment = segment.clamp(max=max(counts.size(-1) - 1, 0))

    def spread(values: Tensor) -> Tensor:
        return values.gather(axis, segment)

    if reduce in ("max", "min"):
        hit = ((data == spread(output)) | data.isnan()) & inside
        ties = torch.zeros_like(output).scatter_add(axis, segment, hit.to(data.dtype))
        result = torch.where(hit, spread(grad / ties.clamp(min=1)), 0)
    elif reduce == "mean":
        result = spread(grad / _broadcast_lengths(counts, data).clamp(min=1))
    elif reduce == "sum":
        result = spread(grad)
    else:
        zero = (data == 0) & inside
        zeros = torch.zeros_like(output).scatter_add(axis, segment, zero.to(data.dtype))
        begin = torch.full_like(output, 1 if initial is None else initial)
        rest = begin.scatter_reduce(axis, segment, torch.where(zero, 1, data), "prod")
        others = torch.where(zero, spread(rest), spread(rest) / data)
        alone = spread(zeros) - zero.to(data.dtype) == 0
        result = torch.where(alone, spread(grad) * others, 0)
    return torch.where(inside, result, 0)


# --- jagged tensors -------------------------------------------------------------------------------


@composes("_jagged_to_padded_dense_forward")
def _jagged_to_padded(values, offsets, max_lengths, padding_value: float = 0.0) -> Tensor:
    starts, lengths = offsets[0][:-1], offsets[0].diff()
    column = torch.arange(max_lengths[0], device=values.device)
    at = (starts.unsqueeze(1) + column).clamp(max=max(values.size(0) - 1, 0))
    rows = values.index_select(0, at.flatten()).reshape(*at.shape, *values.shape[1:])
    inside = column < lengths.unsqueeze(1)
    inside = inside.reshape(*inside.shape, *(1,) * (values.dim() - 1))
    return torch.where(inside, rows, padding_value)


@composes("_padded_dense_to_jagged_forward")
def _padded_to_jagged(dense, offsets, total_L=None) -> Tensor:
    total = offsets[0][-1].item() if total_L is None else total_L
    place = torch.arange(total, device=dense.device, dtype=offsets[0].dtype)
    row = torch.searchsorted(offsets[0], place, right=True) - 1
    column = place - offsets[0].index_select(0, row)
    inside = (column < dense.size(1)).reshape(-1, *(1,) * (dense.dim() - 2))
    at = row * dense.size(1) + column.clamp(max=dense.size(1) - 1)
    return torch.where(inside, dense.flatten(0, 1).index_select(0, at), 0)


@composes("_transform_bias_rescale_qkv")
def _transform_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int):
    batch, length, width = qkv.shape
    heads = (qkv + qkv_bias).reshape(batch, length, 3, num_heads, width // 3 // num_heads)
    q, k, v = (t.contiguous() for t in heads.permute(2, 0, 3, 1, 4))
    return q * (width // 3 // num_heads) ** -0.5, k, v


# --- other forms of lowered ops -------------------------------------------------------------------


def _into(out: Tensor, result: Tensor, name: str) -> Tensor:
    if out.dtype != result.dtype:
        raise RuntimeError(f"{name}: Expected out tensor to have dtype {result.dtype}")
    if out.shape != result.shape:
        out.resize_(result.shape).as_strided_(result.shape, result.stride())
    return out.copy_(result)


def _check_apart(out: Tensor, *read: Tensor) -> None:
    again = "Please clone() the tensor before performing the operation."
    if any(size > 1 and stride == 0 for size, stride in zip(out.shape, out.stride())):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            f"single memory location. {again}"
        )
    storage = out.untyped_storage().data_ptr()
    if out.numel() and any(t.untyped_storage().data_ptr() == storage for t in read):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor "
            f"refer to a single memory location. {again}"
        )


@composes("nonzero.out")
def _nonzero_out(self: Tensor, *, out: Tensor) -> Tensor:
    return _into(out, torch.nonzero(self), "nonzero")


@composes("masked_select.out")
def _masked_select_out(self: Tensor, mask: Tensor, *, out: Tensor) -> Tensor:
    _check_apart(out, self, mask)
    return _into(out, torch.masked_select(self, mask), "masked_select")


@composes("_cummax_helper")
def _cummax_helper(self, values, indices, dim: int) -> None:
    for to, result in zip((values, indices), torch.cummax(self, dim)):
        to.copy_(result)


@composes("_cummin_helper")
def _cummin_helper(self, values, indices, dim: int) -> None:
    for to, result in zip((values, indices), torch.cummin(self, dim)):
        to.copy_(result)


@composes("_compute_linear_combination")
def _linear_combination(input: Tensor, coefficients: Tensor) -> Tensor:
    return torch.tensordot(coefficients, input, 1)


def _convolution(self, weight, bias, stride, padding, dilation=1, transposed=False, extra=0):
    batch = self if self.dim() == weight.dim() else self.unsqueeze(0)
    stride, padding, dilation, extra = (
        [n] * (weight.dim() - 2) if isinstance(n, int) else n
        for n in (stride, padding, dilation, extra)
    )
    result = torch.convolution(batch, weight, bias, stride, padding, dilation, transposed, extra, 1)
    return result if batch is self else result.squeeze(0)


@composes("_slow_conv2d_forward", "slow_conv3d_forward")
def _slow_conv(self, weight, kernel_size, bias, stride, padding) -> Tensor:
    return _convolution(self, weight, bias, stride, padding)


@composes("slow_conv_dilated2d", "slow_conv_dilated3d")
def _slow_conv_dilated(self, weight, kernel_size, bias=None, stride=1, padding=0, dilation=1):
    return _convolution(self, weight, bias, stride, padding, dilation)


@composes("slow_conv_transpose2d", "slow_conv_transpose3d")
def _slow_conv_transpose(
    self, weight, kernel_size, bias=None, stride=1, padding=0, output_padding=0, dilation=1
):
    return _convolution(self, weight, bias, stride, padding, dilation, True, output_padding)


@composes("_assert_async")
def _assert_async(self: Tensor) -> None:
    if not bool(self):
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero")


@composes("_assert_async.msg")
def _assert_async_msg(self: Tensor, assert_msg: str) -> None:
    if not bool(self):
        raise RuntimeError(assert_msg or "Assertion is failed")


@composes("_functional_assert_async.msg")
def _functional_assert(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    _assert_async_msg(self, assert_msg)
    return dep_token.clone()


@composes("_make_dep_token")
def _make_dep_token(
    *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
) -> Tensor:
    return torch.empty((), dtype=dtype, device=device)
