r"""Tables as CSV: a header, then records with a field for each of its columns.

age,job           header
58,management  →  RowBatch("wines.csv", [2], splits=[None], uris=[""], ["58,management"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from recordgen.dataset.splits import parse_ml_use
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments, RowBatch
from recordgen.sources.csv_records import EMPTY_FIELDS, Item, Plain, Record, is_empty, read_blocks
from recordgen.sources.header import Given
from recordgen.sources.odd_lines import note_header
from recordgen.tables.columns import BLOCK_CHARACTERS, BLOCK_LINES, Table
from recordgen.tables.csv_fields import read_fields, split_plain
from recordgen.tasks import Tabular
from recordgen.tasks.task import Task


def parse_lines(
    lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
) -> Iterator[RowBatch | Reject]:
    r"""Yield the lines of an import file that have a field for every column, and rejects of others.

    Args:
        lines: without their ``\n``, see :mod:`recordgen.sources.csv_records`.
        source: the file's name, for rows and messages.
        task: knows which columns there are.
        adjusted: gets headers and byte order marks among the rows.
        given: is not used: the columns are decided.

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

    Args:
        items: what a file holds.
        names: the fields of a header.
        on_repeated: is called with the line of each header behind the first record.
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


def lines_of(items: Iterable[Item], source: str, table: Table) -> Iterator[RowBatch | Reject]:
    """Yield the records that have a field for every column, many at a time.

    What the fields hold is looked at when examples are made of them.
    """
    taking = _Taking(source, table)
    for item in items:
        if isinstance(item, Reject):
            yield item
        elif isinstance(item, Record):
            yield from taking.take(item)
        else:
            yield from taking.take_plain(item)
        if taking.is_full:
            yield from taking.hand_over()
    yield from taking.hand_over()


class _Taking:
    """Takes records that have a field for every column; others are rejects."""

    def __init__(self, source: str, table: Table) -> None:
        self._source = source
        self._names = table.names
        self._split = table.split
        self._group_at = None if table.group is None else self._names.index(table.group)
        self._split_at = None if table.split is None else self._names.index(table.split)
        # What lines name as their split, by what stands in them.
        self._splits: dict[str, str | None] = {"": None}
        self._begin()

    def _begin(self) -> None:
        self._lines: list[int] = []
        self._named: list[str | None] = []
        self._texts: list[str] = []
        self._size = 0  # characters of what was found

    @property
    def is_full(self) -> bool:
        return len(self._lines) >= BLOCK_LINES or self._size >= BLOCK_CHARACTERS

    def hand_over(self) -> Iterator[RowBatch]:
        if self._lines:
            uris = [""] * len(self._lines)
            at = self._group_at
            groups = None if at is None else [self._group(text, at) for text in self._texts]
            yield RowBatch(self._source, self._lines, self._named, uris, self._texts, groups)
        self._begin()

    def _group(self, text: str, at: int) -> str | None:
        fields = next(read_fields([text])) if '"' in text else text.split(",")
        return fields[at].strip() or None

    def take(self, record: Record) -> Iterator[Reject]:
        split = self._checked(record)
        if isinstance(split, Reject):
            yield split
            return
        self._lines.append(record.line)
        self._named.append(split)
        self._texts.append(record.text)
        self._size += len(record.text)

    def take_plain(self, lines: Plain) -> Iterator[Reject]:
        commas, at, known = len(self._names) - 1, self._split_at, self._splits
        numbers, splits, texts = self._lines, self._named, self._texts
        found = lines.texts
        usual = [t for t in found if t.count(",") == commas and t.strip(EMPTY_FIELDS)]
        if len(usual) == len(found):
            values = [""] if at is None else [text.split(",", at + 1)[at] for text in found]
            if known.keys() >= set(values):
                numbers += range(lines.line, lines.line + len(found))
                splits += [None] * len(found) if at is None else map(known.__getitem__, values)
                texts += found
                self._size += sum(map(len, found))
                return
        for line, text in enumerate(lines.texts, start=lines.line):
            # What most lines look like; all others are looked at more closely.
            if text.count(",") == commas and text.strip(EMPTY_FIELDS):
                named = "" if at is None else text.split(",", at + 1)[at]
                if named in known:
                    numbers.append(line)
                    splits.append(known[named])
                    texts.append(text)
                    self._size += len(text)
                    continue
            if not is_empty(text):
                yield from self.take(Record(line, text, split_plain(text)))

    def _checked(self, record: Record) -> str | Reject | None:
        """Return the split that a record names, or why it is not taken."""
        line, text, fields = record
        if len(fields) != len(self._names):
            many = len(fields) > len(self._names)
            message = (
                f"expected {len(self._names)} fields as in the header (got {len(fields)}); quote "
                f"a field that holds a comma: {text[:80]!r}"
            )
            return self._reject(
                line, RejectCode.TOO_MANY_FIELDS if many else RejectCode.BAD_LINE, message
            )
        if not any(fields):
            return self._reject(line, RejectCode.BAD_LINE, "no field has a value")
        if self._split_at is None:
            return None
        named = fields[self._split_at]
        try:
            split = self._splits[named] = parse_ml_use(named.strip())
        except ValueError as exc:
            message = f"column {self._split!r}: {exc}"
            return self._reject(line, RejectCode.UNKNOWN_ML_USE, message)
        return split

    def _reject(self, line: int, code: RejectCode, message: str) -> Reject:
        return Reject(self._source, line, "", code.value, message)
