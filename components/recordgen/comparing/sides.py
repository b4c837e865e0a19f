"""One side of a comparison: the splits of a dataset, and their shards."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from recordgen import storage
from recordgen.dataset.manifest import (
    DATASET_FILE,
    SPLIT_PREFIX,
    Dataset,
    read_dataset,
    split_dir,
)
from recordgen.dataset.splits import split_order
from recordgen.errors import SourceError


@dataclass(frozen=True, slots=True)
class Side:
    """A dataset to compare.

    Attributes:
        root: its folder or URL.
        dataset: the content of its ``dataset.json``; None for other tools' files.
        files: the shards of each split, relative to ``root``.
    """

    root: str
    dataset: Dataset | None
    files: Mapping[str, tuple[str, ...]]

    def path(self, file: str) -> str:
        """Return the path or URL of a shard."""
        return storage.join(self.root, file)


def find_side(given: str) -> Side:
    """Return the splits and shards of a dataset.

    Args:
        given: an output folder, its ``dataset.json``, or a TFX Examples uri; a path or URL.

    Raises:
        SourceError: there is no dataset, or its ``dataset.json`` cannot be read.
        StorageError: storage failed.
    """
    root = storage.normal(given)
    is_file = posixpath.basename(root) == DATASET_FILE
    if is_file or storage.exists(storage.join(root, DATASET_FILE)):
        dataset = read_dataset(root)
        shards = {
            name: tuple(it.file for it in split.shards) for name, split in dataset.splits.items()
        }
        return Side((posixpath.dirname(root) or ".") if is_file else root, dataset, shards)
    folders = storage.list_folders(root, SPLIT_PREFIX)
    names = sorted((name.removeprefix(SPLIT_PREFIX) for name in folders), key=split_order)
    found = {
        name: tuple(
            storage.join(split_dir(name), file)
            for file, is_folder in storage.list_dir(storage.join(root, split_dir(name)))
            if not is_folder
        )
        for name in names
    }
    if not any(found.values()):
        raise SourceError(
            f"{given}: no {DATASET_FILE} and no {SPLIT_PREFIX}* folders with files here; give the "
            f"OUTPUT of convert, its {DATASET_FILE}, or the uri of a TFX Examples artifact"
        )
    return Side(root, None, found)
