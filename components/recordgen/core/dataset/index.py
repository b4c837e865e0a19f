"""``records.npy``: the length of each record, so that readers find any record at once.

uint32 [records] in NumPy's format: the shards in the order of ``dataset.json``, and their records
in the order of the file.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordgen.core.dataset.manifest import INDEX_FILE, Dataset

if TYPE_CHECKING:
    import numpy.typing as npt

#: uint32 [records]
Lengths: TypeAlias = "npt.NDArray[np.uint32]"

#: How lengths are stored, on every machine.
DTYPE = np.dtype("<u4")

# The beginning of a file in NumPy's format 1.0: magic, version, bytes of the head that follows.
_HEAD_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00" + (_HEAD_BYTES - 10).to_bytes(2, "little")


def indexed(dataset: Dataset, lengths: Mapping[str, bytes]) -> tuple[Dataset, bytes]:
    """Return a dataset that names its index, and the content of the index.

    Args:
        dataset: the whole dataset.
        lengths: by shard, the length of each record (uint32, little-endian).
    """
    content = encoded(np.frombuffer(b"".join(lengths[s.file] for s in dataset.shards), DTYPE))
    digest = hashlib.sha256(content).hexdigest()
    found = {"file": INDEX_FILE, "records": dataset.examples, "sha256": digest}
    return replace(dataset, index=found), content


def encoded(lengths: Lengths) -> bytes:
    """Return the content of a file with lengths: the same bytes with every version of NumPy."""
    head = f"{{'descr': '{DTYPE.str}', 'fortran_order': False, 'shape': ({len(lengths)},), }}"
    padded = head.encode().ljust(_HEAD_BYTES - len(_MAGIC) - 1) + b"\n"
    return _MAGIC + padded + lengths.astype(DTYPE, copy=False).tobytes()


def decoded(content: bytes) -> Lengths:
    """Return the lengths in a file. Raises: ValueError: it holds something else."""
    found: Any = np.load(io.BytesIO(content), allow_pickle=False)
    if found.dtype != DTYPE or found.ndim != 1:
        raise ValueError(f"lengths must be {DTYPE.str} [n] (got {found.dtype.str} {found.shape})")
    return found


def by_shard(dataset: Dataset, lengths: Lengths) -> Iterator[tuple[str, Lengths]]:
    """Yield each shard's file and the lengths of its records."""
    end = 0
    for shard in dataset.shards:
        start, end = end, end + shard.examples
        yield shard.file, lengths[start:end]
