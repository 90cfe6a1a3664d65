"""Least squares, and the gradients of gamma and Dirichlet samples."""

import torch
from torch import Tensor

from torchtpu.composed import composes

# --- least squares --------------------------------------------------------------------------------

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _right_side(a: Tensor, b: Tensor) -> Tensor:
    extra = a.dim() - b.dim()
    if a.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
            f"dtype {a.dtype} and other's dtype {b.dtype}"
        )
    if not 0 <= extra <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
            "(input.dim() - other.dim()) <= 1"
        )
    columns = b.unsqueeze(-1) if extra else b
    if a.size(-2) != columns.size(-2):
        where = -1 if extra else -2
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({where})")
    return columns


def _full_rank(a: Tensor, b: Tensor) -> Tensor:
    if a.size(-2) >= a.size(-1):
        q, r = torch.linalg.qr(a)
        return torch.linalg.solve_triangular(r, q.mH @ b, upper=True)
    q, r = torch.linalg.qr(a.mH)
    return q @ torch.linalg.solve_triangular(r.mH, b, upper=False)


@composes("linalg_lstsq")
def _lstsq(self: Tensor, b: Tensor, rcond=None, *, driver=None):
    """Of all drivers but gels the least of the solutions, by singular values."""
    columns, driver = _right_side(self, b), driver or "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    rows, unknowns = self.shape[-2:]
    batch = torch.broadcast_shapes(self.shape[:-2], columns.shape[:-2])
    a, columns = self.expand(*batch, -1, -1), columns.expand(*batch, -1, -1)
    rank = torch.empty(0, dtype=torch.int64, device=self.device)
    values = self.new_empty(0, dtype=self.real.dtype)
    if driver == "gels":
        x = _full_rank(a, columns)
    else:
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        tolerance = torch.finfo(self.dtype).eps * max(rows, unknowns) if rcond is None else rcond
        kept = s > tolerance * s[..., :1]
        rank = kept.sum(-1)
        inverse = torch.where(kept, s.reciprocal(), 0).unsqueeze(-1)
        x = vh.mH @ (inverse * (u.mH @ columns))
        values = s if driver != "gelsy" else values
    residuals = values.new_empty(0)
    whole = driver == "gels" or (driver != "gelsy" and bool((rank == unknowns).all()))
    if rows > unknowns and whole:
        residuals = (columns - a @ x).abs().square().sum(-2)
    return x.squeeze(-1) if b.dim() < self.dim() else x, residuals, rank, values


# --- gradients of samples -------------------------------------------------------------------------
#
# With F(x; a) the distribution of a sample x, dx/da = -(dF/da) / f(x). Both are an integral of the
# density from one side; relative to f(x) and in the logarithm of the distance its integrand is
# exp(-E(s)) times something slow, where E rises from 0 and is nearly convex. So it is summed over
# nodes of [0, W], where E(W) is large enough.

_NODES = 48
_ENOUGH = 36.0


def _legendre(like: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes in (0, 1) and weights of Gauss and Legendre's rule."""
    k = torch.arange(1, _NODES, dtype=torch.float64, device="cpu")
    beside = torch.diag(k / (4 * k * k - 1).sqrt(), 1)
    values, vectors = torch.linalg.eigh(beside + beside.T)
    return ((values + 1) / 2).to(like.device), vectors[0].square().to(like.device)


def _width(energy, slope, start: Tensor) -> Tensor:
    """Where a convex `energy` reaches its limit: Newton's steps from a point beyond it."""
    width = start
    for _ in range(14):
        width = width - (energy(width) - _ENOUGH) / slope(width)
    return width


def _integral(energy, slope, start: Tensor, slow) -> Tensor:
    nodes, weights = _legendre(start)
    width = _width(energy, slope, start)
    s = width * nodes
    return (torch.exp(-energy(s)) * slow(s) * weights).sum(-1) * width.squeeze(-1)


@composes("_standard_gamma_grad")
def _gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    a, given = self.double().unsqueeze(-1), output.double().unsqueeze(-1)
    x = given.clamp(min=torch.finfo(torch.float64).tiny)
    centre = x.log() - torch.digamma(a)
    root = (_ENOUGH * _ENOUGH + 8 * _ENOUGH * x).sqrt()
    below = _integral(
        lambda s: a * s + x * torch.expm1(-s),
        lambda s: a - x * torch.exp(-s),
        torch.minimum((_ENOUGH + x) / a, (_ENOUGH + root) / (2 * x)),
        lambda s: centre - s,
    )
    gap = (x - a).clamp(min=0)
    start = ((gap * gap + 2 * _ENOUGH * x).sqrt() - gap) / x
    for _ in range(2):
        start = torch.minimum(start, torch.log1p((_ENOUGH + a * start) / x))
    above = _integral(
        lambda s: x * torch.expm1(s) - a * s,
        lambda s: x * torch.exp(s) - a,
        start,
        lambda s: centre + s,
    )
    x = x.squeeze(-1)
    return torch.where(x <= a.squeeze(-1), -x * below, x * above).to(self.dtype)


def _beta_side(p: Tensor, q: Tensor, z: Tensor, slow) -> Tensor:
    """The side of 0 of a beta density with exponents p and q at z."""
    odds, rest = z / (1 - z), q - 1
    return _integral(
        lambda s: p * s - rest * torch.log1p(-odds * torch.expm1(-s)),
        lambda s: p - rest * z * torch.exp(-s) / (1 - z * torch.exp(-s)),
        (_ENOUGH - rest.clamp(min=0) * torch.log1p(-z)) / p,
        slow,
    )


@composes("_dirichlet_grad")
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    a, both = alpha.double().unsqueeze(-1), total.double().unsqueeze(-1)
    limits = torch.finfo(torch.float64)
    z, b = x.double().unsqueeze(-1).clamp(limits.tiny, 1 - limits.eps), both - a
    centre = torch.digamma(both) - torch.digamma(a)
    below = _beta_side(a, b, z, lambda s: centre + z.log() - s)
    above = _beta_side(b, a, 1 - z, lambda s: centre + torch.log1p((z - 1) * torch.exp(-s)))
    z, low = z.squeeze(-1), (z * both <= a).squeeze(-1)
    return torch.where(low, -z / (1 - z) * below, above).to(x.dtype)
