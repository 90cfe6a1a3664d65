"""Generators, streams, events, modes, memory, autocast, threads and processes."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch


def test_generator_state_restores(device):
    torch.tpu.manual_seed(7)
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8 and state.is_cpu
    a = torch.randn(5, device=device)
    torch.tpu.set_rng_state(state)
    assert torch.equal(a, torch.randn(5, device=device))
    assert not torch.equal(a, torch.randn(5, device=device))


def test_own_generator(device):
    a, b = torch.Generator(device).manual_seed(5), torch.Generator(device).manual_seed(5)
    assert torch.equal(
        torch.rand(4, device=device, generator=a), torch.rand(4, device=device, generator=b)
    )
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(4, device=device, generator=torch.Generator())


def test_manual_seed_reaches_the_device(device):
    torch.manual_seed(3)
    assert torch.tpu.initial_seed() == 3
    assert torch.tpu.default_generators[0].device == torch.device("tpu", 0)


def test_streams_and_events(device):
    stream = torch.tpu.Stream()
    with torch.tpu.stream(stream):
        assert torch.tpu.current_stream() == stream
        x = torch.ones(100, device=device) * 2
    assert torch.tpu.current_stream() == torch.tpu.default_stream()
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    start.record(stream)
    end.record(stream)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert isinstance(end, torch.tpu.Event)
    torch.tpu.current_stream().wait_stream(stream)
    assert x.sum().item() == 200
    torch.tpu.synchronize()


def test_modes(device):
    modes = torch.tpu.EagerMode
    assert torch.tpu.get_eager_mode() == modes.STRICT
    for name in ("debug", "defer_and_fuse", "strict"):
        with torch.tpu.eager_mode(name):
            assert torch.tpu.get_eager_mode() == modes[name.upper()]
            assert (torch.ones(3, device=device) + 1).tolist() == [2, 2, 2]
    assert modes.DEFER_NEVER is modes.STRICT
    assert modes.DEFER_NEVER_AND_LAUNCH_BLOCKING is modes.DEBUG
    with pytest.raises(ValueError, match="eager mode"):
        torch.tpu.set_eager_mode("fast")


def test_memory_statistics(device):
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    x = torch.ones(1 << 20, device=device)
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() - before >= x.nbytes
    assert torch.tpu.max_memory_allocated() >= torch.tpu.memory_allocated()
    free, total = torch.tpu.mem_get_info()
    assert 0 < free < total
    assert "allocated" in torch.tpu.memory_summary()
    x_bytes = x.nbytes
    del x
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() <= before + 4096
    cached = torch.tpu.memory_reserved()
    torch.tpu.empty_cache()
    # A plugin that does not say what it keeps has 0 before and after.
    assert torch.tpu.memory_reserved() <= max(cached - x_bytes, 0)


def test_autocast_and_scaler(device):
    layer = torch.nn.Linear(4, 4).to(device)
    x = torch.randn(2, 4, device=device)
    with torch.autocast(device):
        y = layer(x)
        assert y.dtype == torch.bfloat16 and y.exp().dtype == torch.float32
    with torch.autocast(device, dtype=torch.float16):
        assert layer(x).dtype == torch.float16
    scaler, optimizer = torch.amp.GradScaler(device), torch.optim.SGD(layer.parameters(), 0.1)
    before = layer.weight.detach().clone()
    scaler.scale(layer(x).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, layer.weight)


def test_training_step_matches_cpu(device):
    def run(where):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)
        ).to(where)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        x = torch.linspace(-1, 1, 20).view(5, 4).to(where)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    torch.testing.assert_close(run(device), run("cpu"), rtol=1e-4, atol=1e-5)


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_import_starts_nothing():
    out = _run(
        """
        import sys, torch, torchtpu, os
        torch.manual_seed(0)
        threads = len(os.listdir("/proc/self/task"))
        print(threads, torch.tpu.is_initialized(), "torch._dynamo" in sys.modules)
        """
    )
    threads, started, dynamo = out.split()
    assert started == "False" and dynamo == "False"
    baseline = _run('import torch, os; print(len(os.listdir("/proc/self/task")))')
    assert int(threads) <= int(baseline)


def test_forked_child_gets_an_error():
    out = _run(
        """
        import os, torch, torchtpu
        torch.ones(1, device="tpu")
        r, w = os.pipe()
        if os.fork() == 0:
            try:
                torch.ones(1, device="tpu")
            except RuntimeError as e:
                os.write(w, str(e).encode())
            os._exit(0)
        os.close(w)
        print(os.read(r, 1000).decode())
        """
    )
    assert "forked subprocess" in out


def test_a_script_may_end_right_after_backward():
    # The thread that ran the backward must not meet a dying interpreter.
    for _ in range(2):
        _run(
            """
            import torch
            x = torch.ones(3, device="tpu", requires_grad=True)
            x.sum().backward()
            """
        )


def test_tensor_types(device):
    made = torch.tpu.FloatTensor(2, 3)
    assert made.shape == (2, 3) and made.is_tpu and made.dtype == torch.float32
    assert torch.tpu.LongTensor([1, 2]).tolist() == [1, 2]
    assert isinstance(made, torch.tpu.FloatTensor)
    assert not isinstance(made, torch.tpu.HalfTensor)
    assert not isinstance(made.cpu(), torch.tpu.FloatTensor)
    assert torch.ones(2).int().type(torch.tpu.DoubleTensor).type() == "torch.tpu.DoubleTensor"
    with pytest.raises(TypeError, match="floating-point"):
        torch.set_default_tensor_type("torch.tpu.LongTensor")


def test_what_cuda_code_reaches_for(device):
    torch.ones(1, device=device).record_stream(torch.tpu.current_stream())
    torch.tpu.ipc_collect()
    assert torch.tpu.OutOfMemoryError is torch.OutOfMemoryError
    assert not torch.tpu.is_current_stream_capturing()

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.tpu.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.tpu.amp.custom_bwd
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, device=device, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast(device):
        y = Double.apply(x)
    y.sum().backward()
    assert y.dtype == torch.float32 and x.grad.tolist() == [2, 2]


def test_data_parallel():
    code = """
        import copy, torch
        from torch import nn
        alone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        x = torch.randn(6, 4)
        alone(x).square().sum().backward()
        for devices in ([0], [0, 1]):
            model = copy.deepcopy(alone)
            model.zero_grad()
            y = nn.DataParallel(model, devices).tpu()(x)
            y.square().sum().backward()
            assert y.device == torch.device("tpu", 0) and y.shape == (6, 2)
            for a, b in zip(alone.parameters(), model.parameters()):
                torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-4, atol=1e-4)
        torch.set_default_tensor_type("torch.tpu.FloatTensor")
        assert torch.ones(1).is_tpu
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env={**os.environ, "TORCHTPU_NUM_DEVICES": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
