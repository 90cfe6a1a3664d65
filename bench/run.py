"""Eager ops and steps beside the CPU's, in one run: times and ratios. `make bench`."""

import sys
from collections.abc import Callable

import torch
from measure import Row, best, row, run

MODES = ("strict", "defer_and_fuse")


def dispatch() -> list[Row]:
    """`a + b` on one element from Python, beside the CPU's own."""
    name = "a + b, 1 element"
    a, b = torch.ones(1), torch.ones(1)
    cpu = best(lambda: a + b, 20_000)
    rows = [row(name, "cpu", cpu, cpu)]
    for mode in MODES:
        torch.tpu.set_eager_mode(mode)
        x, y = a.to("tpu"), b.to("tpu")
        seconds = best(lambda: x + y, 1_000, 21, torch.tpu.synchronize)
        rows.append(row(name, mode, seconds, cpu))
    return rows


def chain() -> list[Row]:
    """Thirteen elementwise ops with tanh over 4 Mi floats."""

    def work(x: torch.Tensor) -> torch.Tensor:
        y = x
        for i in range(4):
            y = torch.tanh(y * 1.01 + 0.1 * i)
        return y + x

    name = "13-op chain, 4 Mi f32"
    x = torch.randn(1 << 22)
    cpu = best(lambda: work(x), 2, 5)
    rows = [row(name, "cpu", cpu, cpu)]
    for mode in MODES:
        torch.tpu.set_eager_mode(mode)
        t = x.to("tpu")

        def once() -> None:
            kept = work(t)  # a dead result would never be computed
            torch.tpu.synchronize()
            del kept

        rows.append(row(name, mode, best(once, 2, 5), cpu))
    return rows


def matmul() -> list[Row]:
    """1024 x 1024 matrix product."""
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.randn(1024, 1024).to(dtype)
        cpu = best(lambda: a @ a, 5, 5)
        name = f"matmul 1024, {str(dtype)[6:]}"
        rows.append(row(name, "cpu", cpu, cpu))
        for mode in MODES:
            torch.tpu.set_eager_mode(mode)
            t = a.to("tpu")

            def once() -> None:
                kept = t @ t  # a dead result would never be computed
                torch.tpu.synchronize()
                del kept

            rows.append(row(name, mode, best(once, 5, 5), cpu))
    return rows


def mlp_step() -> list[Row]:
    """A training step of a 3-layer MLP (batch 64, width 256) with AdamW."""

    def make(device: str) -> Callable[[], None]:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 256)]
        model = torch.nn.Sequential(*layers, torch.nn.GELU(), torch.nn.Linear(256, 10)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x = torch.randn(64, 256).to(device)
        y = torch.randint(10, (64,)).to(device)

        def step() -> None:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss.item()

        for _ in range(5):
            step()
        return step

    name = "MLP step, batch 64"
    cpu = best(make("cpu"), 10, 5)
    rows = [row(name, "cpu", cpu, cpu)]
    for mode in MODES:
        torch.tpu.set_eager_mode(mode)
        rows.append(row(name, mode, best(make("tpu"), 10, 5), cpu))
    return rows


ENTRIES = {"dispatch": dispatch, "chain": chain, "matmul": matmul, "mlp_step": mlp_step}


if __name__ == "__main__":
    sys.exit(run(__doc__, ENTRIES))
