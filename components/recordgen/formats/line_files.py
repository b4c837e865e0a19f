"""AutoML's import files: CSV and JSON Lines."""

from __future__ import annotations

import posixpath
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from recordgen import storage
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.task import Task
from recordgen.formats.encodings import decoded_head
from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.head import Head
from recordgen.formats.header import Given
from recordgen.formats.heads import read_csv_head, read_jsonl_head
from recordgen.formats.import_file import ImportFile
from recordgen.formats.lines import open_file
from recordgen.formats.listing import Listing
from recordgen.formats.samples import Samples, sampled
from recordgen.formats.table_layout import has_row_parser
from recordgen.options import AUTO, ConvertOptions
from recordgen.storage.access import Access
from recordgen.tasks import TASKS

_CSV_SUFFIXES = (".csv",)
# Roboflow's tables in the folder of each split: of boxes, and of one-hot labels.
_ROBOFLOW = ("_annotations.csv", "_classes.csv")
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class _LineFile(Format):
    """A file with a row in each line."""

    has_columns: ClassVar[bool] = True
    is_decoded: ClassVar[bool] = True

    def detect(self, listing: Listing) -> Evidence | None:
        if not listing.only or not self._is_mine(listing.only.lower(), listing):
            return None
        return Evidence(listing.only, is_weak=True)

    @abstractmethod
    def _is_mine(self, name: str, listing: Listing) -> bool:
        """Return whether the file has this format, by its lower-case name or its first line."""


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

    def heads(
        self, files: Sequence[ImportFile], options: ConvertOptions, samples: Samples
    ) -> Sequence[Head]:
        if options.task != AUTO and not has_row_parser(TASKS[options.task]):
            return ()
        given = Given.of(options)
        found = (
            read_csv_head(file.path, samples.lines(file.path), given) for file in sampled(files)
        )
        return [head for head in found if head is not None]

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
        parse_lines = task.declared("csv_parser").parse_lines
        given = _decided(given, file, task)
        with open_file(file, given.encoding) as lines:
            yield from parse_lines(
                lines, source=file.path, task=task, adjusted=adjusted, given=given
            )

    def _is_mine(self, name: str, listing: Listing) -> bool:
        if name.endswith(_JSON_SUFFIXES):
            return False
        return name.endswith(_CSV_SUFFIXES) or not _begins_with_object(listing)


def _decided(given: Given, file: ImportFile, task: Task) -> Given:
    """Return the options with the decision of detection whether a file has a header, if any."""
    if given.settles_header or file.has_header is None or not has_row_parser(type(task)):
        return given
    return replace(given, header="yes" if file.has_header else "no")


class JsonLines(_LineFile):
    """JSON Lines: an object for each row."""

    name = "jsonl"

    def accepts(self, task: type[Task]) -> bool:
        return bool(task.json_keys)

    def heads(
        self, files: Sequence[ImportFile], options: ConvertOptions, samples: Samples
    ) -> Sequence[Head]:
        given = Given.of(options)
        return [
            read_jsonl_head(file.path, samples.lines(file.path), given) for file in sampled(files)
        ]

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        from recordgen.formats import automl_jsonl  # a CSV does not need it

        with open_file(file, given.encoding) as lines:
            yield from automl_jsonl.parse_lines(
                lines, source=file.path, task=task, adjusted=adjusted, given=given
            )

    def _is_mine(self, name: str, listing: Listing) -> bool:
        if name.endswith(_CSV_SUFFIXES):
            return False
        return name.endswith(_JSON_SUFFIXES) or _begins_with_object(listing)


def _begins_with_object(listing: Listing) -> bool:
    return decoded_head(listing.head(listing.only)).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
