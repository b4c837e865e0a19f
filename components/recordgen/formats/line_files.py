"""AutoML's import files: CSV and JSON Lines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from recordgen.formats.format import Evidence, Format, Rows
from recordgen.formats.header import Given
from recordgen.formats.heads import (
    KINDS_OF_LINES,
    Head,
    first_paths,
    read_csv_head,
    read_jsonl_head,
)
from recordgen.options import AUTO, ConvertOptions
from recordgen.tasks import TASKS

if TYPE_CHECKING:
    from recordgen.core.rows.row import Adjustments
    from recordgen.core.task.task import Task
    from recordgen.formats.import_file import ImportFile
    from recordgen.formats.listing import Listing

_CSV_SUFFIXES = (".csv",)
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class _LineFile(Format):
    """A file with a row in each line, which the task reads."""

    has_columns: ClassVar[bool] = True

    def detect(self, listing: Listing) -> Evidence | None:
        if not listing.only or not self._is_mine(listing.only.lower(), listing):
            return None
        return Evidence(listing.only, is_weak=True)

    @abstractmethod
    def _is_mine(self, name: str, listing: Listing) -> bool:
        """Return whether the file has this format, by its lower-case name or its first line."""

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        yield from task.reader(self.name)(file.path, task, adjusted, given)


class CsvFile(_LineFile):
    """CSV: ``[ML_USE],PATH,[LABEL]``, or a table; a file of unknown name that is not JSON."""

    name = "csv"
    has_headers = True

    def heads(self, files: Sequence[ImportFile], options: ConvertOptions) -> Sequence[Head]:
        if options.task != AUTO and TASKS[options.task].kind not in KINDS_OF_LINES:
            return ()
        given = Given.of(options)
        found = (read_csv_head(path, given, options.task) for path in first_paths(files))
        return [head for head in found if head is not None]

    def _is_mine(self, name: str, listing: Listing) -> bool:
        if name.endswith(_JSON_SUFFIXES):
            return False
        return name.endswith(_CSV_SUFFIXES) or not _begins_with_object(listing)


class JsonLines(_LineFile):
    """JSON Lines: an object for each row."""

    name = "jsonl"

    def heads(self, files: Sequence[ImportFile], options: ConvertOptions) -> Sequence[Head]:
        return [read_jsonl_head(path, Given.of(options)) for path in first_paths(files)]

    def _is_mine(self, name: str, listing: Listing) -> bool:
        if name.endswith(_CSV_SUFFIXES):
            return False
        return name.endswith(_JSON_SUFFIXES) or _begins_with_object(listing)


def _begins_with_object(listing: Listing) -> bool:
    """Return whether the first line that is not blank begins with ``{``."""
    return listing.head(listing.only).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
