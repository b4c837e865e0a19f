"""AutoML's import files: CSV and JSON Lines."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

from recordgen import storage
from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import Task
from recordgen.errors import SourceError
from recordgen.formats import header
from recordgen.formats.csv_records import read_blocks
from recordgen.formats.field_kinds import NUMBER, is_like, without_padding
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given, Head, Line
from recordgen.formats.import_file import Files, ImportFile, Samples, open_file, sampled
from recordgen.formats.lines import decoded_head
from recordgen.formats.listing import Listing
from recordgen.formats.row_parser import has_row_parser, with_made_columns
from recordgen.formats.separators import read_separator
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.storage.access import Access
from recordgen.tasks import TASKS

_CSV_SUFFIXES = (".csv",)
# Roboflow's tables in the folder of each split: of boxes, and of one-hot labels.
_ROBOFLOW = ("_annotations.csv", "_classes.csv")
# A file of which several lines, and more than one in ten, are not UTF-8 has another encoding.
_SEVERAL, _LINES_OF_A_MISTAKE = 3, 10

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class _LineFile(Format):
    """A file with a row in each line."""

    has_columns: ClassVar[bool] = True
    is_decoded: ClassVar[bool] = True
    is_json: ClassVar[bool] = False

    def detect(self, listing: Listing) -> Evidence | None:
        name = listing.only.lower()
        is_json = name.endswith(_JSON_SUFFIXES)
        if name and not is_json and not name.endswith(_CSV_SUFFIXES):
            begin = decoded_head(listing.head(listing.only)).lstrip(b"\xef\xbb\xbf \t\r\n")
            is_json = begin.startswith(b"{")
        return Evidence(listing.only, is_weak=True) if name and is_json == self.is_json else None


class CsvFile(_LineFile):
    """CSV: ``[ML_USE],PATH,[LABEL]``, or a table; a file of unknown name that is not JSON."""

    name = "csv"
    has_headers = True

    def detect(self, listing: Listing) -> Evidence | None:
        if listing.only or storage.is_http(listing.root):
            return super().detect(listing)
        for table in _ROBOFLOW:
            named = [name for name in listing.others if posixpath.basename(name) == table]
            # Beside masks, or boxes without a header, it is another file.
            found = [name for name in named if listing.head(name).startswith(b"filename")]
            if found:
                return Evidence(f"{found[0]} is Roboflow's table of {table[1:-4]}", "", found)
        return None

    def accepts(self, task: type[Task]) -> bool:
        return task.csv_parser is not None

    def heads(self, files: Files, options: ConvertOptions, samples: Samples) -> Sequence[Head]:
        if options.task != AUTO and not has_row_parser(TASKS[options.task]):
            return ()
        given = Given.of(options)
        paths = (file.path for file in sampled(files))
        heads = (read_csv_head(path, samples.lines(path), given) for path in paths)
        return [head for head in heads if head is not None]

    def lists(
        self, file: ImportFile, task: Task, given: Given, access: Access
    ) -> Iterable[ImportFile]:
        parser = task.declared("csv_parser")
        if not parser.names_lists:
            return
        with open_file(file, given.encoding) as lines:
            given = _decided(given, file, task)
            yield from parser.find_lists(lines, file.path, task, given, access)

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        parse = task.declared("csv_parser").parse_lines
        given = _decided(given, file, task)
        with open_file(file, given.encoding) as lines:
            yield from parse(lines, source=file.path, task=task, adjusted=adjusted, given=given)


def _decided(given: Given, file: ImportFile, task: Task) -> Given:
    """Return the options with the decision of detection whether a file has a header, if any."""
    if given.settles_header or file.has_header is None or not has_row_parser(type(task)):
        return given
    return replace(given, header="yes" if file.has_header else "no")


class JsonLines(_LineFile):
    """JSON Lines: an object for each row."""

    name = "jsonl"
    is_json = True

    def accepts(self, task: type[Task]) -> bool:
        return bool(task.json_keys)

    def heads(self, files: Files, options: ConvertOptions, samples: Samples) -> Sequence[Head]:
        given = Given.of(options)
        paths = (file.path for file in sampled(files))
        return [read_jsonl_head(path, samples.lines(path), given) for path in paths]

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        from recordgen.formats.automl_jsonl import parse_lines as parse  # a CSV does not need it

        with open_file(file, given.encoding) as lines:
            yield from parse(lines, source=file.path, task=task, adjusted=adjusted, given=given)


def read_csv_head(path: str, some: Sequence[bytes], given: Given) -> Head | None:
    """Return the head of a CSV file, or None if it is empty. Raises: SourceError, UsageError.

    ``some`` are the first lines of the file.
    """
    delimiter, _ = read_separator(some, path)
    items = list(with_made_columns(read_blocks(some, path), given, path))
    rejects = [item for item in items if isinstance(item, Reject)]
    blocks = (item.each(strip=True) for item in items if not isinstance(item, Reject))
    records = [record for record in chain.from_iterable(blocks) if any(record.fields)]
    if not records:
        return None
    rows = [record.fields for record in records]
    first, where = rows[0], f"{path}:{records[0].line}"
    columns = None
    has_header, in_doubt = _first_line(rows, given)
    if has_header:
        columns = given.below(first, where)
    elif given.roles:
        columns = given.numbered(first, where)
    data = [
        Line.of(
            f"{path}:{record.line}",
            without_padding(record.fields),
            is_quoted=_is_quoted(record.text, record.fields, delimiter),
            separator=given.label_separator,
        )
        for record in records
        if not has_header or record.fields != first
    ]
    if columns is not None and not has_header and data:
        given.check_numbers(given.roles, max(len(line.fields) for line in data), where)
    bad = [item for item in rejects if item.code == RejectCode.BAD_ENCODING.value]
    is_other = len(bad) >= _SEVERAL and len(bad) * _LINES_OF_A_MISTAKE > len(data)
    if is_other or (rejects and not data):
        first_reject = (bad or rejects)[0]
        raise SourceError(f"{path}:{first_reject.line}: {first_reject.message}")
    head = Head(path, where, rows, columns, has_header, data, delimiter=delimiter)
    return replace(head, label_separator=given.label_separator, in_doubt=in_doubt)


def _first_line(rows: Sequence[Sequence[str]], given: Given) -> tuple[bool, bool]:
    """Return whether the first row is a header, and whether that is in doubt.

    The readers obey this decision.
    """
    first = rows[0]
    is_header = header.begins_with_header(first, given)
    if is_header or given.settles_header:
        return is_header, False
    kinds = header.kinds_in(first)
    if kinds - {"text"}:
        return False, False
    others = [row for row in rows[1:] if without_padding(row) != without_padding(first)]
    if _is_above_numbers(first, others) or (kinds and header.names_payloads(first)):
        return False, True
    if kinds or any(it and it in row[at : at + 1] for row in others for at, it in enumerate(first)):
        return False, False
    begin, *subjects = (Line.of("", row).subject for row in (first, *(others or rows[1:])))
    return False, not is_like(begin, subjects) and len(rows) > 1


def _is_above_numbers(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a field is no number, and all below it are."""
    places = [at for at, field in enumerate(first) if field and not NUMBER.fullmatch(field)]
    below = ([*filter(None, (row[at] for row in rows if at < len(row)))] for at in places)
    return any(values and all(map(NUMBER.fullmatch, values)) for values in below)


def _is_quoted(text: str, fields: Sequence[str], delimiter: str) -> bool:
    """Return whether the path or text of a row is in quotes."""
    if len(fields) > 1 and is_ml_use(fields[0]):
        text = text.partition(delimiter)[2]
    return text.lstrip().startswith('"')


def read_jsonl_head(path: str, some: Sequence[bytes], given: Given) -> Head:
    """Return the head of a JSONL file. Raises: SourceError, UsageError.

    ``some`` are the first lines of the file. If options name the keys of the path or the text, the
    objects are also rows below a header.
    """
    from recordgen.formats.automl_jsonl import parse_object, split_word  # a CSV needs neither
    from recordgen.formats.named_records import given_names, named_head

    objects: list[tuple[int, Mapping[str, Any]]] = []
    for number, raw in enumerate(some, start=1):
        with suppress(AnnotationError):  # the reader of the rows reports it
            objects.append((number, parse_object(raw)))
    splits = [split_word(record) for _, record in objects]
    names = [*dict.fromkeys(key for _, record in objects for key in record)]
    for name in given_names(given) if objects else ():
        if name not in map(str.strip, names):
            header.no_column(name, names, f"{path}: columns")
    if not {"path", "text"} & given.roles.keys():
        return Head(path, f"{path}:1", objects=objects, splits_of_objects=splits)
    values = ([*map(record.get, names)] for _, record in objects)
    head = named_head(path, names, values, given)
    return replace(head, objects=objects, splits_of_objects=splits)
