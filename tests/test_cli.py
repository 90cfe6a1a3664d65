"""The command line, as a user's shell sees it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from torchtpu.cli import environment, table, variables

ROOT = pathlib.Path(__file__).resolve().parent.parent


def torchtpu(*arguments: str, cwd: pathlib.Path | None = None, **env: str):
    return subprocess.run(
        [sys.executable, "-m", "torchtpu", *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_info() -> None:
    done = torchtpu("info", "--json", TORCHTPU_NUM_DEVICES="2", TORCHTPU_HBM_BYTES="64M")
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and facts["error"] is None
    assert [d["total_memory"] for d in facts["devices"]] == [64 << 20] * 2
    assert facts["environment"]["TORCHTPU_HBM_BYTES"] == "64M"
    assert "bug report" in torchtpu("info").stdout


def test_info_tells_why_the_device_does_not_start() -> None:
    done = torchtpu("info", TORCHTPU_PLUGIN="/no/such/plugin.so")
    assert done.returncode == 1
    assert "/no/such/plugin.so" in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TORCHTPU_EAGER_MODE", "fast"),
        ("TORCHTPU_NUM_DEVICES", "0"),
        ("TORCHTPU_FALLBACK", "never"),
        ("XRT_TPU_CONFIG", "x"),
    ],
)
def test_info_tells_what_is_wrong_with_a_variable(name: str, value: str) -> None:
    done = torchtpu("info", "--json", **{name: value})
    assert done.returncode == 1, done.stderr
    assert name in json.loads(done.stdout)["error"]


def test_environment_is_what_the_sources_read() -> None:
    """Every name of the package's kind that the sources quote, and getenv's of any kind."""
    read = set()
    for folder in ("src", "bridge", "torchtpu"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".cpp", ".hpp", ".py") and path.name != "variables.py":
                text = path.read_text()
                read |= set(re.findall(r'getenv\("(\w+)"', text))
                read |= set(re.findall(r'"((?:TORCHTPU|TT|XRT)_[A-Z_]+)"', text))
    assert read == {v.name for v in variables.VARIABLES}, "see torchtpu/cli/variables.py"
    assert environment.markdown() in (ROOT / "docs" / "environment.md").read_text(), (
        "paste `torchtpu env --markdown` into docs/environment.md"
    )


def test_environment_shows_values() -> None:
    done = torchtpu("env", "--json", TORCHTPU_FALLBACK="silent")
    rows = json.loads(done.stdout)
    assert rows["TORCHTPU_FALLBACK"]["value"] == "silent"
    assert rows["TT_DUMP"]["value"] is None


SCRIPT = """
import sys
import torch
from torch.utils.data import DataLoader

assert __name__ == "__main__" and sys.argv[1:] == ["--lr", "1"]
assert torch.nn.Linear(2, 2).weight.is_tpu and torch.zeros(1, device="cpu").device.type == "cpu"
rows = list(torch.arange(8.0, device="cpu"))
for workers in (0, 2):
    batches = DataLoader(rows, batch_size=4, shuffle=True, num_workers=workers)
    assert sorted(torch.cat([b.cpu() for b in batches]).tolist()) == list(range(8))
{end}
"""


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        ("raise SystemExit(7)", 7, ""),
        ("torch.zeros(2) + torch.zeros(3)", 1, "must match the size"),
    ],
)
def test_run_is_the_script_on_tpu(
    tmp_path: pathlib.Path, end: str, status: int, error: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(end=end))
    done = torchtpu("run", str(script), "--lr", "1")
    assert done.returncode == status, done.stderr
    assert error in done.stderr
    if error:  # the script's own line is the first of the traceback
        assert re.match(r'Traceback.*\n  File "[^"]*train.py"', done.stderr), done.stderr
    module = torchtpu("run", "-m", "train", "--lr", "1", cwd=tmp_path, PYTHONPATH=_with(tmp_path))
    assert module.returncode == status, module.stderr


def _with(folder: pathlib.Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


@pytest.mark.parametrize("device", ["cpu", "nonsense"])
def test_run_is_for_tpu(device: str, tmp_path: pathlib.Path) -> None:
    done = torchtpu("run", "--device", device, str(tmp_path / "never.py"))
    assert done.returncode == 2
    assert done.stderr == f"torchtpu run: --device {device}: no tpu device\n"


def test_default_device_must_be_a_tpu() -> None:
    done = torchtpu("info", TORCHTPU_DEFAULT_DEVICE="cuda")
    assert done.returncode != 0
    assert "TORCHTPU_DEFAULT_DEVICE='cuda'" in done.stderr


def test_figures() -> None:
    assert table.format_bytes(1536) == "1.5 KiB" and table.format_bytes(None) == "?"
    assert table.format_count(3.2e12, "FLOP") == "3.2 TFLOP"
    assert table.format_seconds(0.00123) == "1.23 ms"
    text = table.format_table(("a", "b"), [("x", "10"), ("yy", "1")], right=" r")
    assert text.splitlines()[2:] == ["x   10", "yy   1"]
