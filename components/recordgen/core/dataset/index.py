"""``records.npy``: the length of each record, so that readers find any record at once.

uint32 [records] in NumPy's format: the shards in the order of ``dataset.json``, and their records
in the order of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from recordgen import storage
from recordgen.core.dataset.manifest import INDEX_FILE, Dataset
from recordgen.core.ordered import STORAGE_THREADS, map_in_order
from recordgen.errors import RecordError

if TYPE_CHECKING:
    import numpy.typing as npt

#: uint32 [records]
Lengths: TypeAlias = "npt.NDArray[np.uint32]"

#: Returns the lengths of the records of a shard, given its file: uint32, little-endian.
LengthsOf: TypeAlias = "Callable[[str], bytes]"

#: How lengths are stored, on every machine.
DTYPE = np.dtype("<u4")

# Lengths that are in memory together, in bytes.
_BYTES_AT_ONCE = 16 << 20

#: The beginning of a file in NumPy's format 1.0: magic, version, bytes of the head that follows.
HEAD_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00" + (HEAD_BYTES - 10).to_bytes(2, "little")


def write_index(path: str, dataset: Dataset, lengths_of: LengthsOf) -> Dataset:
    """Write the index of a dataset, and return the dataset with the name of its index.

    ``lengths_of`` is called for each shard, in threads; memory holds the lengths of some shards.
    """
    digest = hashlib.sha256()
    parts = map_in_order(
        lambda shard: lengths_of(shard.file),
        dataset.shards,
        threads=STORAGE_THREADS,
        bytes_of=lambda shard: DTYPE.itemsize * shard.examples,
        max_bytes=_BYTES_AT_ONCE,
    )
    with storage.replacing(path) as out:
        beginning = head(dataset.examples)
        digest.update(beginning)
        out.write(beginning)
        for shard, part in zip(dataset.shards, parts, strict=True):
            if len(part) != DTYPE.itemsize * shard.examples:
                raise RecordError(
                    f"{shard.file}: {len(part)} bytes of lengths, but {shard.examples} records; "
                    f"convert again"
                )
            digest.update(part)
            out.write(part)
    found = {"file": INDEX_FILE, "records": dataset.examples, "sha256": digest.hexdigest()}
    return replace(dataset, index=found)


def head(records: int) -> bytes:
    """Return what a file begins with: the same bytes with every version of NumPy."""
    text = f"{{'descr': '{DTYPE.str}', 'fortran_order': False, 'shape': ({records},), }}"
    return _MAGIC + text.encode().ljust(HEAD_BYTES - len(_MAGIC) - 1) + b"\n"


def decoded(content: bytes) -> Lengths:
    """Return the lengths in a file. Raises: ValueError: it holds something else."""
    count = max(0, len(content) - HEAD_BYTES) // DTYPE.itemsize
    if content[:HEAD_BYTES] != head(count) or len(content) != index_bytes(count):
        raise ValueError(f"it does not hold lengths of records ({DTYPE.str} [n])")
    return np.frombuffer(content, DTYPE, count, HEAD_BYTES)


def index_bytes(records: int) -> int:
    """Return the size of an index."""
    return HEAD_BYTES + DTYPE.itemsize * records


def by_shard(dataset: Dataset) -> Iterator[tuple[str, int, int]]:
    """Yield each shard's file, the number of its first record, and that after its last one."""
    end = 0
    for shard in dataset.shards:
        start, end = end, end + shard.examples
        yield shard.file, start, end
