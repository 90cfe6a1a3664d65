"""torch.compile and TorchScript on the device, against the CPU and against eager."""

import copy
import os
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
import torch.nn.functional as F
from compile_helpers import _fresh_dynamo, graphs, mlp, pair, same  # noqa: F401
from torch import nn
from torch._dynamo.utils import counters

from torchtpu import compile as tpu_compile

MODES = ("strict", "debug", "defer_and_fuse")


# --- which backend -------------------------------------------------------------------------------


def test_backend_names():
    assert {"tpu", "torchtpu"} <= set(torch._dynamo.list_backends())


def test_no_backend_named(programs):
    model, other = pair(mlp())
    x = torch.randn(3, 8)
    same(torch.compile(other)(x.to("tpu")), model(x))
    same(torch.compile(other, mode="max-autotune")(x.to("tpu")), model(x))
    assert [p._count for p in programs] == [1, 1]  # forward; the graph is the same for both calls

    @torch.compile
    def make():
        return torch.arange(4, device="tpu") * 2

    assert make().tolist() == [0, 2, 4, 6]


def test_options():
    x = torch.ones(2, device="tpu")
    double = torch.compile(lambda x: x * 2, backend="tpu", mode="reduce-overhead")
    assert double(x).tolist() == [2, 2]
    with pytest.raises(Exception, match="the tpu backend has no options, got .'max_fusion'"):
        torch.compile(lambda x: x * 3, backend="tpu", options={"max_fusion": 1})(x)


def test_cpu_code_is_inductors():
    script = """
        import sys
        import torch
        assert "torch._dynamo" not in sys.modules and "torch._inductor" not in sys.modules
        assert torch.compiler.get_default_backend() == "inductor"
        import torch._inductor.compile_fx as inductor
        seen, original = [], inductor.compile_fx

        def note(graph, inputs, **keywords):
            seen.append(keywords)
            return graph

        inductor.compile_fx = note
        f = torch.compile(lambda x: x.sin() + 1, options={"epilogue_fusion": False})
        torch.testing.assert_close(f(torch.ones(3)), torch.ones(3).sin() + 1)
        assert [k["config_patches"] for k in seen] == [{"epilogue_fusion": False}]
        assert "torchtpu.compile" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=300)


# --- what a graph may do -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_training_steps(mode, programs):
    torch.tpu.set_eager_mode(mode)
    model, other = pair(
        nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)
        )  # fmt: skip
    )
    compiled = torch.compile(other, fullgraph=True)
    for _ in range(3):
        x = torch.randn(2, 3, 8, 8)
        loss, other_loss = model(x).square().mean(), compiled(x.to("tpu")).square().mean()
        loss.backward()
        other_loss.backward()
        same(other_loss, loss)
    for a, b in zip(other.parameters(), model.parameters()):
        same(a.grad, b.grad)
    same(list(other.buffers()), list(model.buffers()))
    assert graphs() == 1 and [p._count for p in programs] == [1, 1]
    model.eval(), other.eval()
    same(compiled(x.to("tpu")), model(x))


def test_aliases_and_strides():
    def f(x):
        y = x.sin()
        return y, y.t(), y[0], x, x.view(-1), x.t(), x.t() + 1, x.expand(2, 3, 4), x.t().clone()

    x = torch.randn(3, 4)
    t = x.to("tpu")
    results, expected = torch.compile(f, fullgraph=True)(t), f(x)
    same(results, expected)
    assert [r.stride() for r in results] == [e.stride() for e in expected]
    assert results[3] is t and results[4].data_ptr() == t.data_ptr()
    assert results[0].untyped_storage().data_ptr() == results[1].untyped_storage().data_ptr()
    results[4].add_(1)
    results[0].mul_(2)
    expected[4].add_(1)
    expected[0].mul_(2)
    same((t, results[1]), (x, expected[1]))


def test_views_of_one_storage_and_of_two():
    """A program made for arguments that share a storage is not one for those that do not."""
    f = torch.compile(lambda a, b: a * 10 + b, fullgraph=True)
    x, y = torch.arange(6.0), torch.arange(6.0) + 100
    t, u = x.to("tpu"), y.to("tpu")
    same(f(t[:3], t[:3].view(3)), x[:3] * 10 + x[:3])
    same(f(t[:3], u[:3]), x[:3] * 10 + y[:3])
    same(f(t[:3], t[3:]), x[:3] * 10 + x[3:])
    same(f(u[:3], u[:3].view(3)), y[:3] * 11)


def test_layouts_that_the_trace_did_not_expect(programs):
    """The trace takes softplus' gradient to lie like its input; the kernel goes by the gradient."""

    def f(x, w):
        y = F.softplus((x @ w).view(2, 3, 4))
        return (y.permute(2, 0, 1).contiguous() * torch.arange(3.0, device=x.device)).sin().sum()

    compiled = torch.compile(f, fullgraph=True)
    x, w = torch.randn(6, 5), torch.randn(5, 4)
    gradients = []
    for device, g in (("cpu", f), ("tpu", compiled)):
        a, b = (t.to(device, copy=True).requires_grad_() for t in (x, w))
        g(a, b).backward()
        gradients.append((a.grad, b.grad))
    same(gradients[1], gradients[0])
    assert programs and all(p._whole for p in programs)


@pytest.mark.parametrize("conjugate", [torch.conj, torch._neg_view])
def test_lazy_conjugates_leave_a_program(conjugate):
    """The backward keeps the conjugate of w, which is x's memory and a bit."""

    def f(x, y):
        z = torch.view_as_complex(x * 2)
        w = conjugate(z)
        return torch.view_as_real(w * torch.view_as_complex(y) + z), w + 0

    x, y = torch.randn(4, 2), torch.randn(4, 2)
    found = []
    for device, g in (("cpu", f), ("tpu", torch.compile(f, fullgraph=True))):
        a, b = (t.to(device, copy=True).requires_grad_() for t in (x, y))
        real, w = g(a, b)
        (real.sin().sum() + w.abs().square().sum()).backward()
        found.append((real, w, a.grad, b.grad))
    same(found[1], found[0])


def test_written_arguments():
    def f(x, y, view):
        x.add_(1)
        y[1:].mul_(2)
        return view * 2, x + y

    compiled = torch.compile(f, fullgraph=True)
    x, y = torch.randn(3, 3), torch.randn(3, 3)
    t, u = x.to("tpu"), y.to("tpu")
    held = t.clone()
    for _ in range(3):
        same(compiled(t, u, t[0]), f(x, y, x[0]))
        same((t, u), (x, y))
        snapshot, kept = t.detach().clone(), x.clone()  # shares the value that is written next
    same(snapshot, kept)
    assert not torch.equal(held.cpu(), t.cpu())


def test_written_before_backward_is_an_error():
    weight = torch.randn(3, device="tpu", requires_grad=True)
    out = torch.compile(lambda w: (w * w).sum())(weight)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_constants_are_fresh():
    def f(x):
        return x + torch.tensor([1.0, 2.0], device=x.device), torch.tensor([4, 5], device=x.device)

    x = torch.randn(2)
    compiled = torch.compile(f, fullgraph=True)
    for _ in range(3):
        results = compiled(x.to("tpu"))
        same(results, f(x))
        results[1].add_(1)


def test_random_numbers_are_eagers():
    def f(x):
        return (x + torch.rand_like(x), torch.randn(5, device=x.device), F.dropout(x, 0.5),
                torch.randint(0, 9, (7,), device=x.device), x.clone().uniform_(),
                torch.bernoulli(x.abs().clamp(max=1)), torch.multinomial(x.abs(), 2))  # fmt: skip

    x = torch.randn(9).to("tpu")
    compiled = torch.compile(f, fullgraph=True)
    torch.manual_seed(5)
    eager = [f(x), f(x)]
    torch.manual_seed(5)
    assert_equal = [compiled(x), compiled(x)]
    for a, b in zip(eager, assert_equal):
        for u, v in zip(a, b):
            assert torch.equal(u, v)
    assert not torch.equal(assert_equal[0][1], assert_equal[1][1])


@pytest.mark.parametrize("checkpointed", [False, True])
def test_dropout_and_its_gradient(checkpointed, programs):
    from torch.utils.checkpoint import checkpoint

    model = mlp(nn.Dropout(0.4)).to("tpu")
    f = (lambda x: checkpoint(model, x, use_reentrant=False)) if checkpointed else model
    compiled = torch.compile(f, fullgraph=True)
    x = torch.randn(4, 8).to("tpu").requires_grad_()

    def results(g):
        torch.manual_seed(3)
        outs = [g(x), g(x)]
        return outs, [torch.autograd.grad(o.sum(), [x, *model.parameters()]) for o in outs]

    same(results(compiled), results(f))
    assert all(p._whole for p in programs)


def test_autocast():
    model = mlp(nn.LayerNorm(16)).to("tpu")
    compiled = torch.compile(model)
    x = torch.randn(4, 8).to("tpu")
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("tpu", dtype=dtype):
            a, b = compiled(x), model(x)
        assert a.dtype == b.dtype == dtype
        same(a, b, 2e-2, 2e-2)
        parameters = list(model.parameters())
        same(
            torch.autograd.grad(a.float().sum(), parameters),
            torch.autograd.grad(b.float().sum(), parameters),
            2e-2,
            2e-2,
        )

    @torch.compile(fullgraph=True)
    def inside(x):
        with torch.autocast("tpu"):
            y = x @ x
        return y, x @ x

    assert [t.dtype for t in inside(x[:, :4])] == [torch.bfloat16, torch.float32]


def test_grad_modes():
    model = mlp().to("tpu")
    compiled = torch.compile(model)
    x = torch.randn(2, 8).to("tpu")
    with torch.inference_mode():
        y = compiled(x)
        assert y.is_inference()
        same(y, model(x))
        z = torch.ones(2, 8, device="tpu")
        torch.compile(lambda t: t.add_(1))(z)
        assert z[0, 0].item() == 2
    with torch.no_grad():
        y = compiled(x)
        assert not y.requires_grad and not y.is_inference()
    y = compiled(x)
    y.sum().backward()
    assert model[0].weight.grad is not None


def test_graph_breaks(programs):
    def f(x):
        y = x.sin()
        torch._dynamo.graph_break()
        if y.sum().item() > 0:
            return y * 2
        return y - 1

    compiled = torch.compile(f)
    x = torch.randn(5).abs()
    same(compiled(x.to("tpu")), f(x))
    same(compiled(-x.to("tpu")), f(-x))
    assert all(p._whole for p in programs) and len(programs) >= 3


def test_products_of_groups_are_one_program(programs):
    """The offsets decide which rows meet which weights, and no one reads them."""
    x, w = torch.randn(12, 8), torch.randn(3, 8, 4)
    a, b = (t.to("tpu").requires_grad_() for t in (x, w))
    f = torch.compile(lambda x, w, ends: torch._grouped_mm(x, w, ends).sin(), fullgraph=True)
    for ends in ([4, 8, 12], [0, 12, 12], [1, 1, 7]):
        result = f(a, b, torch.tensor(ends, dtype=torch.int32).to("tpu"))
        rows = torch.searchsorted(torch.tensor(ends), torch.arange(12), right=True)
        want = (
            torch.cat([x, x.new_zeros(1, 8)])[:, None]
            @ torch.cat([w, w[:1] * 0])[torch.cat([rows, torch.tensor([3])])]
        )
        same(result, want[:12, 0].sin())
        result.sum().backward()
    assert len(programs) == 2 and all(p._whole and p._count == 1 for p in programs)


def test_values_that_the_host_reads(caplog):
    with torch._dynamo.config.patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    ):
        f = lambda x: (x + x.sum().item(), x.nonzero() + 1)  # noqa: E731
        x = torch.randn(5)
        compiled = torch.compile(f, fullgraph=True)
        same(compiled(x.to("tpu")), f(x))
        same(compiled(x.to("tpu")), f(x))
    said = [r.message for r in caplog.records if "runs op by op" in r.message]
    assert len(said) == 1 and "aten.nonzero" in said[0]
    f = lambda x: (x.cpu() * 2, x + 1)  # noqa: E731
    results = torch.compile(f)(x.to("tpu"))
    same(results, f(x))
    assert [r.device.type for r in results] == ["cpu", "tpu"]
    branch = lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))  # noqa: E731
    for value in (x, -x):
        same(torch.compile(branch)(value.to("tpu")), branch(value))


def test_arguments_on_the_host(programs):
    """0-d CPU tensors are run-time values; larger ones are brought over; both may be written."""

    def f(x, scale, table, count):
        count.add_(1)
        y = x * (scale * 2 + 1) + table.to(x.device) + count
        return y, scale - 1, table * 2

    x, table = torch.randn(3), torch.randn(3)
    compiled = torch.compile(f, fullgraph=True)
    counts = [torch.tensor(0.0), torch.tensor(0.0)]
    for value in (0.5, 1.5, 2.5):
        scale = torch.tensor(value)
        results = compiled(x.to("tpu"), scale, table + value, counts[0])
        same(results, f(x, scale, table + value, counts[1]))
        assert [r.device.type for r in results] == ["tpu", "cpu", "cpu"]
        same(counts[0], counts[1])
    assert graphs() == 1 and [(p._whole, p._count) for p in programs] == [(True, 1)]
    index = torch.tensor([2, 0])
    same(torch.compile(lambda x, i: x[i])(x.to("tpu"), index), x[index])


def test_a_cpu_value_that_decides_is_no_program(programs, caplog):
    f = torch.compile(lambda x, k: torch.full_like(x, k.item()) + x, fullgraph=True)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for k in (1.0, 2.0, 3.0):
            assert f(torch.ones(2, device="tpu"), torch.tensor(k)).tolist() == [1 + k] * 2


def test_numbers():
    """A new float or int costs no graph; of an int's value, at most a plan."""
    x = torch.randn(3)
    for values in ((1.5, 2.5, 3.5, 4.5), (2, 3, 4, 5)):
        torch._dynamo.reset()
        counters.clear()
        f = lambda x, s: x * s + s  # noqa: E731
        compiled = torch.compile(f)
        for s in values:
            same(compiled(x.to("tpu"), s), f(x, s))
        assert graphs() == 2


def test_offsets_dtypes_and_empty():
    f = lambda x: x * 2 + 1  # noqa: E731
    compiled = torch.compile(f)
    base = torch.arange(20)
    for k in range(4):
        same(compiled(base.to("tpu")[k : k + 6]), f(base[k : k + 6]))
    for dtype in (torch.bfloat16, torch.float64, torch.int8, torch.bool, torch.complex64):
        same(compiled(base.to(dtype).to("tpu")), f(base.to(dtype)))
    same(compiled(torch.empty(0, 3, device="tpu")), torch.empty(0, 3))
    same(torch.compile(lambda: torch.ones(3, device="tpu") * 2)(), torch.full((3,), 2.0))
    same(
        compiled(torch.ones(3, device="tpu", dtype=torch.complex64).conj() * 1j),
        f(torch.full((3,), 1j)),
    )


def test_errors_are_eagers():
    x, index = torch.ones(3, device="tpu"), torch.tensor([5], device="tpu")
    take = torch.compile(lambda x, i: x[i] * 2)
    for _ in range(2):
        with pytest.raises(IndexError, match="index.*out of bounds"):
            take(x, index).cpu()
            torch.tpu.synchronize()
    assert (x + 1).tolist() == [2, 2, 2]
    with torch.tpu.eager_mode("debug"):
        with pytest.raises(IndexError, match="a compiled graph.*index.*out of bounds|index.*out"):
            take(x, index)  # the call itself tells it
        torch.tpu.set_check_finite(True)
        with pytest.raises(RuntimeError, match="a compiled graph.*NaN"):
            torch.compile(lambda x: (x - 5).log())(x)
        torch.tpu.set_check_finite(False)
    with pytest.raises(torch.OutOfMemoryError, match="a compiled graph of"):
        torch.compile(lambda x: (x.expand(1 << 16, 1 << 20) + 1).sin())(
            torch.ones(1 << 20, device="tpu")
        )
    with pytest.raises(Exception, match="must have same reduction dim"):
        torch.compile(lambda a, b: a @ b)(
            torch.ones(2, 3, device="tpu"), torch.ones(2, 3, device="tpu")
        )


def test_other_ways_to_differentiate():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    x = torch.randn(4)
    t = x.to("tpu").requires_grad_()
    torch.compile(lambda x: Cube.apply(x).sum(), fullgraph=True)(t).backward()
    same(t.grad, 3 * x * x)

    def f(x):
        return torch.vmap(lambda r: r.sin().sum())(x), torch.func.grad(lambda r: (r**2).sum())(x)

    x = torch.randn(3, 4)
    same(torch.compile(f, fullgraph=True)(x.to("tpu")), f(x))
    model, other = pair(mlp())
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(lambda x: other(x).sum().backward())(torch.ones(2, 8, device="tpu"))
    model(torch.ones(2, 8)).sum().backward()
    for a, b in zip(other.parameters(), model.parameters()):
        same(a.grad, b.grad)


def test_copies_of_a_compiled_module():
    model = mlp().to("tpu")
    compiled = torch.compile(model)
    x = torch.randn(2, 8).to("tpu")
    same(copy.deepcopy(compiled)(x), compiled(x))
    assert set(compiled.state_dict()) == {f"_orig_mod.{k}" for k in model.state_dict()}
    in_place = mlp().to("tpu")
    expected = in_place(x)
    in_place.compile()
    same(in_place(x), expected)


def test_threads():
    model, other = pair(mlp())
    compiled = torch.compile(other, dynamic=True)
    compiled(torch.randn(2, 8).to("tpu")).sum().backward()
    failures = []

    def work(seed):
        try:
            g = torch.Generator().manual_seed(seed)
            for k in range(8):
                x = torch.randn(2 + (seed + k) % 5, 8, generator=g)
                y = compiled(x.to("tpu"))
                same(y, model(x))
                torch.autograd.grad(y.sum(), other.parameters())
        except BaseException as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures, failures


# --- optimizers ----------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "adamw_capturable": (torch.optim.AdamW, {"capturable": True}),
    "adamw_single": (torch.optim.AdamW, {"foreach": False}),
    "nadam": (torch.optim.NAdam, {}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "adagrad": (torch.optim.Adagrad, {}),
    "adadelta": (torch.optim.Adadelta, {}),
    "radam": (torch.optim.RAdam, {}),
    "asgd": (torch.optim.ASGD, {}),
}
QUICK = ("sgd", "adamw", "adamw_capturable")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in OPTIMIZERS]
)
def test_whole_optimizer_steps(name, programs):
    """With a schedule: where the learning rate is a tensor no step compiles anything anew."""
    kind, keywords = OPTIMIZERS[name]
    tensor_rate = name.startswith("adamw")
    model, other = pair(mlp())

    def optimizer(m):
        keywords_here = {k: v for k, v in keywords.items() if k != "capturable" or m is other}
        rate = torch.tensor(0.01) if tensor_rate else 0.01
        return kind(m.parameters(), lr=rate, **keywords_here)

    pairs = [(model, optimizer(model)), (other, optimizer(other))]
    step = torch.compile(pairs[1][1].step)
    for k in range(6):
        x = torch.randn(4, 8)
        for m, opt in pairs:
            m(x.to(next(m.parameters()).device)).square().mean().backward()
            step() if opt is pairs[1][1] else opt.step()
            opt.zero_grad()
            for group in opt.param_groups:
                if tensor_rate:
                    group["lr"].fill_(0.01 / (k + 1))
        if k == 1:
            known = graphs()
    same(list(other.parameters()), list(model.parameters()), 1e-3, 1e-5)
    assert graphs() == known
    assert programs and all(p._whole and p._count == 1 for p in programs)


def test_whole_training_step(programs):
    model, other = pair(mlp())
    pairs = [(m, torch.optim.AdamW(m.parameters(), lr=0.01)) for m in (model, other)]

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled = torch.compile(step)
    for _ in range(4):
        x = torch.randn(4, 8)
        same(compiled(*pairs[1], x.to("tpu")), step(*pairs[0], x))
    same(list(other.parameters()), list(model.parameters()), 1e-3, 1e-5)
    assert all(p._whole for p in programs)


# --- dynamic shapes ------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.out = nn.Embedding(50, 16), nn.Linear(16, 48), nn.Linear(16, 50)

    def forward(self, index):
        q, k, v = self.qkv(self.embed(index)).unflatten(-1, (3, 2, 8)).transpose(1, 3).unbind(2)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
                        .flatten(2))  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
def test_sixty_four_lengths(dynamic, programs):
    """One Dynamo graph for all lengths (two where it first has to see that they differ); each
    length is one program forward and one backward, found again whatever the order."""
    model, other = pair(Attention())
    compiled = torch.compile(other, dynamic=dynamic)
    lengths = list(range(5, 69))
    for n in lengths + lengths[:0:-7]:
        index = torch.randint(50, (2, n))
        y = compiled(index.to("tpu"))
        y.sum().backward()
        if n % 16 == 5:
            same(y, model(index))
    assert graphs() == (1 if dynamic else 2)
    counted = sorted(p._count for p in programs)
    assert counted == ([64, 64] if dynamic else [1, 1, 63, 63])


def test_dynamo_logs_no_recompiles():
    script = """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).to("tpu")
        compiled = torch.compile(model)
        for n in range(2, 66):
            compiled(torch.ones(n, 8, device="tpu")).sum().backward()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "TORCH_LOGS": "recompiles"},
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert done.stderr.count("Recompiling function") == 1, done.stderr


def test_the_oldest_programs_go(programs, monkeypatch):
    monkeypatch.setattr(tpu_compile, "_MOST_PROGRAMS", 4)
    compiled = torch.compile(lambda x: x + 1, dynamic=True)
    for n in [*range(2, 12), 3]:
        assert compiled(torch.zeros(n, device="tpu")).sum().item() == n
    assert 1 <= programs[0]._count <= 4


# --- TorchScript ---------------------------------------------------------------------------------


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, times: int):
        if bool(x.sum() > 0):
            x = x * 2
        for _ in range(times):
            x = torch.tanh(self.linear(x)) + x
        return x


@pytest.mark.parametrize("mode", MODES)
def test_scripted_modules(mode, tmp_path):
    torch.tpu.set_eager_mode(mode)
    model, other = pair(Gate())
    script = torch.jit.script(other)
    for x in (torch.ones(2, 8), -torch.ones(2, 8)):
        for times in (0, 3, 3, 3):
            same(script(x.to("tpu"), times), model(x, times))
    script(x.to("tpu"), 2).sum().backward()
    model(x, 2).sum().backward()
    same(script.linear.weight.grad, model.linear.weight.grad)
    script.save(str(tmp_path / "gate.pt"))
    loaded = torch.jit.load(str(tmp_path / "gate.pt"), map_location="tpu")
    same(loaded(x.to("tpu"), 2), model(x, 2))


@pytest.mark.parametrize("mode", MODES)
def test_traced_modules(mode, tmp_path):
    torch.tpu.set_eager_mode(mode)
    model, other = pair(mlp(nn.LayerNorm(16)).eval())
    x = torch.randn(4, 8)
    traced = torch.jit.trace(other, x.to("tpu"))
    for n in (4, 4, 4, 7):
        x = torch.randn(n, 8)
        same(traced(x.to("tpu")), model(x))
    frozen = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
    with torch.no_grad():
        same(frozen(x.to("tpu")), model(x))
    on_cpu = torch.jit.trace(copy.deepcopy(model), x)
    same(on_cpu.to("tpu")(x.to("tpu")), model(x))
