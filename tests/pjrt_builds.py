"""Where the tests of plugins find what was built, and the plugins that are installed."""

import importlib.util
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def built(name):
    """A program or library of the build that TORCHTPU_TEST_BUILD names, or of a usual one."""
    places = [
        os.environ.get("TORCHTPU_TEST_BUILD"),
        ROOT / "build-tests",
        ROOT / "build",
        ROOT / "torchtpu",
    ]
    for place in places:
        path = pathlib.Path(place or ".") / name
        if place and path.exists():
            return path
    return None


def installed(package, file):
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        return None
    folder = pathlib.Path(spec.origin or next(iter(spec.submodule_search_locations)))
    folder = folder.parent if spec.origin else folder
    return folder / file if (folder / file).exists() else None


LIBTPU = installed("libtpu", "libtpu.so")
PLUGINS = {
    "xla-cpu-pjrt": installed("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
    "lammps-jax-pjrt-cpu": installed("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
}
