"""The environment variables that the package reads: the one table behind `torchtpu env` and
docs/environment.md (tests/test_cli.py holds it against the sources).
"""

from typing import NamedTuple


class Variable(NamedTuple):
    name: str
    values: str  # markdown
    default: str
    meaning: str


VARIABLES = (
    Variable(
        "TORCHTPU_PLUGIN",
        "`soft`, `libtpu`, a path",
        "libtpu where a TPU is present, else soft",
        "which PJRT plugin serves the device",
    ),
    Variable(
        "TORCHTPU_DEFAULT_DEVICE",
        "`tpu`, `tpu:1`",
        "",
        "tensors that name no device are made there; what `torchtpu run` sets",
    ),
    Variable(
        "TORCHTPU_EAGER_MODE",
        "`strict`, `debug`, `defer_and_fuse`",
        "strict",
        "the eager mode at start",
    ),
    Variable(
        "TORCHTPU_FALLBACK",
        "`warn`, `error`, `silent`",
        "warn",
        "what an op without lowering and decomposition does before it runs on the CPU",
    ),
    Variable(
        "TORCHTPU_NUM_DEVICES",
        "1 to 64",
        "1",
        "devices of the software TPU in one process",
    ),
    Variable(
        "TORCHTPU_HBM_BYTES",
        "bytes, or `64M`, `2G`",
        "16G",
        "memory of each software device",
    ),
    Variable(
        "TORCHTPU_NUM_THREADS",
        "a count",
        "one a core",
        "threads of the software TPU",
    ),
    Variable(
        "TORCHTPU_ENGINE",
        "`planned`, `reference`",
        "planned",
        "the software TPU's executor",
    ),
    Variable(
        "XRT_TPU_CONFIG",
        "`tpu_worker:0;0`",
        "all devices",
        "ordinals of the devices to use",
    ),
    Variable(
        "TORCHTPU_HOST_ID",
        "a name",
        "told from the machine and its namespaces",
        "ranks with the same one are on one host and share memory",
    ),
    Variable(
        "TORCHTPU_DIST_PULL",
        "`0`, `1`",
        "1",
        "whether a rank may read its peers' memory where the system lets it",
    ),
    Variable(
        "TPU_LIBRARY_PATH",
        "a path",
        "the installed package libtpu",
        "the library that `libtpu` names",
    ),
    Variable(
        "TORCHTPU_SOFT_PATH",
        "a path",
        "beside the native module",
        "the library that `soft` names",
    ),
    Variable(
        "TORCHTPU_LOG",
        "`error`, `warning`, `info`, `debug`",
        "warning",
        "the least serious message that the native code prints",
    ),
    Variable(
        "TT_DUMP",
        "a pass's name, `all`",
        "",
        "logs the program after that pass",
    ),
)
