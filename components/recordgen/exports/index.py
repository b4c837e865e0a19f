"""``recordgen export index OUT``: ``records.npy`` of outputs without one, or changed ones."""

from __future__ import annotations

from recordgen import storage
from recordgen.access.counting import read_lengths_in
from recordgen.core.dataset.index import Lengths, write_index
from recordgen.core.dataset.manifest import DATASET_FILE, INDEX_FILE, write_dataset
from recordgen.errors import RecordError
from recordgen.exports.export import Export, Exported, ExportOptions, Output


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
