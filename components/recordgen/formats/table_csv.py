r"""Tables as CSV: a header, unless ``header`` is ``no``, and records with a field for each column.

age,job           header
58,management  →  RowBatch("wines.csv", [2], splits=[None], uris=[""], ["58,management"])
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

from recordgen.core.rows.row import Adjustments, RowBatch
from recordgen.core.task.annotation import AnnotationError, named_split
from recordgen.formats.by_header import too_many_fields
from recordgen.formats.csv_records import Item, Records
from recordgen.rejects import REPEATED_HEADER, Reject, RejectCode
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import csv_line

#: The name that pandas gives to a column without one, which is the index of a frame.
INDEX = "Unnamed: 0"


def named(header: Sequence[str]) -> list[str]:
    """Return the names of columns; the first may lack one, as pandas writes its index."""
    return [INDEX, *header[1:]] if header and not header[0].strip() else [*header]


def fitted(items: Iterable[Item], width: int) -> Iterator[Item]:
    """Yield items without the empty fields that spreadsheets add behind the last column."""
    for item in items:
        if isinstance(item, Records):
            texts, quoted = list(item.texts), {**item.quoted}
            if ",\n" in "\n".join([*texts, ""]):
                texts = [_fitted(text, width - 1) for text in texts]
            for at, fields in quoted.items():
                is_padded = len(fields) > width and not any(map(str.strip, fields[width:]))
                quoted[at] = fields[:width] if is_padded else fields
                texts[at] = csv_line(quoted[at]) if is_padded else item.texts[at]
            item = Records(item.lines, texts, quoted)
        yield item


def _fitted(text: str, commas: int) -> str:
    more = text.count(",") - commas
    return text[:-more] if more > 0 and text.endswith("," * more) else text


def without_headers(
    items: Iterable[Item], names: Sequence[str], source: str, adjusted: Adjustments
) -> Iterator[Item]:
    """Yield all items except headers: joined files may have a header where each file begins.

    ``adjusted`` collects the headers after the first record.
    """
    sure = max({*names} - {INDEX}, key=len, default="").replace('"', '""')  # in every header
    is_top = True  # no record so far
    for item in items:
        if isinstance(item, Records) and (is_top or sure in "\n".join(item.texts)):
            headers = {at for at, fields in enumerate(item.rows()) if named(fields) == names}
            for at in sorted(headers - {0} if is_top else headers):
                adjusted.add_line(source, item.lines[at], *REPEATED_HEADER)
            item = item.without(headers)
        yield item
        is_top = False


def lines_of(items: Iterable[Item], source: str, table: Table) -> Iterator[RowBatch | Reject]:
    """Yield the records that have a field for every column, and a reject for each other one."""
    lines = _Lines(source, table)
    for item in items:
        yield from [item] if isinstance(item, Reject) else lines.parsed(item)


class _Lines:
    """Makes rows from the records of a table."""

    def __init__(self, source: str, table: Table) -> None:
        self._source = source
        names, self._count = table.names, len(table.columns)
        self._split = table.split or ""
        self._split_at = None if table.split is None else names.index(table.split)
        self._group_at = None if table.group is None else names.index(table.group)

    def parsed(self, records: Records) -> Iterator[RowBatch | Reject]:
        """Yield the rejects among records, and the others together."""
        odd = records.of_other_widths(self._count)
        errors = {at: self._of_width(n, records.texts[at]) for at, n in odd.items()}
        records = yield from self._without(records, errors)
        splits: Sequence[str | None] = [None] * len(records.texts)
        if self._split_at is not None:
            words = _column(records, self._split_at)
            found, wrong = dict[str, str | None](), dict[str, AnnotationError]()
            for word in {*words}:
                try:
                    found[word] = named_split(word.strip(), self._split)
                except AnnotationError as exc:
                    wrong[word] = exc
            if wrong:
                errors = {at: wrong[word] for at, word in enumerate(words) if word in wrong}
                records = yield from self._without(records, errors)
            splits = [found[word] for word in words if word not in wrong]
        groups = None
        if self._group_at is not None:
            groups = [text.strip() or None for text in _column(records, self._group_at)]
        if texts := records.texts:
            yield RowBatch(self._source, records.lines, splits, [""] * len(texts), texts, groups)

    def _without(
        self, records: Records, errors: Mapping[int, AnnotationError]
    ) -> Generator[Reject, None, Records]:
        """Yield a reject for each record with an error, and return the others."""
        for at, error in errors.items():
            yield error.reject(self._source, records.lines[at])
        return records.without(errors)

    def _of_width(self, got: int, text: str) -> AnnotationError:
        """Return the error about a record with too many fields, too few, or only empty ones."""
        if not got:
            return AnnotationError(RejectCode.BAD_LINE, "no field has a value")
        code = RejectCode.TOO_MANY_FIELDS if got > self._count else RejectCode.BAD_LINE
        return AnnotationError(code, f"{too_many_fields(self._count, got)}: {text[:80]!r}")


def _column(records: Records, at: int) -> list[str]:
    """Return the fields of a column, which all records have."""
    if records.quoted:
        return [row[at] for row in records.rows()]
    return [text.split(",", at + 1)[at] for text in records.texts]
