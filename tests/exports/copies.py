"""Small datasets to copy, and runs of `recordgen export` that are killed in the middle."""

import os
import random

from recordgen.core import progress
from recordgen.exports import ExportOptions
from recordgen.registry import EXPORTS
from tests.conftest import convert_lines, encoded, noise
from tests.deaths import PROCESSES

LABELS = ("cat", "dog", "yes")  # YAML would read yes as a truth value
WORDS = {"train": "TRAIN", "val": "VALIDATION", "test": "TEST"}
SPLITS = ("train",) * 8 + ("val",) * 3 + ("test",) * 3

# The library of ArrayRecord is not in the lock; tests/trainers has its tests.
COPIES = [name for name in EXPORTS if "to" in EXPORTS[name].takes and name != "arrayrecord"]


def export(name, out, to=None, **options):
    """Run an export."""
    given = ExportOptions(to=None if to is None else str(to), **options)
    EXPORTS[name]().export(str(out), given)


def pictures(folder, place, labels_of):
    """Write pictures of different sizes and formats; return the lines of a CSV.

    Args:
        folder: where to write.
        place: the path of a picture: ``{split}/{name}``.
        labels_of: returns the fields behind the path of each line, given number and size.
    """
    lines = []
    for number, split in enumerate(SPLITS):
        width, height = 40 + 7 * number, 61 - 2 * number
        kind = ("PNG", "JPEG", "BMP")[number % 3]
        suffix = {"PNG": "png", "JPEG": "JPEG" if number % 2 else "jpg", "BMP": "bmp"}[kind]
        fields = labels_of(number, f"{width}×{height}")
        name = place.format(split=split, name=f"pic {number}.{suffix}", label=fields[0])
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(noise(width, height, seed=number), kind))
        lines.append([WORDS[split], name, *fields])
    return [",".join(map(str, line)) for line in lines]


def boxes(folder, place="{split}/{name}"):
    """Convert pictures with boxes in pixels, some of them halves; one picture has none."""
    chosen = random.Random(7)
    lines = []
    for line in pictures(folder, place, lambda number, size: (size,)):
        word, name, size = line.split(",")
        width, height = map(int, size.split("×"))
        for _ in range(chosen.choice((1, 1, 2, 3))):
            x, y = chosen.randrange(width // 2), chosen.randrange(height // 2)
            right, lower = x + chosen.randrange(2, width // 2) + 0.5, y + height // 2
            shares = x / width, y / height, "", "", right / width, lower / height, "", ""
            lines.append(",".join(map(str, (word, name, chosen.choice(LABELS), *shares))))
    lines.append(f"TRAIN,{place.format(split='train', name='empty.png')},,,,,,,,,")
    path = folder / place.format(split="train", name="empty.png")
    path.write_bytes(encoded(noise(33, 21, seed=99), "PNG"))
    return converted(folder, lines, task="object_detection")


def labelled(folder, place="{split}/{label}/{name}", **options):
    """Convert pictures with one label each."""
    lines = pictures(folder, place, lambda number, size: (LABELS[number % 3],))
    return converted(folder, lines, task="image_classification", **options)


def converted(folder, lines, **options):
    """Convert a CSV into three shards and more."""
    return convert_lines(folder, lines, shard_mb=0.005, lint="-ALL", **options)


def export_and_die(name, out, to, examples):
    """Run an export in a process that ends at once after some examples; return its exit code."""
    process = PROCESSES.Process(target=_dies, args=(name, out, to, examples))
    process.start()
    process.join()
    return process.exitcode


def _dies(name, out, to, examples):
    class Death:
        def show(self, snapshot):
            if snapshot.count(progress.EXAMPLES_WRITTEN) >= examples:
                os._exit(9)

    progress.FIRST_SECONDS = progress.SECONDS = 0.0
    export(name, out, to, progress=Death())
