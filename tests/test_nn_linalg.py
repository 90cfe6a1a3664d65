"""Factorisations (checked by what they are factors of), solvers, transforms."""

import pytest
import torch
from nn_compare import agree

import torchtpu  # noqa: F401

SIZES = [(1, 1), (2, 2), (5, 5), (3, 4, 4), (6, 3), (3, 6), (2, 7, 4)]
SQUARE = [s for s in SIZES if s[-1] == s[-2]]
TYPES = [torch.float32, torch.float64]


def close(a, b, dtype):
    tol = 1e-4 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SIZES)
def test_svd_and_qr(shape, dtype):
    torch.manual_seed(0)
    a = torch.randn(shape, dtype=dtype)
    for full in (True, False):
        u, s, vh = (t.cpu() for t in torch.linalg.svd(a.to("tpu"), full_matrices=full))
        k = s.shape[-1]
        close(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a, dtype)
        close(
            u.mT @ u,
            torch.eye(u.shape[-1], dtype=dtype).expand(u.mT.shape[:-2] + (u.shape[-1],) * 2),
            dtype,
        )
    close(s, torch.linalg.svdvals(a), dtype)
    q, r = (t.cpu() for t in torch.linalg.qr(a.to("tpu")))
    close(q @ r, a, dtype)
    assert torch.equal(r, r.triu())


def test_rank_deficient_svd():
    a = torch.ones(5, 3)
    u, s, vh = (t.cpu() for t in torch.linalg.svd(a.to("tpu"), full_matrices=False))
    close(u @ torch.diag(s) @ vh, a, torch.float32)
    close(u.T @ u, torch.eye(3), torch.float32)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape, dtype):
    torch.manual_seed(0)
    a = torch.randn(shape, dtype=dtype)
    a = a + a.mT
    values, vectors = (t.cpu() for t in torch.linalg.eigh(a.to("tpu")))
    close(values, torch.linalg.eigvalsh(a), dtype)
    close(vectors @ torch.diag_embed(values) @ vectors.mT, a, dtype)


@pytest.mark.parametrize("shape", SQUARE)
def test_lu_and_friends(shape):
    torch.manual_seed(0)
    a = torch.randn(shape, dtype=torch.float64) + 2 * torch.eye(shape[-1], dtype=torch.float64)
    b = torch.randn(*shape[:-1], 2, dtype=torch.float64)
    tight = {"rtol": 1e-9, "atol": 1e-9}
    agree(torch.linalg.solve, a, b, **tight)
    agree(torch.linalg.inv, a, **tight)
    agree(torch.linalg.det, a, **tight)
    agree(torch.linalg.slogdet, a, **tight)
    agree(torch.linalg.lu, a, grad=False, **tight)
    agree(torch.linalg.lu_factor, a, grad=False, **tight)
    agree(torch.linalg.matrix_exp, a, **tight)


def test_cholesky():
    torch.manual_seed(0)
    a = torch.randn(2, 5, 5, dtype=torch.float64)
    a = a @ a.mT + torch.eye(5, dtype=torch.float64)
    agree(torch.linalg.cholesky, a, rtol=1e-9, atol=1e-9)
    agree(lambda x: torch.linalg.cholesky(x, upper=True), a, rtol=1e-9, atol=1e-9)
    with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
        torch.linalg.cholesky(-torch.eye(3, device="tpu"))


def test_triangular():
    a = torch.randn(3, 4, 4, dtype=torch.float64).tril() + 3 * torch.eye(4, dtype=torch.float64)
    b = torch.randn(3, 4, 2, dtype=torch.float64)
    agree(lambda x, y: torch.linalg.solve_triangular(x, y, upper=False), a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fft(norm):
    x = torch.randn(3, 8, 6, dtype=torch.float64)
    tight = {"rtol": 1e-9, "atol": 1e-9}
    agree(lambda v: torch.fft.rfft2(v, norm=norm), x, **tight)
    agree(lambda v: torch.fft.fftn(v, norm=norm), x, **tight)
    agree(lambda v: torch.fft.irfft(torch.fft.rfft(v, norm=norm), n=6, norm=norm), x, **tight)
    agree(lambda v: torch.fft.ifft(v, dim=1, norm=norm), x, **tight)


def test_cross():
    agree(torch.linalg.cross, torch.randn(4, 3), torch.randn(4, 3))
