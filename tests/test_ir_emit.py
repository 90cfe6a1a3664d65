"""The emitter's composite calls, run by XLA, against PyTorch on the CPU."""

import subprocess

import numpy as np
import pytest
import torch
from test_ir_text import TOOL, execute, wide_types  # noqa: F401

EMIT = TOOL and TOOL.with_name("ir_emit_tool")
pytestmark = pytest.mark.skipif(
    TOOL is None or not EMIT.exists(), reason="ir_emit_tool is not built"
)

nan = float("nan")
X = torch.tensor(
    [
        [3, nan, 1, nan, 2],
        [-0.0, 0.0, -1, 5, 5],
        [float("inf"), 1, 1, -float("inf"), 0],
        [2, 2, 2, 2, 2],
    ]
)
Y = torch.arange(20.0).reshape(4, 5) - 7
IDX = torch.tensor([[0, 2], [1, 1], [2, 0]])
PRED = Y % 3 == 0
PRED[1] = True
PRED[2] = False
ROW = torch.tensor([1.0, 0.0, -2.6, 2.5, 0.3])
FINITE = torch.nan_to_num(X, 0.5, 4, -4)


def put_add(x):
    at = IDX.flatten()
    return x.index_add(1, at, Y.index_select(1, at))


def window(x):
    padded = torch.nn.functional.pad(x, (1, 1), value=-float("inf"))
    return padded.unfold(0, 2, 2).unfold(1, 3, 1).amax((-1, -2))


CASES = {
    "argmax": lambda x: (x.max(1).values, x.argmax(1)),
    "argmin": lambda x: (x.min(0, keepdim=True).values, x.argmin(0, keepdim=True).int()),
    "sort": lambda x: tuple(x.sort(dim=1, stable=True)),
    "sort_descending": lambda x: tuple(x.sort(dim=0, descending=True, stable=True)),
    "take": lambda x: x.index_select(1, IDX.flatten()).reshape(4, 3, 2),
    "take_along": lambda x: x.gather(1, IDX),
    "put_add": put_add,
    "put_along_add": lambda x: x.scatter_add(0, IDX, Y.gather(0, IDX)),
    "put_along_max": lambda x: x[:3].scatter_reduce(1, IDX, Y[:3, :2], "amax"),
    "sum": lambda x: x.sum(1, keepdim=True),
    "prod": lambda x: x.prod(),
    "amax": lambda x: x.amax(1),
    "any": lambda x: PRED.any(1),
    "all": lambda x: PRED.all(1),
    "window": window,
    "conv": lambda x: torch.conv2d(
        x[None, None], Y[0:3:2][None, None], stride=(1, 2), padding=(1, 2)
    ),
    "matmul": lambda x: x @ Y.T,
    "where": lambda x: torch.where(PRED, ROW, -1.0),
    "clamp": lambda x: torch.clamp(x, torch.tensor(-0.5), ROW),
    "to_bool": lambda x: x.bool(),
    "to_int8": lambda x: (ROW * 40).to(torch.int8),
    "pad": lambda x: torch.nn.functional.pad(x, (-1, 2, 1, 0), value=7.0),
    "pow_while": lambda x: x**4,
}
NEEDS_FINITE = {
    "sum",
    "prod",
    "conv",
    "matmul",
    "pow_while",
    "put_add",
    "put_along_add",
    "put_along_max",
}


@pytest.mark.parametrize("name", CASES)
def test_emitted(name):
    x = FINITE if name in NEEDS_FINITE else X
    done = subprocess.run([EMIT, name], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    wanted = CASES[name](x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    got = execute(done.stdout.decode(), [a.numpy() for a in (x, Y, IDX, PRED, ROW)])
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.numpy().dtype
        np.testing.assert_allclose(g, w.numpy(), rtol=1e-6)
