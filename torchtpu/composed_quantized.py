"""Fake quantisation and products of scaled numbers, made of device ops."""

import torch
from torch import Tensor

from torchtpu.composed import composes


def _along(x: Tensor, values: Tensor, axis: int) -> Tensor:
    return values.reshape([-1 if d == axis % x.dim() else 1 for d in range(x.dim())])


def _fake_quantize(x: Tensor, scale, zero_point, low: int, high: int) -> tuple[Tensor, Tensor]:
    """The nearest of the numbers that the integers low..high stand for; which x are in range."""
    if isinstance(zero_point, Tensor) and zero_point.is_floating_point():
        place = (x * (1 / scale) + zero_point).round()
    else:
        place = (x * (1 / scale)).round() + zero_point
    inside = (place >= low) & (place <= high)
    return ((place.clamp(low, high) - zero_point) * scale).to(x.dtype), inside


@composes("fake_quantize_per_tensor_affine_cachemask")
def _per_tensor(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int):
    return _fake_quantize(self, scale, zero_point, quant_min, quant_max)


@composes("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def _per_tensor_qparams(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
    result, inside = _fake_quantize(self, scale, zero_point, quant_min, quant_max)
    on = fake_quant_enabled != 0
    return torch.where(on, result, self), inside | ~on


@composes("fake_quantize_per_channel_affine_cachemask")
def _per_channel(self, scale, zero_point, axis: int, quant_min: int, quant_max: int):
    scale, zero_point = _along(self, scale, axis), _along(self, zero_point, axis)
    return _fake_quantize(self, scale, zero_point, quant_min, quant_max)


def _learnable_point(zero_point: Tensor, low: int, high: int) -> Tensor:
    return zero_point.round().clamp(low, high)


def _learnable_backward(grad, x, scale, zero_point, low: int, high: int, factor: float):
    """Gradients of x, of the scale and of the zero point, the last two not yet summed."""
    place = (x * (1 / scale) + zero_point).round()
    inside = (place >= low) & (place <= high)
    end = torch.where(place < low, low, high) - zero_point
    error = ((place.clamp(low, high) - zero_point) * scale - x) / scale
    of_scale = grad * torch.where(inside, error, end) * factor
    of_point = torch.where(inside, 0, -grad * scale * factor)
    return torch.where(inside, grad, 0), of_scale, of_point


@composes("_fake_quantize_learnable_per_tensor_affine")
def _learnable(self, scale, zero_point, quant_min, quant_max, grad_factor=1.0):
    point = _learnable_point(zero_point, quant_min, quant_max)
    place = (self * (1 / scale)).round() + point
    return (place.clamp(quant_min, quant_max) - point) * scale


@composes("_fake_quantize_learnable_per_tensor_affine_backward")
def _learnable_backward_tensor(grad, self, scale, zero_point, low, high, grad_factor=1.0):
    point = _learnable_point(zero_point, low, high)
    grads = _learnable_backward(grad, self, scale, point, low, high, grad_factor)
    return grads[0], grads[1].sum().reshape(scale.shape), grads[2].sum().reshape(zero_point.shape)


@composes("_fake_quantize_learnable_per_channel_affine")
def _learnable_channels(self, scale, zero_point, axis, quant_min, quant_max, grad_factor=1.0):
    scale, zero_point = _along(self, scale, axis), _along(self, zero_point, axis)
    return _learnable(self, scale, zero_point, quant_min, quant_max, grad_factor)


@composes("_fake_quantize_learnable_per_channel_affine_backward")
def _learnable_backward_channels(grad, self, scale, zero_point, axis, low, high, grad_factor=1.0):
    wide = _along(self, scale, axis), _along(self, zero_point, axis)
    point = _learnable_point(wide[1], low, high)
    grads = _learnable_backward(grad, self, wide[0], point, low, high, grad_factor)
    others = [d for d in range(self.dim()) if d != axis % self.dim()]
    return grads[0], grads[1].sum(others), grads[2].sum(others)


def _choose(least: Tensor, most: Tensor, low: int, high: int, symmetric: bool):
    """The scale and the zero point that cover [least, most] and zero with low..high."""
    least, most = least.clamp(max=0).double(), most.clamp(min=0).double()
    if symmetric:
        half = (high - low) // 2
        both = (least < 0) & (most > 0)
        widest = torch.maximum(least.abs() / (half + 1), most.abs() / half)
        least = torch.where(both, -widest * (half + 1), least)
        most = torch.where(both, widest * half, most)
    scale = (most - least) / (high - low)
    scale = torch.where((scale.float() == 0) | (1 / scale.float()).isinf(), 0.1, scale)
    scale = scale.clamp(min=6.1e-5)
    below, above = low - least / scale, high - most / scale
    better = abs(low) + (least / scale).abs() < abs(high) + (most / scale).abs()
    point = torch.where(better, below, above)
    if symmetric:
        point = torch.where(both, (low + high) / 2, point)
    return scale.float(), point.clamp(low, high).round()


@composes("_fused_moving_avg_obs_fq_helper")
def _observe_and_quantize(
    self,
    observer_on,
    fake_quant_on,
    running_min,
    running_max,
    scale,
    zero_point,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
):
    rows = self.movedim(ch_axis, 0).flatten(1) if per_row_fake_quant else self.reshape(1, -1)
    on = observer_on != 0
    for running, seen in zip((running_min, running_max), torch.aminmax(rows, dim=1)):
        if running.shape != seen.shape:  # set on first sight
            running.resize_(seen.shape).fill_(torch.inf if running is running_min else -torch.inf)
        moved = running + averaging_const * (seen - running)
        running.copy_(torch.where(on, torch.where(running.isinf(), seen, moved), running))
    chosen = _choose(running_min, running_max, quant_min, quant_max, symmetric_quant)
    for kept, now in zip((scale, zero_point), chosen):
        if kept.shape != now.shape:
            kept.resize_(now.shape)
        kept.copy_(now)
    wide = (scale, zero_point)
    if per_row_fake_quant:
        wide = _along(self, scale, ch_axis), _along(self, zero_point, ch_axis)
    return _per_tensor_qparams(self, *wide, fake_quant_on, quant_min, quant_max)


@composes("_weight_int8pack_mm")
def _int8_product(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    return torch.mm(self, mat2.to(self.dtype).t()) * scales


@composes("_scaled_mm")
def _scaled_product(
    self,
    mat2,
    scale_a,
    scale_b,
    bias=None,
    scale_result=None,
    out_dtype=None,
    use_fast_accum: bool = False,
):
    result = torch.mm(self.float() * scale_a, mat2.float() * scale_b)
    if bias is not None:
        result = result + bias
    dtype = out_dtype or self.dtype
    if scale_result is not None and dtype.itemsize == 1:
        result = result * scale_result
    return result.to(dtype)
