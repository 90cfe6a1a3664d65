"""Compares the device with the CPU on PyTorch's own samples; writes docs/conformance.md.

    python tools/conformance.py --report docs/conformance.md        # everything
    python tools/conformance.py --only optimizers                   # one part, no report
    python tools/conformance.py --wide docs/reports/opinfo.md       # every OpInfo entry

Parts: `ops`, every OpInfo entry of an ATen op that PyTorch tags as core (float32, forward and
gradient); `modules`, every entry of module_db (forward and gradients); `optimizers`, every entry of
optim_db in its plain, foreach and fused forms (three steps, parameters compared). `--wide` runs
every OpInfo entry and says which of PyTorch's CPU kernels the device has.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import pathlib
import sys
import warnings

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

Row = tuple[str, str, str]  # name, outcome, detail


def core_names() -> set[str]:
    """Base names of the ATen overloads that carry the core tag."""
    names = set()
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        base, _, overload = full[6:].partition(".")
        packet = getattr(torch.ops.aten, base, None)
        op = getattr(packet, overload or "default", None)
        if op is not None and torch.Tag.core in op.tags:
            names.add(base)
    return names


# What the public function of an OpInfo entry calls, where the names differ.
ALIASES = {
    "_native_batch_norm_legit": "nn.functional.batch_norm",
    "native_batch_norm": "nn.functional.batch_norm",
    "native_layer_norm": "nn.functional.layer_norm",
    "native_group_norm": "nn.functional.group_norm",
    "native_dropout": "nn.functional.dropout",
    "convolution": "nn.functional.conv2d",
    "convolution_backward": "nn.functional.conv2d",
    "embedding_dense_backward": "nn.functional.embedding",
    "avg_pool2d_backward": "nn.functional.avg_pool2d",
    "max_pool2d_with_indices": "nn.functional.max_pool2d",
    "max_pool2d_with_indices_backward": "nn.functional.max_pool2d",
    "max_pool3d_with_indices": "nn.functional.max_pool3d",
    "_adaptive_avg_pool2d": "nn.functional.adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward": "nn.functional.adaptive_avg_pool2d",
    "_adaptive_avg_pool3d": "nn.functional.adaptive_avg_pool3d",
    "adaptive_avg_pool1d": "nn.functional.adaptive_avg_pool1d",
    "native_layer_norm_backward": "nn.functional.layer_norm",
    "native_group_norm_backward": "nn.functional.group_norm",
    "upsample_bilinear2d": "nn.functional.upsample_bilinear",
    "upsample_nearest2d": "nn.functional.upsample_nearest",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_cdist_forward": "cdist",
    "_pdist_forward": "nn.functional.pdist",
    "_to_copy": "to",
    "_fft_r2c": "fft.rfft",
    "_embedding_bag": "nn.functional.embedding_bag",
    "reflection_pad1d": "nn.functional.pad",
    "grid_sampler_2d": "nn.functional.grid_sample",
    "scaled_dot_product_attention": "nn.functional.scaled_dot_product_attention",
}


def core_entries() -> list:
    from torch.testing._internal.common_methods_invocations import op_db

    core = core_names()
    wanted = core | {ALIASES[name] for name in core if name in ALIASES}
    wanted |= {f"nn.functional.{name}" for name in core}
    return [op for op in op_db if {op.name, op.aten_name, op.name.split(".")[-1]} & wanted]


def run_ops(samples: int) -> list[Row]:
    import opinfo_sweep

    options = argparse.Namespace(
        device="tpu", samples=samples, no_grad=False, inplace=False, quiet=True, timeout=240
    )
    rows = []
    for op in core_entries():
        if torch.float32 not in op.dtypes:
            continue
        for result in opinfo_sweep.fork_op(op, [torch.float32], options):
            rows.append((result["op"], result["outcome"], result["detail"]))
            show(rows[-1])
    return rows


WIDE_TYPES = "float32 float64 bfloat16 float16 complex64 int64 uint8 bool".split()


def run_wide(samples: int) -> dict[str, list[dict]]:
    """Every entry: `samples` samples in float32, in-place forms too, and one in each other type."""
    import opinfo_sweep
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[dict]] = {name: [] for name in WIDE_TYPES}
    for op in op_db:
        for names, count in ((WIDE_TYPES[:1], samples), (WIDE_TYPES[1:], 1)):
            dtypes = [getattr(torch, n) for n in names if getattr(torch, n) in op.dtypes]
            options = argparse.Namespace(
                device="tpu", samples=count, no_grad=False, inplace=count > 1, quiet=True,
                timeout=240,
            )  # fmt: skip
            if not dtypes:
                continue
            for result in opinfo_sweep.fork_op(op, dtypes, options):
                found[result["dtype"]].append(result)
                show((f"{result['op']} {result['dtype']}", result["outcome"], result["detail"]))
    return found


def kernel_coverage() -> tuple[collections.Counter, list[str]]:
    """How the device answers each ATen overload that has a CPU kernel; those left to the CPU."""
    from torchtpu import decompositions

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    composites = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
    counts: collections.Counter = collections.Counter()
    left = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if not name.startswith("aten::") or not has(name, "CPU"):
            continue
        if has(name, "PrivateUse1"):
            counts["its own kernel"] += 1
        elif any(has(name, key) for key in composites) or decompositions.find(name):
            counts["a decomposition into device ops"] += 1
        elif has(name, "CompositeExplicitAutogradNonFunctional"):
            counts["the out= form of its own"] += 1
        else:
            counts["the CPU, counted and warned"] += 1
            left.append(name.removeprefix("aten::"))
    return counts, left


def write_wide(path: pathlib.Path, samples: int) -> None:
    found = run_wide(samples)
    counts, left = kernel_coverage()
    outcomes = ["pass", "fallback", "mismatch", "error", "timeout", "crash", "skip"]
    lines = [
        "# Every OpInfo entry",
        "",
        f"Generated by `tools/conformance.py --wide` on {datetime.date.today()} with torch "
        f"{torch.__version__}: PyTorch's own samples, results compared with the CPU's ({samples} "
        "samples with gradients and in-place forms in float32, one elsewhere). `fallback` means "
        "right, but computed on the CPU (counted and warned); `skip` that the CPU itself raises.",
        "",
        "| type | entries | " + " | ".join(outcomes) + " |",
        "|---|" + "---|" * (len(outcomes) + 1),
    ]
    for name, results in found.items():
        seen = collections.Counter(r["outcome"] for r in results)
        cells = [str(len(results)), *(str(seen[o]) for o in outcomes)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "## What does not pass", "", "| entry | type | outcome | detail |"]
    lines.append("|---|---|---|---|")
    for name, results in found.items():
        for r in results:
            if r["outcome"] not in ("pass", "skip"):
                detail = r["detail"].replace("|", chr(92) + "|")[:160]
                lines.append(f"| `{r['op']}` | {name} | {r['outcome']} | {detail} |")
    lines += ["", f"## PyTorch's {counts.total()} CPU kernels", ""]
    lines += [f"- {count} have {how}" for how, count in counts.most_common()]
    lines += ["", "Left to the CPU: " + ", ".join(f"`{n}`" for n in left) + ".", ""]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


def show(row: Row) -> None:
    if row[1] != "pass":
        print(f"{row[0]:48} {row[1]:9} {row[2][:160]}", flush=True)


def attempt(name: str, body) -> Row:
    before = dict(torch.tpu.fallback_stats())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body()
    except AssertionError as e:
        return name, "mismatch", " ".join(str(e).split())[:220]
    except Exception as e:
        return name, "error", f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"
    used = {k for k, v in torch.tpu.fallback_stats().items() if v > before.get(k, 0)}
    return (name, "fallback", ", ".join(sorted(used))) if used else (name, "pass", "")


def close(actual, expected) -> None:
    if isinstance(expected, torch.Tensor):
        if expected.is_sparse or actual is None:
            return
        # Float32 sums in another order: the error is relative to the tensor's largest element.
        finite = expected.detach()[expected.detach().isfinite()]
        scale = max(1.0, finite.abs().max().item()) if finite.numel() else 1.0
        torch.testing.assert_close(
            actual.detach().cpu(), expected.detach(), rtol=2e-4, atol=2e-5 * scale, equal_nan=True
        )
    elif isinstance(expected, (list, tuple)):
        for a, e in zip(actual, expected, strict=True):
            close(a, e)


def to_device(value):
    """Moves tensors, keeping requires_grad and leaving everything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("tpu").requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(v) for v in value)
    if isinstance(value, dict):
        return {k: to_device(v) for k, v in value.items()}
    return value


def leaves(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in leaves(v)] if isinstance(value, (list, tuple)) else []


def check_module(info, sample) -> None:
    torch.manual_seed(0)
    args, kwargs = sample.constructor_input.args, sample.constructor_input.kwargs
    module = info.module_cls(*args, **kwargs).float()
    module.eval() if any(isinstance(m, torch.nn.Dropout) for m in module.modules()) else None
    twin = info.module_cls(*to_device(args), **to_device(kwargs)).float()
    twin.load_state_dict(module.state_dict())
    twin.to("tpu").train(module.training)
    inputs = sample.forward_input
    other = to_device(inputs.args), to_device(inputs.kwargs)
    expected = module(*inputs.args, **inputs.kwargs)
    actual = twin(*other[0], **other[1])
    close(actual, expected)
    outs = [t for t in leaves(expected) if t.requires_grad]
    if not outs:
        return
    sum(t.square().sum() for t in outs).backward()
    sum(t.square().sum() for t in leaves(actual) if t.requires_grad).backward()
    for (name, p), q in zip(module.named_parameters(), twin.parameters(), strict=True):
        if p.grad is not None:
            if q.grad is None:
                raise AssertionError(f"{name} has no gradient")
            close(q.grad, p.grad)
    for p, q in zip(leaves(inputs.args), leaves(other[0]), strict=True):
        if p.grad is not None:
            close(q.grad, p.grad)


def run_modules() -> list[Row]:
    from torch.testing._internal.common_modules import module_db

    rows = []
    for info in module_db:
        if "Lazy" in info.name or torch.float32 not in info.dtypes:
            continue
        for training in (True, False):
            samples = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
            )
            outcome = "pass"
            for i, sample in enumerate(samples):
                if sample.forward_input is None:
                    continue
                row = attempt(info.name, lambda s=sample: check_module(info, s))
                if row[1] not in ("pass",) and outcome == "pass":
                    outcome = row[1]
                    rows.append((info.name, row[1], f"sample {i}: {row[2]}"))
                    show(rows[-1])
            if outcome != "pass":
                break
        else:
            rows.append((info.name, "pass", ""))
    return rows


def check_optimizer(info, arguments: dict) -> None:
    torch.manual_seed(0)
    shapes = [(4, 5), (5,), (2, 3)]
    cpu = [torch.nn.Parameter(torch.randn(s)) for s in shapes]
    tpu = [torch.nn.Parameter(p.detach().to("tpu")) for p in cpu]
    if info.optim_cls.__name__ == "Muon":
        cpu, tpu = cpu[::2], tpu[::2]
    reference = {k: v for k, v in arguments.items() if k not in ("fused", "foreach")}
    sparse = info.optim_cls.__name__ == "SparseAdam"
    first, second = info.optim_cls(cpu, **reference), info.optim_cls(tpu, **to_device(arguments))
    for step in range(3):
        grads = [torch.randn(p.shape, generator=torch.Generator().manual_seed(step)) for p in cpu]
        for params, optimizer, device in ((cpu, first, "cpu"), (tpu, second, "tpu")):
            for p, g in zip(params, grads, strict=True):
                p.grad = g.to_sparse(1).to(device) if sparse else g.to(device)
            optimizer.step(lambda params=params: sum(p.square().sum() for p in params))
    for p, q in zip(cpu, tpu, strict=True):
        close(q, p)


def run_optimizers() -> list[Row]:
    from torch.testing._internal.common_optimizers import optim_db

    rows = []
    for info in optim_db:
        for form in ["plain", *(f for f in ("foreach", "fused") if f in info.supported_impls)]:
            name, worst = f"{info.optim_cls.__name__} ({form})", None
            for i, sample in enumerate(info.optim_inputs_func(device="cpu")):
                arguments = dict(sample.kwargs)
                if form != "plain":
                    arguments[form] = True
                if arguments.get("capturable"):
                    continue
                row = attempt(name, lambda a=arguments, o=info: check_optimizer(o, a))
                if row[1] != "pass" and worst is None:
                    worst = (name, row[1], f"input {i}: {row[2]}")
            rows.append(worst or (name, "pass", ""))
            show(rows[-1])
    return rows


def write_report(path: pathlib.Path, parts: dict[str, list[Row]]) -> None:
    lines = [
        "# Operator conformance",
        "",
        f"Generated by `tools/conformance.py` on {datetime.date.today()} with torch "
        f"{torch.__version__}: "
        "PyTorch's own samples in float32, results and gradients compared with the CPU's. "
        "`fallback` means right, but computed on the CPU (counted and warned).",
        "",
    ]
    for part, rows in parts.items():
        counts = collections.Counter(outcome for _, outcome, _ in rows)
        summary = ", ".join(
            f"{counts[k]} {k}" for k in sorted(counts, key=counts.get, reverse=True)
        )
        lines += [f"## {part.capitalize()}: {len(rows)} entries, {summary}", ""]
        failing = [r for r in rows if r[1] != "pass"]
        if failing:
            lines += ["| entry | outcome | detail |", "|---|---|---|"]
            lines += [
                f"| `{n}` | {o} | {d.replace('|', chr(92) + '|')[:200]} |" for n, o, d in failing
            ]
            lines.append("")
        passing = ", ".join(f"`{n}`" for n, o, _ in rows if o == "pass")
        lines += ["Passing: " + passing + ".", ""]
    path.write_text("\n".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=["ops", "modules", "optimizers"])
    parser.add_argument("--samples", type=int, default=12, help="samples an op")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--wide", type=pathlib.Path, help="write the report on every entry there")
    args = parser.parse_args()
    if args.wide:
        write_wide(args.wide, args.samples)
        return 0
    runs = {
        "ops": lambda: run_ops(args.samples),
        "modules": run_modules,
        "optimizers": run_optimizers,
    }
    parts = {name: run() for name, run in runs.items() if args.only in (None, name)}
    for name, rows in parts.items():
        counts = collections.Counter(outcome for _, outcome, _ in rows)
        print(f"{name}: {len(rows)} entries, {dict(counts)}")
    if args.report:
        write_report(args.report, parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
