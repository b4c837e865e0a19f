"""Trains a PyTorch model on a converted folder, without TensorFlow.

    python examples/torch_source.py [FOLDER]

Worker processes read and decode; a source is handed to them as its path.
"""

import sys

import torch

import recordgen

IMAGE_SIZE, BATCH_SIZE, EPOCHS = 16, 32, 10


def to_input(pixels):
    """Return uint8 [batch, height, width, 3] as PyTorch's float32 [batch, 3, height, width]."""
    return pixels.permute(0, 3, 1, 2).float() / 255


def accuracy(model, loader):
    """Return the share of images whose best class is their label."""
    right = seen = 0
    with torch.no_grad():
        for pixels, labels in loader:
            right += (model(to_input(pixels)).argmax(1) == labels).sum().item()
            seen += len(labels)
    return right / seen


def main(folder):
    torch.manual_seed(0)
    train, evaluation = (
        recordgen.source(folder, name).images(IMAGE_SIZE) for name in ("train", "eval")
    )
    loader = torch.utils.data.DataLoader(
        train, BATCH_SIZE, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Flatten(), torch.nn.LazyLinear(len(train.class_names))),
    )
    model(torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE))  # the lazy layer takes its size from this
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(to_input(pixels)), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {total / len(loader):.4f}")
    print(f"accuracy {accuracy(model, torch.utils.data.DataLoader(evaluation, BATCH_SIZE)):.4f}")


if __name__ == "__main__":  # worker processes import this file
    main(sys.argv[1] if len(sys.argv) > 1 else "out")
