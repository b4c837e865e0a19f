"""``recordgen.source``: naming it loads neither NumPy nor a storage; opening a dataset does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recordgen.access.shards import Place
    from recordgen.access.source import Source


def source(place: Place, split: str = "train", *, cache_bytes: int | None = None) -> Source:
    """Return the records of a split as a sequence of dicts, for PyTorch, JAX and Grain.

    ``source("out", "train")[7]`` → ``{"image/encoded": uint8 [n], "image/class/label": 3, …}``

    Args:
        place: an output folder, an Examples uri or a ``dataset.json``, or several; or patterns of
            TFRecord files, whose lengths are read once and remembered in the user's cache folder.
        split: the split's name; patterns name it themselves.
        cache_bytes: limit for the copies of gzip shards, and of files on web servers, in the user's
            cache folder; None: 20 GB.

    Raises:
        SourceError: there is no dataset, or no file matches, or ``records.npy`` is stale.
        DataError: several datasets number their labels differently.
        RecordError: a file is truncated or damaged.
        StorageError: storage failed.
    """
    from recordgen.access.source import Source

    return Source(place, split, cache_bytes=cache_bytes)
