"""Rows one by one, as tests compare them; the product passes them on in batches."""

from recordgen.core.rows.row import Adjustments, Row, RowBatch, batched
from recordgen.formats.row_reader import RowReader


def row_by_row(items, adjusted=None):
    """Return what a format yields in the order of lines: rows, and behind each its findings."""
    found = []
    for item in batched(items, adjusted or Adjustments()):
        found += item.rows if isinstance(item, RowBatch) else [item]
    sources = list(dict.fromkeys(item.source for item in found))
    return sorted(
        found, key=lambda item: (sources.index(item.source), item.line, not isinstance(item, Row))
    )


def read_rows(options, *files):
    """Read import files with options whose task and format are decided; see :func:`row_by_row`."""
    return row_by_row(RowReader(options).read_all(files))
