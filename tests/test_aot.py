"""The example's training step, traced here, is accepted by the real TPU's compiler."""

import importlib.util
import pathlib
import sys

import pytest
import torch
from torch.nn import functional as F

from torchtpu import aot

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
TOPOLOGIES = ["v4:1x1x1", "v5e:1x1", "v5p:1x1x1", "v6e:1x1", "tpu7x:1x1x1"]


def training_step() -> str:
    sys.path.insert(0, str(EXAMPLES))
    import train_gpt

    torch.manual_seed(0)
    model = train_gpt.GPT(100, 128, 128, 5, 4).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(rows: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    rows = torch.randint(100, (16, 129)).to("tpu")
    step(rows)  # makes the optimizer's state
    before = model.head.weight.clone()
    text = aot.trace(step, rows, state=[model, optimizer])
    assert torch.equal(before, model.head.weight)  # tracing runs nothing
    return text


def test_trace_is_one_program() -> None:
    text = training_step()
    assert text.count("func.func") == 1
    assert "stablehlo.dot_general" in text
    # parameters and both moments are updated in place
    assert text.count("jax.buffer_donor") + text.count("tf.aliasing_output") >= 3 * 60


def test_trace_refuses_writes_to_what_is_not_named() -> None:
    x, y = torch.ones(3, device="tpu"), torch.zeros(3, device="tpu")
    with pytest.raises(NotImplementedError, match="not an input"):
        aot.trace(lambda t: y.add_(t), x)
    assert y.tolist() == [0, 0, 0]


def test_trace_refuses_host_reads() -> None:
    x = torch.ones(3, device="tpu")
    with pytest.raises(NotImplementedError, match="capture"):
        aot.trace(lambda t: t * t.sum().item(), x)
    assert (x + 1).tolist() == [2, 2, 2]


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="the package libtpu is absent")
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_real_compiler_accepts_training_step(topology: str) -> None:
    report = aot.compile_text(training_step(), topology, level=9)
    assert report["accepted"], report
