"""The device tests on PJRT plugins that are not ours: only the plugin's path is another."""

import os
import pathlib
import re
import subprocess
import sys

import pjrt_builds
import pytest

TESTS = pathlib.Path(__file__).resolve().parent
QUICK = ["device_basic", "device_services", "ops_pointwise", "ops_shape", "ops_optim", "nn_conv"]
ALL = [
    p.stem.removeprefix("test_")
    for p in sorted(TESTS.glob("test_*.py"))
    if re.match(r"test_(device_basic|device_services|ops|nn)", p.name)
]
# XLA's CPU compiler lets minimum and maximum drop NaN unless it is told that they matter.
XLA_FLAGS = "--xla_cpu_enable_fast_min_max=false --xla_cpu_enable_fast_math=false"


@pytest.mark.parametrize("name", sorted(pjrt_builds.PLUGINS))
@pytest.mark.parametrize("files", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)], ids=len)
def test_device_tests(name: str, files: list[str]) -> None:
    plugin = pjrt_builds.PLUGINS[name]
    if plugin is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
        + [str(TESTS / f"test_{f}.py") for f in files],
        env={**os.environ, "TORCHTPU_PLUGIN": str(plugin), "XLA_FLAGS": XLA_FLAGS},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 10 * len(files)
