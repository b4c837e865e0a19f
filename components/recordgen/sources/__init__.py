"""Import files → rows. Neither TensorFlow nor Beam is needed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from recordgen import storage
from recordgen.errors import SourceError, StorageError
from recordgen.options import ConvertOptions
from recordgen.rows import Adjustments, Finding, Reject, Row, with_findings
from recordgen.sources import video_lists
from recordgen.sources.header import Given
from recordgen.tasks import TASKS, task_for


class ImportFile(NamedTuple):
    """One import file, or a folder of images.

    Attributes:
        path: local path or URL.
        split: the split of its rows that name none (a TFX input split); None: drawn.
        named_by: the import file that names this list of videos; None: the user does.
        bytes: its size, if it is known.
    """

    path: str
    split: str | None = None
    named_by: str | None = None
    bytes: int | None = None


def find_import_files(source: str | Sequence[str]) -> list[ImportFile]:
    """Return the import files that paths or globs name; a folder's path gets a ``/`` at its end.

    Raises:
        SourceError: a path or glob names no file.
    """
    found: dict[str, None] = {}
    for pattern in [source] if isinstance(source, str) else source:
        try:
            found.update(dict.fromkeys(storage.expand(pattern)))
        except SourceError:
            folder = storage.normal(pattern).rstrip("/")
            with suppress(OSError, StorageError):
                if storage.list_dir(folder):
                    found[f"{folder}/"] = None
                    continue
            raise
    return [ImportFile(path) for path in found]


def formats_of(task: str) -> tuple[str, ...]:
    """Return the formats in which examples of a task come."""
    return ("csv",) if TASKS[task].by_columns else tuple(TASKS[task].readers)


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
        read_rows = self._task.reader(self._format)
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
