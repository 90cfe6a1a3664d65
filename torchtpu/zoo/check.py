"""One model on the CPU and on tpu in one of the three ways: what differs."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

WAYS = ("strict", "defer_and_fuse", "compiled")
# Of a tensor's largest magnitude: float32 sums in another order, through a few layers.
TOLERANCE = 2e-3
_ROUNDING = 2.0**-22


class HostRandom(TorchFunctionMode):
    """Draws that a model makes itself come from one CPU generator, whatever the device: numbers of
    two devices differ by design, and then nothing could be compared.
    """

    _NEW = (torch.rand, torch.randn, torch.randint, torch.randperm, torch.bernoulli, torch.normal)
    _LIKE = (torch.rand_like, torch.randn_like, torch.randint_like, torch.multinomial)

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in self._NEW or function in self._LIKE:
            device = kwargs.pop("device", None)
            tensors = [a for a in args if torch.is_tensor(a)]
            device = device or (tensors[0].device if tensors else None)
            args = tuple(a.cpu() if torch.is_tensor(a) else a for a in args)
            if function in (torch.rand_like, torch.randn_like, torch.randint_like):
                shape = args[0].shape
                new = {torch.rand_like: torch.rand, torch.randn_like: torch.randn}
                kwargs.setdefault("dtype", args[0].dtype)
                kwargs.pop("memory_format", None)
                args = (*args[1:], shape) if function is torch.randint_like else (shape,)
                function = new.get(function, torch.randint)
            kwargs["generator"] = self.generator
            made = function(*args, **kwargs)
            return made.to(device) if device is not None else made
        if function in (torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.exponential_):
            kwargs["generator"] = self.generator
            return args[0].copy_(function(args[0].cpu(), *args[1:], **kwargs))
        return function(*args, **kwargs)


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


class Unstable(Exception):
    """Two runs on the CPU differ: there is nothing to compare with."""


class Reference:
    """What the CPU gives for a model, which itself is never run: some keep what they calculated."""

    def __init__(self, model: torch.nn.Module, arguments: Mapping[str, Any]) -> None:
        self.model, self.arguments = model, arguments
        self.want = self._run(torch.float32)

    def _run(self, dtype: torch.dtype, noise: int = 0) -> dict[str, Any]:
        """`noise`: a seed; parameters off by about what float32 rounds away."""

        def cast(value: Any) -> Any:
            is_float = torch.is_tensor(value) and value.is_floating_point()
            return value.to(dtype) if is_float else value

        model = copy.deepcopy(self.model).to(dtype)
        generator = torch.Generator().manual_seed(noise)
        with torch.no_grad():
            for p in model.parameters() if noise else ():
                p.mul_(1 + _ROUNDING * torch.randn(p.shape, dtype=dtype, generator=generator))
        return run(model, {k: cast(v) for k, v in self.arguments.items()}, model)

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
        return problems


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


def check(reference: Reference, way: str) -> dict[str, Any]:
    """One way's answer: "status" equal, differs, error or untraced, with "detail" and "fallbacks".

    Raises Unstable.
    """
    from torchtpu import tpu

    tpu.set_fallback("silent")
    tpu.fallback_stats(reset=True)
    tpu.set_eager_mode("strict" if way == "compiled" else way)
    answer: dict[str, Any] = {}
    try:
        model = copy.deepcopy(reference.model).to("tpu")
        call = torch.compile(model, backend="tpu") if way == "compiled" else model
        got = run(model, {k: on_tpu(v) for k, v in reference.arguments.items()}, call)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
        message = str(error).strip()
        answer = {"status": "error", "detail": f"{type(error).__name__}: {message[:1500]}{where}"}
        if way == "compiled" and _is_untraced(reference, error):
            answer["status"] = "untraced"
    else:
        problems = reference.problems(got)
        answer["status"] = "differs" if problems else "equal"
        if problems:
            count = f"{len(problems)} of {len(reference.want)}"
            answer["detail"] = f"{count}: " + "; ".join(problems[:4])
    answer["fallbacks"] = tpu.fallback_stats(reset=True)
    if way == "compiled":
        from torch._dynamo.utils import counters

        answer["graphs"] = counters["stats"]["unique_graphs"]
        answer["graph_breaks"] = sum(counters["graph_break"].values())
    return answer
