"""The public bug reports of other backends, as cases: each gives the CPU's result in two modes."""

import os
import pathlib
import subprocess
import sys

import pytest

CASES = pathlib.Path(__file__).resolve().parent.parent.parent / "shared" / "cases"
FILES = sorted(CASES.glob("[0-9]*.py"))


@pytest.mark.skipif(not FILES, reason="the collection of cases is not beside this checkout")
@pytest.mark.parametrize("mode", ["strict", "defer_and_fuse"])
@pytest.mark.parametrize("case", FILES, ids=lambda p: p.stem)
def test_case(case: pathlib.Path, mode: str) -> None:
    env = dict(os.environ, CASE_DEVICE="tpu", TORCHTPU_EAGER_MODE=mode)
    env.pop("PYTHONSAFEPATH", None)  # a case imports the helper beside it
    done = subprocess.run(
        [sys.executable, str(case)], env=env, cwd=CASES, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
