"""Find the lengths of records: from ``records.npy``, or by one pass over the shards."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from recordgen import storage
from recordgen.core.dataset.index import DTYPE, Lengths, by_shard, decoded
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.records import RECORDS
from recordgen.errors import StorageError


def lengths_there(root: str, dataset: Dataset) -> dict[str, bytes]:
    """Return by shard the lengths of the records of a finished dataset, from its index if it fits.

    Raises:
        RecordError: a shard is damaged.
        StorageError: storage failed.
    """
    if dataset.index:
        with suppress(OSError, StorageError, ValueError):
            found = decoded(storage.read_bytes(storage.join(root, dataset.index["file"])))
            if len(found) == dataset.examples:
                return {file: part.tobytes() for file, part in by_shard(dataset, found)}
    paths = {shard.file: storage.join(root, shard.file) for shard in dataset.shards}
    return {file: lengths_in(path).tobytes() for file, path in paths.items()}


def lengths_in(path: str) -> Lengths:
    """Return the length of each record of a file, by one pass over it.

    Raises:
        RecordError: the file is damaged.
        FileNotFoundError, StorageError: it cannot be read.
    """
    return np.fromiter(RECORDS.lengths(path), DTYPE)
