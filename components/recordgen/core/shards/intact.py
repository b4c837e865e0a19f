"""Compare the files of a dataset with its ``dataset.json``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from recordgen import storage
from recordgen.core.dataset.counts import Shard
from recordgen.core.dataset.manifest import SPLIT_PREFIX, Dataset
from recordgen.core.records import RECORDS
from recordgen.errors import RecordError

#: Returns the bytes that a serialised record adds to its shard's digest. Raises: ValueError.
Digested = Callable[[bytes], bytes]


class Difference(NamedTuple):
    """A file that is not as ``dataset.json`` says."""

    file: str
    message: str


def shard_difference(path: str, shard: Shard, digested: Digested) -> str:
    """Return how a file differs from a shard, by size, checksums and digest; "" if it does not."""
    digest, examples = hashlib.sha256(), 0
    try:
        if (size := storage.size(path)) != shard.bytes:
            return f"has {size:,} bytes instead of {shard.bytes:,}"
        for record in RECORDS.read(path):
            digest.update(digested(record))
            examples += 1
    except FileNotFoundError:
        return "is missing"
    except RecordError as exc:
        return str(exc).removeprefix(f"{path}: ")
    except (OSError, ValueError) as exc:
        return f"record {examples}: {exc}"
    if examples != shard.examples:
        return f"has {examples:,} records instead of {shard.examples:,}"
    return "" if digest.hexdigest() == shard.digest else "holds other records"


def find_differences(
    root: str, dataset: Dataset, digested: Digested, digests: Mapping[str, str]
) -> Iterator[Difference | None]:
    """Compare all files; yield a difference or None for each shard, then other differences.

    ``digests`` are the sha256 (hex) of other files, by their path inside the output.
    """
    for shard in dataset.shards:
        found = shard_difference(storage.join(root, shard.file), shard, digested)
        yield Difference(shard.file, found) if found else None
    known = {shard.file for shard in dataset.shards}
    for folder in storage.list_folders(root, SPLIT_PREFIX):
        for name, _ in storage.list_dir(storage.join(root, folder)):
            if (file := f"{folder}/{name}") not in known:
                yield Difference(file, "belongs to no split, but TFX reads all files of the folder")
    for file, digest in digests.items():
        try:
            content = storage.read_bytes(storage.join(root, file))
        except FileNotFoundError:
            yield Difference(file, "is missing")
        else:
            if hashlib.sha256(content).hexdigest() != digest:
                yield Difference(file, "was changed")
