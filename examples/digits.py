"""A small CNN on scikit-learn's handwritten digits; the same script on every device.

python examples/digits.py --device tpu
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    accelerator = torch.accelerator.current_accelerator()
    parser.add_argument("--device", default=str(accelerator) if accelerator else "cpu")
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()

    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    order = torch.randperm(len(x))
    train, test = order[:1400], order[1400:]
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 10),
    ).to(args.device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    data = torch.utils.data.TensorDataset(x[train], y[train])
    loader = torch.utils.data.DataLoader(
        data, batch_size=50, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for images_, labels_ in loader:
            images_, labels_ = images_.to(args.device), labels_.to(args.device)
            loss = nn.functional.cross_entropy(model(images_), labels_)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        predicted = model(x[test].to(args.device)).argmax(1).cpu()
    print(f"test accuracy {100 * (predicted == y[test]).float().mean():.2f} %")


if __name__ == "__main__":
    main()
