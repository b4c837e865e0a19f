"""The examples of a training: TFX's file patterns → folders, split and ``dataset.json``."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from recordgen.core.dataset.joining import join_datasets
from recordgen.core.dataset.manifest import Dataset, read_dataset
from recordgen.errors import UsageError

#: Folder or URL of a dataset, or of several that are read as one.
Root = str | tuple[str, ...]


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
