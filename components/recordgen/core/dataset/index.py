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
    """Return the content of a file with lengths."""
    file = io.BytesIO()
    np.save(file, lengths.astype(DTYPE, copy=False), allow_pickle=False)
    return file.getvalue()


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
