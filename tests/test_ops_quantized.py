"""Fake quantisation, scaled products, segments and jagged tensors: as on the CPU."""

import warnings

import pytest
import torch

import torchtpu  # noqa: F401

aten = torch.ops.aten
X = torch.randn(6, 5, generator=torch.Generator().manual_seed(0)) * 2
SCALES, POINTS = torch.linspace(0.1, 0.5, 5), torch.arange(5, dtype=torch.int32)
OFFSETS = torch.tensor([0, 2, 2, 5])


def agree(f, tolerance=1e-5):
    torch.tpu.fallback_stats(reset=True)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for device in ("cpu", "tpu"):
            torch.manual_seed(0)
            result = f(device)
            results.append(result if isinstance(result, (tuple, list)) else [result])
    for want, given in zip(*results, strict=True):
        assert (given.dtype, given.shape, given.stride()) == (want.dtype, want.shape, want.stride())
        torch.testing.assert_close(
            given.cpu(), want, rtol=tolerance, atol=tolerance, equal_nan=True
        )
    assert torch.tpu.fallback_stats() == {}


def numbers(device, *values, dtype=None):
    return torch.tensor(values, dtype=dtype).to(device)


def fake_quantized(device, on):
    scale, point = numbers(device, 0.1), numbers(device, 3, dtype=torch.int32)
    op = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    return op(X.to(device), scale, point, numbers(device, on), -10, 10)


@pytest.mark.parametrize(
    "f",
    [
        lambda d: aten.fake_quantize_per_tensor_affine_cachemask(X.to(d), 0.1, 3, -10, 10),
        lambda d: fake_quantized(d, 0),
        lambda d: fake_quantized(d, 1),
        lambda d: aten.fake_quantize_per_channel_affine_cachemask(
            X.to(d), SCALES.to(d), POINTS.to(d), 1, -10, 10
        ),
        lambda d: aten.fake_quantize_per_channel_affine_cachemask(
            X.to(d), SCALES.to(d), (POINTS / 2).to(d), 1, -10, 10
        ),
    ],
)
def test_fake_quantisation(f):
    agree(f)


@pytest.mark.parametrize("channels", [False, True])
def test_learnable_fake_quantisation(channels):
    def trained(device):
        x, up = X.to(device), torch.ones(6, 5).to(device)
        if channels:
            parameters = (SCALES.to(device), (POINTS / 2).to(device), 1, -10, 10, 0.5)
            return (
                aten._fake_quantize_learnable_per_channel_affine(x, *parameters),
                *aten._fake_quantize_learnable_per_channel_affine_backward(up, x, *parameters),
            )
        parameters = (numbers(device, 0.1), numbers(device, 2.3), -10, 10, 0.5)
        return (
            aten._fake_quantize_learnable_per_tensor_affine(x, *parameters),
            *aten._fake_quantize_learnable_per_tensor_affine_backward(up, x, *parameters),
        )

    agree(trained)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("scale_of_x", [0.0, 1.0])
def test_observed_ranges(rows, symmetric, scale_of_x):
    def observed(device):
        n = 6 if rows else 1
        state = [torch.full((n,), v).to(device) for v in (torch.inf, -torch.inf, 1.0)]
        state.append(torch.zeros(n, dtype=torch.int32).to(device))
        on, results = numbers(device, 1), []
        for step in range(3):
            x = (X * scale_of_x * (step + 1) + (5 if step == 2 else 0)).to(device)
            results += aten._fused_moving_avg_obs_fq_helper(
                x, on, on, *state, 0.3, -128, 127, 0, rows, symmetric
            )
        return results + state

    agree(observed)


def test_quantisation_aware_training():
    from torch.ao import quantization

    def trained(device):
        model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        model = quantization.prepare_qat(model.train()).to(device)
        out = model(X.to(device))
        out.square().sum().backward()
        return [out.detach(), *(p.grad for p in model.parameters())]

    agree(trained, 1e-3)


def test_scaled_products():
    def fp8(device):
        a, b = (torch.randn(16, 32).to(torch.float8_e4m3fn) for _ in range(2))
        scales = torch.tensor(0.5).to(device), torch.tensor(2.0).to(device)
        return torch._scaled_mm(a.to(device), b.t().to(device), *scales, out_dtype=torch.bfloat16)

    def int8(device):
        weight = torch.randint(-9, 9, (8, 32), dtype=torch.int8).to(device)
        x, scales = torch.randn(4, 32).bfloat16().to(device), torch.rand(8).bfloat16().to(device)
        return aten._weight_int8pack_mm(x, weight, scales)

    agree(fp8, 2e-2)
    agree(int8, 3e-2)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segments(reduce, axis, initial):
    def reduced(device):
        data = torch.randn((6, 5) if axis == 0 else (2, 6, 3))
        data[..., 0] = 0 if reduce == "prod" else 1
        data = data.to(device).requires_grad_()
        lengths = numbers(device, *([2, 0, 4] if axis == 0 else [[2, 0, 4], [1, 2, 3]]))
        out = torch.segment_reduce(data, reduce, lengths=lengths, axis=axis, initial=initial)
        out.nan_to_num(0, 0, 0).square().sum().backward()
        return out.detach(), data.grad

    agree(reduced)


def test_segments_that_do_not_add_up():
    with pytest.raises(RuntimeError, match="to sum to data.size"):
        torch.segment_reduce(torch.ones(4).to("tpu"), "sum", lengths=numbers("tpu", 1, 2))


def test_jagged_tensors():
    agree(
        lambda d: aten._jagged_to_padded_dense_forward(
            torch.randn(5, 3).to(d), [OFFSETS.to(d)], [4], -1.0
        )
    )
    for total in (5, None):
        agree(
            lambda d, n=total: aten._padded_dense_to_jagged_forward(
                torch.randn(3, 4, 2).to(d), [OFFSETS.to(d)], n
            )
        )


@pytest.mark.parametrize(
    "f",
    [
        lambda d: torch.nonzero(torch.eye(3).to(d), out=torch.zeros(0, dtype=torch.long, device=d)),
        lambda d: torch.masked_select(X.to(d), X.to(d) > 0, out=torch.zeros(0, device=d)),
        lambda d: aten._slow_conv2d_forward(
            torch.randn(2, 3, 5, 5).to(d), torch.randn(4, 3, 3, 3).to(d), [3, 3], None, [1, 1],
            [1, 1],
        ),
        lambda d: aten.slow_conv_dilated2d(
            torch.randn(2, 3, 7, 7).to(d), torch.randn(4, 3, 3, 3).to(d), [3, 3], None,
            [1, 1], [1, 1], [2, 2],
        ),
        lambda d: aten.slow_conv_transpose2d(
            torch.randn(2, 3, 5, 5).to(d), torch.randn(3, 4, 3, 3).to(d), [3, 3], None, [2, 2],
        ),
        lambda d: aten._transform_bias_rescale_qkv(
            torch.randn(2, 3, 24).to(d), torch.randn(24).to(d), 2
        ),
        lambda d: aten._compute_linear_combination(
            torch.randn(3, 2, 2).to(d), torch.randn(4, 3).to(d)
        ),
    ],
)  # fmt: skip
def test_other_forms(f):
    agree(f, 1e-4)


def test_assertions():
    torch._assert_async(torch.tensor(1).to("tpu"))
    with pytest.raises(RuntimeError, match="got zero"):
        torch._assert_async(torch.tensor(0).to("tpu"))
    with pytest.raises(RuntimeError, match="what I say"):
        torch._assert_async(torch.tensor(0).to("tpu"), "what I say")


def test_the_gradient_of_distances_to_nothing():
    a, b = torch.ones(3, 5).to("tpu").requires_grad_(), torch.ones(0, 4, 5).to("tpu")
    torch.cdist(a, b).sum().backward()
    assert torch.equal(a.grad.cpu(), torch.zeros(3, 5))
