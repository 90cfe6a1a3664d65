"""The examples run on `tpu` and agree with the CPU."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def run(script: str, *args: str, mode: str = "strict") -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *args],
        env=dict(os.environ, TORCHTPU_EAGER_MODE=mode),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def cpu_losses(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    path = tmp_path_factory.mktemp("gpt") / "cpu.json"
    run("train_gpt.py", "--device", "cpu", "--steps", "12", "--json", str(path))
    return json.loads(path.read_text())["losses"]


@pytest.mark.parametrize("mode", ["strict", "debug", "defer_and_fuse"])
def test_gpt_losses_are_the_cpus(
    mode: str, cpu_losses: list[float], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "tpu.json"
    run("train_gpt.py", "--device", "tpu", "--steps", "12", "--json", str(path), mode=mode)
    result = json.loads(path.read_text())
    for got, want in zip(result["losses"], cpu_losses, strict=True):
        assert abs(got - want) <= 1e-3 * abs(want)
    assert result["fallbacks"] == {}


@pytest.mark.slow
def test_gpt_compiled(cpu_losses: list[float], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "tpu.json"
    run("train_gpt.py", "--device", "tpu", "--compile", "--steps", "12", "--json", str(path))
    for got, want in zip(json.loads(path.read_text())["losses"], cpu_losses, strict=True):
        assert abs(got - want) <= 1e-4 * abs(want)


@pytest.mark.parametrize("mode", ["strict", "debug", "defer_and_fuse"])
def test_digits(mode: str) -> None:
    out = run("digits.py", "--device", "tpu", mode=mode)
    match = re.search(r"test accuracy ([\d.]+) %", out)
    assert match and float(match[1]) >= 97


@pytest.mark.parametrize("mode", ["strict", "defer_and_fuse"])
def test_minilm(mode: str) -> None:
    pytest.importorskip("transformers")
    out = run("minilm.py", "--device", "tpu", mode=mode)
    match = re.search(r"largest difference to the CPU: ([\d.e+-]+)", out)
    assert match and float(match[1]) <= 1e-4


def curves(*args: str) -> None:
    """Runs tools/train_curves.py, which fails where a curve leaves the CPU's."""
    tool = EXAMPLES.parent / "tools" / "train_curves.py"
    done = subprocess.run(
        [sys.executable, str(tool), *args], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_gpt_losses_on_two_ranks() -> None:
    curves("--only", "ddp-2", "--steps", "5", "--layers", "2", "--width", "64")


@pytest.mark.slow
def test_gpt_losses_however_run() -> None:
    curves()
