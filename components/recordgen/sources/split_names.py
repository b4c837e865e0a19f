"""Splits in the names of import files and of their folders.

    train_labels.csv, labels-test.csv, val2017.jsonl   the split in the name
    test/metadata.jsonl, Split-test/labels.csv         the name of the folder, if the file has none
    train_test.csv                                     no split: there are two

Such a split holds for the rows of the file that name none.
"""

from __future__ import annotations

import posixpath
from urllib.parse import urlsplit

from recordgen import storage
from recordgen.dataset.manifest import SPLIT_PREFIX
from recordgen.dataset.splits import is_ml_use, parse_ml_use
from recordgen.sources.words import words_of


def split_in_path(path: str) -> str | None:
    """Return the split in the name of a file, or else of its folder; None if there is none.

    The path of a folder, which ends with ``/``, has only one name.
    """
    if storage.is_http(storage.normal(path)):
        path = urlsplit(path).path
    folder, name = posixpath.split(path.rstrip("/"))
    if path.endswith("/"):
        return split_in_name(name)
    return split_in_name(name) or _split_of_folder(posixpath.basename(folder))


def split_in_name(name: str) -> str | None:
    """Return the split that words of a name say, or None if they say none or several."""
    splits = {parse_ml_use(word) for word in words_of(name) if is_ml_use(word)} - {None}
    return splits.pop() if len(splits) == 1 else None


def _split_of_folder(name: str) -> str | None:
    """Return the split that a folder is named after: other names hold words by chance."""
    word = name.removeprefix(SPLIT_PREFIX)
    return parse_ml_use(word) if is_ml_use(word) else None
