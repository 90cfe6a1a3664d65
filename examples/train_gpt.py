"""Train a character GPT (about 1 M parameters) on the English text that ships with Python.

Ordinary PyTorch: nothing here names a TPU. The device is the machine's accelerator, or `--device`.

    python examples/train_gpt.py --steps 200 --sample 200
    python examples/train_gpt.py --compile
    torchrun --nproc-per-node 2 examples/train_gpt.py                    # DDP: the batch is shared
    torchrun --nproc-per-node 2 examples/train_gpt.py --parallel fsdp
    torchrun --nproc-per-node 4 examples/train_gpt.py --parallel fsdp_tp --tp 2
"""

import argparse
import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Pre-norm transformer block: (batch, time, width) -> the same."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.head_width = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # (batch, time, heads, q k v, head's width): a shard of the columns is some whole heads.
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (-1, 3, self.head_width))
        q, k, v = qkv.transpose(1, 2).unbind(3)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Next-character logits: (batch, time) int64 -> (batch, time, vocabulary)."""

    def __init__(self, vocabulary: int, context: int, width: int, layers: int, heads: int):
        super().__init__()
        self.context = context
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        x = self.token(index) + self.position(torch.arange(index.shape[1], device=index.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def sample(self, index: torch.Tensor, count: int) -> torch.Tensor:
        for _ in range(count):
            logits = self(index[:, -self.context :])[:, -1]
            index = torch.cat([index, torch.multinomial(F.softmax(logits, -1), 1)], 1)
        return index


def corpus() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[key] for key in sorted(topics))


def shard(model: GPT, device: str, tp: int) -> dist.ProcessGroup:
    """FSDP2 over groups of `tp` ranks that share each layer. The group that shares the batch."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor import parallel as tpl

    shape = (dist.get_world_size() // tp, tp)
    mesh = init_device_mesh(device, shape, mesh_dim_names=("data", "tensor"))
    if tp > 1:  # between the layers the time steps are sharded
        into = tpl.ColwiseParallel(input_layouts=Shard(1))
        out = tpl.RowwiseParallel(output_layouts=Shard(1))
        norm = tpl.SequenceParallel()
        tokens = tpl.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
        places = tpl.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0))
        head = tpl.ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
        block = {"norm1": norm, "qkv": into, "out": out, "norm2": norm, "mlp.0": into, "mlp.2": out}
        plan = {f"blocks.*.{name}": style for name, style in block.items()}
        plan |= {"token": tokens, "position": places, "norm": norm, "head": head}
        tpl.parallelize_module(model, mesh["tensor"], plan)
    for part in model.blocks:
        fully_shard(part, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    return mesh.get_group("data")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    accelerator = torch.accelerator.current_accelerator()
    parser.add_argument("--device", default=str(accelerator) if accelerator else "cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--sample", type=int, default=0, help="characters to sample at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write losses and timings to this file")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--parallel", choices=["ddp", "fsdp", "fsdp_tp"], default="ddp")
    parser.add_argument("--tp", type=int, default=2, help="ranks that share a layer (fsdp_tp)")
    args = parser.parse_args()
    args.many = "WORLD_SIZE" in os.environ  # started by torchrun
    if args.many and args.parallel == "fsdp_tp" and args.sample:
        parser.error("--sample needs lengths that fsdp_tp does not shard")
    return args


def join(model: GPT, args: argparse.Namespace) -> tuple[nn.Module, dist.ProcessGroup | None]:
    """The model among its peers, and the group that shares a batch; None: this process alone."""
    if not args.many:
        return model, None
    dist.init_process_group(dist.get_default_backend_for_device(args.device))
    if args.parallel == "ddp":
        return nn.parallel.DistributedDataParallel(model), dist.group.WORLD
    return model, shard(model, args.device, args.tp if args.parallel == "fsdp_tp" else 1)


def counted(steps: int, device: str, shown: bool):
    """The steps' numbers, with a progress bar where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return range(steps)
    return tqdm(range(steps), desc=device, file=sys.stderr, mininterval=0.5, disable=not shown)


def train(model: GPT, data: torch.Tensor, args: argparse.Namespace) -> tuple[list, list]:
    """The losses, and the seconds from the start to the end of each step."""
    net, group = join(model, args)
    shares = dist.get_world_size(group) if args.many else 1
    if args.batch % shares:
        raise SystemExit(f"--batch {args.batch} cannot be shared by {shares}")
    # Compiled code takes a schedule's numbers anew where they are in a tensor.
    rate = torch.tensor(args.lr) if args.compile else args.lr
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min(1, (s + 1) / 20) * 0.5 * (1 + math.cos(math.pi * s / max(args.steps, 1))),
    )
    draw = torch.Generator().manual_seed(args.seed)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        at = torch.randint(len(data) - args.context - 1, (args.batch,), generator=draw)
        if args.many:
            at = at.chunk(shares)[dist.get_rank(group)]
        rows = torch.stack([data[i : i + args.context + 1] for i in at]).to(args.device)
        return rows[:, :-1], rows[:, 1:]

    def update() -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    if args.compile:
        net, update = torch.compile(net), torch.compile(update)
    steps = counted(args.steps, args.device, reports(args))
    losses, times = [], []
    start = time.perf_counter()
    for _ in steps:
        inputs, targets = batch()
        loss = F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        update()
        schedule.step()
        loss = loss.detach()
        if args.many:
            dist.all_reduce(loss, group=group)
        losses.append(loss.item() / shares)
        times.append(time.perf_counter() - start)
        if hasattr(steps, "set_postfix"):
            steps.set_postfix(loss=f"{losses[-1]:.3f}")
    return losses, times


def reports(args: argparse.Namespace) -> bool:
    """Whether this is the process that prints and writes."""
    return not args.many or dist.get_rank() == 0


def summary(losses: list, times: list, args: argparse.Namespace) -> dict:
    """Losses, speed after five steps, and what the device tells of itself."""
    steady = sorted(b - a for a, b in zip(times[4:], times[5:]))
    result = {
        "device": args.device,
        "losses": losses,
        "first_step_s": times[0],
        "tokens_per_s": args.batch * args.context * (len(times) - 5) / (times[-1] - times[4])
        if len(times) > 5
        else None,
        "steady_step_s": steady[len(steady) // 2] if len(times) > 6 else None,
    }
    kind = torch.device(args.device).type
    if kind != "cpu":
        result["peak_bytes"] = torch.accelerator.max_memory_allocated()
        module = getattr(torch, kind)
        if hasattr(module, "cache_stats"):
            result["cache"] = dict(module.cache_stats())
        if hasattr(module, "fallback_stats"):
            result["fallbacks"] = dict(module.fallback_stats())
    return result


def main() -> None:
    args = arguments()
    text = corpus()
    alphabet = sorted(set(text))
    code = {c: i for i, c in enumerate(alphabet)}
    torch.manual_seed(args.seed)  # weights and batches are drawn on the CPU: the same everywhere
    model = GPT(len(alphabet), args.context, args.width, args.layers, args.heads).to(args.device)
    count = sum(p.numel() for p in model.parameters())
    losses, times = train(model, torch.tensor([code[c] for c in text]), args)
    result = summary(losses, times, args) | {"parameters": count}
    if args.sample:
        prompt = torch.tensor([[code[c] for c in "The "]], device=args.device)
        sampled = model.sample(prompt, args.sample)[0].tolist()
        result["sample"] = "".join(alphabet[i] for i in sampled)
    if reports(args):
        if args.sample:
            print(result["sample"])
        if args.json:
            with open(args.json, "w") as f:
                json.dump(result, f)
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    if args.many:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
