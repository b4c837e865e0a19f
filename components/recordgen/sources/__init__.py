"""Import files → rows. Neither TensorFlow nor Beam is needed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recordgen import storage
from recordgen.rows import Reject, Row
from recordgen.sources.automl_csv import parse_lines
from recordgen.sources.lines import open_lines


class ImportFile(NamedTuple):
    """One import file.

    Attributes:
        path: local path or URL.
        split: the split of its rows that name none (a TFX input split); None: drawn.
    """

    path: str
    split: str | None = None


def find_import_files(source: str | Sequence[str]) -> list[ImportFile]:
    """Return the import files that paths or globs name.

    Raises:
        SourceError: a path or glob names no file.
    """
    paths = storage.expand(source if isinstance(source, str) else list(source))
    return [ImportFile(path) for path in paths]


def read_rows(file: ImportFile) -> Iterator[Row | Reject]:
    """Read one import file line by line; memory does not grow with the file.

    Yields:
        A Row for each usable line, a Reject for each other; blank and header lines give nothing.

    Raises:
        SourceError: the file is missing, unreadable, or no UTF-8 text.
        StorageError: storage failed.
    """
    with open_lines(file.path) as lines:
        for item in parse_lines(lines, source=file.path):
            if isinstance(item, Row) and item.split is None and file.split is not None:
                item = item._replace(split=file.split)
            yield item


def read_all_rows(files: Iterable[ImportFile]) -> Iterator[Row | Reject]:
    """Read several import files one after the other, as :func:`read_rows`."""
    for file in files:
        yield from read_rows(file)
