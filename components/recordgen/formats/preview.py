"""A few rows as they were understood, which users can check before they trust a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from recordgen.core.rows.row import FIRST_ROWS, ReadItem, Row, RowBatch
from recordgen.core.task.task import Task
from recordgen.formats.import_file import ImportFile
from recordgen.formats.row_reader import RowReader
from recordgen.formats.samples import Samples
from recordgen.options import ConvertOptions
from recordgen.rejects import Counted, place_of
from recordgen.tasks import task_for

ROWS_SHOWN = 3
_ROWS_READ = FIRST_ROWS
_CHARACTERS = 60

# Shown as the split of a row that names none.
ASSIGNED = "(assigned)"


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A row as it was understood.

    Attributes:
        where: file and line.
        split: its split, or :data:`ASSIGNED`.
        subject: its path or its text; for a table, the whole row.
        annotation: its labels or boxes, empty without any; None for a table.
    """

    where: str
    split: str
    subject: str
    annotation: str | None

    def __str__(self) -> str:
        shown = [self.split, self.subject] if self.subject else [self.split]
        if self.annotation is not None:
            shown.append(self.annotation or "(no label)")
        return f"{self.where}: {' | '.join(shown)}"

    def to_json(self) -> Mapping[str, str | None]:
        """Return the row as ``--json`` prints it."""
        return asdict(self)


class Preview(NamedTuple):
    """Some of the first rows: a hundred, or the lines of a CSV that are read together.

    Attributes:
        rows: from the beginning, the middle and the end.
        found_by_name: how many paths of these were not exact.
    """

    rows: tuple[PreviewRow, ...]
    found_by_name: int


def preview_files(
    files: Sequence[ImportFile], options: ConvertOptions, samples: Samples
) -> Preview:
    """Return the preview of files.

    Args:
        files: import files, and the lists that they name.
        options: the options of the conversion, with task and format decided.
        samples: what detection has read of the files.

    Raises:
        SourceError: a file is unreadable.
        UsageError: an option does not fit the files.
        StorageError: storage failed.
    """
    return preview_rows(RowReader(options, samples).read_all(files), task_for(options))


def preview_rows(items: Iterable[ReadItem], task: Task) -> Preview:
    """Return the preview of the rows among items."""
    rows: list[Row] = []
    by_name = 0
    for others, item in enumerate(items):
        by_name += item.number if isinstance(item, Counted) else 0
        rows += item.rows if isinstance(item, RowBatch) else ()
        if len(rows) + others >= _ROWS_READ:
            break
    if len(rows) > ROWS_SHOWN:
        rows = [rows[0], rows[len(rows) // 2], rows[-1]]
    return Preview(tuple(_of_row(row, task) for row in rows), by_name)


def _of_row(row: Row, task: Task) -> PreviewRow:
    where, split = place_of(row.source, row.line, row.uri), row.split or ASSIGNED
    subject, annotation = task.preview(row.uri, row.annotation)
    return PreviewRow(where, split, _cut(subject), None if annotation is None else _cut(annotation))


def _cut(text: str) -> str:
    """Return a text as one short line."""
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)
    return line if len(line) <= _CHARACTERS else f"{line[: _CHARACTERS - 1]}…"
