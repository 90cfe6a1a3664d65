"""The zoo's machinery on small models of our own, and two architectures of transformers."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch
from test_cli import torchtpu

from torchtpu.zoo import check, hub, report, select, sweep
from torchtpu.zoo.hub import Made

transformers = pytest.mark.skipif(
    not importlib.util.find_spec("transformers"), reason="the package transformers is absent"
)


class Small(torch.nn.Module):
    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.linear, self.fault = torch.nn.Linear(4, 4), fault

    def forward(self, x: torch.Tensor) -> dict:
        if x.is_tpu and self.fault == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if x.is_tpu and self.fault == "hang":
            time.sleep(600)
        if x.is_tpu and self.fault == "wrong":
            x = x + 0.5
        if x.is_tpu and self.fault == "error":
            raise RuntimeError("no luck with 17")
        return {"y": self.linear(x) + torch.rand(4, device=x.device), "n": [x.argmax()]}


def make(fault: str) -> Made:
    if fault == "unbuilt":
        raise ValueError("needs a file")
    return Made(Small(fault), {"x": torch.arange(8.0).reshape(2, 4)}, "Small")


FAULTS = ("", "crash", "hang", "wrong", "error", "unbuilt")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A sweep in a process that has not started the device: children could not use it else."""
    folder = tmp_path_factory.mktemp("zoo")
    path, script = folder / "zoo.jsonl", folder / "run.py"
    script.write_text(
        "import functools, pathlib, sys\n"
        f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
        "import test_zoo\n"
        "from torchtpu.zoo import sweep\n"
        "entries = [sweep.Entry(f or 'good', 'small', functools.partial(test_zoo.make, f))\n"
        "           for f in test_zoo.FAULTS]\n"
        f"path = pathlib.Path({str(path)!r})\n"
        "import torch._dynamo\n"  # what the first op would import in every child
        "ways = ('strict', 'defer_and_fuse')\n"
        "quiet = lambda number, result: None\n"
        "for again in range(2):\n"
        "    patient = [e for e in entries if e.name != 'hang']\n"
        "    sweep.sweep(patient, ways, path, sweep.Limits(seconds=120), quiet)\n"
        "hangs = [e for e in entries if e.name == 'hang']\n"
        "sweep.sweep(hangs, ways, path, sweep.Limits(seconds=6), quiet)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def test_sweep_survives_its_models(results: pathlib.Path) -> None:
    found = {r["name"]: r for r in sweep.read(results)}
    assert len(results.read_text().splitlines()) == len(FAULTS)  # the second sweep added nothing
    want = {"good": "equal", "crash": "crash", "hang": "timeout", "wrong": "differs"}
    for name, status in {**want, "error": "error"}.items():
        assert found[name]["cpu"]["status"] == "made"
        for way in ("strict", "defer_and_fuse"):
            assert found[name][way]["status"] == status, found[name]
    assert found["unbuilt"]["cpu"]["status"] == "not made"
    assert "signal 11" in found["crash"]["strict"]["detail"]


def test_reports(results: pathlib.Path) -> None:
    found = sweep.read(results)
    assert report.counts(found)[0] == ("strict", "5", *"111110", "0", "20.0 %")
    causes = dict(report.groups(found, "strict"))
    assert causes["wrong value in outputs"] == ["wrong"]
    assert causes["timeout: no answer within 6 s"] == ["hang"]
    assert any("no luck with #" in cause for cause in causes)
    page, text = report.page(found, "T"), report.markdown(found, "T")
    for name in ("good", "crash", "hang", "wrong", "error"):
        assert name in page
    assert "needs a file" in text and "20.0 %" in text
    half = results.with_name("half.jsonl")
    half.write_text(results.read_text() + '{"name": "cut o')
    assert len(sweep.read(half)) == len(FAULTS)


@pytest.mark.parametrize("on_cpu", [False, True])
def test_what_dynamo_cannot_trace(on_cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that the CPU shares, without our backend, is told apart."""

    def compile_(model: torch.nn.Module, backend: str) -> torch.nn.Module:
        if backend == "tpu" or on_cpu:
            raise TypeError("no luck with 17")
        return model

    monkeypatch.setattr(torch, "compile", compile_)
    answer = check.check(check.Reference(Small(), {"x": torch.ones(2, 4)}), "compiled")
    assert answer["status"] == ("untraced" if on_cpu else "error")
    told = report.cause(answer)
    assert "no luck with #" in told and ("on the CPU too" in told) == on_cpu


class Unused(torch.nn.Module):
    """The loss does not depend on `other`, whose result the first of two graphs gives."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, z = self.linear(x), self.other(x)
        torch._dynamo.graph_break()
        return y + z.detach()


def test_zeros_for_no_gradient() -> None:
    """AOTAutograd gives zeros where autograd gives None, on the CPU too; other numbers count."""
    reference = check.Reference(Unused(), {"x": torch.ones(2, 4)})
    answer = check.check(reference, "compiled")
    assert (answer["status"], answer["graphs"]) == ("equal", 2), answer
    name = "gradient of other.weight"
    assert name in reference.traced and name not in reference.want
    zeros, ones = {name: torch.zeros(4, 4)}, {name: torch.ones(4, 4)}
    assert name not in reference.without_added_zeros(zeros)
    assert name in reference.without_added_zeros(ones)
    other = check.Reference(Small(), {"x": torch.ones(2, 4)})  # its graphs have no such parameter
    assert name in other.without_added_zeros(zeros)


class Traced(torch.nn.Module):
    """Another model where Dynamo traces it, on any device; if told so, wrong on tpu besides."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.wrong = wrong

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if torch.compiler.is_compiling() else x * 3
        return y + 5 if self.wrong and x.is_tpu else y


def test_other_values_of_a_trace() -> None:
    """What Dynamo makes of a model on the CPU too is told apart from what tpu makes of it."""
    for wrong, status in ((False, "untraced"), (True, "differs")):
        reference = check.Reference(Traced(wrong), {"x": torch.ones(2)})
        assert check.check(reference, "compiled")["status"] == status


class Draws(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * torch.randn(4, device=x.device) + torch.rand_like(x)
        return y + torch.randint_like(x, 3, 9) + torch.bernoulli(torch.full_like(x, 0.5))


def test_draws_are_the_same_everywhere() -> None:
    """Compiled too, and torch's functions are themselves again afterwards."""
    x, before = torch.ones(2, 4), torch.randn
    (want,) = check.forward(Draws(), {"x": x})
    (again,) = check.forward(Draws(), {"x": x})
    (got,) = check.forward(Draws().to("tpu"), {"x": x.to("tpu")})
    compiled = torch.compile(Draws().to("tpu"), backend="tpu")
    (traced,) = check.forward(compiled, {"x": x.to("tpu")})
    assert got.device.type == traced.device.type == "tpu"
    for other in (again, got.cpu(), traced.cpu()):
        torch.testing.assert_close(other, want)
    assert torch.randn is before


def test_missing_ops_are_grouped_by_op() -> None:
    answer = {"status": "error", "detail": "NotImplementedError: aten::foo.bar is not implemented"}
    assert report.cause(answer) == "missing op: foo.bar"


def test_differences() -> None:
    a = torch.tensor([1.0, 2.0])
    assert check.difference(a, a + 1e-4) is None
    assert "off by" in (check.difference(a, a + 0.1) or "")
    assert "instead of" in (check.difference(a, a[:1]) or "")
    assert "1 of 2" in (check.difference(torch.tensor([1, 2]), torch.tensor([1, 3])) or "")
    nan = torch.tensor([float("nan"), 1.0])
    assert check.difference(nan, nan) is None
    assert "NaN" in (check.difference(nan, torch.tensor([0.0, 1.0])) or "")
    assert check.compare({"x": a}, {}) == ["x: missing"]
    # as far from float64 as the CPU is, and four times farther is not as near
    exact = torch.tensor([1.0, 2.2], dtype=torch.float64)
    assert check.compare({"x": a}, {"x": a + torch.tensor([0.0, 0.3])}, {"x": exact}) == []
    assert check.compare({"x": a}, {"x": a + torch.tensor([0.0, 1.3])}, {"x": exact})


class Kink(torch.nn.Module):
    """Its gradient is 0 or 1: the sum of the weights is nothing but rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 1e-8, -1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.weight.sum()) + 1.0 + 0.0 * x


def test_gradients_that_rounding_decides() -> None:
    reference = check.Reference(Kink(), {"x": torch.ones(1)})
    other = {**reference.want, "gradient of weight": 1 - reference.want["gradient of weight"]}
    assert check.compare(reference.want, other)
    assert reference.problems(other) == []
    assert reference.problems({**other, "gradient of weight": torch.full((3,), 9.0)})


class Sums(torch.nn.Module):
    """Right in float64; in float32 its first result is off, on the CPU the second is, as much."""

    def forward(self, x: torch.Tensor) -> dict:
        off = 0.003 if x.dtype == torch.float32 else 0.0
        return {"a": x + off * x.is_tpu, "b": x + off * x.is_cpu}


class Wrong(Sums):
    def forward(self, x: torch.Tensor) -> dict:
        return {n: t + 0.003 * x.is_tpu for n, t in super().forward(x).items()}


def test_errors_elsewhere() -> None:
    """An error as large as the CPU's own, of another tensor, is rounding if float64 is right."""
    for model, status in ((Sums(), "equal"), (Wrong(), "differs")):
        answer = check.check(check.Reference(model, {"x": torch.ones(2)}), "strict")
        assert answer["status"] == status, answer


def test_choice() -> None:
    names = ["llama", "llama4", "llama4_text", "bert", "bert_two", "gpt2"]
    classes = {"bert_two": "BertModel", "bert": "BertModel"}
    assert select.choose(names, classes, {}) == ["llama", "bert", "gpt2", "llama4", "llama4_text"]
    weights = {"gpt2": 100.0, "bert": 60.0, "llama": 1.0}
    assert select.choose(names, classes, weights, 2) == ["gpt2", "bert"]
    assert select.family("qwen2_5_vl_text") == "qwen" and select.family("t5") == "t"


def test_weights(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "w.tsv"
    table.write_text("model\tdownloads\ttype\na/b\t5\tbert\nc/d\t7\tbert\ne/f\t1\tgpt2\n")
    assert select.read_weights(table) == {"bert": 12, "gpt2": 1}


@transformers
def test_two_architectures(tmp_path: pathlib.Path) -> None:
    results, page = tmp_path / "zoo.jsonl", tmp_path / "zoo.html"
    done = torchtpu(
        "zoo", "bert", "llama", "--ways", "strict", "defer_and_fuse",
        "--results", str(results), "--html", str(page),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for line in results.read_text().splitlines():
        answer = json.loads(line)
        for way in ("strict", "defer_and_fuse"):
            assert answer[way]["status"] == "equal", answer
            assert answer[way]["fallbacks"] == {}
    assert "BertModel" in page.read_text()


@transformers
@pytest.mark.parametrize(
    "name, what",
    [
        ("mamba2", "level 0, required"),  # heads times their size is the widened state
        ("mistral4", "level 0, required"),  # a head's size is a sum of two
        ("swinv2", "level 0"),  # depths of stages, not of layers
        ("vitpose", "level 0, required"),  # images higher than wide
        ("siglip2", "level 0, flat patches"),
        ("informer", "level 0, required"),
    ],
)
def test_small_models(name: str, what: str) -> None:
    hub.preload()
    made = hub.make(name)
    assert what in made.what
    assert sum(p.numel() for p in made.model.parameters()) < 2_000_000


@transformers
def test_wrong_names() -> None:
    done = torchtpu("zoo", "no_such_model")
    assert done.returncode == 2 and "no_such_model" in done.stderr
    assert torchtpu("zoo", "bert", "--ways", "warp").returncode == 2
