"""`torchrun --tpu`, by each of the launcher's names; other parsers stay as they are."""

import pathlib
import subprocess
import sys

import pytest

from torchtpu import _launcher

TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
SCRIPT = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("training_script")
parser.add_argument("--tpu", type=int)
args = parser.parse_args()
print(torch.ones(2).device, torch.nn.Linear(1, 1).weight.device, args.training_script, args.tpu)
"""


def output(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "launcher", [[TORCHRUN], [sys.executable, "-m", "torch.distributed.run"]], ids=["script", "-m"]
)
def test_flag_makes_tpu_the_default(launcher: list, tmp_path: pathlib.Path) -> None:
    if not pathlib.Path(launcher[0]).exists():
        pytest.skip("torchrun is not beside the interpreter")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    flags = ["--standalone", "--nproc-per-node=1"]
    out = output(*launcher, *flags, "--tpu", script, "one", "--tpu", "3")
    assert out.split() == ["tpu:0", "tpu:0", "one", "3"]
    if launcher[0] == TORCHRUN:
        assert "--tpu" in output(*launcher, "--help")
        out = output(*launcher, *flags, script, "one", "--tpu", "3")
        assert out.split() == ["cpu", "cpu", "one", "3"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-m", "torch.distributed.run"], True),
        (["-X", "dev", "-W", "error", "-u", "-m", "torch.distributed.launch"], True),
        (["/venv/bin/torchrun", "--tpu"], True),
        (["/site-packages/torch/distributed/run.py"], True),
        (["-X", "torchrun", "train.py"], False),
        (["-c", "pass", "torchrun"], False),
        (["train.py", "-m", "torch.distributed.run"], False),
        (["-m"], False),
        ([], False),
    ],
)
def test_which_processes_are_launchers(words: list, told: bool, monkeypatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, *words])
    assert _launcher._is_launcher() == told
