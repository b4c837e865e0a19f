"""The first lines of import files: what decides on their task, and what previews show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recordgen.options import AUTO, ConvertOptions
from recordgen.rows.row import Adjustments
from recordgen.sources import foreign_formats
from recordgen.sources.automl_csv import names_path_column
from recordgen.sources.automl_jsonl import parse_object, row_parser
from recordgen.sources.csv_records import Record, read_records
from recordgen.sources.evidence import Line, is_table
from recordgen.sources.header import Given
from recordgen.sources.import_file import ImportFile
from recordgen.sources.layout import read_layout
from recordgen.sources.lines import open_lines
from recordgen.sources.row_parser import without_padding
from recordgen.sources.text_csv import names_text_column
from recordgen.tasks import TASKS, Declared, ObjectDetection, Tabular, TextClassification
from recordgen.tasks.task import AnnotationError

# Enough to meet what is rare, and little beside what is read later.
_FILES_LOOKED_AT = 16
_LINES_LOOKED_AT = 10_000
_BYTES_LOOKED_AT = 4_000_000


@dataclass(frozen=True)
class Head:
    """The first records of a CSV file, or the first objects of a JSONL file.

    Attributes:
        path: the file.
        where: file and line of the first record.
        header: the names of the columns, given columns by their role; None: there is no header.
        is_given: the options say that there is a header, or none.
        lines: the records behind the header.
        rows: all records.
        objects: the objects of a JSONL file.
        delimiter: what separates the fields of a CSV file.
    """

    path: str
    where: str = ""
    header: Sequence[str] | None = None
    is_given: bool = False
    lines: Sequence[Line] = ()
    rows: Sequence[Sequence[str]] = ()
    objects: Sequence[tuple[int, Mapping[str, Any]]] = ()
    delimiter: str = ","

    @property
    def bare_lines(self) -> Sequence[Line]:
        """The lines whose columns go by position."""
        return self.lines if self.header is None else ()


def read_heads(files: Sequence[ImportFile], options: ConvertOptions) -> list[Head]:
    """Return what the first lines of the first files hold; nothing of folders and sentences."""
    task = options.task
    if options.input_format == "csv" and task not in (Tabular.name, Declared.name):
        heads = [_read_csv(file.path, Given.of(options), task) for file in files[:_FILES_LOOKED_AT]]
        return [head for head in heads if head is not None]
    if options.input_format == "jsonl":
        return [_read_jsonl(file.path) for file in files[:_FILES_LOOKED_AT]]
    return []


def _read_csv(path: str, given: Given, task: str) -> Head | None:
    """Return the first lines of a CSV file; None: it has none. Raises: SourceError, UsageError."""
    with open_lines(path) as lines:
        some = list(_first(lines))
    delimiter, _ = read_layout(some, path)
    records = [item for item in read_records(some, path, strip=True) if isinstance(item, Record)]
    if not records:
        return None
    rows = [record.fields for record in records]
    first, where = rows[0], f"{path}:{records[0].line}"
    header: Sequence[str] | None = None
    is_first = False
    is_open = task == AUTO and not (given.settles_header or given.roles)
    if is_open and (foreign := foreign_formats.of_header(first)) is not None:
        raise foreign.error(where)
    if given.header == "no":
        header = given.numbered(first, where) if given.roles else None
    elif given.settles_header or _is_known(first, rows, task):
        header, is_first = given.rename(first, where), True
    elif given.roles:
        header = given.numbered(first, where)
    data = [
        Line.of(
            f"{path}:{record.line}",
            without_padding(row),
            is_quoted=',"' in record.text.partition("\n")[0],
        )
        for record, row in zip(records, rows, strict=True)
        if not is_first or row != first
    ]
    is_given = given.settles_header or bool(given.roles and header is not None)
    return Head(path, where, header, is_given, data, rows, delimiter=delimiter)


def read_delimiter(path: str) -> str:
    """Return what separates the fields of a CSV file. Raises: SourceError."""
    with open_lines(path) as lines:
        return read_layout(lines, path)[0]


def _first(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the first lines, up to a number and a size."""
    size = 0
    for line in islice(lines, _LINES_LOOKED_AT):
        yield line
        size += len(line)
        if size > _BYTES_LOOKED_AT:
            return


def _is_known(first: Sequence[str], rows: Sequence[Sequence[str]], task: str) -> bool:
    """Say whether a first line is a header of known names, for the task if that is given."""
    if task != AUTO:
        parser = row_parser(TASKS[task](), Adjustments())
        return parser.is_header(first)
    is_of_files = row_parser(TextClassification(), Adjustments()).is_header(first)
    if ObjectDetection.has_header(first) or names_path_column(first) or is_of_files:
        return True
    return names_text_column(first) and not is_table(rows)


def _read_jsonl(path: str) -> Head:
    objects = []
    with open_lines(path) as lines:
        for number, raw in enumerate(_first(lines), start=1):
            with suppress(AnnotationError):  # whoever reads the rows reports it
                objects.append((number, parse_object(raw)))
    return Head(path, f"{path}:1", objects=objects)
