"""Ops made of other device ops, and the edges of lowered ones: as on the CPU, and on the device."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import torchtpu  # noqa: F401


def outcome(f, device):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = f(device)
        except Exception as e:
            return type(e), str(e)
    return results if isinstance(results, (tuple, list)) else [results]


def agree(f, tolerance=1e-5):
    torch.tpu.fallback_stats(reset=True)
    want, given = outcome(f, "cpu"), outcome(f, "tpu")
    if isinstance(want[0], type):
        assert given[0] is want[0] and given[1].split("(")[0] in want[1]
        return
    for x, y in zip(want, given, strict=True):
        assert isinstance(y, torch.Tensor), given
        assert (y.dtype, y.shape, y.stride()) == (x.dtype, x.shape, x.stride())
        torch.testing.assert_close(y.cpu(), x, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert torch.tpu.fallback_stats() == {}


def ctc(device, inputs=(12, 10, 7, 0), targets=(4, 3, 0, 0), padded=True, dtype=None, **options):
    scores = torch.randn(12, 4, 6, dtype=dtype).to(device).requires_grad_()
    labels = torch.randint(1, 6, (4, 5) if padded else (sum(targets),)).to(device)
    if blank := options.get("blank"):
        labels = torch.where(labels == blank, 0, labels)
    loss = F.ctc_loss(scores.log_softmax(2), labels, inputs, targets, reduction="none", **options)
    (loss * torch.arange(1.0, 5.0).to(device)).nan_to_num(posinf=0).sum().backward()
    return loss.detach(), scores.grad


SHORT = {"inputs": (12, 10, 7, 2), "targets": (4, 3, 0, 3)}  # the last sample cannot be aligned


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padded": False},
        {"blank": 2},
        {"dtype": torch.float64},
        SHORT,
        SHORT | {"zero_infinity": True},
        {"inputs": (13, 10, 7, 2)},
        {"targets": (6, 3, 0, 0)},
        {"inputs": (10, 7, 2)},
    ],
    ids=str,
)
def test_ctc_loss(options):
    agree(lambda d: ctc(d, **options))


def test_ctc_loss_of_lengths_on_the_device():
    def loss(device):
        lengths = [torch.tensor(n).to(device) for n in ([12, 10, 7, 1], [4, 3, 0, 0])]
        scores = torch.randn(12, 4, 6).log_softmax(2).to(device)
        return F.ctc_loss(scores, torch.randint(1, 6, (4, 5)).to(device), *lengths)

    agree(loss)


X = torch.linspace(-2.0, 2.0, 50).sin()
EDGES = torch.linspace(-1.0, 1.0, 6)
POINTS = torch.stack([X, X.cos()], 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda d: torch.histogram(X.to(d), 10),
        lambda d: torch.histogram(X.to(d), 7, range=(-1, 1), density=True),
        lambda d: torch.histogram(X.to(d), EDGES.to(d), weight=X.abs().to(d)),
        lambda d: torch.histogram(torch.ones(3).to(d), 4),
        lambda d: torch.histogram(torch.ones(0).to(d), 4),
        lambda d: torch.histogram(torch.ones(3).to(d), 0),
        lambda d: torch.histogramdd(POINTS.to(d), [3, 4]).hist,
        lambda d: torch.histogramdd(POINTS.to(d), [3, 4]).bin_edges,
        lambda d: (
            torch.histogramdd(
                POINTS.to(d), [EDGES.to(d)] * 2, weight=X.abs().to(d), density=True
            ).hist
        ),
        lambda d: torch.histogram(
            X.to(d), 3, out=(torch.zeros(0, device=d), torch.zeros(0, device=d))
        ),
        lambda d: torch.bincount(torch.tensor([1, 2, 2]).to(d), X[:3].to(d), 5),
        lambda d: torch.nonzero_static(torch.tensor([[1, 0, 2], [0, 3, 0]]).to(d), size=5),
        lambda d: torch.nonzero_static(torch.eye(3).to(d), size=2, fill_value=7),
        lambda d: (
            torch.ones(1, 1).to(d).addbmm_(torch.ones(2, 3, 4).to(d), torch.ones(2, 4, 5).to(d))
        ),
        lambda d: F.rrelu(X.to(d)),
        lambda d: torch.arange(0, 5, 0.5, dtype=torch.int32, device=d),
        lambda d: torch.fmod(torch.ones(0, 3).long().to(d), torch.zeros(3).long().to(d)),
        lambda d: torch.arange(5, 0, -1.5, dtype=torch.uint8, device=d),
        lambda d: torch.logcumsumexp(torch.complex(X, X.cos()).to(d), 0),
        lambda d: torch._efficientzerotensor((2,), device=d) + torch.ones(2).to(d),
        lambda d: F.multilabel_margin_loss(
            X[:4].to(d), torch.tensor([3, 0, -1, 1]).to(d), reduction="none"
        ),
        lambda d: F.fractional_max_pool3d(
            torch.arange(500.0).reshape(4, 5, 5, 5).to(d),
            2,
            output_size=2,
            _random_samples=torch.rand(2, 4, 3).to(d),
        ),
        lambda d: (
            torch.complex(X, X.cos())[:6].reshape(2, 3).to(d)
            @ torch.complex(X, -X)[:12].reshape(3, 4).to(d)
        ),
    ],
)
def test_values(f):
    agree(f)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}], ids=str)
def test_hash(dtype, options):
    x = torch.linspace(-3, 3, 30).reshape(3, 5, 2).to(dtype)
    agree(lambda d: torch.hash_tensor(x.to(d), **options).view(torch.int64))


@pytest.mark.parametrize("training", [True, False])
def test_saved_statistics(training):
    def stats(device):
        mean, var = torch.zeros(2).to(device), torch.ones(2).to(device)
        x = torch.randn(3, 2, 4).to(device)
        return *torch.native_batch_norm(x, None, None, mean, var, training, 0.1, 1e-5), mean, var

    agree(stats)


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("ends", [(5,), (1, 9, 2), (5, 1, -1), (2.5,), (0, 0), (5, 1), (0, 1, 0)])
def test_arange(ends, dtype):
    agree(lambda d: torch.arange(*ends, dtype=dtype, device=d))


def test_the_ends_of_a_range_are_no_constants():
    made = [torch.arange(i, i + 7, device="tpu") for i in range(2, 4)]
    before = torch.tpu.cache_stats()["programs_compiled"]
    made += [torch.arange(i, i + 7, device="tpu") for i in range(4, 20)]
    assert torch.tpu.cache_stats()["programs_compiled"] == before
    assert [t[0].item() for t in made] == list(range(2, 20))


@pytest.mark.parametrize("value", [300, -1, -256, 1e30, float("inf"), float("nan"), 1 + 2j])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.float16, torch.bool])
def test_values_that_a_type_does_not_have(value, dtype):
    if not dtype.is_floating_point and dtype != torch.bool and value != value:
        pytest.skip("PyTorch's vectorised conversion of NaN is undefined")
    agree(lambda d: torch.full((2,), value, dtype=dtype, device=d))


def test_values_to_write_where_overflow():
    mask, at = torch.tensor([True, False]), torch.tensor([0])
    zeros = torch.zeros(2, dtype=torch.uint8)
    for f in (
        lambda d: zeros.to(d).masked_fill(mask.to(d), 300),
        lambda d: zeros.to(d).scatter(0, at.to(d), 300),
        lambda d: zeros.to(d).index_fill(0, at.to(d), 300),
        lambda d: F.pad(zeros.to(d), (1, 1), value=300),
    ):
        agree(f)


@pytest.mark.parametrize("name", ["uniform_", "normal_", "exponential_", "cauchy_", "geometric_"])
def test_random_fills_of_nothing_and_of_integers(name):
    arguments = (0.5,) if name == "geometric_" else ()
    torch.tpu.fallback_stats(reset=True)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        empty = torch.zeros(0, 5, 0, dtype=dtype, device="tpu")
        assert getattr(empty, name)(*arguments).shape == (0, 5, 0)
    if name != "geometric_":
        with pytest.raises(RuntimeError):
            getattr(torch.zeros(3, dtype=torch.int64, device="tpu"), name)(*arguments)
    assert torch.tpu.fallback_stats() == {}


def test_a_generator_is_of_a_device_that_exists():
    with pytest.raises(RuntimeError, match="no device 99"):
        torch.Generator("tpu:99")


GROUPS = [[3, 0, 5, 8], [0, 0, 0, 16], [4, 4, 4, 4], [1, 1, 1, 1, 1, 1, 1, 1], [8, 0], [0, 40, 8]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("form", ["rows", "columns", "terms", "batch"])
@pytest.mark.parametrize("sizes", GROUPS, ids=str)
def test_products_of_groups(form, sizes, dtype):
    """And their gradients, which are products of groups of the other forms."""
    total, groups = sum(sizes), len(sizes)
    a, b = {
        "rows": ((total, 16), (groups, 16, 24)),
        "columns": ((groups, 8, 16), (16, total)),
        "terms": ((8, total), (total, 24)),
        "batch": ((groups, 8, 16), (groups, 16, 24)),
    }[form]

    def f(device):
        x, y = (torch.randn(s).to(device, dtype).requires_grad_() for s in (a, b))
        ends = torch.tensor(sizes).cumsum(0).int().to(device)
        result = torch._grouped_mm(x, y, None if form == "batch" else ends)
        (result * torch.arange(result.size(-1), device=device).cos()).sum().backward()
        return result.detach(), x.grad, y.grad

    agree(f, 1e-4 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w, ends: torch._grouped_mm(x, w),
        lambda x, w, ends: torch._grouped_mm(x.double(), w.double(), ends),
        lambda x, w, ends: torch._grouped_mm(x[:, :12], w, ends),
        lambda x, w, ends: torch._grouped_mm(x, w, ends.long()),
        lambda x, w, ends: torch._grouped_mm(x, w, ends[None]),
        lambda x, w, ends: torch._grouped_mm(x[0], w, ends),
        lambda x, w, ends: torch._grouped_mm(x, w, ends, x[0]),
        lambda x, w, ends: torch._grouped_mm(x, w, ends, out_dtype=torch.bfloat16),
    ],
)
def test_wrong_groups(f):
    arguments = torch.randn(3, 16), torch.randn(2, 16, 8), torch.tensor([1, 3]).int()
    want, given = (outcome(lambda d: f(*(t.to(d) for t in arguments)), d) for d in ("cpu", "tpu"))
    assert want[0] is given[0] is RuntimeError
    assert given[1].split(", got")[0] in want[1]


def test_synchronised_batch_norm():
    """The kernels of SyncBatchNorm, as a world of two would call them."""
    x = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0)).mul(2).add(1)
    weight, bias = torch.tensor([1.0, 2, 3]), torch.tensor([0.5, 0, -1])
    want = F.batch_norm(x.requires_grad_(), None, None, weight, bias, training=True)
    want.square().sum().backward()
    parts = [p.to("tpu") for p in (x.detach()[:2], x.detach()[2:])]
    scale, shift = weight.to("tpu"), bias.to("tpu")
    stats = [torch.batch_norm_stats(p, 1e-5) for p in parts]
    counts = torch.tensor([8.0, 16.0]).to("tpu")
    running = torch.zeros(3, device="tpu"), torch.ones(3, device="tpu")
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        parts[0], *(torch.stack(s) for s in zip(*stats)), *running, 0.1, 1e-5, counts
    )
    outs = [torch.batch_norm_elemt(p, scale, shift, mean, invstd, 1e-5) for p in parts]
    torch.testing.assert_close(torch.cat(outs).cpu(), want.detach(), rtol=1e-4, atol=1e-5)
    expected = torch.zeros(3), torch.ones(3)
    F.batch_norm(x.detach(), *expected, training=True)
    torch.testing.assert_close([r.cpu() for r in running], list(expected), rtol=1e-4, atol=1e-5)
    sums = [
        torch.batch_norm_backward_reduce(2 * o, p, mean, invstd, scale, True, True, True)
        for o, p in zip(outs, parts)
    ]
    sum_dy, sum_dy_xmu = sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]
    grads = [
        torch.batch_norm_backward_elemt(
            2 * o, p, mean, invstd, scale, sum_dy, sum_dy_xmu, counts.int()
        )
        for o, p in zip(outs, parts)
    ]
    torch.testing.assert_close(torch.cat(grads).cpu(), x.grad, rtol=1e-4, atol=1e-4)
    assert torch.tpu.fallback_stats() == {}


@pytest.mark.parametrize("arguments", [(9,), (0,), (1,), (8, False), (8, True, 5.0)])
@pytest.mark.parametrize("dtype", [None, torch.float64, torch.bfloat16])
def test_kaiser_window(arguments, dtype):
    tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-5
    agree(lambda d: torch.kaiser_window(*arguments, dtype=dtype, device=d), tolerance)


def test_what_no_cpu_has_either_says_so():
    q = torch.randn(2, 4, 8, 16, device="tpu")
    torch.tpu.fallback_stats(reset=True)
    with pytest.raises(NotImplementedError, match="efficient_attention.*none for the CPU either"):
        torch.ops.aten._scaled_dot_product_efficient_attention(q, q, q, None, False)
    assert torch._fused_sdp_choice(q, q, q) == 0
    assert torch.tpu.fallback_stats() == {}


def test_fallbacks_can_be_forbidden_for_sparse_tensors_too():
    a = torch.eye(3).to("tpu").to_sparse()
    torch.tpu.set_fallback("error")
    try:
        with pytest.raises(NotImplementedError, match="aten::_sparse_sparse_matmul"):
            torch.sparse.mm(a, a)
    finally:
        torch.tpu.set_fallback("warn")


def test_dlpack():
    t = torch.arange(6.0, device="tpu").reshape(2, 3).t()
    same = torch.from_dlpack(t)
    assert (same.device, same.stride(), same.data_ptr()) == (t.device, t.stride(), t.data_ptr())
    same.add_(1)
    del same
    assert t.sum() == 21
    again = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(t))
    del t
    assert again.sum() == 21
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(again)  # not the host's memory
