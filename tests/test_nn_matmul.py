"""Matrix products: forms, scalars, types, empty sizes."""

import pytest
import torch
from nn_compare import agree

import torchtpu  # noqa: F401


def r(*shape, dtype=torch.float32):
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    return torch.randint(-9, 9, shape).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32])
def test_products(dtype):
    torch.manual_seed(0)
    grad = dtype.is_floating_point
    for name, shapes in {
        "mm": [(3, 4), (4, 5)],
        "bmm": [(2, 3, 4), (2, 4, 5)],
        "mv": [(3, 4), (4,)],
        "dot": [(4,), (4,)],
        "vdot": [(4,), (4,)],
        "addmm": [(3, 5), (3, 4), (4, 5)],
        "baddbmm": [(2, 3, 5), (2, 3, 4), (2, 4, 5)],
        "addbmm": [(3, 5), (2, 3, 4), (2, 4, 5)],
        "addmv": [(3,), (3, 4), (4,)],
        "addr": [(3, 4), (3,), (4,)],
    }.items():
        agree(getattr(torch, name), *(r(*s, dtype=dtype) for s in shapes), grad=grad)


def test_scalars():
    a, b, c = r(3, 5), r(3, 4), r(4, 5)
    agree(lambda *x: torch.addmm(*x, beta=0.5, alpha=-2), a, b, c)
    nan = torch.full((3, 5), float("nan"))
    agree(lambda *x: torch.addmm(*x, beta=0), nan, b, c, grad=False)


def test_halves_round_once():
    a, b = r(16, 300, dtype=torch.bfloat16), r(300, 8, dtype=torch.bfloat16)
    exact = (a.double() @ b.double()).bfloat16()
    given = (a.to("tpu") @ b.to("tpu")).cpu()
    torch.testing.assert_close(given, exact, rtol=8e-3, atol=8e-3)


def test_empty_inner_dimension():
    assert torch.equal((r(3, 0).to("tpu") @ r(0, 2).to("tpu")).cpu(), torch.zeros(3, 2))
    agree(torch.nn.Linear(0, 3), r(2, 0), grad=False)


def test_linear_and_einsum():
    agree(torch.nn.Linear(5, 3), r(2, 4, 5))
    agree(torch.nn.Bilinear(3, 4, 2), r(5, 3), r(5, 4))
    agree(lambda x, y: torch.einsum("bij,bkj->bik", x, y), r(2, 3, 4), r(2, 5, 4))
    agree(lambda x, y: torch.tensordot(x, y, dims=([1, 2], [0, 1])), r(2, 3, 4), r(3, 4, 5))


@pytest.mark.parametrize("mode", ["strict", "defer_and_fuse"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_products_of_reversed_operands(mode, batch, dtype):
    """A fused product reads its operands backwards; MKL and PyTorch take no such strides."""
    # Small integers: their sums are exact in bfloat16, in which some plugins add up.
    a, b = (torch.randint(-1, 2, (batch, 96, n)).to(dtype) for n in (128, 64))
    before = torch.tpu.get_eager_mode()
    torch.tpu.set_eager_mode(mode)
    try:
        for dims in ((1,), (2,), (0, 1, 2)):
            x, y = (t.to("tpu").flip(dims) for t in (a, b))
            want = a.flip(dims).mT.cdouble() @ b.flip(dims).cdouble()
            assert torch.equal((x.mT @ y).cpu().cdouble(), want)
    finally:
        torch.tpu.set_eager_mode(before)


def test_out_and_inplace():
    a, b = r(3, 4).to("tpu"), r(4, 5).to("tpu")
    out = torch.empty(3, 5, device="tpu")
    torch.mm(a, b, out=out)
    torch.testing.assert_close(out.cpu(), a.cpu() @ b.cpu())
    out.addmm_(a, b, alpha=2)
    torch.testing.assert_close(out.cpu(), 3 * (a.cpu() @ b.cpu()), rtol=1e-5, atol=1e-5)


def test_int8():
    a, b = r(32, 16, dtype=torch.int8), r(16, 8, dtype=torch.int8)
    want = a.int() @ b.int()
    assert torch.equal(torch._int_mm(a.to("tpu"), b.to("tpu")).cpu(), want)
