"""How well a converted dataset feeds the training of a ResNet-50 on a GPU.

    python -m benchmarks.gpu --data DIR --records OUT

DIR holds JPEGs, OUT the same ones converted. Each contender trains one epoch to start its workers
and one that counts, with bfloat16 and batches of 256 images of 224×224:

    gpu      one batch that lies on the GPU, again and again: what the GPU alone does
    source   recordgen.source(OUT).images(224) in a DataLoader, a worker process per core
    memory   the same bytes from memory in a DataLoader
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torchvision

from benchmarks.others import Decoded, Photos

SIZE, BATCH_SIZE = 224, 256
WORKERS = len(os.sched_getaffinity(0))


class Training:
    """A ResNet-50 on the GPU that counts the images it has learned from."""

    def __init__(self) -> None:
        self._device = torch.device("cuda")
        model = torchvision.models.resnet50(num_classes=100).to(self._device)
        self._model = model.to(memory_format=torch.channels_last)
        self._optimizer = torch.optim.SGD(self._model.parameters(), 0.01)

    def learn(self, pixels: torch.Tensor, labels: torch.Tensor) -> int:
        """Take one step on uint8 [batch, height, width, 3] and return the number of images."""
        pixels = pixels.to(self._device, non_blocking=True).permute(0, 3, 1, 2)
        labels = labels.to(self._device, non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            scores = self._model(pixels.float() / 255)
            loss = torch.nn.functional.cross_entropy(scores, labels)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return len(labels)

    def images_per_second(self, batches: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float:
        started = time.perf_counter()
        count = sum(self.learn(*batch) for batch in batches)
        torch.cuda.synchronize()
        return count / (time.perf_counter() - started)


def _loaded(items: Any) -> Callable[[], Iterable[Any]]:
    """Return a function that starts an epoch."""
    loader = torch.utils.data.DataLoader(
        items,
        BATCH_SIZE,
        shuffle=True,
        num_workers=WORKERS,
        pin_memory=True,
        persistent_workers=True,
    )
    return lambda: loader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--records", required=True, metavar="OUT")
    args = parser.parse_args()
    photos = Photos(args.data, args.records, (SIZE, SIZE), BATCH_SIZE)
    training = Training()
    on_gpu = torch.zeros(BATCH_SIZE, SIZE, SIZE, 3, dtype=torch.uint8, device="cuda")
    batch = on_gpu, torch.zeros(BATCH_SIZE, dtype=torch.int64, device="cuda")
    contenders = {
        "gpu": lambda: itertools.repeat(batch, 40),
        "source": _loaded(photos.images),
        "memory": _loaded(Decoded(photos.stored, photos)),
    }
    print(f"{torch.cuda.get_device_name()}, {WORKERS} cores")
    for name, start in contenders.items():
        epochs = [training.images_per_second(start()) for _ in range(2)]
        print(f"{name:8} {epochs[-1]:8,.0f} images/s", flush=True)


if __name__ == "__main__":
    main()
