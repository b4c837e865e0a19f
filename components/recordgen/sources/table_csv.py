r"""Tables as CSV: a header, then records with a field for each of its columns.

age,job           header
58,management  →  RowBatch("wines.csv", [2], splits=[None], uris=[""], ["58,management"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from recordgen.dataset.splits import parse_ml_use
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments, Row, RowBatch
from recordgen.sources.csv_records import (
    EMPTY_FIELDS,
    Item,
    Plain,
    Record,
    is_empty,
    read_blocks,
    records_of,
)
from recordgen.sources.header import Given
from recordgen.sources.odd_lines import note_header
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import split_plain
from recordgen.tasks import Tabular
from recordgen.tasks.task import AnnotationError, Task, named_split


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[Row | RowBatch | Reject]:
    """Yield the lines of an import file that have a field for every column, and rejects of others.

    Args: as :meth:`recordgen.sources.row_parser.RowParser.parse_lines`; the columns are decided.

    Raises:
        SourceError: the file as a whole is no CSV, see :mod:`recordgen.sources.layout`.
    """
    del given
    if not isinstance(task, Tabular):
        raise TypeError(f"{task.name} has no table")
    items = read_blocks(lines, source, adjusted)
    items = without_headers(items, task.table.names, partial(note_header, adjusted, source))
    return lines_of(items, source, task.table)


def without_headers(
    items: Iterable[Item], names: Sequence[str], on_repeated: Callable[[int], None]
) -> Iterator[Item]:
    """Yield what is no header: files that were put together have one wherever another begins.

    ``on_repeated`` is called with the line of each header behind the first record.
    """
    sure = max(names, key=len)  # no line without it is a header
    is_top = True
    for item in items:
        found: list[int] = []
        if isinstance(item, Plain):
            if sure in "\n".join(item.texts):
                texts = list(item.texts)
                for at, text in enumerate(item.texts):
                    if split_plain(text) == names:
                        found.append(item.line + at)
                        texts[at] = ""
                is_top = is_top and all(
                    map(is_empty, item.texts[: found[0] - item.line if found else None])
                )
                item = item._replace(texts=texts)
            yield item
        elif isinstance(item, Record) and item.fields == names:
            found.append(item.line)
        else:
            yield item
        for line in found[1:] if is_top else found:
            on_repeated(line)
        is_top = is_top and not found and isinstance(item, Plain) and all(map(is_empty, item.texts))


def lines_of(items: Iterable[Item], source: str, table: Table) -> Iterator[Row | RowBatch | Reject]:
    """Yield the records that have a field for every column, and a reject for each other one."""
    for item in items:
        if isinstance(item, Plain) and (batch := _alike(item, source, table)) is not None:
            yield batch
            continue
        for record in records_of(item, strip=False):
            yield record if isinstance(record, Reject) else _row(record, source, table)


def _alike(lines: Plain, source: str, table: Table) -> RowBatch | None:
    """Return lines as rows; None: look at them one by one."""
    texts, commas = lines.texts, len(table.columns) - 1
    if any(text.count(",") != commas or not text.strip(EMPTY_FIELDS) for text in texts):
        return None
    count, groups = len(texts), None
    splits: list[str | None] = [None] * count
    if table.split is not None:
        words = _column(texts, table.names.index(table.split))
        try:
            split_of = {word: parse_ml_use(word.strip()) for word in set(words)}
        except ValueError:  # one of them is a reject
            return None
        splits = list(map(split_of.__getitem__, words))
    if table.group is not None:
        column = _column(texts, table.names.index(table.group))
        groups = [group.strip() or None for group in column]
    numbers = range(lines.line, lines.line + count)
    return RowBatch(source, numbers, splits, [""] * count, texts, groups)


def _column(texts: Iterable[str], at: int) -> list[str]:
    return [text.split(",", at + 1)[at] for text in texts]


def _row(record: Record, source: str, table: Table) -> Row | Reject:
    line, text, fields = record
    found, count = dict(zip(table.names, fields, strict=False)), len(table.columns)
    try:
        if len(fields) != count:
            raise AnnotationError(
                RejectCode.TOO_MANY_FIELDS if len(fields) > count else RejectCode.BAD_LINE,
                f"expected {count} fields as in the header (got {len(fields)}); quote a field that "
                f"holds a comma: {text[:80]!r}",
            )
        if not any(fields):
            raise AnnotationError(RejectCode.BAD_LINE, "no field has a value")
        split = None
        if table.split is not None:
            split = named_split(found[table.split].strip(), table.split)
    except AnnotationError as exc:
        return exc.reject(source, line)
    group = None if table.group is None else found[table.group].strip() or None
    return Row(source, line, split, "", text, group)
