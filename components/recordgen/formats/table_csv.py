r"""Tables as CSV: a header, unless ``header`` is ``no``, and records with a field for each column.

age,job           header
58,management  →  RowBatch("wines.csv", [2], splits=[None], uris=[""], ["58,management"])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recordgen.core.dataset.splits import parse_ml_use
from recordgen.core.rows.row import Adjustments, Row, RowBatch
from recordgen.core.task.annotation import AnnotationError, named_split
from recordgen.core.task.task import Task
from recordgen.formats.csv_records import (
    EMPTY_FIELDS,
    Item,
    Plain,
    Record,
    is_empty,
    read_blocks,
    records_of,
)
from recordgen.formats.format import CsvParser, Rows
from recordgen.formats.header import Given
from recordgen.formats.table_layout import OwnColumns
from recordgen.rejects import REPEATED_HEADER, Reject, RejectCode
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import csv_line, split_plain
from recordgen.tasks import Tabular


class TableParser(CsvParser):
    """Makes rows from the lines of tables."""

    @classmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Rows:
        """Yield the lines that have a field for every column of the task, and rejects of others."""
        if not isinstance(task, Tabular):
            raise TypeError(f"{task.name} has no table")
        items = fitted(read_blocks(lines, source, adjusted), len(task.table.columns))
        if not task.table.is_bare:
            items = without_headers(items, task.table.names, source, adjusted)
        return lines_of(items, source, task.table)

    @classmethod
    def own_columns(cls) -> OwnColumns:
        from recordgen.formats.table_frame import OWN_COLUMNS  # it parses lines with this module

        return OWN_COLUMNS


def fitted(items: Iterable[Item], width: int) -> Iterator[Item]:
    """Yield items without the empty fields that spreadsheets add behind the last column."""
    for item in items:
        if isinstance(item, Plain) and ",\n" in "\n".join([*item.texts, ""]):
            item = item._replace(texts=[_fitted(text, width - 1) for text in item.texts])
        elif isinstance(item, Record) and len(item.fields) > width:
            fields, padding = item.fields[:width], item.fields[width:]
            if not any(field.strip() for field in padding):
                item = Record(item.line, csv_line(fields), fields)
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
    sure = max(names, key=len)  # every header contains it
    is_top = True  # no record so far
    for item in items:
        if isinstance(item, Plain):
            if is_top or sure in "\n".join(item.texts):
                texts = list(item.texts)
                for at, text in enumerate(item.texts):
                    if split_plain(text) == names:
                        if not is_top:
                            adjusted.add_line(source, item.line + at, *REPEATED_HEADER)
                        texts[at], is_top = "", False
                    elif is_top:
                        is_top = is_empty(text)
                item = item._replace(texts=texts)
            yield item
            continue
        if not isinstance(item, Record) or item.fields != names:
            yield item
        elif not is_top:
            adjusted.add_line(source, item.line, *REPEATED_HEADER)
        is_top = False


def lines_of(items: Iterable[Item], source: str, table: Table) -> Rows:
    """Yield the records that have a field for every column, and a reject for each other one."""
    return _Parser(source, table).parse(items)


class _Parser:
    """Makes rows from the records of a table."""

    def __init__(self, source: str, table: Table) -> None:
        self._source = source
        names, self._count = table.names, len(table.columns)
        self._split, self._splits = table.split or "", dict[str, str | None]()
        self._split_at = None if table.split is None else names.index(table.split)
        self._group_at = None if table.group is None else names.index(table.group)

    def parse(self, items: Iterable[Item]) -> Rows:
        for item in items:
            if isinstance(item, Plain) and (batch := self._batch(item)) is not None:
                yield batch
                continue
            for record in records_of(item, strip=False):
                yield record if isinstance(record, Reject) else self._row(record)

    def _batch(self, lines: Plain) -> RowBatch | None:
        """Return lines as rows, or None to parse them one by one."""
        texts, count = lines.texts, len(lines.texts)
        commas = self._count - 1
        usual = [t for t in texts if t.count(",") == commas and t.strip(EMPTY_FIELDS)]
        if len(usual) < count:
            return None
        groups = None
        splits: list[str | None] = [None] * count
        if self._split_at is not None:
            words = _column(texts, self._split_at)
            try:
                split_of = {word: parse_ml_use(word.strip()) for word in set(words)}
            except ValueError:  # one of them is a reject
                return None
            splits = list(map(split_of.__getitem__, words))
        if self._group_at is not None:
            groups = [group.strip() or None for group in _column(texts, self._group_at)]
        numbers = range(lines.line, lines.line + count)
        return RowBatch(self._source, numbers, splits, [""] * count, texts, groups)

    def _row(self, record: Record) -> Row | Reject:
        line, text, fields = record
        split = group = None
        try:
            if len(fields) != self._count:
                many = len(fields) > self._count
                raise AnnotationError(
                    RejectCode.TOO_MANY_FIELDS if many else RejectCode.BAD_LINE,
                    f"expected {self._count} fields as in the header (got {len(fields)}); quote a "
                    f"field that holds a comma: {text[:80]!r}",
                )
            if not any(fields):
                raise AnnotationError(RejectCode.BAD_LINE, "no field has a value")
            if self._split_at is not None:
                word = fields[self._split_at]
                if word not in self._splits:
                    self._splits[word] = named_split(word.strip(), self._split)
                split = self._splits[word]
        except AnnotationError as exc:
            return exc.reject(self._source, line)
        if self._group_at is not None:
            group = fields[self._group_at].strip() or None
        return Row(self._source, line, split, "", text, group)


def _column(texts: Iterable[str], at: int) -> list[str]:
    return [text.split(",", at + 1)[at] for text in texts]
