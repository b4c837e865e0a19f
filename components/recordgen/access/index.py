"""Find the lengths of records: from ``records.npy``, or by one pass over the files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from recordgen import storage
from recordgen.access.counting import lengths_in, read_lengths_in
from recordgen.core.dataset.index import Lengths, by_shard, decoded
from recordgen.core.dataset.manifest import INDEX_FILE, Dataset
from recordgen.errors import SourceError

if TYPE_CHECKING:
    from recordgen.access.shards import ShardSet


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
    paths = [file.path for file in shards.files]
    return [known[path] if path in known else lengths_in(path) for path in paths]


def lengths_there(root: str, dataset: Dataset) -> dict[str, bytes]:
    """Return by shard the lengths of the records of a finished dataset, from its index if it fits.

    Raises:
        RecordError: a shard is damaged.
        StorageError: storage failed.
    """
    if dataset.index:
        with suppress(SourceError):
            found = _stored(root, dataset)
            return {s.file: found[storage.join(root, s.file)].tobytes() for s in dataset.shards}
    return read_lengths(root, dataset)


def read_lengths(root: str, dataset: Dataset) -> dict[str, bytes]:
    """Return by shard the lengths of its records, by one pass over all shards.

    Raises: as :func:`lengths_there`.
    """
    return {s.file: read_lengths_in(storage.join(root, s.file)).tobytes() for s in dataset.shards}


def _stored(root: str, dataset: Dataset) -> Mapping[str, Lengths]:
    """Return the lengths of each shard, by its path. Raises: SourceError: the index is stale."""
    path = storage.join(root, INDEX_FILE)  # not a path that somebody has put into dataset.json
    try:
        content = storage.read_bytes(path)
        if hashlib.sha256(content).hexdigest() != dataset.index["sha256"]:
            raise ValueError("it is not the index that dataset.json names")
        found = decoded(content)
        if len(found) != dataset.examples:
            raise ValueError(f"it has {len(found)} lengths, for {dataset.examples} records")
    except (OSError, ValueError, KeyError) as exc:
        reason = "no such file" if isinstance(exc, FileNotFoundError) else exc
        raise SourceError(f"{path}: {reason}; {remedy(root)}") from exc
    return {storage.join(root, file): part for file, part in by_shard(dataset, found)}


def remedy(root: str) -> str:
    """Return what to do about an index that does not fit its shards, as text."""
    return f"write the index again: recordgen export index {root or '.'}"
