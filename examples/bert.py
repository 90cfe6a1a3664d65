"""BERT-Large, shaped as published (24 layers, width 1024, 16 heads), in plain PyTorch.

`make` gives the model, an example batch and its loss to `torchtpu aot`:

    torchtpu aot examples/bert.py:make --topology v5e:1x1

Run as a script it trains a small one for a few steps on the machine's accelerator.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    """Post-norm encoder layer: (batch, time, width) -> the same. `mask` holds True to attend."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def attend(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        q, k, v = (
            t.view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        drop = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=drop)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + F.dropout(self.attend(x, mask), self.dropout, self.training))
        y = self.down(F.gelu(self.up(x)))
        return self.norm2(x + F.dropout(y, self.dropout, self.training))


class Bert(nn.Module):
    """Masked-word logits: (batch, time) int64 twice -> (batch, time, vocabulary)."""

    def __init__(
        self,
        vocabulary: int = 30522,
        width: int = 1024,
        layers: int = 24,
        heads: int = 16,
        positions: int = 512,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.word, self.place = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.kind = nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), dropout
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.transform, self.head_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.head = nn.Linear(width, vocabulary)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        self.head.weight = self.word.weight

    def forward(self, words: torch.Tensor, kinds: torch.Tensor, mask: torch.Tensor):
        places = torch.arange(words.shape[1], device=words.device)
        x = self.norm(self.word(words) + self.place(places) + self.kind(kinds))
        x = F.dropout(x, self.dropout, self.training)
        keep = mask[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, keep)
        return self.head(self.head_norm(F.gelu(self.transform(x))))


class Pretraining(nn.Module):
    """The model's loss on masked words, in bfloat16 where that is safe."""

    def __init__(self, bert: Bert):
        super().__init__()
        self.bert = bert

    def forward(self, words, kinds, mask, labels) -> torch.Tensor:
        with torch.autocast(words.device.type, torch.bfloat16):
            logits = self.bert(words, kinds, mask)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100)


def batch(count: int, time: int, vocabulary: int) -> tuple[torch.Tensor, ...]:
    words = torch.randint(vocabulary, (count, time))
    masked = torch.rand(count, time) < 0.15
    labels = torch.where(masked, words, torch.full_like(words, -100))
    words = torch.where(masked, torch.full_like(words, 103), words)
    return words, torch.zeros_like(words), torch.ones_like(words), labels


def make(count: int = 8, time: int = 512) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A model whose output is its loss, and an example of its inputs."""
    return Pretraining(Bert()), batch(count, time, 30522)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    accelerator = torch.accelerator.current_accelerator()
    parser.add_argument("--device", default=str(accelerator) if accelerator else "cpu")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Pretraining(Bert(512, 64, 2, 4, 64)).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    inputs = [t.to(args.device) for t in batch(8, 64, 512)]
    for step in range(args.steps):
        loss = model(*inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0 or step + 1 == args.steps:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
