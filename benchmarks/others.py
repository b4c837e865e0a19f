"""One pass after another through a pipeline of PyTorch or Grain, for ``benchmarks.read --others``.

    PYTHON benchmarks/others.py torch|grain FOLDER HEIGHT WIDTH BATCH_SIZE

PYTHON has torch and torchvision, or grain and Pillow; FOLDER holds one folder of JPEGs per class.
For each line on standard input there is one shuffled pass and a line of JSON: images per second,
and CPU milliseconds and waits per image, with all worker processes.

    torch   DataLoader with one worker per core; torchvision decodes and resizes with antialiasing
    grain   MapDataset with one thread per core; Pillow decodes and resizes
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CORES = len(os.sched_getaffinity(0))

Pass = Callable[[], Iterable[Any]]


def torch(items: list[tuple[str, int]], size: tuple[int, int], batch_size: int) -> Pass:
    """Return a function that starts a pass over pairs of paths and labels."""
    import torch
    from torch.utils.data import DataLoader, Dataset
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms.v2.functional import resize

    class Images(Dataset[Any]):
        def __len__(self) -> int:
            return len(items)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            path, label = items[index]
            image = decode_jpeg(read_file(path), ImageReadMode.RGB)
            return resize(image, list(size), antialias=True).to(torch.float32) / 255, label

    return lambda: DataLoader(Images(), batch_size, shuffle=True, num_workers=CORES)


def grain(items: list[tuple[str, int]], size: tuple[int, int], batch_size: int) -> Pass:
    """Return a function that starts a pass over pairs of paths and labels."""
    import grain
    import numpy as np
    from PIL import Image

    def load(item: tuple[str, int]) -> tuple[Any, int]:
        path, label = item
        with Image.open(path) as file:
            image = file.convert("RGB").resize(size[::-1], Image.Resampling.BILINEAR)
        return np.asarray(image, np.float32) / 255, label

    data = grain.MapDataset.source(items).shuffle(seed=0).map(load).batch(batch_size)
    options = grain.ReadOptions(num_threads=CORES, prefetch_buffer_size=2 * CORES)
    return lambda: data.to_iter_dataset(options)


def measure(start: Pass, count: int) -> tuple[float, float, float]:
    """Return images per second of one pass, and CPU milliseconds and waits per image."""
    (cpu, waits), started = _used(), time.perf_counter()
    for _ in start():
        pass
    seconds = time.perf_counter() - started
    cpu_after, waits_after = _used()
    return count / seconds, (cpu_after - cpu) / count * 1000, (waits_after - waits) / count


def _used() -> tuple[float, int]:
    """Return the CPU seconds and the waits of this process and its ended children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both), sum(e.ru_nvcsw for e in both)


def main() -> None:
    name, folder, *numbers = sys.argv[1:]
    height, width, batch_size = map(int, numbers)
    paths = sorted(path for path in Path(folder).rglob("*") if not path.is_dir())
    labels = {label: number for number, label in enumerate(sorted({p.parent for p in paths}))}
    items = [(str(path), labels[path.parent]) for path in paths]
    start = {"torch": torch, "grain": grain}[name](items, (height, width), batch_size)
    for _ in sys.stdin:
        print(json.dumps(measure(start, len(items))), flush=True)


if __name__ == "__main__":
    main()
