"""Feeds a PyTorch training loop from a converted folder; no pixel is copied on the way.

    python examples/torch_loop.py [FOLDER]

Decoding runs in tf.data's threads, so there are no worker processes and nothing is pickled.
"""

import sys

import numpy as np
import tensorflow as tf

import recordgen

try:
    import torch
except ImportError:
    sys.exit("this example needs PyTorch, which Recordgen does not bring along: pip install torch")

IMAGE_SIZE, BATCH_SIZE, EPOCHS = (16, 16), 32, 10


class TorchBatches:
    """The batches of a finite dataset as torch tensors: each ``for`` over it is an epoch."""

    def __init__(self, dataset):
        self._dataset = dataset

    def __len__(self):
        return int(self._dataset.cardinality())

    def __iter__(self):
        for images, labels in self._dataset:
            # A view: TensorFlow's [batch, height, width, 3] is PyTorch's channels_last.
            yield shared(images).permute(0, 3, 1, 2), shared(labels)


def shared(tensor):
    """Return a torch tensor in the memory of a TensorFlow tensor of numbers."""
    return torch.from_dlpack(tf.experimental.dlpack.to_dlpack(tensor))


def shares_memory(dataset):
    """Return whether a batch uses TensorFlow's memory."""
    images, _ = next(iter(dataset))
    address = np.asarray(memoryview(images)).ctypes.data
    return shared(images).permute(0, 3, 1, 2).data_ptr() == address


def accuracy(model, batches):
    """Return the share of images whose best class is their label."""
    right = seen = 0
    with torch.no_grad():
        for images, labels in batches:
            right += (model(images).argmax(1) == labels).sum().item()
            seen += len(labels)
    return right / seen


def main(source):
    tf.config.set_visible_devices([], "GPU")  # a GPU, if there is one, is PyTorch's
    torch.manual_seed(0)
    options = {"batch_size": BATCH_SIZE, "image_size": IMAGE_SIZE}
    train = recordgen.train_dataset(source, seed=0, **options)
    evaluation = TorchBatches(recordgen.eval_dataset(source, **options))
    print(f"zero-copy  {'yes' if shares_memory(train) else 'no'}")

    classes = len(recordgen.read_dataset(source).labels)
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
        *(torch.nn.Flatten(), torch.nn.LazyLinear(classes)),
    )
    model(torch.zeros(1, 3, *IMAGE_SIZE))  # the lazy layer takes its size from this
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    batches = TorchBatches(train)
    for epoch in range(EPOCHS):
        total = 0.0
        for images, labels in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {total / len(batches):.4f}")
    print(f"accuracy   {accuracy(model, evaluation):.4f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out")
