"""Which shard files to read, and what is known about them before they are opened."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from recordgen import storage
from recordgen.dataset import DATASET_FILE, read_dataset
from recordgen.errors import DataError, SourceError, UsageError


@dataclass(frozen=True, slots=True)
class ShardSet:
    """The shards of one split.

    Attributes:
        files: paths or URLs of the shard files, in their order.
        examples: the labelled examples in them; None when no ``dataset.json`` was asked.
        unlabelled: the examples without a label; None when no ``dataset.json`` was asked.
    """

    files: tuple[str, ...]
    examples: int | None = None
    unlabelled: int | None = None


def find_shards(source: str | Sequence[str], split: str) -> ShardSet:
    """Return the shards of ``split``.

    ``"out"`` → the files and counts of ``out/dataset.json``;
    ``["out/Split-train/*"]`` → the files that match, nothing is known about them.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``; or a list of file
            patterns (TFX's ``fn_args.train_files``), which need no ``split``.
        split: the split's name, such as ``train``.

    Raises:
        SourceError: there is no dataset, or no file matches.
        DataError: the split is not there, or has no labelled example.
    """
    if not isinstance(source, str):
        files = [file for pattern in source for file in storage.list_files(pattern)]
        if not files:
            raise SourceError(f"no shard matches {', '.join(source) or 'an empty list'}")
        return ShardSet(tuple(files))

    dataset = read_dataset(source)
    if split not in dataset.splits:
        raise DataError(
            f"{source}: no split {split!r} here, only {', '.join(dataset.splits) or 'none'}; a "
            f"split without examples is not written"
        )
    root = posixpath.dirname(source) if source.endswith(DATASET_FILE) else source
    found = dataset.splits[split]
    labelled = sum(found.labels.values())
    if not labelled:
        raise DataError(
            f"{source}: split {split!r} has no labelled example ({found.examples} unlabelled)"
        )
    return ShardSet(
        tuple(storage.join(root, shard.file) for shard in found.shards),
        labelled,
        found.examples - labelled,
    )


def steps_per_epoch(source: str, batch_size: int, *, split: str = "train") -> int:
    """Return how many whole batches one pass over the labelled examples gives.

    100 examples in batches of 32 → 3.

    Args:
        source: an output folder, an Examples uri or a ``dataset.json``.
        batch_size: examples per batch.
        split: the split's name.

    Raises:
        UsageError: not one whole batch can be filled.
        SourceError, DataError: as :func:`find_shards`.
    """
    shards = find_shards(source, split)
    check_batch_size(shards, batch_size)
    return (shards.examples or 0) // batch_size


def check_batch_size(shards: ShardSet, batch_size: int) -> None:
    """Check that a batch can be filled.

    Raises:
        UsageError: ``batch_size`` is below 1 or above the number of examples.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1 (got {batch_size})")
    if shards.examples is not None and batch_size > shards.examples:
        raise UsageError(
            f"batch_size must not be above the number of labelled examples, {shards.examples} "
            f"(got {batch_size})"
        )
