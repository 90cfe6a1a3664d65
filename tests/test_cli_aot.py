"""`torchtpu aot`: the real TPU's compiler asked from the command line."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest
import torch
from test_cli import ROOT, torchtpu

from torchtpu import _aot_case, hlo
from torchtpu.cli import aot as cli_aot

libtpu = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu is absent")

MODELS = """
import torch

def make():
    print("not part of the answer")
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
    model[2].weight.data = model[2].weight.data * 2
    return model, torch.randn(32, 64), lambda y: y.square().mean()

def reads():
    def function(x):
        return x * 2 if x.sum() > 0 else x
    return function, torch.randn(8)

def large():
    return (lambda x: torch.sort(x @ x)[0]), torch.empty(60000, 60000)

def nothing():
    return 3

def raises():
    raise ValueError("my own")

def leaves():
    raise SystemExit(3)

def asks(x):
    return make()
"""


@pytest.fixture
def models(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


@libtpu
def test_training_step_is_accepted(models: pathlib.Path) -> None:
    done = torchtpu(
        "aot", f"{models}:make", "--train", "--topology", "v5e:1x1", "v6e:2x2", "--json"
    )
    assert done.returncode == 0, done.stderr + done.stdout
    answer = json.loads(done.stdout)
    assert answer["accepted"] and answer["parameters"] == 64 * 128 * 2 + 128 + 64
    for one in answer["topologies"]:
        # parameters and two moments come in and go out in place
        assert one["memory"]["alias"] >= 3 * 4 * answer["parameters"]
        assert one["estimate"]["step"] > 0 and one["fusions"]
        lines = [line["line"] for line in one["lines"]]
        assert any(line.startswith("backward: ") for line in lines), lines


@libtpu
def test_out_of_memory_names_lines(models: pathlib.Path) -> None:
    done = torchtpu("aot", f"{models}:large", "--level", "9", TORCHTPU_HBM_BYTES="64G")
    assert done.returncode == 1, done.stderr
    assert "OUT_OF_MEMORY" in done.stdout and "models.py:16" in done.stdout


@libtpu
@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("reads", 1, ["NotImplementedError", "models.py:12"]),
        ("raises", 1, ["ValueError: my own", "models.py:22"]),
        ("leaves", 1, ["SystemExit: 3", "models.py:25"]),
        ("nothing", 2, ["(model, inputs)"]),
        ("asks", 2, ["asks is called without arguments", "'x'"]),
        ("missing", 2, ["no function 'missing'"]),
    ],
)
def test_errors(models: pathlib.Path, name: str, status: int, words: list[str]) -> None:
    done = torchtpu("aot", f"{models}:{name}")
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stdout + done.stderr


@libtpu
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["no_such.py:make"], 2, "there is no file no_such.py"),
        (["MODELS:leaves"], 1, "3"),
        (["MODELS:make", "--option", "fast"], 2, "NAME=VALUE"),
        (["MODELS:make", "--program", "/no/such/folder/x"], 2, "/no/such/folder/x"),
        (["MODELS:make", "--train", "--optimizer", "Nope"], 2, "no optimizer 'Nope'"),
    ],
)
def test_json_is_json(
    models: pathlib.Path, arguments: list[str], status: int, message: str
) -> None:
    arguments = [a.replace("MODELS", str(models)) for a in arguments]
    done = torchtpu("aot", *arguments, "--json")
    assert done.returncode == status and "Traceback" not in done.stderr, done.stderr
    answer = json.loads(done.stdout)
    assert answer["accepted"] is False and message in answer["error"]["message"]


def test_compiler_that_is_not_there(models: pathlib.Path) -> None:
    done = torchtpu("aot", f"{models}:make", "--json", TPU_LIBRARY_PATH="/no/such/libtpu.so")
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert not answer["accepted"] and "/no/such/libtpu.so" in answer["error"]["message"]


def test_case_keeps_ties_and_state() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.word, self.head = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8, bias=False)
            self.head.weight = self.word.weight

        def forward(self, x: torch.Tensor) -> dict:
            return {"loss": self.head(self.word(x)).sum()}

    def make():
        return Tied(), {"x": torch.randint(8, (2, 3))}

    for meta in (True, False):
        case = _aot_case.build(make, True, "AdamW", meta)
        model, optimizer = case.state
        assert model.head.weight is model.word.weight and model.head.weight.is_tpu
        assert list(optimizer.state) == [model.head.weight]
        before = model.head.weight.clone()
        case.step(*case.inputs)
        # meta weights are zeros on tpu, and so are their gradients here
        assert torch.equal(before, model.head.weight) == meta


def test_bert_example_learns() -> None:
    out = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "bert.py"), "--device", "tpu", "--steps", "30"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert out.returncode == 0, out.stderr
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", out.stdout)]
    assert losses[-1] < losses[0]


def test_lines_of_a_message() -> None:
    text = 'a\n  %0 = stablehlo.add %a, %b : tensor<4x2xf32> loc("f.py:3 in g: add")'
    assert cli_aot._lines_of("<stdin>:2:7: error: no", text) == ["f.py:3 in g: add"]
    assert cli_aot._lines_of('no such thing at "x.py:9 in h: mm"', text) == ["x.py:9 in h: mm"]
    assert cli_aot._largest_values(text, 3) == [
        {"line": "f.py:3 in g: add", "type": "f32[4, 2]", "bytes": 32}
    ]


def test_hlo_refuses_other_files() -> None:
    with pytest.raises(ValueError, match="not a program"):
        hlo.instructions(b"\x0a\xff\xff\x01")
    assert hlo.instructions(b"") == []
