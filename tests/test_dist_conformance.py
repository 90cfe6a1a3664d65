"""A few of what tools/dist_conformance.py and tools/dtensor_conformance.py run whole."""

import pathlib
import re
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"
NAMES = (
    "test_all_reduce_sum",
    "test_all_gather_into_stack_tensor_cuda",
    "test_batch_isend_irecv_self_nccl",
    "test_ddp_hook_parity_powerSGD",
    "test_DistributedDataParallel_SyncBatchNorm",
)


@pytest.mark.slow
def test_pytorchs_own_tests(tmp_path: pathlib.Path) -> None:
    only = "|".join(f"^{name}$" for name in NAMES)
    report = tmp_path / "dist.md"
    command = [
        *(sys.executable, str(TOOLS / "dist_conformance.py")),
        *("--only", only, "--seconds", "120", "--report", report),
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == f"{{'pass': {len(NAMES)}}}", report.read_text()


@pytest.mark.slow
def test_ops_as_dtensors() -> None:
    command = [sys.executable, str(TOOLS / "dtensor_conformance.py"), "--only", "^(mm|sum|cat)$"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert said.returncode == 0, said.stderr
    assert re.fullmatch(r"{'pass': \d+} lost: 0", said.stdout.strip()), said.stdout
