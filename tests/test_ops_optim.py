"""Fused and foreach optimizers, and the gradient scaler, against the CPU's."""

import pytest
import torch

import torchtpu  # noqa: F401

SHAPES = [(3, 4), (7,), ()]


def train(device, make, dtype=torch.float32, steps=4):
    torch.manual_seed(0)
    params = [torch.randn(s).to(dtype).to(device).requires_grad_() for s in SHAPES]
    grads = [[torch.randn(s).to(dtype) for s in SHAPES] for _ in range(steps)]
    optimizer = make(params)
    for step in range(steps):
        for p, g in zip(params, grads[step]):
            p.grad = g.to(device)
        optimizer.step()
    return [p.detach().cpu() for p in params]


CASES = {
    "adam": lambda p, **k: torch.optim.Adam(p, lr=0.1, weight_decay=0.01, **k),
    "adam_amsgrad": lambda p, **k: torch.optim.Adam(p, lr=0.1, amsgrad=True, maximize=True, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=0.1, betas=(0.8, 0.99), **k),
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.1, **k),
    "sgd_momentum": lambda p, **k: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True, **k
    ),
    "sgd_dampening": lambda p, **k: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, **k),
}


@pytest.mark.parametrize("how", ["fused", "foreach"])
@pytest.mark.parametrize("name", list(CASES))
def test_optimizer(name, how):
    make = CASES[name]
    if name == "adagrad" and how == "fused":
        pytest.skip("PyTorch allows fused Adagrad on the CPU only")
    expected = train("cpu", lambda p: make(p, foreach=False))
    actual = train("tpu", lambda p: make(p, **{how: True}))
    for e, a in zip(expected, actual):
        torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"]
)
def test_foreach_only_optimizer(name):
    make = getattr(torch.optim, name)
    expected = train("cpu", lambda p: make(p, lr=0.05, foreach=False))
    actual = train("tpu", lambda p: make(p, lr=0.05, foreach=True))
    for e, a in zip(expected, actual):
        torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6)


def test_fused_adagrad_op():
    def run(device):
        torch.manual_seed(0)
        lists = [[torch.rand(s).to(device) for s in SHAPES] for _ in range(3)]
        steps = [torch.tensor(2.0, device=device) for _ in SHAPES]
        torch._fused_adagrad_(
            *lists, steps, lr=0.1, lr_decay=0.2, weight_decay=0.1, eps=1e-8, maximize=False
        )
        return [t.cpu() for group in lists for t in group]

    for e, a in zip(run("cpu"), run("tpu")):
        torch.testing.assert_close(a, e)


def test_found_inf_skips_the_step():
    p = [torch.ones(3, device="tpu")]
    m, v, steps = (
        [torch.zeros(3, device="tpu")],
        [torch.zeros(3, device="tpu")],
        [torch.ones((), device="tpu")],
    )
    g = [torch.ones(3, device="tpu")]
    torch._fused_adam_(
        p,
        g,
        m,
        v,
        [],
        steps,
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
        grad_scale=torch.tensor(2.0, device="tpu"),
        found_inf=torch.tensor(1.0, device="tpu"),
    )
    assert p[0].tolist() == [1, 1, 1] and m[0].tolist() == [0, 0, 0]


def test_unscale_and_update():
    grads = [torch.tensor([2.0, 4.0], device="tpu"), torch.tensor([8.0], device="tpu")]
    found, inverse = torch.zeros(1, device="tpu"), torch.tensor([0.5], device="tpu")
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert [g.tolist() for g in grads] == [[1, 2], [4]] and found.item() == 0
    grads[0][1] = float("inf")
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert found.item() == 1
    scale, tracker = (
        torch.tensor([8.0], device="tpu"),
        torch.zeros(1, dtype=torch.int32, device="tpu"),
    )
    torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    assert scale.item() == 4 and tracker.item() == 0
    found.zero_()
    for expected in (4, 8):
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
        assert scale.item() == expected
