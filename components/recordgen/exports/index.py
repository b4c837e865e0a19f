"""``recordgen export index OUT`` and ``recordgen export dali OUT``: where each record is.

index    records.npy, which every run writes: for older outputs, and for changed ones
dali     dali/Split-train/….idx: offset and size of each record as text, for NVIDIA DALI's
         ``readers.tfrecord`` and the package ``tfrecord``
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recordgen import storage
from recordgen.access.counting import read_lengths_in
from recordgen.core.dataset.index import Lengths, write_index
from recordgen.core.dataset.manifest import DATASET_FILE, INDEX_FILE, write_dataset
from recordgen.core.records import RECORDS
from recordgen.errors import RecordError, UsageError
from recordgen.exports.export import Export, Exported, ExportOptions
from recordgen.exports.output import Output


class Index(Export):
    """``records.npy``."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Read the lengths of all records, write them, and name them in ``dataset.json``.

        Raises:
            SourceError: there is no finished dataset.
            RecordError: a shard is damaged.
            StorageError: storage failed.
        """
        output = Output.open(place)
        counts = {shard.file: shard.examples for shard in output.dataset.shards}

        def lengths_of(file: str) -> bytes:
            return _lengths(output, file, counts[file]).tobytes()

        path = storage.inside(output.root, INDEX_FILE)
        write_dataset(output.root, write_index(path, output.dataset, lengths_of))
        return Exported(files=(path, output.path_of(DATASET_FILE)))


class Dali(Export):
    """A text file for each shard, outside of the folders of shards."""

    def export(self, place: str, options: ExportOptions) -> Exported:
        """Write the files. Raises: UsageError: the shards are packed; and as :class:`Index`."""
        output = Output.open(place)
        if output.dataset.compression != "none":
            raise UsageError(
                f"{place}: gzip shards have no offsets; convert without --compression gzip"
            )
        files = []
        for shard in output.dataset.shards:
            path = storage.inside(output.root, f"dali/{shard.file}.idx")
            lengths = _lengths(output, shard.file, shard.examples)
            storage.write_text(path, "".join(_lines(lengths)))
            files.append(path)
        return Exported(files=files)


def _lines(lengths: Lengths) -> Iterator[str]:
    """Yield ``offset size`` of each record with its frame."""
    sizes = RECORDS.frame_bytes(lengths.astype(np.int64))
    for end, size in zip(sizes.cumsum(), sizes, strict=True):
        yield f"{end - size} {size}\n"


def _lengths(output: Output, file: str, count: int) -> Lengths:
    """Return the lengths of the records of a shard, as they are in the file."""
    path = output.path_of(file)
    try:
        found = read_lengths_in(path)
    except FileNotFoundError as exc:
        raise RecordError(f"{path}: is missing, but {DATASET_FILE} names it") from exc
    if len(found) != count:
        raise RecordError(
            f"{path}: {len(found)} records, but {DATASET_FILE} says {count}; convert again"
        )
    return found
