"""What a user does wrong raises what PyTorch raises on the CPU, and the device works on afterwards.
Whatever might abort, hang or change the process runs in a child."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F

MODES = ("strict", "debug", "defer_and_fuse")


def ones(d, *sizes, **options):
    return torch.ones(*sizes, device=d, **options)


def longs(d, *sizes):
    return torch.ones(*sizes, device=d, dtype=torch.int64)


def cat_into_one(x):
    return torch.cat([x, x], out=x)


def take_into_one(x):
    return torch.take(x, torch.zeros(2, dtype=torch.int64, device=x.device), out=x)


# name: (call of a device, words of the device's message)
CALLS = {
    "mm_dtypes": (lambda d: longs(d, 2, 2) @ ones(d, 2, 2), "same dtype.*i64 != f32"),
    "bmm_dtypes": (lambda d: torch.bmm(longs(d, 1, 2, 2), ones(d, 1, 2, 2)), "same dtype"),
    "linear_dtypes": (lambda d: F.linear(ones(d, 2, 2).half(), ones(d, 2, 2)), "same dtype"),
    "conv_dtypes": (
        lambda d: F.conv2d(ones(d, 1, 1, 4, 4), ones(d, 1, 1, 3, 3).half()),
        "same dtype",
    ),
    "index_float": (lambda d: ones(d, 3)[ones(d, 2)], "tensors used as indices must be"),
    "index_put_dtypes": (
        lambda d: ones(d, 3).index_put((longs(d, 2),), longs(d, 2)),
        "source and destination dtypes match",
    ),
    "and_float": (lambda d: ones(d, 3) & ones(d, 3), r"bitwise_and.*f32\[3\]"),
    "gcd_float": (lambda d: torch.gcd(ones(d, 3), ones(d, 3)), "gcd"),
    "complex_order": (
        lambda d: ones(d, 3, dtype=torch.complex64) < ones(d, 3, dtype=torch.complex64),
        r"lt\.Tensor.*no order",
    ),
    "complex_relu": (lambda d: ones(d, 3, dtype=torch.complex64).relu(), "relu.*no order"),
    "softmax_int": (lambda d: longs(d, 3).softmax(0), "softmax.*i64"),
    "grid": (lambda d: F.grid_sample(ones(d, 1, 1, 4, 4), ones(d, 1, 2, 2, 3)), "2"),
    "subtract_bool": (lambda d: ones(d, 3).bool() - ones(d, 3).bool(), "bool"),
    "mean_int": (lambda d: longs(d, 3).mean(), "dtype"),
    "rand_int": (lambda d: torch.rand(3, device=d, dtype=torch.int64), "not implemented"),
    "multinomial_int": (lambda d: torch.multinomial(longs(d, 3), 1), "floating-point"),
    "add_sizes": (lambda d: ones(d, 3) + ones(d, 4), "size of tensor a"),
    "mm_sizes": (lambda d: ones(d, 2, 3) @ ones(d, 2, 3), "cannot be multiplied"),
    "cat_sizes": (lambda d: torch.cat([ones(d, 2, 3), ones(d, 2, 4)]), "Sizes of tensors"),
    "conv_channels": (
        lambda d: F.conv2d(ones(d, 1, 2, 4, 4), ones(d, 1, 3, 3, 3)),
        "to have 3 channels",
    ),
    "view_sizes": (lambda d: ones(d, 3).view(2, 2), "invalid for input of size 3"),
    "view_strides": (lambda d: ones(d, 3, 4).t().view(12), "not compatible"),
    "reshape": (lambda d: ones(d, 3).reshape(2), "invalid for input of size 3"),
    "expand": (lambda d: ones(d, 3).expand(4), "must match"),
    "dim_of_sum": (lambda d: ones(d, 3).sum(5), "Dimension out of range"),
    "dim_of_softmax": (lambda d: ones(d, 3).softmax(2), "Dimension out of range"),
    "dim_of_sort": (lambda d: ones(d, 3).sort(2), "Dimension out of range"),
    "row": (lambda d: ones(d, 3)[7], "out of bounds"),
    "index_select_2d": (lambda d: ones(d, 3, 3).index_select(0, longs(d, 2, 2)), "vector"),
    "leaf": (lambda d: ones(d, 3, requires_grad=True).add_(1), "leaf Variable"),
    "out_dtype": (lambda d: torch.add(ones(d, 3), 1.5, out=longs(d, 3)), "cast"),
    "result_type": (lambda d: longs(d, 3).add_(1.5), "can't be cast"),
    "overlap": (lambda d: ones(d, 1).expand(3).copy_(ones(d, 3)), "single memory location"),
    "topk": (lambda d: ones(d, 3).topk(5), "k"),
    "labels_dtype": (lambda d: F.cross_entropy(ones(d, 2, 3), ones(d, 2)), ""),
    "zero_stride": (lambda d: F.conv2d(ones(d, 1, 1, 4, 4), ones(d, 1, 1, 3, 3), stride=0), ""),
    "max_of_nothing": (lambda d: ones(d, 0).max(), "numel"),
    "negative_size": (lambda d: ones(d, -1), "negative"),
    "too_large": (lambda d: torch.empty(1 << 40, 1 << 40, device=d), ""),
    "division": (lambda d: longs(d, 3) // 0, "ZeroDivisionError"),
    "not_positive": (lambda d: torch.linalg.cholesky(-ones(d, 3, 3)), ""),
    "backward_of_many": (lambda d: (ones(d, 3, requires_grad=True) * 2).backward(), "scalar"),
    "kthvalue_of_nothing": (lambda d: ones(d, 0, 3).kthvalue(1, 0), "non-zero size"),
    "median_of_nothing": (lambda d: ones(d, 0, 3).median(0), "non-zero size"),
    "bucketize_2d": (lambda d: torch.bucketize(ones(d, 2), ones(d, 2, 2)), "must be 1 dimension"),
    "searchsorted_side": (
        lambda d: torch.searchsorted(ones(d, 2), ones(d, 2), side="up"),
        "side can only be",
    ),
    "searchsorted_sorter": (
        lambda d: torch.searchsorted(ones(d, 2), ones(d, 2), sorter=longs(d, 2) * 5),
        "out of",
    ),
    "clamp_overflow": (
        lambda d: ones(d, 3, dtype=torch.int8).clamp(-1000, 1000),
        "int8_t without overflow",
    ),
    "clamp_overflow_half": (lambda d: ones(d, 3).half().clamp(max=1e10), "without overflow"),
    "threshold_overflow": (
        lambda d: F.threshold(ones(d, 3, dtype=torch.int8), 1000, 5),
        "without overflow",
    ),
    "random_range": (
        lambda d: torch.randint(0, 300, (2,), device=d, dtype=torch.uint8),
        "to - 1 is out of bounds",
    ),
    "multinomial_many": (lambda d: torch.multinomial(ones(d, 3), 5), "without replacement"),
    "multinomial_none": (lambda d: torch.multinomial(ones(d, 3), 0), "n_sample <= 0"),
    "arange_bool": (lambda d: torch.arange(3, device=d, dtype=torch.bool), "not implemented"),
    "roll_dim": (lambda d: ones(d, 3, 3).roll(1, 5), "Dimension out of range"),
    "roll_nothing": (lambda d: ones(d, 3).roll(()), "shifts"),
    "index_fill_2d": (lambda d: ones(d, 3).index_fill(0, longs(d, 1, 1), 1.0), "vector/scalar"),
    "index_fill_float": (lambda d: ones(d, 3).index_fill(0, ones(d, 1), 1.0), "int64"),
    "masked_select_out": (
        lambda d: (lambda x: torch.masked_select(x, x > 0, out=x))(ones(d, 3)),
        "single memory location",
    ),
    "complex_of_two_types": (
        lambda d: torch.complex(ones(d, 2), ones(d, 2).double()),
        "Expected object of scalar type Float but got scalar type Double",
    ),
    "masked_scatter_mask": (
        lambda d: ones(d, 2).masked_scatter(ones(d, 2).byte(), ones(d, 2)),
        "only supports boolean masks",
    ),
    "margins_of_nothing": (
        lambda d: F.multi_margin_loss(ones(d, 5, 0), longs(d, 5)),
        r"batch size, but got: \[5, 0\]",
    ),
    "margins_of_other_sizes": (
        lambda d: F.multilabel_margin_loss(ones(d, 5, 4), longs(d, 4)),
        r"inconsistent target size: \[4\] for input of size: \[5, 4\]",
    ),
    "shift_of_floats": (
        lambda d: torch.bitwise_left_shift(ones(d, 2), ones(d, 2)),
        "not implemented for f32",
    ),
    "complex_fmod": (
        lambda d: torch.fmod(ones(d, 2), ones(d, 2, dtype=torch.complex64)),
        "not implemented for complex",
    ),
    "complex_atan2": (
        lambda d: torch.atan2(ones(d, 2), ones(d, 2, dtype=torch.complex64)),
        "not implemented for complex",
    ),
    "class_weights": (
        lambda d: F.nll_loss(ones(d, 2, 3), longs(d, 2), ones(d, 3).half()),
        "expected scalar type f32 but found f16",
    ),
    "gelu": (lambda d: F.gelu(ones(d, 2), approximate="round"), "either none or tanh"),
    "histogramdd": (lambda d: torch.histogramdd(ones(d, 2, 2), [1, 2, 3]), "size of bins"),
    "cat_out": (lambda d: cat_into_one(ones(d, 2)), "single memory location"),
    "take_out": (lambda d: take_into_one(ones(d, 2)), "single memory location"),
    "multinomial_out": (
        lambda d: torch.multinomial(ones(d, 3), 1, out=ones(d, 1)),
        "expects Long tensor out",
    ),
    "labels_of_margins": (
        lambda d: F.multilabel_margin_loss(ones(d, 2, 3), longs(d, 2, 3) * 7),
        "out of range",
    ),
    "embedding_weight": (lambda d: F.embedding(longs(d, 2), ones(d, 3)), "2-D"),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(device, name):
    call, words = CALLS[name]
    with pytest.raises(Exception) as on_cpu:
        call("cpu")
    with pytest.raises(on_cpu.type, match=words):
        call(device)
        torch.tpu.synchronize()
    assert (ones(device, 2) + 1).tolist() == [2, 2]


@pytest.mark.parametrize("mode", MODES)
def test_index_out_of_range(device, mode):
    x, index = torch.arange(3.0, device=device), torch.tensor([5], device=device)
    calls = {
        "index": lambda: x[index],
        "index_select": lambda: x.index_select(0, index),
        "gather": lambda: x.gather(0, index),
        "scatter": lambda: x.scatter(0, index, 1.0),
        "index_put": lambda: x.index_put((index,), x[:1]),
        "embedding": lambda: F.embedding(index, x[:, None]),
        "nll_loss": lambda: F.cross_entropy(x[None], index),
    }
    with torch.tpu.eager_mode(mode):
        for op, call in calls.items():
            error = RuntimeError if op in ("gather", "scatter") else IndexError  # as on the CPU
            with pytest.raises(error, match=f"{op}.*out of bounds"):
                call()
                torch.tpu.synchronize()
            assert (x + 1).tolist() == [1, 2, 3]


def test_most_dimensions(device):
    x = ones(device, [1] * 64)
    assert (x + 1).sum().item() == 2
    with pytest.raises(RuntimeError, match="at most 64 dimensions, not 65"):
        torch.stack([x])


def test_check_finite(device):
    torch.tpu.set_check_finite(True)
    try:
        with torch.tpu.eager_mode("debug"):
            with pytest.raises(RuntimeError, match=r"log\(f32\[3\]\).*infinity"):
                torch.zeros(3, device=device).log()
            assert (torch.zeros(3, device=device) + 1).sum().item() == 3
    finally:
        torch.tpu.set_check_finite(False)


@pytest.mark.parametrize("file", ["/home/me/torch/train.py", "/src/torchtpu/train.py", "<string>"])
def test_debug_names_the_line_wherever_the_script_lies(device, file):
    code = compile("import torch\n\ntorch.nn.functional.one_hot(x, 2)", file, "exec")
    with torch.tpu.eager_mode("debug"), pytest.raises((RuntimeError, IndexError)) as error:
        exec(code, {"x": torch.tensor([5], device=device)})
    assert f"{file}:3" in str(error.value)


def test_devices_that_are_not_there():
    for call in (
        torch.tpu.set_device,
        torch.tpu.synchronize,
        torch.tpu.current_stream,
        torch.tpu.get_rng_state,
        torch.tpu.get_device_properties,
        torch.tpu.reset_peak_memory_stats,
        torch.tpu.Stream,
    ):
        with pytest.raises(RuntimeError, match="invalid device ordinal.*99"):
            call(99)
    with pytest.raises(ValueError, match="cpu"):
        torch.tpu.set_device("cpu")


def test_events(device):
    with pytest.raises(ValueError, match="recorded"):
        torch.tpu.Event(enable_timing=True).elapsed_time(torch.tpu.Event(enable_timing=True))
    with pytest.raises(ValueError, match="enable_timing"):
        torch.tpu.Event().elapsed_time(torch.tpu.Event())


def test_numpy(device):
    x = ones(device, 3)
    with pytest.raises(TypeError, match="can't convert tpu:0 device type tensor to numpy"):
        x.numpy()


def test_hooks(device):
    x = ones(device, 3, requires_grad=True)

    def bad(grad):
        raise KeyError("hook")

    y = x * 2
    y.register_hook(bad)
    with pytest.raises(KeyError, match="hook"):
        y.sum().backward()
    z = x * 3
    z.register_hook(lambda grad: grad.cpu())
    with pytest.raises(RuntimeError, match="changed the type"):
        z.sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def child(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "import torch\n" + textwrap.dedent(code)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    return done.stdout


def test_environment(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    cases = [
        ("TORCHTPU_PLUGIN", "nosuch", "no plugin"),
        ("TORCHTPU_PLUGIN", "/no/such.so", "does not exist"),
        ("TORCHTPU_PLUGIN", str(tmp_path / "text.so"), "cannot be loaded"),
        ("TORCHTPU_PLUGIN", torch._C.__file__, "GetPjrtApi"),
        ("TORCHTPU_EAGER_MODE", "fast", "defer_and_fuse"),
        ("TORCHTPU_FALLBACK", "maybe", "silent"),
        ("TORCHTPU_NUM_DEVICES", "two", "number"),
        ("TORCHTPU_HBM_BYTES", "lots", "size in bytes"),
        ("TORCHTPU_ENGINE", "fast", "planned"),
    ]
    # One import for all: each case is a fork that is the first to start the device.
    out = child(
        f"""
        import os
        for name, value, _ in {cases!r}:
            if os.fork() == 0:
                os.environ[name] = value
                try:
                    torch.ones(2, device="tpu").tolist()
                    print("nothing", flush=True)
                except (RuntimeError, ValueError) as error:
                    print(str(error).splitlines()[0], flush=True)
                os._exit(0)
            os.wait()
        """
    ).splitlines()
    for line, (name, value, words) in zip(out, cases, strict=True):
        assert words in line and value in line, (line, name)
        assert name in line or name == "TORCHTPU_PLUGIN", line


def test_out_of_memory():
    out = child(
        f"""
        for mode in {MODES!r}:
            torch.tpu.set_eager_mode(mode)
            def one():
                torch.ones(1 << 25, device="tpu").sum().item()
            def many():
                kept = [torch.ones(1 << 20, device="tpu") * i for i in range(100)]
                torch.tpu.synchronize()
            for call in (one, many, lambda: torch.ones(1 << 25).to("tpu")):
                try:
                    call()
                    print("nothing")
                except torch.OutOfMemoryError as error:
                    assert "tried to allocate" in str(error) and "64.00 MiB" in str(error), error
                assert (torch.ones(1000, device="tpu") + 1).sum().item() == 2000
            torch.tpu.synchronize()
            assert torch.tpu.memory_allocated() < 1 << 20, torch.tpu.memory_allocated()
        print("done")
        """,
        TORCHTPU_HBM_BYTES="67108864",
    )
    # A sum of ones needs no ones: fused it fits.
    assert out.split() in (["done"], ["nothing", "done"])


def test_two_devices_and_the_fallback_policy():
    child(
        """
        import pytest
        a, b, c = torch.ones(2, device="tpu:0"), torch.ones(2, device="tpu:1"), torch.ones(2)
        for call in (lambda: a + b, lambda: torch.cat([a, b]), lambda: torch.where(a > 0, a, b),
                     lambda: torch.add(a, a, out=b), lambda: a + c, lambda: c.add_(a),
                     lambda: c[torch.tensor([0], device="tpu")]):
            with pytest.raises(RuntimeError, match="same device.*tpu:"):
                call()
        event = torch.tpu.Event()
        event.record(torch.tpu.Stream(0))
        with pytest.raises(RuntimeError, match="event of tpu:0"):
            event.record(torch.tpu.Stream(1))
        with pytest.raises(NotImplementedError, match="eigvals.*TORCHTPU_FALLBACK=error"):
            torch.linalg.eigvals(torch.eye(3, device="tpu"))
        assert a.to("tpu:1").device.index == 1 and (a + 1).tolist() == [2, 2]
        """,
        TORCHTPU_NUM_DEVICES="2",
        TORCHTPU_FALLBACK="error",
    )


def read(w):
    """The sum; a failed check of any thread surfaces at whichever synchronises first."""
    for _ in range(100):
        try:
            return w.sum().item()
        except IndexError:
            continue
    return None


@pytest.mark.parametrize("mode", MODES)
def test_threads(device, mode):
    import threading

    results: list = [None] * 8

    def work(k):
        w = torch.full((20,), float(k), device=device, requires_grad=True)
        for _ in range(10):
            (w * 2 + 1).sum().backward()
            with torch.no_grad():
                w -= 0.5 * w.grad
            w.grad = None
            try:
                w.detach()[torch.tensor([99], device=device)].cpu()
            except IndexError:
                pass
        results[k] = read(w)

    with torch.tpu.eager_mode(mode):
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert results == [20.0 * (k - 10) for k in range(8)]


def test_exit_with_work_pending():
    out = child(
        """
        import atexit, os, signal, threading, time
        torch.tpu.set_eager_mode("defer_and_fuse")
        x = torch.ones(1000, 1000, device="tpu")
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                (x @ x).sum().item()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        y = torch.ones(3, device="tpu")
        atexit.register(lambda: print((y + 1).tolist()))
        for _ in range(5):
            x = x @ x * 1e-4
        """
    )
    assert out.split("\n")[:2] == ["interrupted", "[2.0, 2.0, 2.0]"]
    child(
        """
        torch.tpu.set_eager_mode("defer_and_fuse")
        bad = torch.ones(3, device="tpu")[torch.tensor([7], device="tpu")]
        """
    )


def test_compiled_programs():
    child(
        """
        import pytest
        x, index = torch.ones(3, device="tpu"), torch.tensor([5], device="tpu")

        def take(x, index):
            x.add_(1)
            return x[index] * 2, x

        program = torch.compile(take, backend="tpu")
        for _ in range(3):
            with pytest.raises(IndexError, match="index.*out of bounds"):
                program(x, index)
        assert (torch.ones(2, device="tpu") + 1).tolist() == [2, 2] and x.shape == (3,)

        def branch(x):
            return x + 1 if x.sum().item() > 0 else x - 1

        program = torch.compile(branch, backend="tpu")
        assert program(torch.ones(2, device="tpu")).tolist() == [2, 2]
        assert program(-torch.ones(2, device="tpu")).tolist() == [-2, -2]
        """
    )
