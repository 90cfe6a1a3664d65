"""Every test runs on the device "tpu"; from a source tree the package is imported by hand."""

import os

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import pytest  # noqa: E402
import torch  # noqa: E402

try:
    import torchtpu  # noqa: F401
except ImportError:  # tests of text and plugins run without the native module
    torchtpu = None


@pytest.fixture
def device() -> str:
    return "tpu"


@pytest.fixture(autouse=True)
def _same_start():
    """No test sees another's mode, default device or fallback policy."""
    if torchtpu is None:
        yield
        return
    torch.manual_seed(0)
    yield
    torch.tpu.set_eager_mode("strict")
    torch.set_default_device("cpu")
