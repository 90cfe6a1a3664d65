"""Kernels of sparse COO tensors that PyTorch writes once a device, made of the device's own ops.

The rest of the family is written in terms of other ops already: ``bridge/layout_ops.inc`` lists it.
"""

import math

import torch
from torch import Tensor

_library = torch.library.Library("aten", "IMPL")


def _kernel(name: str, key: str = "SparsePrivateUse1"):
    def register(function):
        _library.impl(name, function, key)
        return function

    return register


def _is_sparse(value) -> bool:
    return isinstance(value, Tensor) and value.is_sparse


def _keys(t: Tensor) -> Tensor:
    """Each element's place in the sparse dimensions, row-major."""
    indices = t._indices()
    keys = indices.new_zeros(indices.size(1))
    for dim in range(t.sparse_dim()):
        keys = keys * t.size(dim) + indices[dim]
    return keys


def _make(indices: Tensor, values: Tensor, like: Tensor, coalesced: bool) -> Tensor:
    made = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
        like.sparse_dim(),
        like.dense_dim(),
        like.shape,
        indices,
        values,
        dtype=values.dtype,
        layout=torch.sparse_coo,
        device=like.device,
    )
    return made._coalesced_(coalesced)


def _add_rows(to: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    if to.dtype == torch.bool:
        return to.byte().index_add(0, index, rows.byte()).bool()
    return to.index_add(0, index, rows)


@_kernel("_coalesce")
def _coalesce(self: Tensor) -> Tensor:
    if self._nnz() < 2:
        return self.clone()._coalesced_(True)
    keys, place = torch.unique(_keys(self), return_inverse=True)
    values = self._values()
    summed = _add_rows(values.new_zeros((keys.numel(), *values.shape[1:])), place, values)
    indices = []
    for dim in reversed(range(self.sparse_dim())):
        size = max(self.size(dim), 1)
        indices.append(keys % size)
        keys = torch.div(keys, size, rounding_mode="floor")
    return _make(torch.stack(indices[::-1]), summed, self, True)


def _give(out: Tensor, result: Tensor) -> Tensor:
    if out.is_sparse:
        if out.dtype != result.dtype:
            result = result.to(out.dtype)
        out.sparse_resize_and_clear_(result.shape, result.sparse_dim(), result.dense_dim())
        out.copy_(result)
    else:
        if out.shape != result.shape:
            out.resize_(result.shape)
        out.copy_(result)
    return out


def _expect_same_size(name: str, a: Tensor, b: Tensor) -> None:
    if a.shape != b.shape:
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
            f"{list(b.shape)}"
        )


def _dense_plus_sparse(dense: Tensor, sparse: Tensor, alpha) -> Tensor:
    dtype = torch.promote_types(dense.dtype, sparse.dtype)
    shape = torch.broadcast_shapes(dense.shape, sparse.shape)
    if sparse.shape != shape:
        raise RuntimeError(
            "add: expected 'other' to have the size of the result, but "
            f"{list(sparse.shape)} != {list(shape)}"
        )
    base = dense.to(dtype).expand(shape)
    if sparse._nnz() == 0:
        return base.clone()
    rows = math.prod(shape[: sparse.sparse_dim()])
    values = sparse._values().to(dtype)
    flat = base.reshape(rows, *shape[sparse.sparse_dim() :])
    if alpha != 1:
        values = values * alpha
    return _add_rows(flat, _keys(sparse), values).reshape(shape)


def _sparse_plus_sparse(a: Tensor, b: Tensor, alpha) -> Tensor:
    _expect_same_size("add", a, b)
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same number of sparse dimensions, but "
            f"{a.sparse_dim()} != {b.sparse_dim()}"
        )
    dtype = torch.promote_types(a.dtype, b.dtype)
    values = b._values().to(dtype)
    both = torch.cat([a._values().to(dtype), values if alpha == 1 else values * alpha])
    result = _make(torch.cat([a._indices(), b._indices()], 1), both, a, False)
    return result.coalesce() if a.is_coalesced() and b.is_coalesced() else result


@_kernel("add.out")
def _add_out(self: Tensor, other: Tensor, *, alpha=1, out: Tensor) -> Tensor:
    if self.is_sparse and other.is_sparse:
        return _give(out, _sparse_plus_sparse(self, other, alpha))
    if self.is_sparse:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    return _give(out, _dense_plus_sparse(self, other, alpha))


def _matching(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Places in a and in b of the elements that both coalesced tensors have."""
    mine, theirs = _keys(a), _keys(b)
    if not mine.numel() or not theirs.numel():
        none = mine.new_zeros(0)
        return none, none
    at = torch.searchsorted(theirs, mine).clamp(max=theirs.numel() - 1)
    hit = (theirs.index_select(0, at) == mine).nonzero().flatten()
    return hit, at.index_select(0, hit)


def _values_at(dense: Tensor, sparse: Tensor) -> Tensor:
    """The dense tensor's values where the sparse one has elements."""
    dense = dense.expand(sparse.shape)
    rows = math.prod(sparse.shape[: sparse.sparse_dim()])
    flat = dense.reshape(rows, *sparse.shape[sparse.sparse_dim() :])
    return flat.index_select(0, _keys(sparse))


@_kernel("mul.out")
def _mul_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if not _is_sparse(self) or not _is_sparse(other):
        sparse, dense = (self, other) if _is_sparse(self) else (other, self)
        is_number = not isinstance(dense, Tensor) or dense.dim() == 0
        values = sparse._values() * (dense if is_number else _values_at(dense, sparse))
        return _give(out, _make(sparse._indices(), values, sparse, sparse.is_coalesced()))
    if other.dim() == 0 or self.dim() == 0:
        sparse, number = (self, other) if other.dim() == 0 else (other, self)
        values = sparse._values() * number.to_dense()
        return _give(out, _make(sparse._indices(), values, sparse, sparse.is_coalesced()))
    _expect_same_size("mul", self, other)
    a, b = self.coalesce(), other.coalesce()
    at_a, at_b = _matching(a, b)
    values = a._values().index_select(0, at_a) * b._values().index_select(0, at_b)
    return _give(out, _make(a._indices().index_select(1, at_a), values, a, True))


@_kernel("sparse_mask")
def _sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    if not self.is_sparse:
        values = _values_at(self, mask)
        return _make(mask._indices().clone(), values, mask, mask.is_coalesced())
    a, m = self.coalesce(), mask.coalesce()
    at_mask, at_a = _matching(m, a)
    found = a._values().index_select(0, at_a)
    values = found.new_zeros((m._nnz(), *found.shape[1:])).index_copy(0, at_mask, found)
    return _make(m._indices().clone(), values, m, True)


def _product(sparse: Tensor, dense: Tensor) -> Tensor:
    """sparse @ dense for matrices, or batches of them."""
    indices, values = sparse._indices(), sparse._values()
    if sparse.dense_dim() != 0:
        raise RuntimeError("mm: expected a sparse matrix without dense dimensions")
    row, column = indices[-2], indices[-1]
    shape = (*sparse.shape[:-1], dense.size(-1))
    if sparse.dim() == 3:
        row, column = (indices[0] * sparse.size(i) + x for i, x in ((1, row), (2, column)))
        dense = dense.reshape(-1, dense.size(-1))
    zeros = dense.new_zeros(math.prod(shape[:-1]), shape[-1])
    rows = values.unsqueeze(1) * dense.index_select(0, column)
    return zeros.index_add(0, row, rows).reshape(shape)


def _check_addmm(mat1: Tensor, mat2: Tensor) -> None:
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(
            f"addmm: 2-D matrices expected, got {mat1.dim()}D and {mat2.dim()}D tensors"
        )
    if mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({mat1.size(0)}x{mat1.size(1)} and {mat2.size(0)}x{mat2.size(1)})"
        )


@_kernel("addmm")
def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    _check_addmm(mat1, mat2)
    if not mat1.is_sparse or mat2.is_sparse or self.is_sparse:
        raise RuntimeError("addmm: expected a dense 'self', a sparse 'mat1' and a dense 'mat2'")
    product = _product(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)


@_kernel("addmm.out")
def _addmm_out(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1, out: Tensor):
    return _give(out, _addmm(self, mat1, mat2, beta=beta, alpha=alpha))


@_kernel("addmm_")
def _addmm_in_place(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    return self.copy_(_addmm(self, mat1, mat2, beta=beta, alpha=alpha))


@_kernel("addmm.out", "SparseCsrPrivateUse1")
def _addmm_csr(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1, out: Tensor):
    if mat1.layout == torch.strided:  # dense @ sparse is the transposed product
        product = _addmm_csr_value(self.mT, mat2.mT, mat1.mT, beta, alpha).mT
    else:
        product = _addmm_csr_value(self, mat1, mat2, beta, alpha)
    return _give(out, product)


def _addmm_csr_value(self: Tensor, mat1: Tensor, mat2: Tensor, beta, alpha) -> Tensor:
    mat1, mat2 = mat1.to_sparse(), mat2 if mat2.layout == torch.strided else mat2.to_dense()
    return _addmm(self, mat1, mat2, beta=beta, alpha=alpha)


@_kernel("bmm")
def _bmm(self: Tensor, mat2: Tensor) -> Tensor:
    if self.dim() != 3 or mat2.dim() != 3:
        raise RuntimeError("bmm_sparse: expected 3D matrices")
    if self.size(0) != mat2.size(0) or self.size(2) != mat2.size(1):
        raise RuntimeError("bmm_sparse: the sizes of 'self' and 'mat2' do not match")
    return _product(self, mat2)


@_kernel("bmm.out")
def _bmm_out(self: Tensor, mat2: Tensor, *, out: Tensor) -> Tensor:
    return _give(out, _bmm(self, mat2))


@_kernel("_sparse_sum_backward")
def _sparse_sum_backward(grad: Tensor, self: Tensor, dim: list[int]) -> Tensor:
    dims = {d % self.dim() for d in dim}
    kept = [1 if d in dims else n for d, n in enumerate(self.shape)]
    dense = (grad.to_dense() if grad.is_sparse else grad).reshape(kept)
    return _make(self._indices(), _values_at(dense, self), self, self.is_coalesced())


@_kernel("sparse_sampled_addmm", "SparseCsrPrivateUse1")
def _sampled_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """alpha (mat1 @ mat2) + beta self, at self's elements only."""
    if mat1.size(-1) != mat2.size(-2) or self.shape[-2:] != (mat1.size(-2), mat2.size(-1)):
        raise RuntimeError(
            "sampled_addmm: the shapes of 'self', 'mat1' and 'mat2' do not match: "
            f"{list(self.shape)}, {list(mat1.shape)} and {list(mat2.shape)}"
        )
    crow, col, values = self.crow_indices(), self.col_indices(), self.values()
    *batch, row, column = torch._convert_indices_from_csr_to_coo(crow, col)
    products = (mat1[(*batch, row)] * mat2.mT[(*batch, column)]).sum(-1).reshape(values.shape)
    return torch.sparse_csr_tensor(
        crow.clone(),
        col.clone(),
        alpha * products + beta * values,
        self.shape,
        device=self.device,
        check_invariants=False,
    )


def _places(csr: Tensor) -> tuple[Tensor, Tensor]:
    """The row and the column of every element of a sparse matrix."""
    indices = torch._convert_indices_from_csr_to_coo(csr.crow_indices(), csr.col_indices())
    return indices[0], indices[1]


def _row_lengths(csr: Tensor, like: Tensor) -> Tensor:
    return csr.crow_indices().diff().clamp(min=1).to(like.dtype).unsqueeze(1)


@_kernel("_sparse_mm_reduce_impl", "SparseCsrPrivateUse1")
def _product_reduce(self: Tensor, other: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """The rows of a product combined in other ways than by a sum; which element won."""
    row, column = _places(self)
    terms = self.values().unsqueeze(1) * other.index_select(0, column)
    shape = (self.size(0), other.size(1))
    if reduce in ("sum", "mean"):
        result = terms.new_zeros(shape).index_add(0, row, terms)
        if reduce == "mean":
            result = result / _row_lengths(self, result)
        return result, row.new_zeros(0)
    at = row.unsqueeze(1).expand_as(terms)
    least = math.inf if reduce == "amin" else -math.inf
    result = terms.new_full(shape, least).scatter_reduce(0, at, terms, reduce)
    element = torch.arange(row.numel(), device=row.device).unsqueeze(1)
    element = torch.where(terms == result.index_select(0, row), element, row.numel())
    winner = row.new_full(shape, row.numel()).scatter_reduce(0, at, element, "amin")
    empty = self.crow_indices().diff() == 0
    return torch.where(empty.unsqueeze(1), 0, result), winner


@_kernel("_sparse_mm_reduce_impl_backward", "SparseCsrPrivateUse1")
def _product_reduce_backward(
    self: Tensor, grad_out: Tensor, weight: Tensor, reduce: str, arg_out: Tensor, output_mask
):
    row, column = _places(self)
    grad = grad_out.index_select(0, row)
    if reduce == "mean":
        grad = grad / _row_lengths(self, grad).index_select(0, row)
    elif reduce != "sum":
        element = torch.arange(row.numel(), device=row.device).unsqueeze(1)
        grad = torch.where(arg_out.index_select(0, row) == element, grad, 0)
    of_self = of_weight = None
    if output_mask[0]:
        values = (grad * weight.index_select(0, column)).sum(1)
        of_self = torch.sparse_csr_tensor(
            self.crow_indices(),
            self.col_indices(),
            values,
            self.shape,
            device=self.device,
            check_invariants=False,
        )
    if output_mask[1]:
        terms = self.values().unsqueeze(1) * grad
        of_weight = torch.zeros_like(weight).index_add(0, column, terms)
    return of_self, of_weight
