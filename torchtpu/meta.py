"""Result types of ops that PyTorch gives no meta kernel, or one that only raises."""

import torch

_library = torch.library.Library("aten", "IMPL")
# PyTorch's one raises for the first two, asks a left-out bias for its device in the third, gives a
# vector of labels a loss of one element, unlike its kernels, in the fourth, and takes only bfloat16
# in the fifth. Those of the others check less or lay out their results otherwise than its kernels.
_REPLACE = {
    "convolution_overrideable",
    "convolution_backward_overrideable",
    "_thnn_fused_lstm_cell",
    "multilabel_margin_loss_forward",
    "_grouped_mm",
    "roll",
    "index_fill",
    "log_sigmoid_forward",
    "rrelu_with_noise_functional",
    "kthvalue",
    "_cdist_backward",
    "complex",
    "masked_scatter",
    "masked_scatter_",
    "multi_margin_loss",
    "multinomial",
    "take",
}


def _meta(name):
    """Registers a meta kernel unless PyTorch has a useful one of its own."""

    def register(function):
        base = name.split(".")[0]
        has = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta")
        if not has:
            _library.impl(name, function, "Meta")
        elif base in _REPLACE:
            _library.impl(name, function, "Meta", allow_override=True)
            # Where the Python dispatcher is on, as under Dynamo, it asks here first.
            overload = getattr(getattr(torch.ops.aten, base), name.partition(".")[2] or "default")
            overload.py_kernels[torch._C.DispatchKey.Meta] = function
            overload._dispatch_cache.clear()
        return function

    return register


def _channels_last(*tensors):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    wanted = formats.get(tensors[0].dim())
    if wanted and any(
        t.is_contiguous(memory_format=wanted) and not t.is_contiguous() for t in tensors
    ):
        return wanted
    return torch.contiguous_format


def _spread(values, count):
    values = list(values)
    return values * count if len(values) == 1 else values


@_meta("convolution_overrideable")
def _convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    spatial = input.dim() - 2
    stride, padding, dilation, extra = (
        _spread(v, spatial) for v in (stride, padding, dilation, output_padding)
    )
    sizes = [input.size(0), weight.size(1) * groups if transposed else weight.size(0)]
    for i in range(spatial):
        span = dilation[i] * (weight.size(2 + i) - 1) + 1
        if transposed:
            size = (input.size(2 + i) - 1) * stride[i] - 2 * padding[i] + span + extra[i]
        else:
            size = (input.size(2 + i) + 2 * padding[i] - span) // stride[i] + 1
        sizes.append(size)
    return input.new_empty(sizes).to(memory_format=_channels_last(input, weight))


@_meta("convolution_backward_overrideable")
def _convolution_backward(
    grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    memory_format = _channels_last(input, weight)
    grad_input = (
        input.new_empty(input.shape).to(memory_format=memory_format) if output_mask[0] else None
    )
    grad_weight = (
        weight.new_empty(weight.shape).to(memory_format=memory_format) if output_mask[1] else None
    )
    grad_bias = grad.new_empty(grad.size(1)) if output_mask[2] else None
    return grad_input, grad_weight, grad_bias


@_meta("conv_tbc")
def _conv_tbc(self, weight, bias, pad=0):
    time = self.size(0) + 2 * pad - weight.size(0) + 1
    return self.new_empty(time, self.size(1), weight.size(2))


@_meta("_thnn_fused_lstm_cell")
def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    return cx.new_empty(cx.shape), cx.new_empty(cx.shape), input_gates.new_empty(input_gates.shape)


@_meta("_thnn_fused_gru_cell")
def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return hx.new_empty(hx.shape), hx.new_empty(hx.size(0), hx.size(1) * 5)


@_meta("_thnn_fused_gru_cell_backward")
def _gru_cell_backward(grad_hy, workspace, has_bias):
    batch, hidden = grad_hy.shape
    gates = [workspace.new_empty(batch, 3 * hidden) for _ in range(2)]
    biases = [workspace.new_empty(3 * hidden) if has_bias else None for _ in range(2)]
    return gates[0], gates[1], grad_hy.new_empty(grad_hy.shape), biases[0], biases[1]


@_meta("geqrf")
def _geqrf(self):
    *batch, rows, cols = self.shape
    packed = self.new_empty(*batch, cols, rows).mT
    return packed, self.new_empty(*batch, min(rows, cols))


@_meta("fractional_max_pool3d_backward")
def _fractional_max_pool3d_backward(grad_output, self, kernel_size, output_size, indices):
    return torch.empty_like(self)


def _like(self, *rest, **options):
    return torch.empty_like(self)


def _like_second(grad, self, *rest, **options):
    return torch.empty_like(self)


for _name in (
    "binomial",
    "_sample_dirichlet",
    "_masked_softmax",
    "_masked_softmax_backward",
    "_logcumsumexp",
    "glu_jvp",
    "_add_relu.Scalar",
):
    _meta(_name)(_like)
for _name in ("multi_margin_loss_backward", "multilabel_margin_loss_backward"):
    _meta(_name)(_like_second)


@_meta("_aminmax")
def _aminmax(self):
    return self.new_empty(()), self.new_empty(())


@_meta("_aminmax.dim")
def _aminmax_dim(self, dim, keepdim=False):
    sizes = list(self.shape)
    if sizes:
        sizes[dim] = 1
        if not keepdim:
            del sizes[dim]
    return self.new_empty(sizes), self.new_empty(sizes)


for _name in ("index_fill.int_Scalar", "index_fill.int_Tensor"):
    _meta(_name)(_like)


@_meta("_cdist_backward")
def _cdist_backward(grad, x1, x2, p, cdist):
    batch = torch.broadcast_shapes(grad.shape[:-2], x1.shape[:-2], x2.shape[:-2])
    return x1.new_empty(*batch, *x1.shape[-2:])


@_meta("kthvalue")
def _kthvalue(self, k, dim=-1, keepdim=False):
    sizes = list(self.shape)
    if sizes:
        self.size(dim)  # raises where there is no such dimension
        sizes[dim] = 1
        if not keepdim:
            del sizes[dim]
    elif dim not in (0, -1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got {dim})"
        )
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)


@_meta("rrelu_with_noise_functional")
@_meta("log_sigmoid_forward")
def _contiguous_pair(self, *rest, **options):
    return self.new_empty(self.shape), self.new_empty(self.shape)


@_meta("roll")
def _roll(self, shifts, dims=()):
    if len(dims) != len(shifts) and not (len(dims) == 0 and len(shifts) == 1):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if not shifts:
        raise RuntimeError("`shifts` required")
    for dim in dims:
        self.size(dim)  # raises where there is no such dimension
    if not dims:  # of the elements in a row
        return self.new_empty(self.shape)
    return self.new_empty(self.shape).to(memory_format=_channels_last(self))


def _changes_in_place(*lists, **options):
    return None


for _name in (
    "_fused_sgd_",
    "_fused_sgd_.tensor_lr",
    "_fused_adagrad_",
    "_fused_adagrad_.tensor_lr",
    "_fused_adam_.tensor_lr",
    "_fused_adamw_",
    "_fused_adamw_.tensor_lr",
):
    _meta(_name)(_changes_in_place)


@_meta("_grouped_mm")
def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    if self.dim() == 2:
        groups = [offs.size(0), self.size(0)] if mat2.dim() == 2 else [self.size(0)]
    else:
        groups = [self.size(1)] if mat2.dim() == 2 else [self.size(0), self.size(1)]
    sizes = [*groups, mat2.size(-1)]
    # Rows start at multiples of 16 bytes, as PyTorch's kernels lay them out.
    dtype = out_dtype or self.dtype
    align = 16 // dtype.itemsize
    row = (sizes[-1] + align - 1) // align * align
    strides = [row, 1] if len(sizes) == 2 else [sizes[1] * row, row, 1]
    return self.new_empty_strided(sizes, strides, dtype=dtype)
