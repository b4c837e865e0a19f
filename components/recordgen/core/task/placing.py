"""The text whose hash places a row."""

from __future__ import annotations

from collections.abc import Iterator

from recordgen import storage
from recordgen.core.rows.placing import row_name
from recordgen.core.rows.row import Row, RowBatch
from recordgen.core.task.annotation import RowContent
from recordgen.core.task.task import Task


def placing_name(row: Row | RowContent, task: Task, folder: str) -> str:
    """Return the text whose hash places a row.

    Args:
        row: the row to place.
        task: the task of the row.
        folder: folder of the first import file, see :func:`recordgen.storage.folder_of`; with
            :attr:`Task.by_address`, relative uris start there.
    """
    if task.by_address:
        return storage.below_shared(storage.resolve(row.uri, storage.join(folder, "")), folder)
    return row_name(row.uri, row.annotation)


def placing_names(rows: RowBatch, task: Task, folder: str) -> Iterator[str]:
    """Return the text whose hash places each row, as :func:`placing_name`."""
    if task.by_address:
        return (placing_name(row, task, folder) for row in rows.rows)
    if not any(rows.uris):  # each row is placed by its whole annotation
        return (annotation or "" for annotation in rows.annotations)
    return map(row_name, rows.uris, rows.annotations)
