"""One pass after another through a pipeline without TensorFlow, for ``benchmarks.read --others``.

    PYTHON benchmarks/others.py NAME FOLDER RECORDS HEIGHT WIDTH BATCH_SIZE [train]

PYTHON has the packages of the pipeline (``.venv-trainers/bin/python``, which ``scripts/trainers``
makes, has most); FOLDER holds JPEGs, RECORDS the same ones converted. For each line on standard
input there is one shuffled pass over uint8 batches and a line of JSON: images per second, and CPU
milliseconds and waits per image, with all worker processes. ``--installed`` prints the pipelines
for which PYTHON has the packages. ``train`` also trains torchvision's ResNet-50 on each batch, on
the GPU in bfloat16; ``one_batch`` says then what the GPU can do.

All decode and resize with :class:`recordgen.access.decode.Decoder`, by PyTorch if PYTHON has it,
except ``image_folder``:

    bare               the same bytes from memory, one after the other, in one thread
    bare_torch         the same bytes from memory in a DataLoader: what PyTorch's queue costs
    bare_grain         the same bytes from memory in Grain: what its threads cost
    source_batches     recordgen.source(…).images(…).batches(…): a thread per core
    source_area        the same with method="area": the pixels of recordgen.load
    source_torch       the same images in a DataLoader, a worker process per core
    source_grain       the same images in Grain, a thread per core
    source_grain_batches  their numbers shuffled and batched in Grain, each read as a whole
    arrayrecord_grain  ArrayRecord files of the JPEGs and labels, in Grain
    webdataset         tar files, in a WebLoader: shuffled in a buffer only
    hf_arrow           a folder of Hugging Face's datasets, in a DataLoader
    image_folder       the files, decoded and resized by Pillow, in a DataLoader: what torchvision's
                       ImageFolder does
    one_batch          the first batch, as often as there are others
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any

CORES = len(os.sched_getaffinity(0))

Pass = Callable[[], Iterable[Any]]


@dataclass
class Photos:
    """The images of all pipelines."""

    folder: str
    records: str
    size: tuple[int, int]
    batch_size: int

    @cached_property
    def images(self) -> Any:
        import recordgen

        return recordgen.source(self.records).images(self.size)

    @cached_property
    def stored(self) -> list[tuple[bytes, int]]:
        """The bytes and the label of each image."""
        return [
            (each["image/encoded"].tobytes(), int(each["image/class/label"]))
            for each in self.images.source
        ]

    @cached_property
    def decode(self) -> Callable[[bytes], Any]:
        import numpy as np

        from recordgen.access.decode import Decoder

        decoder = Decoder(self.size)
        return lambda data: decoder.decode(np.frombuffer(data, np.uint8)).pixels


class Decoded:
    """A dataset of PyTorch: the images of a sequence of bytes and labels."""

    def __init__(self, items: Any, photos: Photos) -> None:
        self._items, self._photos = items, photos

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        data, label = self._items[index]
        return self._photos.decode(data), label


def bare(photos: Photos) -> Pass:
    """Return a function that starts a pass, as all pipelines do."""
    stored, decode = photos.stored, photos.decode
    return lambda: (decode(data) for data, _ in stored)


def bare_torch(photos: Photos) -> Pass:
    return _torch(Decoded(photos.stored, photos), photos)


def bare_grain(photos: Photos) -> Pass:
    return _grain(Decoded(photos.stored, photos), photos)


def source_batches(photos: Photos) -> Pass:
    return lambda: photos.images.batches(photos.batch_size, seed=0)


def source_area(photos: Photos) -> Pass:
    images = photos.images.source.images(photos.size, method="area")
    return lambda: images.batches(photos.batch_size, seed=0)


def source_torch(photos: Photos) -> Pass:
    return _torch(photos.images, photos)


def source_grain(photos: Photos) -> Pass:
    return _grain(photos.images, photos)


def source_grain_batches(photos: Photos) -> Pass:
    import grain

    images = photos.images
    numbers = grain.MapDataset.range(len(images)).seed(0).shuffle().batch(photos.batch_size)
    return lambda: numbers.map(images.batch).to_iter_dataset(_options())


def arrayrecord_grain(photos: Photos) -> Pass:
    import grain
    from array_record.python.array_record_module import ArrayRecordWriter

    path = os.path.join(tempfile.mkdtemp(), "photos.array_record")
    writer = ArrayRecordWriter(path, "group_size:1")
    for data, label in photos.stored:
        writer.write(label.to_bytes(8, "little") + data)
    writer.close()

    def decoded(record: bytes) -> tuple[Any, int]:
        return photos.decode(record[8:]), int.from_bytes(record[:8], "little")

    return _grain(grain.sources.ArrayRecordDataSource(path), photos, decoded)


def webdataset(photos: Photos) -> Pass:
    import webdataset as wds

    folder = tempfile.mkdtemp()
    with wds.ShardWriter(f"{folder}/%06d.tar", maxcount=-(-len(photos.stored) // 8)) as writer:
        for number, (data, label) in enumerate(photos.stored):
            writer.write({"__key__": f"{number:08}", "jpg": data, "cls": label})
    tars = sorted(map(str, Path(folder).glob("*.tar")))

    def decoded(item: tuple[bytes, bytes]) -> tuple[Any, int]:
        return photos.decode(item[0]), int(item[1])

    def start() -> Iterable[Any]:
        data = wds.WebDataset(tars, shardshuffle=len(tars)).shuffle(1000).to_tuple("jpg", "cls")
        batches = data.map(decoded).batched(photos.batch_size)
        return iter(wds.WebLoader(batches, batch_size=None, num_workers=CORES))

    return start


def hf_arrow(photos: Photos) -> Pass:
    import datasets

    folder = tempfile.mkdtemp()
    images, labels = zip(*photos.stored, strict=True)
    datasets.Dataset.from_dict({"image": images, "label": labels}).save_to_disk(folder)
    rows = datasets.load_from_disk(folder)

    class Rows:
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, index: int) -> tuple[bytes, int]:
            row = rows[index]
            return row["image"], row["label"]

    return _torch(Decoded(Rows(), photos), photos)


def image_folder(photos: Photos) -> Pass:
    import numpy as np
    from PIL import Image

    paths = sorted(path for path in Path(photos.folder).rglob("*") if not path.is_dir())
    labels = {label: number for number, label in enumerate(sorted({p.parent for p in paths}))}

    class Files:
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            with Image.open(paths[index]) as file:
                size = (photos.size[1], photos.size[0])
                image = file.convert("RGB").resize(size, Image.Resampling.BILINEAR)
            return np.asarray(image), labels[paths[index].parent]

    return _torch(Files(), photos)


def one_batch(photos: Photos) -> Pass:
    images = photos.images
    batch = next(iter(images.batches(photos.batch_size, seed=0)))
    return lambda: repeat(batch, len(images) // photos.batch_size)


def _torch(items: Any, photos: Photos) -> Pass:
    import torch
    from torch.utils.data import DataLoader

    pinned = torch.cuda.is_available()
    return lambda: DataLoader(
        items, photos.batch_size, shuffle=True, num_workers=CORES, pin_memory=pinned
    )


def _grain(items: Any, photos: Photos, decoded: Callable[[Any], Any] | None = None) -> Pass:
    import grain

    data = grain.MapDataset.source(items).seed(0).shuffle()
    data = (data if decoded is None else data.map(decoded)).batch(photos.batch_size)
    return lambda: data.to_iter_dataset(_options())


def _options() -> Any:
    import grain

    return grain.ReadOptions(num_threads=CORES, prefetch_buffer_size=2 * CORES)


#: The pipelines by name, each with the packages that it needs.
PIPELINES: Mapping[str, tuple[Callable[[Photos], Pass], tuple[str, ...]]] = {
    "bare": (bare, ()),
    "bare_torch": (bare_torch, ("torch",)),
    "bare_grain": (bare_grain, ("grain",)),
    "source_batches": (source_batches, ()),
    "source_area": (source_area, ()),
    "source_torch": (source_torch, ("torch",)),
    "source_grain": (source_grain, ("grain",)),
    "source_grain_batches": (source_grain_batches, ("grain",)),
    "arrayrecord_grain": (arrayrecord_grain, ("grain", "array_record")),
    "webdataset": (webdataset, ("torch", "webdataset")),
    "hf_arrow": (hf_arrow, ("torch", "datasets")),
    "image_folder": (image_folder, ("torch",)),
}


def trained(start: Pass) -> Pass:
    """Return the pass with a step of training behind each batch."""
    import torch
    import torchvision

    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def steps() -> Iterable[torch.Tensor]:
        for pixels, labels in start():
            images = torch.as_tensor(pixels).cuda(non_blocking=True).permute(0, 3, 1, 2) / 255
            wanted = torch.as_tensor(labels).cuda(non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(images), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss
        torch.cuda.synchronize()

    return steps


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
    if sys.argv[1:] == ["--installed"]:
        there = [name for name, (_, needs) in PIPELINES.items() if all(map(find_spec, needs))]
        print(json.dumps(there))
        return
    name, folder, records, height, width, batch_size, *train = sys.argv[1:]
    photos = Photos(folder, records, (int(height), int(width)), int(batch_size))
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print, too
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    start = one_batch(photos) if name == "one_batch" else PIPELINES[name][0](photos)
    if train:
        start = trained(start)
    for _ in sys.stdin:
        print(json.dumps(measure(start, len(photos.images))), file=results, flush=True)


if __name__ == "__main__":
    main()
