"""One C test program of the client against every plugin that is installed."""

import os
import subprocess

import pjrt_builds
import pytest

CLIENT_TEST = pjrt_builds.built("pjrt_client_test")
pytestmark = pytest.mark.skipif(
    CLIENT_TEST is None, reason="pjrt_client_test is not built (TORCHTPU_TEST_BUILD)"
)


def run(plugin, **environment):
    return subprocess.run(
        [CLIENT_TEST],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "TORCHTPU_PLUGIN": str(plugin), **environment},
    )


@pytest.mark.parametrize("engine", ["planned", "reference"])
def test_soft(engine):
    result = run("soft", TORCHTPU_ENGINE=engine)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", sorted(pjrt_builds.PLUGINS))
def test_other_plugin(name):
    if pjrt_builds.PLUGINS[name] is None:
        pytest.skip(f"{name} is not installed")
    result = run(pjrt_builds.PLUGINS[name])
    assert result.returncode == 0, result.stdout + result.stderr[-2000:]


@pytest.mark.skipif(pjrt_builds.LIBTPU is None, reason="libtpu is not installed")
@pytest.mark.skipif(os.path.exists("/dev/accel0"), reason="this machine has a TPU")
def test_libtpu_without_a_tpu_fails_at_once():
    result = run("libtpu", TPU_LIBRARY_PATH=str(pjrt_builds.LIBTPU))
    assert result.returncode == 1
    assert "gives no device" in result.stdout
