"""torch.compile and TorchScript beside eager and inductor, in one run: times and ratios."""

import copy
import statistics
import sys
import time

import torch
from measure import Row, best, row, run
from torch import nn
from torch.nn import functional as F

from torchtpu import compile as tpu_compile


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


class Attention(nn.Module):
    """A small transformer block over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.qkv, self.out = nn.Embedding(64, 64), nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.embed(index)).unflatten(-1, (3, 4, 16)).transpose(1, 3).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Recorded:
    """While entered, what programs are run with is kept, so that they can be timed alone."""

    def __enter__(self) -> "Recorded":
        self.calls: list[tuple[object, list]] = []
        self._native = tpu_compile._C
        tpu_compile._C = self  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        tpu_compile._C = self._native

    def __getattr__(self, name: str) -> object:
        return getattr(self._native, name)

    def programs_run(self, programs: object, arguments: list) -> list | None:
        self.calls.append((programs, list(arguments)))
        return self._native.programs_run(programs, arguments)


def overhead() -> list[Row]:
    """A call of a 2-layer MLP (16-16-4, batch 8): microseconds, and the programs' part of it."""
    ways = {"cpu": ("cpu", False), "cpu inductor": ("cpu", True), "tpu": ("tpu", False),
            "tpu compiled": ("tpu", True)}  # fmt: skip
    rows, base = [], {}
    for way, (device, compiled) in ways.items():
        torch._dynamo.reset()
        model, x = mlp().to(device), torch.randn(8, 16).to(device)
        call = torch.compile(model) if compiled else model

        def train(x: torch.Tensor) -> None:
            call(x).sum().backward()

        kinds = {"inference": (torch.inference_mode, call), "forward": (torch.enable_grad, call),
                 "forward, backward": (torch.enable_grad, train)}  # fmt: skip
        for kind, (mode, f) in kinds.items():
            with mode(), Recorded() as recorded:
                f(x), f(x)
                recorded.calls.clear()
                f(x)
            with mode():
                seconds = best(lambda: f(x), 200, 15, torch.tpu.synchronize)
            what = f"MLP, {kind}"
            rows.append(row(what, way, seconds, base.setdefault(kind, seconds)))
            if device == "tpu" and compiled:
                native = tpu_compile._C.programs_run
                alone = sum(
                    best(lambda: native(programs, list(arguments)), 200, 15, torch.tpu.synchronize)
                    for programs, arguments in recorded.calls
                )
                rows.append(row(what, "of which ours", alone, base[kind]))
    return rows


def first_step() -> list[Row]:
    """A training step of a small transformer with AdamW: the first one beyond a steady one."""
    rows, base = [], None
    for device in ("cpu", "tpu"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = nn.Sequential(Attention(), nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(),
                              nn.Linear(256, 64)).to(device)  # fmt: skip
        optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-3))
        forward, update = torch.compile(model), torch.compile(optimizer.step)
        index = torch.randint(64, (8, 64)).to(device)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            F.cross_entropy(forward(index).flatten(0, 1), index.flatten()).backward()
            update()
            optimizer.zero_grad()
            torch.tpu.synchronize()
            times.append(time.perf_counter() - start)
        steady = statistics.median(times[5:])
        beyond = sum(times[:5]) - 5 * steady
        base = base or (beyond, steady)
        way = f"{device}, {'inductor' if device == 'cpu' else 'tpu'}"
        rows.append(row("first steps beyond steady ones", way, beyond, base[0]))
        rows.append(row("steady step", way, steady, base[1]))
    return rows


def sizes() -> list[Row]:
    """64 lengths through one compiled module: what a length costs the first time, and again."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model = Attention().to("tpu")
    compiled = torch.compile(model)
    first, again = [], []
    for n in range(8, 72):
        index = torch.randint(64, (4, n)).to("tpu")
        for times in (first, again):
            start = time.perf_counter()
            compiled(index).sum().backward()
            torch.tpu.synchronize()
            times.append(time.perf_counter() - start)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    base = statistics.median(again[8:])
    return [
        row(f"64 lengths, {graphs} graphs", "known length", base, base),
        row(f"64 lengths, {graphs} graphs", "new length", statistics.median(first[8:]), base),
    ]


def torchscript() -> list[Row]:
    """A scripted and a traced MLP beside eager: inference, microseconds."""
    rows, base = [], None
    for device in ("cpu", "tpu"):
        model, x = mlp().eval().to(device), torch.randn(8, 16).to(device)
        ways = {"eager": model, "script": torch.jit.script(copy.deepcopy(model)),
                "trace": torch.jit.trace(model, x)}  # fmt: skip
        with torch.inference_mode():
            for way, f in ways.items():
                for _ in range(5):
                    f(x)
                seconds = best(lambda: f(x), 200, 15, torch.tpu.synchronize)
                base = base or seconds
                rows.append(row("MLP, TorchScript", f"{device}, {way}", seconds, base))
    return rows


ENTRIES = {
    "overhead": overhead,
    "first_step": first_step,
    "sizes": sizes,
    "torchscript": torchscript,
}


if __name__ == "__main__":
    sys.exit(run(__doc__, ENTRIES))
