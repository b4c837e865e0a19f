"""``recordgen export index OUT`` and ``recordgen export dali OUT``: where each record is.

index    records.npy, which every run writes: for older outputs, and for changed ones
dali     dali/Split-train/….idx: offset and size of each record as text, for NVIDIA DALI's
         ``readers.tfrecord`` and the package ``tfrecord``
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recordgen import storage
from recordgen.access.index import read_lengths
from recordgen.core.dataset.index import DTYPE, indexed
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
        dataset, content = indexed(output.dataset, _lengths(output))
        path = output.path_of(INDEX_FILE)
        storage.write_bytes(path, content)
        write_dataset(output.root, dataset)
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
        for file, lengths in _lengths(output).items():
            files.append(output.path_of(f"dali/{file}.idx"))
            storage.write_text(files[-1], "".join(_lines(lengths)))
        return Exported(files=files)


def _lines(lengths: bytes) -> Iterator[str]:
    """Yield ``offset size`` of each record with its frame."""
    sizes = RECORDS.frame_bytes(np.frombuffer(lengths, DTYPE).astype(np.int64))
    for end, size in zip(sizes.cumsum(), sizes, strict=True):
        yield f"{end - size} {size}\n"


def _lengths(output: Output) -> dict[str, bytes]:
    """Return by shard the lengths of its records, as they are in the file."""
    found = read_lengths(output.root, output.dataset)
    for shard in output.dataset.shards:
        count = len(found[shard.file]) // DTYPE.itemsize
        if count != shard.examples:
            raise RecordError(
                f"{output.path_of(shard.file)}: {count} records, but {DATASET_FILE} says "
                f"{shard.examples}; convert again"
            )
    return found
