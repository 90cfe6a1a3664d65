"""devices, plugin and versions: what to put into a bug report"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from torchtpu.cli.table import format_bytes
from torchtpu.cli.variables import VARIABLES

_PACKAGES = ("torch", "torchtpu", "libtpu", "numpy", "transformers")
_REPORT = """
In a bug report please give
  - this output;
  - the smallest script that shows the problem, and its whole traceback;
  - whether it also happens with TORCHTPU_EAGER_MODE=debug (its error names op and Python line)
    and with TORCHTPU_ENGINE=reference;
  - torch.tpu.fallback_stats() at the end of the script, where a value is wrong."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """The CPU's name where the system tells it."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = (line.split(":", 1)[1].strip() for line in lines if line[:10] == "model name")
            return next(names, platform.processor())
    except OSError:
        return platform.processor()


def collect() -> dict[str, Any]:
    """What `info` prints. Starts the device; a failure of that is part of the answer."""
    import torch

    import torchtpu
    from torchtpu import tpu

    facts: dict[str, Any] = {
        "torchtpu": torchtpu.__version__,
        "folder": list(torchtpu.__path__),
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "packages": {name: _version(name) for name in _PACKAGES},
        "environment": {v.name: os.environ[v.name] for v in VARIABLES if v.name in os.environ},
        "devices": [],
        "error": None,
    }
    try:
        tpu.init()
        properties = [tpu.get_device_properties(i) for i in range(tpu.device_count())]
        facts["devices"] = [
            {
                "name": p.name,
                "platform": p.platform,
                "platform_version": p.platform_version,
                "total_memory": p.total_memory,
            }
            for p in properties
        ]
        facts["eager_mode"] = tpu.get_eager_mode().name.lower()
        # One op end to end: the device is not only listed.
        torch.testing.assert_close((torch.ones(2, device="tpu") + 1).cpu(), torch.full((2,), 2.0))
    except (RuntimeError, ValueError, AssertionError) as error:
        facts["error"] = str(error)
    return facts


def _print(facts: dict[str, Any]) -> None:
    def line(name: str, value: object) -> None:
        print(f"{name:<12}{value}")

    line("torchtpu", f"{facts['torchtpu']} in {facts['folder'][0]}")
    line("python", f"{facts['python']} on {facts['system']}")
    line("processor", f"{facts['processor']}, {facts['cores']} cores")
    found = [f"{name} {version}" for name, version in facts["packages"].items() if version]
    line("packages", ", ".join(found))
    for index, device in enumerate(facts["devices"]):
        memory = format_bytes(device["total_memory"])
        about = f"{device['name']}, {memory}, plugin {device['platform_version']}"
        line(f"tpu:{index}", about.splitlines()[0])
    if "eager_mode" in facts:
        line("eager mode", facts["eager_mode"])
    set_ones = [f"{name}={value}" for name, value in facts["environment"].items()]
    line("environment", " ".join(set_ones) or "nothing set (see `torchtpu env`)")
    if facts["error"]:
        line("ERROR", facts["error"])
    print(_REPORT)


def run(arguments: argparse.Namespace) -> int:
    facts = collect()
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        _print(facts)
    return 1 if facts["error"] else 0
