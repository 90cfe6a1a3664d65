"""XRT_TPU_CONFIG names the devices to use."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch
x = torch.ones(2, device="tpu") + 1
print(torch.tpu.device_count(), x.sum().item())
"""


def run(config: str, devices: int = 3) -> subprocess.CompletedProcess:
    env = dict(os.environ, XRT_TPU_CONFIG=config, TORCHTPU_NUM_DEVICES=str(devices))
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("config", "count"), [("tpu_worker:0;0", 1), ("tpu_worker:2;0", 2), ("tpu_worker:1", 1)]
)
def test_ordinals(config: str, count: int) -> None:
    done = run(config)
    assert done.stdout.split() == [str(count), "4.0"], done.stderr


@pytest.mark.parametrize(
    ("config", "text"), [("tpu_worker:7", "no device 7 among 3"), ("nonsense", "expected NAME")]
)
def test_errors(config: str, text: str) -> None:
    done = run(config)
    assert done.returncode == 1
    assert text in done.stderr and "ValueError" in done.stderr
