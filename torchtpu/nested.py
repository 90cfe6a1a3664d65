"""Kernels of strided nested tensors that PyTorch writes once a device, made of other ops here.

The rest of the family is written in terms of other ops already: ``bridge/layout_ops.inc`` lists it.
"""

import torch
from torch import Tensor

_library = torch.library.Library("aten", "IMPL")
_KEY_PADDING = 1  # mask_type of a mask that says which keys are padding


def _kernel(name: str):
    def register(function):
        _library.impl(name, function, "NestedTensorPrivateUse1")
        return function

    return register


def _pad(nested: Tensor, mask) -> tuple[Tensor, Tensor]:
    """The rows padded to the longest, and which of them are padding."""
    if mask is not None:
        raise RuntimeError("a nested tensor says itself what is padding: it takes no mask")
    padded = nested.to_padded_tensor(0.0)
    lengths = nested._nested_tensor_size()[:, :1].to(padded.device)
    return padded, torch.arange(padded.size(1), device=padded.device) >= lengths


def _nest(padded: Tensor, like: Tensor) -> Tensor:
    return torch._nested_from_padded(padded, like._nested_tensor_size())


@_kernel("_transformer_encoder_layer_fwd")
def _encoder_layer(src: Tensor, *rest, mask=None, mask_type=None) -> Tensor:
    weights, options = rest[:17], rest[17:]
    padded, padding = _pad(src, options[0] if options else mask)
    layer = torch.ops.aten._transformer_encoder_layer_fwd
    return _nest(layer(padded, *weights, padding, _KEY_PADDING), src)


@_kernel("_native_multi_head_attention")
def _multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask=None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type=None,
) -> tuple[Tensor, Tensor | None]:
    if query is not key or key is not value:
        raise RuntimeError("nested multi-head attention: query, key and value must be one tensor")
    padded, padding = _pad(query, mask)
    parameters = qkv_weight, qkv_bias, proj_weight, proj_bias
    options = padding, need_weights, average_attn_weights, _KEY_PADDING
    result, weights = torch._native_multi_head_attention(
        padded, padded, padded, embed_dim, num_head, *parameters, *options
    )
    if need_weights:  # dense, and a padded query looks at nothing
        rows = padding if average_attn_weights else padding.unsqueeze(1)
        weights = weights.masked_fill(rows.unsqueeze(-1), 0.0)
    return _nest(result, query), weights if need_weights else None


@_kernel("sum.dim_IntList")
def _sum(self: Tensor, dim, keepdim: bool = False, *, dtype=None) -> Tensor:
    if not dim or [d % self.dim() for d in dim] != [self.dim() - 1]:
        raise RuntimeError("NestedTensor only allows reduction across the last dimension for sum.")
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for sum.")
    sizes = self._nested_tensor_size().clone()
    sizes[:, -1] = 1
    padded = self.to_padded_tensor(0.0).sum(-1, keepdim=True, dtype=dtype)
    return torch._nested_from_padded(padded, sizes)


@_kernel("_nested_sum_backward")
def _sum_backward(grad: Tensor, self: Tensor, dim, keepdim: bool = False) -> Tensor:
    padded = grad.to_padded_tensor(0.0)
    return _nest(padded.expand(*padded.shape[:-1], self.size(-1)).contiguous(), self)


def _like(buffer: Tensor, nested: Tensor) -> Tensor:
    sizes, strides = nested._nested_tensor_size(), nested._nested_tensor_strides()
    return torch._nested_view_from_buffer(
        buffer.flatten(), sizes, strides, nested._nested_tensor_storage_offsets()
    )


def _rows(nested: Tensor, shape) -> Tensor:
    if len(shape) != 1 or nested.size(-1) != shape[0]:
        raise RuntimeError(
            f"NestedTensor layer_norm normalizes the last dimension, {nested.size(-1)}: "
            f"got normalized_shape {list(shape)}"
        )
    return nested.contiguous().values().reshape(-1, shape[0])


@_kernel("native_layer_norm")
def _layer_norm(input: Tensor, normalized_shape, weight, bias, eps: float):
    if weight is None or bias is None:
        raise RuntimeError("NestedTensor layer_norm requires weight and bias")
    rows = _rows(input, normalized_shape)
    result, mean, rstd = torch.native_layer_norm(rows, normalized_shape, weight, bias, eps)
    return _like(result, input.contiguous()), mean, rstd


@_kernel("native_layer_norm_backward")
def _layer_norm_backward(
    grad_out: Tensor, input: Tensor, normalized_shape, mean, rstd, weight, bias, output_mask
):
    rows = [_rows(t, normalized_shape) for t in (grad_out, input)]
    grad, grad_weight, grad_bias = torch.ops.aten.native_layer_norm_backward(
        *rows, normalized_shape, mean, rstd, weight, bias, output_mask
    )
    return None if grad is None else _like(grad, input.contiguous()), grad_weight, grad_bias
