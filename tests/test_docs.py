"""Every fenced block of README.md and docs/ runs: python blocks in a process a page, in order;
`console` blocks' `$ python ...` lines one by one. A block that cannot run here says so:
```python skip="needs a TPU".
"""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.M | re.S)


def blocks(page: pathlib.Path, language: str) -> list[str]:
    return [
        body
        for kind, info, body in FENCE.findall(page.read_text())
        if kind == language and "skip=" not in info
    ]


def with_blocks(language: str) -> list:
    return [
        pytest.param(p, id=str(p.relative_to(ROOT)))
        for p in PAGES
        if p.exists() and blocks(p, language)
    ]


@pytest.mark.parametrize("page", with_blocks("python"))
def test_python_blocks(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("import torch\n" + "\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{page}:\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", with_blocks("console"))
def test_console_blocks(page: pathlib.Path) -> None:
    for body in blocks(page, "console"):
        for line in body.splitlines():
            if not line.startswith("$ python"):
                continue
            command = (
                line[2:].replace("python3 ", "python ").replace("python ", sys.executable + " ", 1)
            )
            done = subprocess.run(
                command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=600
            )
            assert done.returncode == 0, f"{page}: {line}\n{done.stdout}\n{done.stderr}"
