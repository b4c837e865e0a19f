"""Measures how time and memory of a comparison grow with the number of rows.

    python -m benchmarks.diff --rows 10000 100000 1000000

For each number, runs the work of ``recordgen diff OLD NEW`` in a new process, on two datasets with
this number of generated records, each with a tiny image, a uri of about 60 characters and a label.
Among a hundred rows of NEW, one is added, one has another label, one other bytes, one another
split, and one has the bytes of a row of OLD's other splits; one row of OLD is removed. The time is
the comparison's, without imports; peak memory is the proportional set size of the process,
including imports.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.growth import measure_growth
from recordgen import features
from recordgen.records.example import serialize_example
from recordgen.records.tfrecord import FrameWriter, frame

LABELS = 100
SPLITS = ("train", "eval")
IMAGE = bytes(100)

# Places among a hundred rows.
REMOVED, RELABELLED, REPLACED, MOVED, LEAKED = 1, 2, 3, 4, 5


def write_dataset(root: Path, rows: Iterator[tuple[str, str, str, int]]) -> None:
    """Write rows (split, uri, payload, label) as shards, a folder for each split."""
    with ExitStack() as stack:
        writers = {}
        for split in SPLITS:
            folder = root / f"Split-{split}"
            folder.mkdir(parents=True)
            file = stack.enter_context((folder / "data_tfrecord-00000-of-00001").open("wb"))
            writers[split] = stack.enter_context(FrameWriter(file, "none"))
        for split, uri, payload, label in rows:
            record = serialize_example(
                {
                    features.IMAGE_ENCODED: IMAGE,
                    features.IMAGE_FORMAT: b"png",
                    features.IMAGE_HEIGHT: 12,
                    features.IMAGE_WIDTH: 16,
                    features.IMAGE_SOURCE_ID: uri.encode(),
                    features.IMAGE_SHA256: hashlib.sha256(payload.encode()).hexdigest().encode(),
                    features.IMAGE_CLASS_TEXT: f"label {label}".encode(),
                    features.IMAGE_CLASS_LABEL: label,
                }
            )
            writers[split].write([frame(record)])


def old_rows(count: int) -> Iterator[tuple[str, str, str, int]]:
    """Yield the rows of OLD: split, uri, source of its bytes, label."""
    for number in range(count):
        split = SPLITS[number % 10 == 0]
        uri = f"gs://a-bucket-of-photos/2026/collection/{number // 1000:05d}/{number:09d}.png"
        yield split, uri, uri, number % LABELS


def new_rows(count: int) -> Iterator[tuple[str, str, str, int]]:
    """Yield the rows of NEW."""
    for number, (split, uri, payload, label) in enumerate(old_rows(count)):
        place = number % 100
        if place == REMOVED:
            yield split, f"{uri}.added", f"{uri}.added", label
        elif place == RELABELLED:
            yield split, uri, payload, (label + 1) % LABELS
        elif place == REPLACED:
            yield split, uri, f"{payload}.other", label
        elif place == MOVED:
            yield SPLITS[split == SPLITS[0]], uri, payload, label
        elif place == LEAKED:
            _, _, leaked, _ = next(old_rows(1))
            yield split, uri, leaked, label
        else:
            yield split, uri, payload, label


def make_datasets(root: Path, rows: int) -> dict[str, tuple[str, str, int]]:
    """Write OLD and NEW."""
    write_dataset(root / "old", old_rows(rows))
    write_dataset(root / "new", new_rows(rows))
    return {"each": (str(root / "old"), str(root / "new"), rows)}


def _diff(old: str, new: str, rows: int) -> float:
    from recordgen.comparing.api import diff
    from recordgen.console.differences import difference_summary

    started = time.perf_counter()
    found = diff(old, new)
    difference_summary(found)
    for _ in found.json_pieces():
        pass
    seconds = time.perf_counter() - started
    expected = rows // 100
    counts = (len(found.added), len(found.removed), *found.kinds.values())
    if counts != (expected, expected, expected, 0, 2 * expected, 0, expected):
        raise RuntimeError(f"{expected} of each were expected, {counts} were found")
    if found.leak_counts != {"train_to_evaluation": expected, "evaluation_to_train": expected}:
        raise RuntimeError(f"{expected} leaks of each were expected (got {found.leak_counts})")
    return seconds


if __name__ == "__main__":
    measure_growth(__doc__, make_datasets, _diff)
