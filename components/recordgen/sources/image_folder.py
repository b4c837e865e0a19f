"""A folder of images as rows: ``<split>/<label>/<file>``, or ``<label>/<file>`` without splits.

    photos/train/cat/1.jpg   →  Row("photos/", 1, "train", "train/cat/1.jpg", "cat")
    photos/cat/1.jpg         →  Row("photos/", 1, None, "cat/1.jpg", "cat")

TFRecorder and ``keras.utils.image_dataset_from_directory`` read such folders. A file directly in
the folder of a split has no label. The line of a row is the file's position in sorted order.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence

from recordgen import storage
from recordgen.dataset.splits import is_ml_use, near_ml_use, parse_ml_use
from recordgen.errors import SourceError
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments, Row
from recordgen.sources import foreign_formats
from recordgen.sources.header import Given
from recordgen.tasks.task import AnnotationError, Task, check_label, check_text

_IMPORT_SUFFIXES = (".csv", ".jsonl", ".ndjson")


def list_images(folder: str) -> list[str]:
    """Return all files below a folder except hidden ones, relative to it, sorted.

    Raises:
        SourceError: the folder is empty, contains a dataset or an import file, or has a known
            format of another tool.
        StorageError: storage failed.
    """
    if storage.exists(storage.join(folder, "dataset.json")):
        raise SourceError(
            f"{folder}: this folder contains a converted dataset; pass import files, or a folder "
            f"of images by label"
        )
    found = sorted(files_below(folder))
    if not found:
        raise SourceError(f"{folder}: there is no file in this folder")
    for name in found:
        is_import_file = name.lower().endswith(_IMPORT_SUFFIXES)
        if "/" not in name and is_import_file and not foreign_formats.is_metadata(name):
            raise SourceError(
                f"{folder}: this folder contains the import file {name}; pass that file, or "
                f"{storage.join(folder, '*' + posixpath.splitext(name)[1])}"
            )
    _check_format(folder, found)
    return found


def _check_format(folder: str, names: Sequence[str]) -> None:
    """Check that a folder has no format of another tool. Raises: SourceError, StorageError."""
    found = foreign_formats.of_folder(names)
    # One document describes all images, or each image has one: the first shows the format.
    document = next((name for name in names if name.lower().endswith((".json", ".xml"))), None)
    if found is None and document is not None:
        with storage.open_read(storage.join(folder, document)) as file:
            format_ = foreign_formats.of_file(file.read(foreign_formats.HEAD_BYTES))
        if format_ is not None and format_ is not foreign_formats.XML:
            found = format_, document
    if found is not None:
        format_, evidence = found
        raise format_.error(folder, evidence)


def files_below(folder: str, path: str = "") -> Iterator[str]:
    """Yield all files below ``folder``/``path`` except hidden ones, relative to ``folder``.

    Raises:
        SourceError: a link leads back to a folder above it.
        StorageError: storage failed.
    """
    for name, is_folder in storage.list_dir(storage.join(folder, path) if path else folder):
        if name.startswith("."):
            continue
        if is_folder:
            _check_link(folder, f"{path}{name}")
            yield from files_below(folder, f"{path}{name}/")
        else:
            yield f"{path}{name}"


def _check_link(folder: str, path: str) -> None:
    link = storage.join(folder, path)
    if storage.is_local(link) and os.path.islink(storage.local_path(link)):
        target = os.path.realpath(storage.local_path(link))
        above = os.path.realpath(os.path.dirname(storage.local_path(link)))
        if os.path.commonpath([target, above]) == target:
            raise SourceError(
                f"{link}: this link leads back to {target}, a folder above it; remove the link"
            )


def read_folder(
    folder: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | Reject]:
    """Yield a row for each file below a folder, whose path ends with ``/``.

    Raises:
        SourceError: as :func:`list_images`; or only some folders have the names of splits.
        StorageError: storage failed.
    """
    files = list_images(folder)
    tops = sorted({name.split("/")[0] for name in files if "/" in name})
    named = [top for top in tops if is_ml_use(top)]
    others = [top for top in tops if not is_ml_use(top)]
    if named and others:
        meant = near_ml_use(others[0])
        hint = f" (did you mean {meant.lower()}?)" if meant else ""
        raise SourceError(
            f"{folder}: {named[0]!r} is the name of a split and {others[0]!r} is not{hint}; "
            f"expected folders of splits (<split>/<label>/<file>) or of labels (<label>/<file>)"
        )
    for line, name in enumerate(files, start=1):
        parts = name.split("/")
        folders = parts[:-1]
        split = parse_ml_use(folders.pop(0)) if named and folders else None
        try:
            check_text(name)
            label = check_label(folders[0]) if folders else None
        except AnnotationError as exc:
            yield exc.reject(folder, line, name)
            continue
        if len(folders) > 1:
            message = (
                f"expected <split>/<label>/<file> or <label>/<file> (got {name}, which is too deep)"
            )
            yield Reject(folder, line, name, RejectCode.BAD_ANNOTATION.value, message)
            continue
        yield Row(folder, line, split, name, label)
