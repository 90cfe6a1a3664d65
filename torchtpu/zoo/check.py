"""One model on the CPU and on tpu in one of the three ways: what differs."""

from __future__ import annotations

import copy
import functools
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch._dynamo.utils

from torchtpu.zoo.draws import HostRandom

WAYS = ("strict", "defer_and_fuse", "compiled")
# Of a tensor's largest magnitude: float32 sums in another order, through a few layers.
TOLERANCE = 2e-3
_ROUNDING = 2.0**-22


def forward(model: Callable, arguments: Mapping[str, Any]) -> list[torch.Tensor]:
    """The result's tensors, in order. Raises ValueError where none is of a floating type."""
    with HostRandom():
        result = model(**arguments)
    found = list(_tensors(result))
    if not any(t.is_floating_point() for t in found):
        raise ValueError("no floating-point result")
    return found


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def loss_of(results: list[torch.Tensor]) -> torch.Tensor | None:
    """The means of what can be differentiated, each element with a weight of its own.

    Without weights many gradients would be zero but for rounding: the mean square of what a layer
    norm gives is one, whatever goes in.
    """
    terms = []
    for t in results:
        if t.requires_grad and t.is_floating_point() and t.numel():
            weights = torch.cos(torch.arange(t.numel()) * 0.7 + 0.3).reshape(t.shape)
            value = t if t.dtype == torch.float64 else t.float()
            terms.append((value * weights.to(t.device, value.dtype)).mean())
    return torch.stack(terms).sum() if terms else None


def run(model: torch.nn.Module, arguments: Mapping[str, Any], call: Callable) -> dict[str, Any]:
    """Forward, loss and backward; everything by name, on the CPU."""
    results = forward(call, arguments)
    found = {f"output {i}": t.detach().cpu() for i, t in enumerate(results)}
    loss = loss_of(results)
    if loss is not None:
        loss.backward()
        found["loss"] = loss.detach().cpu()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[f"gradient of {name}"] = parameter.grad.detach().cpu()
            parameter.grad = None
    return found


def difference(want: torch.Tensor, got: torch.Tensor, floor: float = 0.0) -> str | None:
    """What is wrong with `got`; None where it equals `want` within the tolerance. `floor`: a
    magnitude below which numbers are noise.
    """
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype} {list(got.shape)} instead of {want.dtype} {list(want.shape)}"
    if want.numel() == 0:
        return None
    if not (want.is_floating_point() or want.is_complex()):
        wrong = int((want != got).sum())
        return f"{wrong} of {want.numel()} values differ" if wrong else None
    wrong = int((want.isfinite() != got.isfinite()).sum())
    if wrong:
        return f"NaN or infinity in {wrong} places where the other has a number"
    want, got = torch.nan_to_num(want.double()), torch.nan_to_num(got.double())
    scale = max(float(want.abs().max()), floor)
    worst = float((want - got).abs().max())
    if worst <= TOLERANCE * scale:
        return None
    return f"off by {worst:.3g} where the largest is {scale:.3g}"


def compare(
    want: Mapping[str, torch.Tensor],
    got: Mapping[str, torch.Tensor],
    exact: Mapping[str, torch.Tensor] | None = None,
    others: Sequence[Mapping[str, torch.Tensor]] = (),
) -> list[str]:
    """The names that differ, and how. `exact`, the results in float64: what `want` or `others`,
    other runs on the CPU, do not tell well either need not agree, only be as near.
    """
    gradients = [float(t.abs().max()) for n, t in want.items() if n[:8] == "gradient" and t.numel()]
    # A gradient that is zero but for rounding is measured against the others.
    floor = 1e-3 * max(gradients, default=0.0)
    problems = []
    for name in dict.fromkeys([*want, *got]):
        if name not in got or name not in want:
            problems.append(f"{name}: {'missing' if name not in got else 'only on tpu'}")
            continue
        is_gradient = name.startswith("gradient")
        told = difference(want[name], got[name], floor if is_gradient else 1e-6)
        cpus = [run[name] for run in (want, *others) if name in run]
        if told and not (exact and _as_near(cpus, got[name], exact.get(name))):
            problems.append(f"{name}: {told}")
    return problems


def _as_near(cpus: list[torch.Tensor], got: torch.Tensor, exact: torch.Tensor | None) -> bool:
    want = cpus[0]
    if exact is None or exact.shape != got.shape or got.dtype != want.dtype:
        return False
    if not exact.is_floating_point():
        return False
    tpu, *off = ((t.double() - exact).abs().max() for t in (got, *cpus))
    return bool(tpu <= 4 * max(off))


def _worst(exact: Mapping[str, torch.Tensor], run: Mapping[str, torch.Tensor]) -> float:
    """The largest error of a run, of each tensor's largest magnitude; infinite where the runs are
    not of the same things.
    """
    if exact.keys() != run.keys():
        return math.inf
    gradients = [
        float(t.abs().max()) for n, t in exact.items() if n[:8] == "gradient" and t.numel()
    ]
    worst = 0.0
    for name, want in exact.items():
        got = run[name]
        if want.shape != got.shape or bool((want.isfinite() != got.isfinite()).any()):
            return math.inf
        if not want.is_floating_point():
            worst = worst if torch.equal(want, got) else math.inf
        elif want.numel():
            want, got = torch.nan_to_num(want.double()), torch.nan_to_num(got.double())
            floor = 1e-3 * max(gradients, default=0.0) if name[:8] == "gradient" else 1e-6
            scale = max(float(want.abs().max()), floor)
            worst = max(worst, float((want - got).abs().max()) / scale)
    return worst


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value


class Unstable(Exception):
    """Two runs on the CPU differ: there is nothing to compare with."""


class Reference:
    """What the CPU gives for a model, which itself is never run: some keep what they calculated."""

    def __init__(self, model: torch.nn.Module, arguments: Mapping[str, Any]) -> None:
        self.model, self.arguments = model, arguments
        self.want = self._run(torch.float32)

    @functools.cached_property
    def traced(self) -> dict[str, torch.Tensor]:
        """What the model gives when compiled for the CPU, without a compiler."""
        torch._dynamo.reset()
        model = copy.deepcopy(self.model)
        try:
            return run(model, self.arguments, torch.compile(model, backend="aot_eager"))
        except Exception:  # nothing is known to be excused
            return {}

    def without_added_zeros(self, got: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Without the zeros that a compiled model gives for None: a parameter that its graph takes
        and the loss does not depend on gets a gradient of zeros from AOTAutograd, whatever the
        device. What is not zero stays, and what `aot_eager` on the CPU does not give either.
        """
        zeros = {n for n, t in got.items() if n not in self.want and not t.any()}
        return {n: t for n, t in got.items() if n not in zeros or n not in self.traced}

    def _run(self, dtype: torch.dtype, noise: int = 0) -> dict[str, Any]:
        """`noise`: a seed; parameters off by about what float32 rounds away."""
        model = copy.deepcopy(self.model).to(dtype)
        generator = torch.Generator().manual_seed(noise)
        with torch.no_grad():
            for p in model.parameters() if noise else ():
                p.mul_(1 + _ROUNDING * torch.randn(p.shape, dtype=dtype, generator=generator))
        return run(model, {k: _cast(v, dtype) for k, v in self.arguments.items()}, model)

    def problems(self, got: Mapping[str, torch.Tensor]) -> list[str]:
        """What of `got` differs. Raises Unstable."""
        problems = compare(self.want, got)
        if not problems:
            return []
        unstable = compare(self.want, self._run(torch.float32))
        if unstable:
            raise Unstable(unstable[0])
        try:
            exact = self._run(torch.float64)
        except Exception:  # not every model can run in float64
            return problems
        problems = compare(self.want, got, exact)
        if problems:
            # A value as good as zero before a relu makes gradients jump.
            others = [self._run(torch.float64, seed) for seed in range(1, 5)]
            problems = compare(self.want, got, exact, others)
        if problems and self._rounding_decides(exact, got):
            return []
        return problems

    def _rounding_decides(
        self, exact: Mapping[str, torch.Tensor], got: Mapping[str, torch.Tensor]
    ) -> bool:
        """Whether the same model on tpu is right in float64, and in float32 off by no more than the
        CPU's float32 is, wherever that is: of many values before a relu some are as good as zero,
        not the same ones on both.
        """
        limit = 4 * _worst(exact, self.want)
        if math.isinf(limit) or _worst(exact, got) > limit:
            return False
        model = copy.deepcopy(self.model).double().to("tpu")
        arguments = {k: on_tpu(_cast(v, torch.float64)) for k, v in self.arguments.items()}
        try:
            return _worst(exact, run(model, arguments, model)) < 1e-9
        except Exception:  # not every model can run in float64
            return False


def on_tpu(value: Any) -> Any:
    if torch.is_tensor(value):
        return value.to("tpu")
    if isinstance(value, (list, tuple)):
        return type(value)(on_tpu(v) for v in value)
    return value


def _is_untraced(reference: Reference, error: Exception) -> bool:
    """Whether Dynamo alone, on the CPU, fails on the model in the same way."""
    torch._dynamo.reset()
    model = copy.deepcopy(reference.model)
    try:
        run(model, reference.arguments, torch.compile(model, backend="eager"))
    except Exception as other:
        return type(other) is type(error)
    return False


def _failed(reference: Reference, error: Exception, way: str) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
    untraced = way == "compiled" and _is_untraced(reference, error)
    return {
        "status": "untraced" if untraced else "error",
        "detail": f"{type(error).__name__}: {str(error).strip()[:1500]}{where}",
    }


def _compared(reference: Reference, got: Mapping[str, torch.Tensor], way: str) -> dict[str, Any]:
    if way == "compiled":
        got = reference.without_added_zeros(got)
    problems = reference.problems(got)
    if not problems:
        return {"status": "equal"}
    if way == "compiled" and not compare(reference.traced, got):
        return {"status": "untraced", "detail": "traced, the model gives other values"}
    count = f"{len(problems)} of {len(reference.want)}"
    return {"status": "differs", "detail": f"{count}: " + "; ".join(problems[:4])}


def _graphs() -> dict[str, int]:
    counters = torch._dynamo.utils.counters
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
    }


def check(reference: Reference, way: str) -> dict[str, Any]:
    """One way's answer: "status" equal, differs, error or untraced, with "detail" and "fallbacks".

    Raises Unstable.
    """
    from torchtpu import tpu

    tpu.set_fallback("silent")
    tpu.fallback_stats(reset=True)
    tpu.set_eager_mode("strict" if way == "compiled" else way)
    torch._dynamo.utils.counters.clear()
    got: dict[str, torch.Tensor] | Exception
    try:
        model = copy.deepcopy(reference.model).to("tpu")
        call = torch.compile(model, backend="tpu") if way == "compiled" else model
        got = run(model, {k: on_tpu(v) for k, v in reference.arguments.items()}, call)
    except Exception as error:
        got = error
    facts: dict[str, Any] = {"fallbacks": tpu.fallback_stats(reset=True)}
    if way == "compiled":
        facts.update(_graphs())
    if isinstance(got, Exception):
        return {**_failed(reference, got, way), **facts}
    return {**_compared(reference, got, way), **facts}
