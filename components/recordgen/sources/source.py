"""What a run reads: import files or a DataFrame."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Union

from recordgen import storage
from recordgen.errors import (
    UsageError,
)
from recordgen.options import ConvertOptions
from recordgen.rejects import Finding, Reject
from recordgen.rows.row import Adjustments, with_findings
from recordgen.runs.progress import Progress
from recordgen.sources.detect import Detection, columns_of_table, detect, detect_frame
from recordgen.sources.header import Given
from recordgen.sources.import_file import ImportFile, find_import_files
from recordgen.sources.preview import preview_files, preview_lines, preview_rows
from recordgen.sources.readers import with_lists
from recordgen.sources.source import Source
from recordgen.tasks import TASKS, Tabular, task_for

if TYPE_CHECKING:
    import pandas as pd
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from recordgen.errors import SourceError
from recordgen.rows.row import BLOCK_ROWS, Lines, Row
from recordgen.sources.image_folder import list_images

if TYPE_CHECKING:
    from recordgen.sources.detect import Detection
from recordgen.conversion.api import _told

AnySource = Union[str, "os.PathLike[str]", Sequence[str], "pd.DataFrame"]


def open_source(
    source: AnySource, options: ConvertOptions, progress: Progress | None = None
) -> tuple[Source, ConvertOptions]:
    """Find the import files, or take the rows of a DataFrame.

    Args:
        source: as for :func:`convert`.
        options: how to read it.
        progress: if somebody follows the run, how the source is read is logged.

    Returns:
        The source; and the options, with task and format as they are or were found to be.

    Raises:
        SourceError: an import file is missing or cannot be read.
        UsageError: it is not to be told what the source is.
    """
    pandas = sys.modules.get("pandas")  # whoever has a DataFrame has imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _told(_open_frame(source, options), progress)
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str) or (isinstance(source, Sequence) and source):
        return _told(_open_files(find_import_files(source), options), progress)
    raise UsageError(f"source must be a path, several paths or a DataFrame (got {source!r})")


def _open_frame(frame: pd.DataFrame, options: ConvertOptions) -> tuple[Source, ConvertOptions]:
    detection = detect_frame(frame, options)
    options = detection.options
    if TASKS[options.task].kind == Tabular.kind:
        from recordgen.sources.table_frame import frame_lines, frame_table

        table = frame_table(frame, options)
        options = replace(options, table=table.to_json())
        source = Source.of_lines(frame_lines(frame, table))
        detection = replace(detection, options=options, columns=columns_of_table(table))
        rows = preview_lines(chain.from_iterable(source.rows))
    else:
        from recordgen.sources.dataframe import dataframe_rows
        from recordgen.sources.declared_rows import frame_rows

        task = task_for(options)
        adjusted = Adjustments()
        found = (
            frame_rows(frame, task)
            if options.schema
            else dataframe_rows(frame, task, adjusted, Given.of(options))
        )
        source = Source.of_rows(with_findings(found, adjusted))
        rows = preview_rows(chain.from_iterable(source.rows), task)
    return replace(source, detection=replace(detection, rows=rows)), options


def _open_files(
    files: Sequence[ImportFile], options: ConvertOptions
) -> tuple[Source, ConvertOptions]:
    detection = detect(files, options)
    with_all = with_lists(files, detection.options)
    detection = replace(detection, rows=preview_files(with_all, detection.options))
    return replace(Source.of_files(with_all), detection=detection), detection.options


_ROW_BYTES = 100


# Dask's runner cuts the work into no more parts than there are to read: these make up the number.
_EMPTY_PARTS = 64


@dataclass(frozen=True)
class Source:
    """Where rows come from: import files, or rows in memory (a DataFrame's).

    Attributes:
        files: import files.
        rows: blocks of rows with what was changed in them, or of lines.
        bytes: size of all of it, for the number of buckets.
        detection: how it is read.
    """

    files: tuple[ImportFile, ...] = ()
    rows: tuple[tuple[Row | Lines | Reject | Finding, ...], ...] = ()
    bytes: int = 0
    detection: Detection | None = None

    @classmethod
    def of_files(cls, files: Sequence[ImportFile]) -> Source:
        """Return import files as a source. Raises: SourceError, StorageError."""
        return cls(files=tuple(files), bytes=sum(map(_size, files)))

    @classmethod
    def of_rows(cls, rows: Iterable[Row | Reject | Finding]) -> Source:
        """Return rows as a source."""
        waiting = iter(rows)
        blocks = tuple(iter(lambda: tuple(islice(waiting, BLOCK_ROWS)), ()))
        size = sum(map(len, blocks)) * _ROW_BYTES
        return cls(rows=blocks, bytes=size)

    @classmethod
    def of_lines(cls, lines: Iterable[Lines | Reject]) -> Source:
        """Return lines of a table as a source."""
        blocks = tuple((item,) for item in lines)
        texts = chain.from_iterable(
            item.texts for (item,) in blocks if not isinstance(item, Reject)
        )
        return cls(rows=blocks, bytes=sum(map(len, texts)))

    @property
    def paths(self) -> Iterator[str]:
        """Where the import files lie, or the payloads of rows in memory."""
        yield from (file.path for file in self.files)
        for row in chain.from_iterable(self.rows):
            if isinstance(row, Row) and row.uri:
                yield storage.resolve(row.uri, row.source)

    def parts(self) -> list[Any]:
        """Return what can be read on its own, evenly among parts that are empty."""
        full: list[Any] = [*self.files, *self.rows]
        parts: list[Any] = [()] * (len(full) + _EMPTY_PARTS)
        for index, part in enumerate(full):
            parts[index * len(parts) // len(full)] = part
        return parts

    @property
    def names(self) -> tuple[str, ...]:
        """What ``dataset.json`` says of the source."""
        return tuple(file.path for file in self.files) or ("DataFrame",)


def _size(file: ImportFile) -> int:
    path = file.path
    if file.bytes is not None:
        return file.bytes
    if path.endswith("/"):
        return len(list_images(path)) * _ROW_BYTES
    try:
        return storage.size(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this import file: {exc.strerror or exc}") from exc
