"""Every test runs on the device "tpu" of the installed package, found as a script finds it."""

import os

# Children must find the installed package too, not the source folder that they may be started in.
os.environ["PYTHONSAFEPATH"] = "1"

import pytest
import torch


@pytest.fixture
def device() -> str:
    return "tpu"


@pytest.fixture(autouse=True)
def _same_start():
    """No test sees another's mode, default device or fallback policy."""
    torch.manual_seed(0)
    yield
    torch.tpu.set_eager_mode(os.environ.get("TORCHTPU_EAGER_MODE", "strict"))
    torch.set_default_device("cpu")


@pytest.fixture
def programs(monkeypatch) -> list:
    """The compiled programs that a test makes."""
    from torchtpu.compile import Program

    made = []
    init = Program.__init__

    def note(self, *args):
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(Program, "__init__", note)
    return made
