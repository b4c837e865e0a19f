"""The readers of import files that tasks declare in ``readers``, one for each format.

A reader takes the path, the task, the collector of adjustments, and the options about columns. It
yields a Row for each usable line, or a RowBatch for many of them, and a Reject for each other line.
It raises SourceError if a file is missing or has the wrong format, and StorageError if storage
failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from recordgen.core.rows.row import Adjustments, Row, RowBatch, batched, one_by_one, with_findings
from recordgen.core.task.task import Task
from recordgen.formats import automl_jsonl, declared_rows, table_csv, video_lists
from recordgen.formats.automl_csv import LineParser
from recordgen.formats.header import Given
from recordgen.formats.heads import KINDS_OF_LINES, begins_with_header
from recordgen.formats.import_file import ImportFile
from recordgen.formats.lines import open_lines
from recordgen.formats.secrets import without_url_secrets
from recordgen.formats.text_csv import TextParser
from recordgen.options import ConvertOptions
from recordgen.registry import FORMATS
from recordgen.rejects import Finding, Reject
from recordgen.tasks import TASKS, task_for

Rows: TypeAlias = "Iterator[Row | RowBatch | Reject]"

#: (path, task, adjusted, given) → rows
ReadRows = Callable[[str, Task, Adjustments, Given], Rows]


def _in_lines(parse: Callable[..., Rows]) -> ReadRows:
    """Return the reader of a file whose lines ``parse`` takes."""

    def read(path: str, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        with open_lines(path) as lines:
            yield from parse(lines, source=path, task=task, adjusted=adjusted, given=given)

    return read


#: CSV: ``[ML_USE],PATH`` and the fields for the task's ``from_fields``.
read_paths = _in_lines(LineParser.parse_lines)
#: CSV: ``[ML_USE],TEXT`` and the same fields; the text may also be the path of its file.
read_texts = _in_lines(TextParser.parse_lines)
#: CSV: a header, then rows with a field for each of its columns.
read_table = _in_lines(table_csv.parse_lines)
#: CSV: the columns of a declared schema.
read_declared = _in_lines(declared_rows.parse_lines)
#: CSV: segments of videos.
read_videos = _in_lines(video_lists.parse_lines)
#: JSON Lines: objects for the task's ``from_record``.
read_json = _in_lines(automl_jsonl.parse_lines)


def with_lists(files: Sequence[ImportFile], options: ConvertOptions) -> list[ImportFile]:
    """Return import files, each followed by the lists of videos that its lines name.

    Raises:
        SourceError: a list is missing or may not be read; the message has the line that names it.
        StorageError: storage failed.
    """
    task = task_for(options)
    if task.kind != "video" or not FORMATS[options.format].has_headers:
        return list(files)
    found: dict[ImportFile, None] = {}
    for file in files:
        found[file] = None
        given = given_for(file, options)
        for item in video_lists.find_lists(file.path, task, options.access, given):
            split = item.split or file.split
            found[ImportFile(item.path, split, file.path, item.bytes)] = None
    return list(found)


def given_for(file: ImportFile, options: ConvertOptions) -> Given:
    """Return the options about columns, with the header of a CSV file as detection decided it.

    Raises:
        SourceError: detection has not read the file, and it is missing or unreadable.
        StorageError: storage failed.
    """
    given = Given.of(options)
    has_parser = TASKS[options.task].kind in KINDS_OF_LINES and file.named_by is None
    if not FORMATS[options.format].has_headers or given.settles_header or not has_parser:
        return given
    has_header = file.has_header
    if has_header is None:
        has_header = begins_with_header(file.path, given, options.task)
    return replace(given, header="yes" if has_header else "no")


class RowReader:
    """Reads rows with options whose task and format are decided."""

    def __init__(self, options: ConvertOptions) -> None:
        self._task = task_for(options)
        self._format = FORMATS[options.format]()
        self._access = options.access
        self._options = options

    def read_batches(self, file: ImportFile) -> Iterator[RowBatch | Reject | Finding]:
        """Read one import file like :meth:`read`, but yield its usable lines in batches."""
        return batched(self._items(file))

    def read(self, file: ImportFile) -> Iterator[Row | Reject | Finding]:
        """Read one import file line by line; memory does not grow with the file.

        Yields:
            A Row for each usable line, followed by a Finding for each change in it; a Reject for
            each other line. Blank lines and headers are skipped.

        Raises:
            SourceError: the file is missing, unreadable, or not UTF-8.
            StorageError: storage failed.
        """
        return one_by_one(self._items(file))

    def _items(self, file: ImportFile) -> Iterator[Row | RowBatch | Reject | Finding]:
        given, adjusted = given_for(file, self._options), Adjustments()
        if file.named_by is not None:
            read_list = partial(video_lists.read_list, named_by=file.named_by, access=self._access)
            read = read_list(file.path, self._task, adjusted, given)
        else:
            read = self._format.rows(file, self._task, adjusted, given)
        found = with_findings(read, adjusted)
        rows = without_url_secrets(found, self._task)
        if file.split is None:
            yield from rows
            return
        for item in rows:
            yield item.with_split(file.split) if isinstance(item, Row | RowBatch) else item

    def read_all(self, files: Iterable[ImportFile]) -> Iterator[Row | Reject | Finding]:
        """Read several import files in turn, like :meth:`read`."""
        return chain.from_iterable(map(self.read, files))
