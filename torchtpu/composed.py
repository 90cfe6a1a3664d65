"""Ops made of other device ops, where neither a lowering nor PyTorch's own decomposition serves.

:mod:`torchtpu.decompositions` looks here first.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

TABLE: dict = {}  # overload -> function


def composes(*names: str):
    def register(function):
        for name in names:
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if op is not None:
                TABLE[op] = function
        return function

    return register


# --- sparse indices -------------------------------------------------------------------------------


@composes("_convert_indices_from_coo_to_csr")
def _coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    bounds = torch.arange(size + 1, dtype=self.dtype, device=self.device)
    return torch.searchsorted(self, bounds, out_int32=out_int32)


@composes("_convert_indices_from_csr_to_coo")
def _csr_to_coo(
    crow: Tensor, col: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    dtype = torch.int32 if out_int32 else torch.int64
    batches = math.prod(crow.shape[:-1])
    lengths = crow.reshape(batches, -1).diff(dim=1)
    rows = lengths.size(1)
    place = torch.repeat_interleave(lengths.flatten(), output_size=col.numel())
    indices = [place % max(rows, 1), col.flatten()]
    if transpose:
        indices.reverse()
    place = torch.div(place, max(rows, 1), rounding_mode="floor")
    for size in reversed(crow.shape[:-1]):
        indices.insert(0, place % size)
        place = torch.div(place, size, rounding_mode="floor")
    return torch.stack([i.to(dtype) for i in indices])


@composes("_validate_compressed_sparse_indices")
def _validate_compressed(
    is_crow: bool, compressed_idx: Tensor, plain_idx: Tensor, cdim: int, dim: int, nnz: int
) -> None:
    c, p = ("crow_indices", "col_indices") if is_crow else ("ccol_indices", "row_indices")
    rows, columns = ("nrows", "ncols") if is_crow else ("ncols", "nrows")
    lengths = compressed_idx.diff(dim=-1)
    starts = compressed_idx[..., :-1].reshape(-1, cdim)
    first = torch.zeros(plain_idx.numel() // max(nnz, 1), nnz + 1, device=plain_idx.device)
    if nnz:
        first = first.scatter(1, starts.clamp(0, nnz).long(), 1.0)
    first = first[:, 1:nnz].reshape(*plain_idx.shape[:-1], -1) if nnz else first[:, :0]
    rising = (plain_idx.diff(dim=-1) > 0) | (first != 0) if nnz else first != 0
    checks = {
        f"{c}[..., 0] == 0": compressed_idx[..., 0] == 0,
        f"{c}[..., -1] == nnz": compressed_idx[..., -1] == nnz,
        f"0 <= {c}[..., 1:] - {c}[..., :-1] <= {columns}": (lengths >= 0) & (lengths <= dim),
        f"0 <= {p} < {columns}": (plain_idx >= 0) & (plain_idx < dim),
        f"{p}[..., {c}[..., i - 1]:{c}[..., i]] for all i = 1, ..., {rows} are sorted and distinct "
        "along the last dimension values": rising,
    }
    held = torch.stack([ok.all() for ok in checks.values()]).tolist()
    for what, ok in zip(checks, held):
        if not ok:
            raise RuntimeError(f"`{what}` is not satisfied.")


@composes("hash_tensor")
def _hash(self: Tensor, dim=(), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the elements' 64 bits, by halves."""
    bits = self.double().view(torch.int64) if self.is_floating_point() else self.long()
    dims = sorted({d % max(self.dim(), 1) for d in dim} or range(self.dim()))
    for d in dims if self.dim() else ():
        while bits.size(d) > 1:
            half = (bits.size(d) + 1) // 2
            low, high = bits.narrow(d, 0, half), bits.narrow(d, half, bits.size(d) - half)
            both = low.narrow(d, 0, high.size(d)) ^ high
            bits = torch.cat([both, low.narrow(d, high.size(d), half - high.size(d))], d)
        if bits.size(d) == 0:
            bits = bits.new_zeros([1 if i == d else n for i, n in enumerate(bits.shape)])
    if not keepdim and self.dim():
        bits = bits.squeeze(dims)
    return bits.contiguous().view(torch.uint64)


# --- sizes that are given -------------------------------------------------------------------------


@composes("nonzero_static")
def _nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    count = self.numel()
    place = torch.arange(count, device=self.device)
    place = torch.where(self.flatten() != 0, place, count).sort().values[:size]
    place = F.pad(place, (0, size - place.numel()), value=count)
    columns: list[Tensor] = []
    rest = place
    for length in reversed(self.shape):
        columns.insert(0, rest % max(length, 1))
        rest = torch.div(rest, max(length, 1), rounding_mode="floor")
    if not columns:
        return place.new_zeros(size, 0)
    return torch.where((place == count).unsqueeze(1), fill_value, torch.stack(columns, 1))


@composes("_efficientzerotensor")
def _efficient_zeros(size, *, dtype=None, layout=None, device=None, pin_memory=None) -> Tensor:
    return torch.zeros(size, dtype=dtype, device=device)


@composes("addbmm_")
def _addbmm_in_place(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1) -> Tensor:
    result = torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    if self.shape != result.shape:  # as on the CPU: self takes the result's size
        self.resize_(result.shape)
    return self.copy_(result)


@composes("rrelu_with_noise")
def _rrelu(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None) -> Tensor:
    result, drawn = torch.ops.aten.rrelu_with_noise_functional(
        self, noise, lower, upper, training, generator
    )
    noise.copy_(drawn)
    return result


@composes("_fused_sdp_choice")
def _attention_choice(query, key, value, *rest, **options) -> int:
    return 0  # SDPBackend.MATH: the device fuses attention by itself


# --- histograms -----------------------------------------------------------------------------------


def _checked_range(low: float, high: float) -> tuple[float, float]:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            "torch.histogramdd: min should not exceed max, but got min "
            f"{low} max {high} for dimension 0"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(column: Tensor, bins: int, limits) -> Tensor:
    if limits is not None:
        low, high = limits
    elif column.numel() == 0:
        low, high = 0.0, 1.0
    else:
        low, high = torch.stack(torch.aminmax(column)).tolist()
    low, high = _checked_range(low, high)
    return torch.linspace(low, high, bins + 1, dtype=column.dtype, device=column.device)


def _histogram(points: Tensor, edges: list[Tensor], weight, density: bool) -> Tensor:
    """Counts of the rows of ``points`` in the grid that ``edges`` span; the last bin is closed."""
    shape = [e.numel() - 1 for e in edges]
    place = torch.zeros(points.size(0), dtype=torch.int64, device=points.device)
    inside = torch.ones(points.size(0), dtype=torch.bool, device=points.device)
    for d, edge in enumerate(edges):
        x = points[:, d].contiguous()
        at = torch.searchsorted(edge, x, right=True) - 1
        at = torch.where(x == edge[-1], shape[d] - 1, at)
        inside = inside & (x >= edge[0]) & (x <= edge[-1])
        place = place * shape[d] + at.clamp(0, shape[d] - 1)
    ones = points.new_ones(points.size(0)) if weight is None else weight.reshape(-1)
    ones = torch.where(inside, ones.to(points.dtype), 0)
    hist = points.new_zeros(math.prod(shape)).index_add(0, place, ones).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            sizes = [1] * len(shape)
            sizes[d] = shape[d]
            hist = hist / edge.diff().reshape(sizes)
    return hist


def _limits(wanted, dim: int):
    return None if wanted is None else (wanted[2 * dim], wanted[2 * dim + 1])


@composes("_histogramdd_bin_edges")
def _histogramdd_bin_edges(self, bins, *, range=None, weight=None, density=False):
    if len(bins) != self.size(-1):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    points = self.reshape(-1, self.size(-1))
    return [_edges(points[:, d], n, _limits(range, d)) for d, n in enumerate(bins)]


@composes("_histogramdd_from_bin_cts")
def _histogramdd_from_bin_cts(self, bins, *, range=None, weight=None, density=False):
    edges = _histogramdd_bin_edges(self, bins, range=range)
    return _histogram(self.reshape(-1, self.size(-1)), edges, weight, density)


@composes("_histogramdd_from_bin_tensors")
def _histogramdd_from_bin_tensors(self, bins, *, weight=None, density=False):
    if len(bins) != self.size(-1):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    return _histogram(self.reshape(-1, self.size(-1)), list(bins), weight, density)


@composes("histogram.bin_ct")
def _histogram_bin_ct(self, bins=100, *, range=None, weight=None, density=False):
    if bins < 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    edges = _edges(self.flatten(), bins, range)
    return _histogram(self.reshape(-1, 1), [edges], weight, density), edges


@composes("histogram.bins_tensor")
def _histogram_bins_tensor(self, bins, *, weight=None, density=False):
    return _histogram(self.reshape(-1, 1), [bins.flatten()], weight, density), bins.clone()


# --- batch normalisation over several processes ---------------------------------------------------


def _per_channel(x: Tensor, values: Tensor) -> Tensor:
    return values.reshape([-1 if d == 1 else 1 for d in range(x.dim())])


def _but_channels(x: Tensor) -> list[int]:
    return [d for d in range(x.dim()) if d != 1]


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@composes("batch_norm_stats")
def _batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(_wide(input), _but_channels(input), correction=0)
    return mean, torch.rsqrt(variance + eps)


@composes("batch_norm_update_stats")
def _batch_norm_update_stats(input, running_mean, running_var, momentum: float):
    variance, mean = torch.var_mean(_wide(input), _but_channels(input), correction=0)
    count = input.numel() // max(input.size(1), 1)
    _move(running_mean, running_var, mean, variance * (count / (count - 1)), momentum)
    return mean, variance


def _move(running_mean, running_var, mean, variance, momentum: float) -> None:
    for running, now in ((running_mean, mean), (running_var, variance)):
        if running is not None:
            running.lerp_(now.to(running.dtype), momentum)


@composes("batch_norm_elemt")
def _batch_norm_elemt(input, weight, bias, mean, invstd, eps: float) -> Tensor:
    scale = invstd if weight is None else invstd * weight
    result = (_wide(input) - _per_channel(input, mean)) * _per_channel(input, scale)
    if bias is not None:
        result = result + _per_channel(input, bias)
    return result.to(input.dtype)


@composes("batch_norm_gather_stats_with_counts")
def _batch_norm_gather(
    input, mean, invstd, running_mean, running_var, momentum: float, eps: float, counts
):
    counts = counts.to(mean.dtype).reshape(-1, 1)
    total = counts.sum()
    average = (mean * counts).sum(0) / total
    squares = ((invstd.pow(-2) - eps + (mean - average).square()) * counts).sum(0)
    _move(running_mean, running_var, average, squares / (total - 1), momentum)
    return average, torch.rsqrt(squares / total + eps)


@composes("batch_norm_gather_stats")
def _batch_norm_gather_even(
    input, mean, invstd, running_mean, running_var, momentum: float, eps: float, count: int
):
    counts = mean.new_full((mean.size(0),), count)
    return _batch_norm_gather(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


@composes("batch_norm_backward_reduce")
def _batch_norm_backward_reduce(
    grad_out, input, mean, invstd, weight, input_g: bool, weight_g: bool, bias_g: bool
):
    grad, dims = _wide(grad_out), _but_channels(input)
    sum_dy = grad.sum(dims)
    sum_dy_xmu = (grad * (_wide(input) - _per_channel(input, mean))).sum(dims)
    like = sum_dy.dtype if weight is None else weight.dtype
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        (sum_dy_xmu * invstd).to(like) if weight_g else None,
        sum_dy.to(like) if bias_g else None,
    )


@composes("batch_norm_backward_elemt")
def _batch_norm_backward_elemt(
    grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count
) -> Tensor:
    total = count.sum().to(sum_dy.dtype)
    slope = _per_channel(input, sum_dy_xmu * invstd.square() / total)
    grad = _wide(grad_out) - _per_channel(input, sum_dy / total)
    grad = grad - (_wide(input) - _per_channel(input, mean)) * slope
    scale = invstd if weight is None else invstd * weight
    return (grad * _per_channel(input, scale)).to(input.dtype)


# --- connectionist temporal classification --------------------------------------------------------


def _check_lengths(log_probs, input_lengths, target_lengths, blank: int) -> None:
    steps, batch, labels = log_probs.shape
    if not 0 <= blank < labels:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
        if min(lengths, default=0) < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {min(lengths)}"
            )
    if max(input_lengths, default=0) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value "
            f"{max(input_lengths)}"
        )


class _Paths:
    """The states of every sample: its labels with blanks between, before and after them."""

    def __init__(self, log_probs, targets, input_lengths, target_lengths, blank: int):
        batch, device = log_probs.size(1), log_probs.device
        self.longest = max(target_lengths, default=0)
        states = 2 * self.longest + 1
        self.inputs = torch.tensor(input_lengths, device=device)
        self.targets = torch.tensor(target_lengths, device=device)
        labels = self._padded(targets, target_lengths, batch, blank)
        self.labels = torch.full((batch, states), blank, dtype=torch.int64, device=device)
        self.labels[:, 1::2] = labels
        before = F.pad(self.labels, (2, 0), value=blank)[:, :states]
        jumps = (self.labels != blank) & (self.labels != before)
        never = -math.inf
        self.jump = torch.where(jumps, 0.0, never).to(log_probs.dtype)
        index = self.labels.expand(log_probs.size(0), batch, states)
        self.scores = log_probs.gather(2, index)
        self.state = torch.arange(states, device=device)

    def _padded(self, targets, lengths, batch: int, blank: int) -> Tensor:
        if targets.dim() > 1:
            if targets.size(1) < self.longest:
                raise RuntimeError(
                    f"Expected tensor to have size at least {self.longest} at dimension 1, but "
                    f"got size {targets.size(1)} for argument #2 'targets'"
                )
            labels = targets[:, : self.longest].long()
        else:
            if targets.numel() != sum(lengths):
                raise RuntimeError(
                    f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size "
                    f"{targets.numel()} for argument #2 'targets'"
                )
            starts = [sum(lengths[:n]) for n in range(batch)]
            at = torch.tensor(starts, device=targets.device).unsqueeze(1) + torch.arange(
                self.longest, device=targets.device
            )
            labels = targets.long()[at.clamp(max=max(targets.numel() - 1, 0))]
        places = torch.arange(self.longest, device=labels.device)
        return torch.where(places < self.targets.unsqueeze(1), labels, blank)

    def ends(self) -> Tensor:
        """Whether a path may end in a state."""
        last = 2 * self.targets.unsqueeze(1)
        return (self.state == last) | ((self.state == last - 1) & (self.state >= 0))


def _log_add(*terms: Tensor) -> Tensor:
    return torch.logsumexp(torch.stack(terms), 0)


@composes("_ctc_loss")
def _ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank: int = 0, zero_infinity: bool = False
):
    _check_lengths(log_probs, input_lengths, target_lengths, blank)
    paths = _Paths(log_probs, targets, input_lengths, target_lengths, blank)
    never = -math.inf
    starts = (paths.state == 0) | ((paths.state == 1) & (paths.targets.unsqueeze(1) > 0))
    alphas = [torch.where(starts, paths.scores[0], never)]
    for scores in paths.scores[1:]:
        alpha = alphas[-1]
        before = F.pad(alpha, (2, 0), value=never)
        reached = _log_add(alpha, before[:, 1:-1], before[:, :-2] + paths.jump)
        alphas.append(reached + scores)
    log_alpha = torch.stack(alphas, 1)
    last = (paths.inputs - 1).clamp(min=0).reshape(-1, 1, 1).expand(-1, 1, log_alpha.size(2))
    final = torch.where(paths.ends(), log_alpha.gather(1, last).squeeze(1), never)
    loss = -torch.logsumexp(final, 1)
    nothing = torch.where(paths.targets == 0, 0.0, math.inf).to(loss.dtype)
    return torch.where(paths.inputs == 0, nothing, loss), log_alpha


@composes("_ctc_loss.Tensor")
def _ctc_loss_tensor(
    log_probs, targets, input_lengths, target_lengths, blank: int = 0, zero_infinity: bool = False
):
    lengths = input_lengths.tolist(), target_lengths.tolist()
    return _ctc_loss(log_probs, targets, *lengths, blank, zero_infinity)


@composes("_ctc_loss_backward")
def _ctc_loss_backward(
    grad,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    neg_log_likelihood,
    log_alpha,
    blank: int,
    zero_infinity: bool = False,
):
    paths = _Paths(log_probs, targets, input_lengths, target_lengths, blank)
    never, steps = -math.inf, log_probs.size(0)
    ends, last = paths.ends(), (paths.inputs - 1).unsqueeze(1)
    jump = F.pad(paths.jump, (0, 2), value=never)[:, 2:]
    beta = torch.full_like(paths.scores[0], never)
    betas = []
    for t in reversed(range(steps)):
        after = F.pad(beta, (0, 2), value=never)
        reached = _log_add(beta, after[:, 1:-1], after[:, 2:] + jump) + paths.scores[t]
        beta = torch.where(last == t, torch.where(ends, paths.scores[t], never), reached)
        betas.append(beta)
    log_beta = torch.stack(betas[::-1])
    loss = neg_log_likelihood.unsqueeze(1)
    through = log_alpha.transpose(0, 1) + log_beta - paths.scores + loss
    share = torch.where(log_beta == never, 0, through.exp())
    share = torch.where(log_alpha.transpose(0, 1) == never, 0, share)
    index = paths.labels.expand_as(share)
    result = log_probs.exp() - torch.zeros_like(log_probs).scatter_add(2, index, share)
    result = result * grad.unsqueeze(1)
    impossible = 0.0 if zero_infinity else math.nan
    result = torch.where(loss.isinf(), impossible, result)
    inside = torch.arange(steps, device=grad.device).reshape(-1, 1, 1) < paths.inputs.unsqueeze(1)
    return torch.where(inside, result, 0)


@composes("_ctc_loss_backward.Tensor")
def _ctc_loss_backward_tensor(grad, log_probs, targets, input_lengths, target_lengths, *rest):
    lengths = input_lengths.tolist(), target_lengths.tolist()
    return _ctc_loss_backward(grad, log_probs, targets, *lengths, *rest)
