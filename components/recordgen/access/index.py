"""Find the lengths of records: from ``records.npy``, or by one pass over the files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from recordgen import storage
from recordgen.access.counting import lengths_in, read_lengths_in
from recordgen.core.dataset.manifest import (
    HEAD_BYTES,
    INDEX_FILE,
    ITEM_BYTES,
    Dataset,
    Lengths,
    LengthsOf,
    by_shard,
    decoded,
    head,
    index_bytes,
)
from recordgen.core.limits import MAX_INFLATION
from recordgen.core.records import RECORDS
from recordgen.errors import FileTooLargeError, SourceError

if TYPE_CHECKING:
    from recordgen.access.shards import ShardFile, ShardSet

# Bytes of an index that are read at once.
_PIECE_BYTES = 1 << 20

#: What to do about an index that does not fit its shards.
STALE_REMEDY = "restore records.npy from a copy of the dataset, or write it again"


def lengths_of(shards: ShardSet) -> list[Lengths]:
    """Return the lengths of the records of each file.

    Files without an index are read once; the user's cache folder keeps the result.

    Raises:
        SourceError: an index does not belong to its dataset.
        RecordError: a file is damaged.
        FileNotFoundError, StorageError: storage failed.
    """
    known: dict[str, Lengths] = {}
    for root, dataset in shards.parts:
        if dataset.index:
            known |= _stored(root, dataset)
    return [_fitting(file, known, shards) for file in shards.files]


def _fitting(file: ShardFile, known: Mapping[str, Lengths], shards: ShardSet) -> Lengths:
    """Return the lengths of the records of a file, which take as many bytes as it has.

    Raises: SourceError: they do not.
    """
    found = known[file.path] if file.path in known else lengths_in(file.path)
    size = int(RECORDS.frame_bytes(found.astype(np.int64)).sum())
    fits = file.bytes is None or (
        size <= MAX_INFLATION * file.bytes if file.is_packed else size == file.bytes
    )
    if not fits or file.examples not in (None, len(found)):
        what_to_do = STALE_REMEDY if file.path in known else "convert again"
        raise SourceError(
            f"{file.path}: {len(found):,} records of {size:,} bytes do not fit a file of "
            f"{file.bytes or 0:,} bytes with {file.examples} records; {what_to_do}"
        )
    return found


def lengths_there(root: str, dataset: Dataset) -> LengthsOf:
    """Return what reads the lengths of a shard of a finished dataset: from its index if it fits.

    Raises:
        StorageError: storage failed. The function raises it, too, and RecordError: a shard is
            damaged.
    """
    path = storage.join(root, INDEX_FILE)
    ranges = {file: (start, end - start) for file, start, end in by_shard(dataset)}

    def from_index(file: str) -> bytes:
        start, count = ranges[file]
        at = HEAD_BYTES + start * ITEM_BYTES
        return storage.read_range(path, at, count * ITEM_BYTES) if count else b""

    def from_shard(file: str) -> bytes:
        return read_lengths_in(storage.join(root, file)).tobytes()

    return from_index if _fits(path, dataset) else from_shard


def _fits(path: str, dataset: Dataset) -> bool:
    """Return whether a file is the index that a dataset names, without keeping it in memory."""
    digest, begins = hashlib.sha256(), b""
    with suppress(OSError), storage.open_read(path) as file:
        begins = file.read(HEAD_BYTES)
        digest.update(begins)
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    is_named = digest.hexdigest() == dataset.index.get("sha256")
    return is_named and begins == head(dataset.examples)


def _stored(root: str, dataset: Dataset) -> Mapping[str, Lengths]:
    """Return the lengths of each shard, by its path. Raises: SourceError: the index is stale."""
    path = storage.join(root, INDEX_FILE)
    try:
        [least] = RECORDS.frame_bytes(np.zeros(1, np.int64)).tolist()
        inflation = MAX_INFLATION if dataset.compression == "gzip" else 1
        for shard in dataset.shards:  # before an array is made
            if least * shard.examples > inflation * shard.bytes:
                raise ValueError(f"{shard.file} cannot hold {shard.examples:,} records")
        content = storage.read_bytes(path, index_bytes(dataset.examples))
        if hashlib.sha256(content).hexdigest() != dataset.index["sha256"]:
            raise ValueError("it is not the index that dataset.json names")
        found = decoded(content)
        if len(found) != dataset.examples:
            raise ValueError(f"it has {len(found)} lengths, for {dataset.examples} records")
    except (OSError, ValueError, KeyError, FileTooLargeError) as exc:
        reason = "no such file" if isinstance(exc, FileNotFoundError) else exc
        raise SourceError(f"{path}: {reason}; {STALE_REMEDY}") from exc
    return {storage.join(root, file): found[start:end] for file, start, end in by_shard(dataset)}
