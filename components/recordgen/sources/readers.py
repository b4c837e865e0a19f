"""Which reader reads which format of which task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from recordgen.options import ConvertOptions
from recordgen.rejects import Finding, Reject
from recordgen.rows.row import Adjustments, Row, with_findings
from recordgen.sources import (
    automl_csv,
    automl_jsonl,
    declared_rows,
    image_folder,
    iob,
    text_csv,
    video_lists,
)
from recordgen.sources.header import Given
from recordgen.sources.import_file import ImportFile
from recordgen.sources.lines import open_lines
from recordgen.tasks import TASKS, task_for
from recordgen.tasks.task import Task

#: Reads the rows of the import file at a path; notes in the third argument what it changes.
_ReadRows = Callable[[str, Task, Adjustments, Given], Iterator[Row | Reject]]


def _in_lines(parse: Callable[..., Iterator[Row | Reject]]) -> _ReadRows:
    """Return what reads a file whose lines ``parse`` takes."""

    def read(path: str, task: Task, adjusted: Adjustments, given: Given) -> Iterator[Row | Reject]:
        with open_lines(path) as lines:
            yield from parse(lines, source=path, task=task, adjusted=adjusted, given=given)

    return read


#: By the kind of the task, then by format; tables have no rows, see sources.table_csv.
_READERS: Mapping[str, Mapping[str, _ReadRows]] = {
    "image": {
        "csv": _in_lines(automl_csv.parse_lines),
        "jsonl": _in_lines(automl_jsonl.parse_lines),
        "folder": lambda path, task, adjusted, given: image_folder.read_folder(path),
    },
    "text": {
        "csv": _in_lines(text_csv.parse_lines),
        "jsonl": _in_lines(automl_jsonl.parse_lines),
    },
    "entities": {
        "jsonl": _in_lines(automl_jsonl.parse_lines),
        "iob": lambda path, task, adjusted, given: iob.read_sentences(path, task, adjusted),
    },
    "declared": {"csv": _in_lines(declared_rows.parse_lines)},
    "video": {
        "csv": _in_lines(video_lists.parse_lines),
        "jsonl": _in_lines(automl_jsonl.parse_lines),
    },
}


def formats_of(task: str) -> tuple[str, ...]:
    """Return the formats in which examples of a task come."""
    return ("csv",) if TASKS[task].by_columns else tuple(_READERS[TASKS[task].kind])


def with_lists(files: Sequence[ImportFile], options: ConvertOptions) -> list[ImportFile]:
    """Return import files, each with the lists of videos behind it that its lines name.

    Args:
        files: import files.
        options: task and format, which must be decided by now; and what lines may reach.

    Raises:
        SourceError: a list is missing, or may not be read; says which line names it.
        StorageError: storage failed.
    """
    task = task_for(options)
    if (task.kind, options.input_format) != ("video", "csv"):
        return list(files)
    found: dict[ImportFile, None] = {}
    for file in files:
        found[file] = None
        given = Given.of(options)
        for item in video_lists.find_lists(file.path, task, options.access, given):
            split = item.split or file.split
            found[ImportFile(item.path, split, file.path, item.bytes)] = None
    return list(found)


class RowReader:
    """Reads rows as the options say, whose task and format must be decided by now."""

    def __init__(self, options: ConvertOptions) -> None:
        self._task = task_for(options)
        self._format = options.input_format
        self._access = options.access
        self._given = Given.of(options)

    def read(self, file: ImportFile) -> Iterator[Row | Reject | Finding]:
        """Read one import file line by line; memory does not grow with the file.

        Yields:
            A Row for each usable line, and behind it a Finding for each thing that was changed in
            it; a Reject for each other line. Blank and header lines give nothing.

        Raises:
            SourceError: the file is missing, unreadable, or no UTF-8 text.
            StorageError: storage failed.
        """
        read_rows = _READERS[self._task.kind][self._format]
        if file.named_by is not None:
            read_rows = partial(video_lists.read_list, named_by=file.named_by, access=self._access)
        adjusted = Adjustments()
        rows = with_findings(read_rows(file.path, self._task, adjusted, self._given), adjusted)
        if file.split is None:
            yield from rows
            return
        for item in rows:
            if isinstance(item, Row) and item.split is None:
                item = item._replace(split=file.split)
            yield item

    def read_all(self, files: Iterable[ImportFile]) -> Iterator[Row | Reject | Finding]:
        """Read several import files one after the other, as :meth:`read`."""
        for file in files:
            yield from self.read(file)
