"""What the names of import files say: splits, and samples of predictions."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from recordgen.core.dataset.splits import TRAIN
from recordgen.errors import UsageError
from recordgen.formats.heads import Head
from recordgen.formats.import_file import ImportFile
from recordgen.formats.split_names import split_in_path, splits_in_paths
from recordgen.formats.words import words_of
from recordgen.options import AUTO, ConvertOptions


def with_names(
    files: Sequence[ImportFile], heads: Sequence[Head], options: ConvertOptions
) -> tuple[ImportFile, ...]:
    """Return import files with what was detected of each: its header, and the split in its name."""
    head_of = {head.path: head for head in heads}
    paths = [file.path for file in files]
    named: Sequence[str | None] = [None] * len(files)
    if options.split.names != "no":
        is_auto = options.split.names == AUTO
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
    named: Sequence[tuple[str, str]], heads: Sequence[Head], options: ConvertOptions
) -> None:
    """Check that names leave rows for ``train``, unless rows name splits. Raises: UsageError."""
    if TRAIN in {split for _, split in named} or any(head.names_splits for head in heads):
        return
    if options.inferred_table and options.inferred_table.split:
        return
    path, split = named[0]
    raise UsageError(
        f"{path}: the name says split {split}, so no row would be in {TRAIN}; use "
        f"--split names=no to assign splits, or yes if all rows belong to {split}"
    )


def check_submission(files: Sequence[ImportFile]) -> None:
    """Check that no sample of predictions is among the files. Raises: UsageError."""
    names = {file.path: words_of(posixpath.basename(file.path)) for file in files}
    found = [path for path, words in names.items() if "submission" in words]
    others = [path for path in names if path not in found]
    if found and others:
        train = next((path for path in others if split_in_path(path) == TRAIN), others[0])
        raise UsageError(
            f"{found[0]}: its name says that this is a sample of predictions, as Kaggle calls it, "
            f"so its labels are none; convert {train} alone"
        )
