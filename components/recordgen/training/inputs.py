"""The examples of a training: datasets → TFX's file patterns → folders, split, ``dataset.json``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any

from recordgen import storage
from recordgen.core.dataset.joining import join_datasets
from recordgen.core.dataset.manifest import Dataset, read_dataset, split_dir
from recordgen.core.dataset.splits import EVAL, TRAIN
from recordgen.core.records import RECORDS
from recordgen.errors import UsageError

_BATCH = 64  # records

#: Folder or URL of a dataset, or of several that are read as one.
Root = str | tuple[str, ...]


def training_arguments(
    roots: Sequence[str], settings: Mapping[str, Any], **folders: str | None
) -> SimpleNamespace:
    """Return the arguments for ``run_fn``.

    Args:
        roots: folders or URLs of the datasets, which are read as one.
        settings: the ``custom_config``.
        **folders: ``serving_model_dir``, ``model_run_dir`` and ``base_model``.

    Raises: SourceError: there is no dataset. UsageError: the model would be written into one.
    """
    for root in roots:
        if storage.is_inside(model := str(folders["serving_model_dir"]), root):
            raise UsageError(f"{model} is the folder of the dataset, or in it; choose another")
    evaluated = [root for root in roots if EVAL in read_dataset(root).splits]
    return SimpleNamespace(
        train_files=[_pattern(root, TRAIN) for root in roots],
        eval_files=[_pattern(root, EVAL) for root in evaluated],
        train_steps=None,
        eval_steps=None,
        custom_config=settings,
        **folders,
    )


def _pattern(root: str, split: str) -> str:
    return storage.join(root, split_dir(split), "*")


def examples_root(patterns: Sequence[str]) -> tuple[Root, str]:
    """Return the Examples uri, or several, and the split that TFX's file patterns name.

    ``["/p/examples/7/Split-train/*"]`` → ``("/p/examples/7", "train")``
    ``["/p/examples/7/Split-train/*", "/p/examples/8/Split-train/*"]`` →
    ``(("/p/examples/7", "/p/examples/8"), "train")``

    Raises: UsageError: they name no split, or several.
    """
    folders = [posixpath.dirname(pattern) for pattern in patterns]
    splits = {posixpath.basename(folder).removeprefix("Split-") for folder in folders}
    if len(splits) != 1:
        raise UsageError(f"training needs the examples of exactly one split (got {list(patterns)})")
    roots = tuple(dict.fromkeys(map(posixpath.dirname, folders)))
    return roots if len(roots) > 1 else roots[0], splits.pop()


def read_examples(root: Root) -> Dataset:
    """Read ``dataset.json`` of one dataset, or of several joined. Raises: as ``run``."""
    return join_datasets([(each, read_dataset(each)) for each in roots_of(root)])


def roots_of(root: Root) -> tuple[str, ...]:
    """Return the folders or URLs of examples."""
    return (root,) if isinstance(root, str) else root


def record_batches(paths: Iterable[str]) -> Iterator[list[bytes]]:
    """Yield the records of TFRecord files in batches.

    Raises: RecordError: a record is damaged.
    """
    records = chain.from_iterable(map(RECORDS.read, paths))
    while batch := list(islice(records, _BATCH)):
        yield batch
