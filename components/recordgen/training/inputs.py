"""The examples of a training: TFX's file patterns → folders, split and ``dataset.json``."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from recordgen import storage
from recordgen.core.dataset.description import DESCRIPTION_KEYS, Described, Description
from recordgen.core.dataset.joining import join_datasets
from recordgen.core.dataset.manifest import DATASET_FILE, Dataset, read_dataset
from recordgen.errors import UsageError
from recordgen.reading.describe import described

#: Folder or URL of a dataset, or of several that are read as one; or described examples.
Root = str | tuple[str, ...] | Described


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


def examples_of(fn_args: Any, patterns: Sequence[str]) -> tuple[Root, str]:
    """Return the examples that TFX's file patterns name, and their split.

    Examples without a ``dataset.json``, which TFX's ImportExampleGen and Transform write, are
    described as ``custom_config`` says.

    Raises: as ``run``.
    """
    root, split = examples_root(patterns)
    roots = roots_of(root)
    given = Description.of(fn_args.custom_config)
    if not any(storage.exists(storage.join(each, DATASET_FILE)) for each in roots):
        return described(roots, given), split
    if given != Description():
        raise UsageError(
            f"{', '.join(DESCRIPTION_KEYS)} describe examples without a {DATASET_FILE}, and "
            f"{roots[0]} has one; remove them from custom_config"
        )
    return root, split


def read_examples(root: Root) -> Dataset:
    """Read ``dataset.json`` of one dataset, or of several joined. Raises: as ``run``."""
    if isinstance(root, Described):
        return root.dataset
    return join_datasets([(each, read_dataset(each)) for each in roots_of(root)])


def roots_of(root: Root) -> tuple[str, ...]:
    """Return the folders or URLs of examples."""
    if isinstance(root, Described):
        return root.roots
    return (root,) if isinstance(root, str) else root
