"""Fields of a line → a row: what the readers of CSV, JSONL and DataFrames share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from recordgen.dataset.splits import is_ml_use
from recordgen.errors import UsageError
from recordgen.options import AUTO
from recordgen.rejects import Reject, RejectCode
from recordgen.rows.row import Adjustments, Row, RowBatch
from recordgen.sources import foreign_formats
from recordgen.sources.csv_records import Item, Plain, read_blocks, records_of
from recordgen.sources.header import (
    KNOWN_COLUMNS,
    NOTHING_GIVEN,
    NOWHERE,
    SPLIT_COLUMNS,
    Given,
    alike,
    column_name,
    find_columns,
    find_path,
    find_split,
)
from recordgen.sources.odd_lines import HEADER, OTHER_HEADER
from recordgen.tasks.task import Task

# How known names are spelled in headers.
_FIRST_NAMES = KNOWN_COLUMNS | {name.replace("_", " ") for name in KNOWN_COLUMNS}
_LONGEST_NAME = max(map(len, _FIRST_NAMES))

#: (fields, source, line) → what the line says
Parser = Callable[[Sequence[str], str, int], "Row | Reject"]


class RowParser(ABC):
    """Makes rows of fields, for one task.

    Class attributes:
        paths: known names of the column that holds paths.
        texts: known names of the column that holds texts; none where payloads are files.
        strips: blanks around a field are no part of it.
    """

    paths: ClassVar[frozenset[str]]
    texts: ClassVar[frozenset[str]] = frozenset()
    strips: ClassVar[bool] = True

    def __init__(self, task: Task, adjusted: Adjustments) -> None:
        self._task = task.for_file()
        self._adjusted = adjusted

    @classmethod
    def parse_lines(
        cls,
        lines: Iterable[bytes],
        *,
        source: str,
        task: Task,
        adjusted: Adjustments,
        given: Given = NOTHING_GIVEN,
    ) -> Iterator[Row | RowBatch | Reject]:
        r"""Parse the physical lines of an import file.

        Args:
            lines: without their ``\n``, see :mod:`recordgen.sources.csv_records`.
            source: the file's name, for rows and messages.
            task: reads the fields of annotations.
            adjusted: gets what is changed to make rows usable.
            given: what options say about columns.

        Raises:
            SourceError: the file as a whole is no CSV of rows: :mod:`recordgen.sources.layout`.
            UsageError: as :meth:`begin`.
        """
        items = read_blocks(lines, source, adjusted)
        return cls(task, adjusted).parse_records(items, source, given)

    def parse_records(
        self, items: Iterable[Item], source: str, given: Given
    ) -> Iterator[Row | RowBatch | Reject]:
        """Parse the records of an import file, the first of which may be a header.

        Raises: as :meth:`begin`.
        """
        parse: Parser | None = None
        repeated: Sequence[str] | None = None
        begin = 0
        may_have_headers = given.header != "no"
        for item in items:
            if isinstance(item, Plain) and parse is not None:
                batch = self.parse_alike(item, parse, repeated, source)
                if batch is not None:
                    yield batch
                    continue
            for record in records_of(item, strip=self.strips):
                if isinstance(record, Reject):
                    yield record
                    continue
                line, _, fields = record
                if parse is None and any(fields):
                    names = [field.strip() for field in fields]
                    parse, is_header = self.begin(names, given, f"{source}:{line}")
                    repeated, begin = (fields if is_header else None), line
                if fields == repeated:
                    if line > begin:
                        self._adjusted.add_line(source, line, *HEADER)
                    continue
                if may_have_headers and line > begin and self._reads_as_header(fields):
                    self._adjusted.add_line(source, line, *OTHER_HEADER)
                yield (parse or self.parse_row)(fields, source, line)

    def _reads_as_header(self, fields: Sequence[str]) -> bool:
        """Say whether a line reads as the header of another file."""
        first = fields[0] if fields else ""
        # What no header begins with is no header: that settles nearly every line.
        if len(first) > _LONGEST_NAME or first.lower() not in _FIRST_NAMES:
            return False
        return self.is_header(fields) and not any(field and is_ml_use(field) for field in fields)

    def parse_alike(
        self, lines: Plain, parse: Parser, repeated: Sequence[str] | None, source: str
    ) -> RowBatch | None:
        """Parse lines without quotes that have the same columns; None: look at them one by one.

        ``repeated`` are the fields of the header; None: there is none.
        """
        return None

    @abstractmethod
    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line whose columns go by position."""

    @abstractmethod
    def names_columns(self, fields: Sequence[str]) -> bool:
        """Say whether a line can only be a header: it names the column of payloads."""

    @abstractmethod
    def to_row(
        self, ml_use: str, path: str, text: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        """Make a row of what its columns hold; ``fields`` are those of the annotation."""

    def begin(self, fields: Sequence[str], given: Given, where: str) -> tuple[Parser, bool]:
        """Return the parser of a file's lines, and whether its first line is a header.

        Raises:
            UsageError: the line is a header of which no row can be made; or the given columns are
                not there, or the task has none of that kind.
        """
        self.check_roles(given)
        if given.header == "no":
            return self._without_header(fields, given, where), False
        if not given.roles and (foreign := foreign_formats.of_header(fields)) is not None:
            raise foreign.error(where)
        is_known = given.header == AUTO and self.is_header(fields)
        if given.settles_header or is_known:
            names = given.rename(fields, where)
            if not self.is_header(names) and not (given.roles and self._has_payload(names)):
                raise UsageError(f"{where}: {self._unknown(fields)}")
            return self.by_header(names, group=given.find_group(fields, where)), True
        if given.roles or given.group:
            return self._without_header(fields, given, where), False
        if self.names_columns(fields) or self._names_all_but_payload(fields):
            raise UsageError(f"{where}: {self._unknown(fields)}")
        return self.parse_row, False

    def _without_header(self, fields: Sequence[str], given: Given, where: str) -> Parser:
        """Return the parser of a file's lines whose columns have no names. Raises: UsageError."""
        if given.roles:
            header = given.numbered(fields, where)
            return self.by_header(header, is_whole=False, group=given.find_group(header, where))
        if given.group:
            raise UsageError(
                f"{where}: without a header, group_by={given.group} needs the numbers of the other "
                f"columns too, such as --columns path=2,label=3; or add a header"
            )
        return self.parse_row

    def check_roles(self, given: Given) -> None:
        """Check that the task has the roles that are given. Raises: UsageError."""
        roles = ["path", *(["text"] if self.texts else []), "split", *self._task.columns]
        for role in given.roles:
            if role not in roles or not self._task.columns.get(role, True):
                raise UsageError(
                    f"columns: {self._task.name} has no role {role!r}; its roles are "
                    f"{', '.join(r for r in roles if self._task.columns.get(r, True))}"
                )

    def columns_of(self, header: Sequence[str]) -> dict[str, list[int]]:
        """Return the columns that a header in known names has, by role; none has an empty list."""
        found = {
            "split": [find_split(header)],
            "path": [find_path(header, self.paths)],
            "text": find_columns(header, self.texts)[:1],
        }
        for role, names in self._task.columns.items():
            columns = find_columns(header, names)
            found[role] = list(alike(header, columns)) if columns else []
        return {role: [at for at in where if at != NOWHERE] for role, where in found.items()}

    def _has_payload(self, header: Sequence[str]) -> bool:
        columns = self.columns_of(header)
        return bool(columns["path"] or columns["text"])

    def is_header(self, fields: Sequence[str]) -> bool:
        """Say whether a line names the column of payloads and, if it has more, another one."""
        named = {role for role, where in self.columns_of(fields).items() if where}
        return bool(named & {"path", "text"}) and (
            len(fields) == 1 or not named <= {"path", "text"}
        )

    def _names_all_but_payload(self, fields: Sequence[str]) -> bool:
        """Say whether a line names columns of two roles, but none of payloads."""
        named = {column_name(field) for field in fields}
        kinds = (SPLIT_COLUMNS, *self._task.columns.values())
        return sum(not named.isdisjoint(kind) for kind in kinds) > 1 and not any(
            map(self.is_payload, fields)
        )

    def is_payload(self, field: str) -> bool:
        """Say whether a field names a file."""
        return False

    def _unknown(self, fields: Sequence[str]) -> str:
        """Return what to do about a header of which no row can be made."""
        subject = "text" if self.texts else "path"
        known = self.columns_of(fields)
        first = next((fields[at] for role in ("text", "path") for at in known[role]), None)
        missing = (
            "none is known that holds labels" if first else f"none is known that holds {subject}s"
        )
        shown = ",".join(fields)
        example = f"{subject}={first or '…'},label=…"
        return (
            f"this line names columns, and {missing} ({shown:.200}); say which column holds what, "
            f"such as --columns {example}, or, if the line is a row, --header no"
        )

    def by_header(
        self, header: Sequence[str], *, is_whole: bool = True, group: int = NOWHERE
    ) -> Parser:
        """Return the parser of lines whose columns a header in known names says.

        ``is_whole``: lines have no more columns than these.
        """
        columns = self.columns_of(header)
        check_twice(header, columns)
        split, path, text = ((*columns[role], NOWHERE)[0] for role in ("split", "path", "text"))
        annotation = [
            index
            for role in self._task.columns
            for index in (columns[role] if self.takes_labels else (*columns[role], NOWHERE)[:1])
        ]
        count = len(header) if is_whole else NOWHERE
        return ByHeader(self, Places(split, path, annotation), text, count, group)

    @property
    def takes_labels(self) -> bool:
        """Whether an annotation is nothing but labels."""
        return len(self._task.columns) == 1


class Places(NamedTuple):
    """The indices of columns; :data:`NOWHERE`: there is none.

    Attributes:
        split: the one of splits.
        path: the one of paths.
        annotation: those of annotations, as the task takes them.
    """

    split: int
    path: int
    annotation: Sequence[int]


@dataclass(frozen=True)
class ByHeader:
    """Parses lines whose columns a header names.

    Attributes:
        parser: makes rows of what they hold.
        places: where columns are.
        text: the index of the column of texts.
        count: how many fields lines have at most.
        group: the index of the column of groups.
    """

    parser: RowParser
    places: Places
    text: int
    count: int
    group: int = NOWHERE

    def __call__(self, row: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line."""
        split, path, annotation_at = self.places
        if len(row) > self.count and any(field.strip() for field in row[self.count :]):
            message = (
                f"expected {self.count} fields as in the header (got {len(row)}); quote a field "
                f"that holds a comma"
            )
            code = RejectCode.TOO_MANY_FIELDS.value
            return Reject(source, line, at(row, path), code, message)
        annotation = [at(row, index) for index in annotation_at]
        if self.parser.takes_labels:
            annotation = list(filter(None, annotation))
        text = row[self.text] if self.text < len(row) else ""
        made = self.parser.to_row(at(row, split), at(row, path), text, annotation, source, line)
        if self.group == NOWHERE or isinstance(made, Reject):
            return made
        return made._replace(group=at(row, self.group) or None)


def check_twice(header: Sequence[str], columns: dict[str, list[int]]) -> None:
    """Check that no role but the label's has two columns of one name. Raises: UsageError."""
    for role, found in columns.items():
        for index in found if role != "label" else ():
            if list(header).count(header[index]) > 1:
                raise UsageError(
                    f"two columns are named {header[index]!r} ({','.join(header):.200}); rename "
                    f"one, or give the number of the other: --columns {role}={index + 1}"
                )


def at(row: Sequence[str], index: int) -> str:
    """Return a field, stripped; "": the line is shorter."""
    return row[index].strip() if index < len(row) else ""


def without_padding(fields: Sequence[str]) -> Sequence[str]:
    """Return fields without the empty ones at their end."""
    end = len(fields)
    while end and not fields[end - 1]:
        end -= 1
    return fields[:end]
