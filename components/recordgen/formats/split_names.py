"""What the names of import files and of their folders say: splits, and samples of predictions.

    train_labels.csv, labels-test.csv, val2017.jsonl   the split in the name
    test/metadata.jsonl, Split-test/labels.csv         the name of the folder, if the file has none
    train_test.csv                                     no split: there are two

Such a split holds for the rows of the file that name none. Words of ML_USE also occur by chance, so
by default they count only beside each other, or if the name says little else::

    birds_train.csv, birds_test.csv   train, test
    train_labels.csv                  train
    taste_test.csv                    no split
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recordgen import storage
from recordgen.core.dataset.manifest import SPLIT_PREFIX
from recordgen.core.dataset.splits import TRAIN, is_ml_use, parse_ml_use
from recordgen.errors import NotUnderstoodError
from recordgen.formats.field_kinds import known_words, words_of
from recordgen.formats.header import NUMBERED_COLUMNS, column_name
from recordgen.formats.import_file import Files, ImportFile
from recordgen.options import AUTO, ConvertOptions

if TYPE_CHECKING:
    from recordgen.formats.header import Head

_NUMBER = re.compile(r"\d(\.0)?")


def splits_in_paths(paths: Sequence[str]) -> list[str | None]:
    """Return the splits that count in the names of import files that are read together."""
    found = [split_in_path(path) for path in paths]
    if len({*found} - {None}) > 1:
        return found
    pairs = zip(found, paths, strict=True)
    return [split if split and _says_little_else(path) else None for split, path in pairs]


@lru_cache
def split_in_path(path: str) -> str | None:
    """Return the split in the name of a file, or else of its folder; None if there is none.

    The path of a folder, which ends with ``/``, has only one name.
    """
    folder, name = _folder_and_name(path)
    if path.endswith("/"):
        return split_in_name(name)
    word = posixpath.basename(folder).removeprefix(SPLIT_PREFIX)  # longer names by chance
    return split_in_name(name) or (parse_ml_use(word) if is_ml_use(word) else None)


def split_in_name(name: str) -> str | None:
    """Return the split that words of a name say, or None if they say none or several."""
    splits = splits_in_name(name)
    return min(splits) if len(splits) == 1 else None


def splits_in_name(name: str) -> Set[str]:
    """Return each split that a word of a name says: ``train_dev`` → train, validation."""
    splits = (parse_ml_use(word) for word in words_of(name) if is_ml_use(word))
    return {*filter(None, splits)}


def names_several(name: str) -> bool:
    """Return whether several words of a name say splits: ``train_dev``, ``train_val2018``."""
    return sum(map(is_ml_use, words_of(name))) > 1


def _says_little_else(path: str) -> bool:
    """Return whether the name of a file or folder has a split and only plain words."""
    words = words_of(_folder_and_name(path)[1])
    others = (word for word in words if not is_ml_use(word) and not word.isdecimal())
    return any(map(is_ml_use, words)) and known_words("beside_a_split_in_names").issuperset(others)


def _folder_and_name(path: str) -> tuple[str, str]:
    if storage.is_http(storage.normal(path)):
        path = urlsplit(path).path
    return posixpath.split(path.rstrip("/"))


def with_names(
    files: Files, heads: Sequence[Head], options: ConvertOptions, *, are_own: bool = False
) -> tuple[ImportFile, ...]:
    """Return import files with what was detected of each: its header, and the split in its name.

    In the names of outputs and copies of them, ``are_own``, no word occurs by chance.
    """
    head_of = {head.path: head for head in heads}
    paths = [file.path for file in files]
    named: Sequence[str | None] = [None] * len(files)
    if options.split.names != "no":
        is_auto = options.split.names == AUTO and not are_own
        named = splits_in_paths(paths) if is_auto else list(map(split_in_path, paths))
    found = []
    for file, split in zip(files, named, strict=True):
        head = head_of.get(file.path)
        if head is not None:
            file = file._replace(has_header=head.has_header)
        if file.split is None and not (head is not None and head.says_unassigned):
            file = file._replace(split=split)
        found.append(file)
    return tuple(found)


def check_train(
    named: Sequence[tuple[str, str]],
    heads: Sequence[Head],
    options: ConvertOptions,
    *,
    are_own: bool,
) -> None:
    """Check that names leave rows for ``train``, unless rows name splits.

    Raises: NotUnderstoodError; it proposes ``names=yes`` if names are Recordgen's, ``are_own``.
    """
    if TRAIN in {split for _, split in named} or any(head.names_splits for head in heads):
        return
    if options.inferred_table and options.inferred_table.split:
        return
    path, split = named[0]
    raise NotUnderstoodError(
        f"{path}: the name says split {split}, so no row would be in {TRAIN}; --split names=no "
        f"assigns splits, and names=yes says that all rows belong to {split}",
        options={"split": str(replace(options.split, names="yes" if are_own else "no"))},
    )


def check_submission(files: Files) -> None:
    """Check that no sample of predictions is among the files. Raises: NotUnderstoodError."""
    names = {file.path: words_of(posixpath.basename(file.path)) for file in files}
    found = [path for path, words in names.items() if "submission" in words]
    others = [path for path in names if path not in found]
    if found:
        train = next((path for path in others if split_in_path(path) == TRAIN), "".join(others[:1]))
        what = "by its name, this is a sample of predictions, whose labels are none"
        raise NotUnderstoodError(f"{found[0]}: {what}", source=train)


def names_split(name: str) -> bool:
    """Return whether a column has the name of a split, of folds, or of a flag: ``is_valid``."""
    known = column_name(name)
    word = known.removeprefix("is_")
    return known in NUMBERED_COLUMNS or (is_ml_use(word) and known != TRAIN)  # a class of vehicles


def numbered_split(name: str, values: Set[str]) -> str:
    """Return what is wrong with a column whose values number splits or folds, or are flags."""
    is_numbered = all(map(_NUMBER.fullmatch, values)) or values <= {"true", "false"}
    if not values or not is_numbered:
        return ""
    shown = ", ".join(sorted(values))
    return f"the column {name!r} says splits by {shown}; write TRAIN, VALIDATION or TEST"
