"""Sparse tensors: values, elements and gradients as on the CPU."""

import copy
import io
import warnings

import pytest
import torch

import torchtpu  # noqa: F401

DUPLICATES = [[0, 2, 2, 0], [1, 0, 0, 2]]
SORTED = [[0, 0, 2, 2], [1, 2, 0, 1]]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # PyTorch's sparse constructors move their inputs to a default device.
        torch.set_default_device(None)
        yield


def coo(device, places=DUPLICATES, dtype=torch.float32):
    values = torch.tensor([1.0, 2, 3, 4]).to(dtype).to(device)
    return torch.sparse_coo_tensor(torch.tensor(places).to(device), values, (3, 3), device=device)


def hybrid(device):
    rows = torch.arange(12.0).reshape(3, 4).to(device)
    at = torch.tensor([[0, 2, 2]]).to(device)
    return torch.sparse_coo_tensor(at, rows, (3, 4), device=device)


def dense(device, *shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).to(device)


def facts(value):
    if not isinstance(value, torch.Tensor):
        return value
    plain = value if value.layout == torch.strided else value.to_dense()
    facts = [value.layout, value.dtype, tuple(value.shape), plain.cpu()]
    if value.is_sparse and value.is_coalesced():
        facts += [value.indices().cpu(), value.values().cpu()]
    return facts


def agree(f):
    results = [f(device) for device in ("cpu", "tpu")]
    pairs = zip(*(r if isinstance(r, (tuple, list)) else [r] for r in results), strict=True)
    for want, given in pairs:
        for x, y in zip(facts(want), facts(given), strict=True):
            if isinstance(x, torch.Tensor):
                torch.testing.assert_close(y, x)
            else:
                assert y == x


CASES = {
    "made": coo,
    "coalesced": lambda d: coo(d).coalesce(),
    "coalesced bool": lambda d: coo(d, dtype=torch.bool).coalesce(),
    "coalesced bf16": lambda d: coo(d, dtype=torch.bfloat16).coalesce(),
    "hybrid": lambda d: hybrid(d).coalesce(),
    "from the CPU": lambda d: coo("cpu").to(d),
    "clone": lambda d: coo(d).clone(),
    "deepcopy": lambda d: copy.deepcopy(coo(d)),
    "empty": lambda d: torch.sparse_coo_tensor((3, 3), device=d),
    "sum of two": lambda d: coo(d).coalesce() + 2 * coo(d, SORTED).coalesce(),
    "added in place": lambda d: coo(d).add_(coo(d, SORTED)),
    "difference": lambda d: coo(d) - coo(d, SORTED),
    "onto a dense one": lambda d: dense(d, 3, 3).add_(coo(d), alpha=-0.5),
    "bf16 onto f32": lambda d: dense(d, 3, 3) + coo(d, dtype=torch.bfloat16),
    "scaled": lambda d: coo(d) * 3 / 2,
    "times a dense one": lambda d: coo(d) * dense(d, 3, 3),
    "product of two": lambda d: coo(d).coalesce() * coo(d, SORTED).coalesce(),
    "mask of a dense one": lambda d: dense(d, 3, 3).sparse_mask(coo(d).coalesce()),
    "mask of a sparse one": lambda d: coo(d, SORTED).sparse_mask(coo(d).coalesce()),
    "matrix product": lambda d: torch.sparse.mm(coo(d), dense(d, 3, 2)),
    "vector product": lambda d: coo(d) @ dense(d, 3),
    "addmm": lambda d: torch.sparse.addmm(
        dense(d, 3, 2), coo(d), dense(d, 3, 2), beta=2, alpha=0.5
    ),
    "batches": lambda d: torch.bmm(torch.stack([coo(d), coo(d, SORTED)]), dense(d, 2, 3, 2)),
    "transposed": lambda d: coo(d).t(),
    "sums": lambda d: (torch.sparse.sum(coo(d)), torch.sparse.sum(coo(d), 0)),
    "unary": lambda d: coo(d).coalesce().neg().abs().sqrt(),
    "cat": lambda d: torch.cat([coo(d), coo(d, SORTED)]),
    "zero_": lambda d: coo(d).zero_(),
    "from a dense one": lambda d: torch.eye(3).to(d).to_sparse(),
    "rows": lambda d: coo(d).coalesce().to_sparse_csr(),
    "rows' product": lambda d: torch.eye(3).to(d).to_sparse_csr() @ dense(d, 3, 2),
    "norm": lambda d: coo(d).norm(),
    "one row": lambda d: coo(d)[2],
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    torch.tpu.fallback_stats(reset=True)
    agree(CASES[case])
    assert torch.tpu.fallback_stats() == {}


def test_what_has_no_kernel_goes_to_the_cpu_and_is_counted():
    torch.tpu.fallback_stats(reset=True)
    agree(lambda d: torch.sparse.mm(coo(d), coo(d, SORTED)))
    agree(lambda d: coo(d).index_select(0, torch.tensor([2, 0]).to(d)))
    assert set(torch.tpu.fallback_stats()) == {"aten::_sparse_sparse_matmul", "aten::index_select"}


def csr(device, crow, col, values, shape):
    parts = (torch.tensor(part).to(device) for part in (crow, col, values))
    return torch.sparse_csr_tensor(*parts, shape, device=device, check_invariants=True)


ONE = ([0, 2, 4], [0, 1, 0, 2], [1.0, 2, 3, 4], (2, 3))
TWO = ([[0, 2, 4], [0, 1, 4]], [[0, 1, 0, 2], [0, 0, 1, 2]], [[1.0, 2, 3, 4]] * 2, (2, 2, 3))


def test_products_at_chosen_places():
    torch.tpu.fallback_stats(reset=True)
    for rows, lead in ((ONE, ()), (TWO, (2,))):

        def sampled(device, rows=rows, lead=lead):
            a, b = dense(device, *lead, 2, 4), dense(device, *lead, 4, 3)
            return torch.sparse.sampled_addmm(csr(device, *rows), a, b, beta=2, alpha=0.5)

        agree(sampled)
    assert torch.tpu.fallback_stats() == {}


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_reduced_in_other_ways(reduce):
    def reduced(device):
        rows = ([0, 2, 2, 4], [0, 2, 1, 2], [1.0, -2, 3, 4], (3, 3))
        a = csr(device, *rows).requires_grad_()
        b = dense(device, 3, 4).sin().requires_grad_()
        out = torch.sparse.mm(a, b, reduce)
        (out * dense(device, 3, 4)).sum().backward()
        return out.detach(), a.grad, b.grad

    torch.tpu.fallback_stats(reset=True)
    agree(reduced)
    assert torch.tpu.fallback_stats() == {}


@pytest.mark.parametrize(
    "crow, col",
    [
        ([0, 2, 4], [0, 1, 0, 2]),
        ([1, 2, 4], [0, 1, 0, 2]),
        ([0, 2, 3], [0, 1, 0, 2]),
        ([0, 4, 4], [0, 1, 0, 2]),
        ([0, 2, 4], [0, 1, 0, 3]),
        ([0, 2, 4], [0, 1, 2, 0]),
        ([0, 2, 4], [0, 0, 0, 2]),
    ],
)
def test_invariants(crow, col):
    said = []
    for device in ("cpu", "tpu"):
        try:
            said.append(csr(device, crow, col, ONE[2], (2, 3)).to_dense().cpu().tolist())
        except RuntimeError as e:
            said.append(str(e))
    assert said[0] == said[1]


def test_saved_and_loaded():
    def loaded(device):
        file = io.BytesIO()
        torch.save(coo(device).coalesce(), file)
        file.seek(0)
        return torch.load(file)

    agree(loaded)


def test_gradients():
    def product(device):
        x, y = coo(device).coalesce().requires_grad_(), dense(device, 3, 2).requires_grad_()
        torch.sparse.mm(x, y).square().sum().backward()
        return x.grad, y.grad

    def total(device):
        x = coo(device).coalesce().requires_grad_()
        torch.sparse.sum(x, 0).to_dense().square().sum().backward()
        return x.grad

    def gathered(device):
        x = dense(device, 3, 2).requires_grad_()
        at = torch.tensor([[0, 1]]).to(device)
        torch.gather(x, 0, at, sparse_grad=True).square().sum().backward()
        return x.grad

    for f in (product, total, gathered):
        agree(f)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag(mode):
    def grad(device):
        bag = torch.nn.EmbeddingBag(10, 4, sparse=True, mode=mode).to(device)
        bag.weight.data.copy_(dense(device, 10, 4))
        bag(torch.tensor([[1, 1, 5], [2, 0, 1]]).to(device)).square().sum().backward()
        return bag.weight.grad.coalesce()

    torch.tpu.fallback_stats(reset=True)
    agree(grad)
    assert torch.tpu.fallback_stats() == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SparseAdam(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
    ],
    ids=["SparseAdam", "SGD", "momentum", "Adagrad"],
)
def test_optimizers(make):
    def trained(device):
        table = torch.nn.Embedding(10, 4, sparse=True).to(device)
        table.weight.data.copy_(dense(device, 10, 4))
        optimizer = make(table.parameters())
        for step in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 1, 5 + step]).to(device)).square().sum().backward()
            optimizer.step()
        return table.weight.detach()

    torch.tpu.fallback_stats(reset=True)
    agree(trained)
    assert torch.tpu.fallback_stats() == {}


def test_errors():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.sparse.mm(coo("tpu"), dense("tpu", 2, 2))
    with pytest.raises(RuntimeError, match="sizes of 'self' and 'other' to match"):
        coo("tpu") + torch.sparse_coo_tensor((2, 2), device="tpu")
