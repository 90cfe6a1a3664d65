"""Runs PyTorch's own OpInfo samples on the CPU and on the device and compares the two.

    python tests/opinfo_sweep.py '^(add|sub)$' --dtypes float32,int64 --samples 20 --json out.jsonl

Each op runs in a forked child, so that a crash is one line of the report. The outcome of an op is
the worst of its samples: pass, fallback (right, but on the CPU), mismatch, error, timeout, crash.
Where the two disagree, both are measured against the CPU's result in twice the precision: a device
that is as near to it passes, or near enough for the tensor's largest element.
"""

import argparse
import collections
import json
import os
import re
import select
import signal
import sys
import time
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

import torchtpu  # noqa: F401

RANK = ["pass", "skip", "fallback", "mismatch", "error", "timeout", "crash"]
RANDOM = re.compile(
    r"^(normal|bernoulli|multinomial|rand|randn|randint|randn_like|rand_like|randint_like|uniform|"
    r"exponential|geometric|log_normal|cauchy|empty|empty_like|empty_strided|empty_permuted|"
    r"new_empty|new_empty_strided|.*dropout.*|nn.functional.rrelu|nn.functional.alpha_dropout|"
    r"nn.functional.fractional_max_pool.*|.*lowrank|torch.ops.aten._efficient_attention_forward)$"
)
# Which of several equal elements an index names is left open by PyTorch.
TIES = {"sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian"}
HOST_ARGUMENTS = {"tensor_split"}  # their further tensors stay on the CPU on every device
# Sums of many terms and iterated functions get more room than assert_close's own.
LOOSE = {
    torch.float32: (2e-5, 2e-5),
    torch.float64: (1e-9, 1e-9),
    torch.bfloat16: (2e-2, 1e-2),
    torch.float16: (4e-3, 2e-3),
    torch.complex64: (2e-5, 2e-5),
    torch.complex128: (1e-9, 1e-9),
}


def tree_map(fn, value):
    if isinstance(value, torch.Tensor):
        return fn(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(tree_map(fn, v) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(tree_map(fn, v) for v in value)
    if isinstance(value, dict):
        return {k: tree_map(fn, v) for k, v in value.items()}
    return value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def to_device(value, device):
    def move(t):
        if t.is_quantized:
            return t
        if t.layout != torch.strided:
            return t.detach().to(device).requires_grad_(t.requires_grad)
        wanted = t.requires_grad
        # The sample's storage and strides, so that views are exercised too.
        moved, t = t.detach().to(device), t.detach()
        held = t.untyped_storage().nbytes() // t.element_size()
        if t.numel() and (held != t.numel() or t.stride() != moved.stride()):
            lazy = [name for name in ("conj", "neg") if getattr(t, f"is_{name}")()]
            t = t.conj() if "conj" in lazy else t
            t = torch._neg_view(t) if "neg" in lazy else t
            base = torch.as_strided(t, (held,), (1,), 0).to(device)
            moved = base.as_strided(t.size(), t.stride(), t.storage_offset())
            moved = torch._neg_view(moved) if "neg" in lazy else moved
            moved = moved.conj() if "conj" in lazy else moved
        return moved.requires_grad_(wanted)

    def fix(v):
        if isinstance(v, torch.device) or (isinstance(v, str) and v == "cpu"):
            return device
        return v

    value = tree_map(move, value)
    if isinstance(value, dict):
        value = {k: fix(v) if k == "device" else v for k, v in value.items()}
    return value


def wider(sample):
    """The sample in twice the precision, as new leaves."""

    def widen(t):
        kinds = {torch.float32: torch.float64, torch.complex64: torch.complex128}
        kinds |= {torch.bfloat16: torch.float32, torch.float16: torch.float32}
        return t.detach().to(kinds.get(t.dtype, t.dtype)).requires_grad_(t.requires_grad)

    kinds = {torch.float32: torch.float64, torch.bfloat16: torch.float32}
    first, args, kwargs, *rest = tree_map(widen, sample)
    kwargs = {k: kinds.get(v, v) if k == "dtype" else v for k, v in kwargs.items()}
    return first, args, kwargs, *rest


def sample_dtype(sample):
    return next((t.dtype for t in tensors(sample[:3]) if t.dtype in LOOSE), None)


def as_near(op, sample, variant, grad, expected, actual):
    """Whether the device is as near as the CPU to the result in twice the precision, or near enough
    for the tensor's largest element."""
    try:
        truth = tensors(run(op, wider(sample), variant, grad))
    except Exception:
        return False
    expected, actual = tensors(expected), tensors(actual)
    room = LOOSE.get(sample_dtype(sample), (0, 0))[0]
    if not len(truth) == len(expected) == len(actual):
        return False
    for t, e, a in zip(truth, expected, actual):
        if (t.shape, t.is_floating_point()) != (a.shape, a.is_floating_point()):
            return False
        kind = torch.complex128 if t.is_complex() else torch.float64
        t, e, a = (v.detach().cpu().to(kind) for v in (t, e, a))
        if ((a != e) & ~(a.isfinite() & t.isfinite()) & ~(a.isnan() & t.isnan())).any():
            return False
        limit = (e - t)[t.isfinite() & e.isfinite()].abs()
        limit = limit.max() if limit.numel() else 0.0
        known = t.isfinite() & a.isfinite()
        largest = t[known].abs().max() if known.any() else 0.0
        if ((a - t)[known].abs() > max(2 * limit, room * largest)).any():
            return False
    return True


def run(op, sample, variant, grad):
    fn = {"forward": op, "inplace": op.inplace_variant}[variant]
    first, args, kwargs, *process = sample
    if variant == "inplace":
        first = first.clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        out = fn(first, *args, **kwargs)
    if process and variant == "forward":
        out = process[0](out)
    grads = []
    if grad:
        leaves = [t for t in tensors((first, args, kwargs)) if t.requires_grad]
        outs = [
            t for t in tensors(out) if t.requires_grad and (t.is_floating_point() or t.is_complex())
        ]
        if leaves and outs:
            seeds = []
            for t in outs:
                g = torch.linspace(0.5, 1.5, max(t.numel(), 1), dtype=torch.float64)[: t.numel()]
                seeds.append(g.reshape(t.shape).to(t.dtype).to(t.device))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                grads = list(torch.autograd.grad(outs, leaves, seeds, allow_unused=True))
    return out, grads


def same(expected, actual, what):
    if isinstance(expected, torch.Tensor):
        if not isinstance(actual, torch.Tensor):
            return f"{what}: {type(actual).__name__} instead of a tensor"
        if expected.layout != actual.layout:
            return f"{what}: layout {actual.layout}, expected {expected.layout}"
        if expected.layout != torch.strided:
            expected, actual = expected.detach().to_dense(), actual.detach().to_dense()
        if expected.dtype != actual.dtype:
            return f"{what}: dtype {actual.dtype}, expected {expected.dtype}"
        if expected.shape != actual.shape:
            return f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
        rtol, atol = LOOSE.get(expected.dtype, (0, 0))
        try:
            torch.testing.assert_close(
                actual.detach().cpu().resolve_conj().resolve_neg(),
                expected.detach().resolve_conj().resolve_neg(),
                rtol=rtol,
                atol=atol,
                equal_nan=True,
                check_stride=False,
            )
        except AssertionError as e:
            text = " ".join(str(e).split())
            return f"{what} {expected.dtype}{tuple(expected.shape)}: {text[:220]}"
        return None
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(actual):
            return f"{what}: {len(actual)} results, expected {len(expected)}"
        for i, (e, a) in enumerate(zip(expected, actual)):
            wrong = same(e, a, f"{what}[{i}]")
            if wrong:
                return wrong
        return None
    if isinstance(expected, float):
        ok = (
            expected == actual
            or abs(expected - actual) < 1e-5
            or (expected != expected and actual != actual)
        )
        return None if ok else f"{what}: {actual}, expected {expected}"
    if isinstance(expected, (bool, int)) and expected != actual:
        return f"{what}: {actual}, expected {expected}"
    return None


def fallbacks():
    stats = getattr(torch.tpu, "fallback_stats", None)
    return dict(stats()) if stats else {}


def describe(sample):
    def short(v):
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype)[6:]}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return "[" + ",".join(short(x) for x in v[:4]) + "]"
        return repr(v)[:40]

    first, args, kwargs, *_ = sample
    return " ".join(
        [short(first)] + [short(a) for a in args] + [f"{k}={short(v)}" for k, v in kwargs.items()]
    )[:200]


def check_sample(op, sample, variant, grad, options):
    try:
        expected, expected_grads = run(op, sample, variant, grad)
    except Exception:
        return "skip", "CPU raises"
    moved = to_device(sample, options.device)
    if op.name in HOST_ARGUMENTS:
        moved = (moved[0], *sample[1:])
    try:
        actual, actual_grads = run(op, moved, variant, grad)
        if RANDOM.match(op.name) or sample[2].get("dropout_p") or sample[2].get("training"):
            for e, a in zip(tensors(expected), tensors(actual)):
                if e.shape != a.shape or e.dtype != a.dtype:
                    return "mismatch", f"random: {a.shape} {a.dtype}, expected {e.shape} {e.dtype}"
            [t.cpu() for t in tensors(actual)]
            return "pass", ""
        wrong = same(expected, actual, variant)
        has_ties = op.name in TIES and sample[0].dtype not in (torch.float32, torch.float64)
        if wrong and has_ties and "torch.int64" in wrong:
            wrong = None
        for i, (e, a) in enumerate(zip(expected_grads, actual_grads)):
            if not wrong and (e is None) != (a is None):
                wrong = f"grad[{i}]: {'missing' if a is None else 'unexpected'}"
            if not wrong and e is not None:
                wrong = same(e, a, f"grad[{i}]")
        if wrong and as_near(
            op, sample, variant, grad, (expected, expected_grads), (actual, actual_grads)
        ):
            wrong = None
        return ("mismatch", wrong) if wrong else ("pass", "")
    except Exception as e:
        return "error", f"{type(e).__name__}: {' '.join(str(e).split())[:260]}"


def sweep_op(op, dtype, options):
    grad = not options.no_grad and dtype in (
        torch.float32,
        torch.float64,
        torch.bfloat16,
        torch.complex64,
    )
    grad = grad and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    worst, detail, counts = "pass", "", collections.Counter()
    before = fallbacks()
    torch.manual_seed(0)
    for index, s in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        if index >= options.samples:
            break
        # What is left open (the sign of an eigenvector) is taken out by the sample's own function.
        sample = (s.input, tuple(s.args), dict(s.kwargs), s.output_process_fn_grad)
        variants = ["forward"]
        if options.inplace and op.inplace_variant is not None and isinstance(s.input, torch.Tensor):
            variants.append("inplace")
        for variant in variants:
            outcome, text = check_sample(op, sample, variant, grad, options)
            counts[outcome] += 1
            if RANK.index(outcome) > RANK.index(worst) and outcome != "skip":
                worst, detail = outcome, f"{text} | sample {index}: {describe(sample)}"
    used = {k: v - before.get(k, 0) for k, v in fallbacks().items() if v > before.get(k, 0)}
    if worst == "pass" and used:
        worst, detail = "fallback", ", ".join(sorted(used))
    return {
        "op": op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""),
        "dtype": str(dtype)[6:],
        "outcome": worst,
        "detail": detail,
        "samples": dict(counts),
        "fallbacks": sorted(used),
    }


def child(op, dtypes, options, pipe):
    for dtype in dtypes:
        try:
            result = sweep_op(op, dtype, options)
        except Exception as e:
            result = {
                "op": op.name,
                "dtype": str(dtype)[6:],
                "outcome": "error",
                "detail": f"harness: {type(e).__name__}: {e}"[:300],
            }
        os.write(pipe, (json.dumps(result) + "\n").encode())


def fork_op(op, dtypes, options):
    """Runs one op's dtypes in a child; yields a result for each, whatever becomes of the child."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        if options.quiet:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            child(op, dtypes, options, write)
        finally:
            os._exit(0)
    os.close(write)
    left, data, deadline = list(dtypes), b"", time.time() + options.timeout
    timed_out = False
    while True:
        ready, _, _ = select.select([read], [], [], max(0.0, deadline - time.time()))
        if not ready:
            timed_out = True
            os.kill(pid, signal.SIGKILL)
            break
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        data += chunk
    os.close(read)
    _, status = os.waitpid(pid, 0)
    for line in data.decode().splitlines():
        result = json.loads(line)
        left.pop(0)
        yield result
    if left:
        how = "timeout" if timed_out else "crash"
        yield {
            "op": op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""),
            "dtype": str(left[0])[6:],
            "outcome": how,
            "detail": f"wait status {status}",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "regex", nargs="?", default=".", help="ops whose name (with variant) it finds"
    )
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--device", default="tpu")
    parser.add_argument("--timeout", type=float, default=60, help="seconds an op")
    parser.add_argument("--no-grad", action="store_true")
    parser.add_argument("--inplace", action="store_true", help="also the in-place variant")
    parser.add_argument("--quiet", action="store_true", help="drop the children's stderr")
    parser.add_argument("--failures", action="store_true", help="print only what does not pass")
    parser.add_argument("--json", help="file for JSON lines")
    options = parser.parse_args()
    dtypes = [getattr(torch, d) for d in options.dtypes.split(",")]
    report = open(options.json, "w") if options.json else None
    totals = collections.Counter()
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        wanted = [d for d in dtypes if d in op.dtypes]
        if not wanted or not re.search(options.regex, name):
            continue
        for result in fork_op(op, wanted, options):
            totals[result["outcome"]] += 1
            if report:
                report.write(json.dumps(result) + "\n")
                report.flush()
            if not options.failures or result["outcome"] not in ("pass", "skip"):
                print(
                    f"{result['op']:44} {result['dtype']:10} {result['outcome']:9} "
                    f"{result['detail']}",
                    flush=True,
                )
    print("total: " + ", ".join(f"{k} {totals[k]}" for k in RANK if totals[k]))
    return 1 if any(totals[k] for k in ("mismatch", "error", "timeout", "crash")) else 0


if __name__ == "__main__":
    sys.exit(main())
