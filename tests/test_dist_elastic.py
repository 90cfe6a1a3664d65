"""torchrun restarts the workers after one is killed; they go on from the last checkpoint."""

import json
import pathlib
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, pathlib, signal, sys
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

folder = pathlib.Path(sys.argv[1])
dist.init_process_group()
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).tpu())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
state = {"model": model.state_dict(), "step": torch.zeros((), dtype=torch.int64)}
if (folder / "checkpoint" / ".metadata").exists():
    dcp.load(state, checkpoint_id=folder / "checkpoint")
    model.load_state_dict(state["model"])
first = int(state["step"])
for step in range(first, 6):
    x = torch.full((2, 4), float(step + rank), device="tpu")
    model(x).square().mean().backward()
    optimizer.step()
    model.zero_grad()
    if attempt == 0 and step == 3 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if step == 2:
        state = {"model": model.state_dict(), "step": torch.tensor(step + 1)}
        dcp.save(state, checkpoint_id=folder / "checkpoint")
if rank == 0:
    weight = model.module.weight.tolist()
    (folder / f"attempt{attempt}.json").write_text(json.dumps([first, weight]))
dist.destroy_process_group()
"""


def run(script: pathlib.Path, folder: pathlib.Path, restarts: int) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", f"--max-restarts={restarts}", str(script), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.mark.slow
def test_restart_goes_on_from_the_checkpoint(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    undisturbed = tmp_path / "undisturbed.py"
    undisturbed.write_text(SCRIPT.replace("attempt == 0 and", "False and"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    done = run(script, tmp_path / "a", 1)
    assert done.returncode == 0, done.stderr[-3000:]
    first, weight = json.loads((tmp_path / "a" / "attempt1.json").read_text())
    assert first == 3  # resumed, not begun anew
    done = run(undisturbed, tmp_path / "b", 0)
    assert done.returncode == 0, done.stderr[-3000:]
    first, want = json.loads((tmp_path / "b" / "attempt0.json").read_text())
    assert first == 0
    assert weight == want  # the same bits as a run that nothing disturbed
