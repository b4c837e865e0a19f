"""Measures how time and memory of a comparison grow with the number of rows.

    python -m benchmarks.diff --rows 10000 100000 1000000

For each number, runs the work of ``recordgen diff OLD NEW`` in a new process, on two datasets with
this number of generated rows, each with a uri of about 60 characters and a label. Among a hundred
rows of NEW, one is added, one has another label, one other bytes, one another split, and one has
the bytes of a row of OLD's other splits; one row of OLD is removed. The time is the comparison's,
without imports; peak memory is the proportional set size of the process, including imports.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from benchmarks.growth import measure_growth
from recordgen.core.dataset.counts import RowCounts, Split
from recordgen.core.dataset.manifest import DATASET_FILE, EXAMPLES_FILE, Dataset
from recordgen.core.facts.columns import of_shard, to_parquet, whole
from recordgen.version import __version__

LABELS = 100
SPLITS = ("train", "eval")

# Places among a hundred rows.
REMOVED, RELABELLED, REPLACED, MOVED, LEAKED = 1, 2, 3, 4, 5


class Example(NamedTuple):
    """A row: its split, the uri, annotation and source of the bytes of its payload."""

    split: str
    uri: str
    annotation: str | None
    payload: str


def write_dataset(root: Path, rows: Iterator[Example], task: str = "image_classification") -> None:
    """Write ``dataset.json`` and ``examples.parquet`` of rows."""
    split, uri, annotation, payload = zip(*rows, strict=True)
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in payload)
    table = pa.table(
        {
            "split": split,
            "source": pa.array(["rows.csv"] * len(uri)).dictionary_encode(),
            "line": pa.array(range(1, len(uri) + 1), pa.int64()),
            "uri": uri,
            "annotation": pa.array(annotation, pa.string()),
            "content": pa.array([int.from_bytes(d, "big") for d in digests], pa.uint64()),
        }
    )
    examples = Counter(split)
    parts = [
        of_shard(name, f"Split-{name}/data_tfrecord-00000-of-00001", whole(mine.drop(["split"])))
        for name in examples
        for mine in [table.filter(pa.compute.equal(table["split"], name))]
    ]
    labels = tuple(sorted(filter(None, {*annotation})))
    dataset = Dataset(
        task=task,
        recordgen_version=__version__,
        source=("rows.csv",),
        seed=0,
        options={},
        compression="none",
        label_kind="text",
        labels=labels if task == "image_classification" else (),
        splits={name: Split(count, 0, {}, ()) for name, count in examples.items()},
        rows=RowCounts(),
        reencoded={},
        warnings=(),
        digest="",
    )
    root.mkdir(parents=True)
    (root / EXAMPLES_FILE).write_bytes(b"".join(to_parquet(parts)))
    (root / DATASET_FILE).write_text(json.dumps(dataset.to_json()))


def old_rows(count: int) -> Iterator[Example]:
    """Yield the rows of OLD."""
    for number in range(count):
        split = SPLITS[number % 10 == 0]
        uri = f"gs://a-bucket-of-photos/2026/collection/{number // 1000:05d}/{number:09d}.png"
        yield Example(split, uri, f"label {number % LABELS}", uri)


def new_rows(count: int) -> Iterator[Example]:
    """Yield the rows of NEW."""
    for number, row in enumerate(old_rows(count)):
        place = number % 100
        if place == REMOVED:
            yield row._replace(uri=f"{row.uri}.added", payload=f"{row.uri}.added")
        elif place == RELABELLED:
            yield row._replace(annotation=f"label {(number + 1) % LABELS}")
        elif place == REPLACED:
            yield row._replace(payload=f"{row.uri}.other")
        elif place == MOVED:
            yield row._replace(split=SPLITS[row.split == SPLITS[0]])
        elif place == LEAKED:
            yield row._replace(payload=next(old_rows(1)).payload)
        else:
            yield row


def make_datasets(root: Path, rows: int) -> dict[str, tuple[str, str, int]]:
    """Write OLD and NEW."""
    write_dataset(root / "old", old_rows(rows))
    write_dataset(root / "new", new_rows(rows))
    return {"each": (str(root / "old"), str(root / "new"), rows)}


def _diff(old: str, new: str, rows: int) -> float:
    from recordgen.conversion.texts.differences import difference_summary
    from recordgen.exports.diff.api import diff

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
