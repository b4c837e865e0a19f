"""Fields of a line → a row: the part that the readers of CSV, JSONL and DataFrames share."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.rows.row import Adjustments, Row, RowBatch, content_uri
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import ADDING, Task
from recordgen.errors import UsageError
from recordgen.formats import header as headers
from recordgen.formats.csv_records import Item, Records, read_blocks
from recordgen.formats.field_kinds import field_at, without_padding
from recordgen.formats.format import CsvParser, OwnColumns, Rows
from recordgen.formats.header import KNOWN_COLUMNS, NOWHERE, Given, Header, find_columns
from recordgen.formats.label_fields import classes_of, separated
from recordgen.rejects import OTHER_HEADER, REPEATED_HEADER, SKIPPED, Reject
from recordgen.tables.roles import AUTO, BOX_LISTS, BOX_ROLES, LABEL_NUMBER, SIZE_COLUMNS

if TYPE_CHECKING:
    from recordgen.tables.columns import Column, Table


# --- columns that options make of others, or of nothing: each record gets their fields ------------

#     image_id,bbox                image_id,bbox,train/{image_id}.jpg,xmin,ymin,xmax,ymax,'wheat'
#     7,"[10, 20, 30, 40]"    →    7,"[10, 20, 30, 40]",train/7.jpg,10,20,40,60,wheat
#
# with ``--columns "path=train/{image_id}.jpg,xywh=bbox,label='wheat'"``. So whatever reads columns
# finds the path, the corners and the label in them. Braces in a path are written ``{{`` and ``}}``;
# a column that has the template for its name anyway is that column.
#
# The numbers of a box are two corners (``xyxy=bbox``), or one and the width and height
# (``xywh=bbox``, or ``xywh=x|y|w|h`` for four columns), or the center and these (``center_xywh``),
# which only the user can tell.

_Numbers = tuple[float, float, float, float]

# The columns of a list of images, whose labels may hold blanks: ``1000002 Boeing 707``.
_LIST = {"path": ("1",), "label": ("2",)}

_BRACKETS = re.compile(r"\[.*\]|\(.*\)", re.DOTALL)
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")


class Made(NamedTuple):
    """Columns that are made.

    Attributes:
        columns: their names.
        places: the indices of the columns that they are made of.
        fill: the stripped fields of these → a field for each made column.
    """

    columns: Sequence[str]
    places: Sequence[int]
    fill: Callable[[Sequence[str]], Sequence[str]]


def made_below(header: Sequence[str], given: Given, where: str) -> list[Made]:
    """Return the columns that options make below a header, without those that it names itself.

    Raises: UsageError: the header lacks a column that is needed.
    """
    made = []
    names, text = names_in_path(given), given.roles.get("path", ("",))[0]
    if names and text not in header:
        option = f"columns: path={text}"
        places = [headers.column_place(name, header, option, where) for name in names]
        form = _PLACE.sub(lambda place: "%s" if place[1] else place[0][0], text.replace("%", "%%"))
        made.append(Made((text,), places, partial(_path, form)))
    if given.boxes:
        made.append(_boxes(header, given, where))
    labels = [name for name in _constants(given) if name not in header]
    return [*made, *(Made((name,), (), partial(_label, name)) for name in labels)]


def names_in_path(given: Given) -> Sequence[str]:
    """Return the columns in the template that is given for the path; none if it is a column."""
    text = given.roles.get("path", ("",))[0]
    return [place[1].strip() for place in _PLACE.finditer(text) if place[1]]


def _constants(given: Given) -> Sequence[str]:
    return [*filter(headers.is_constant, given.roles.get("label", ()))]


def _label(name: str, _: Sequence[str]) -> Sequence[str]:
    return (name[1:-1].strip(),)


def _path(form: str, values: Sequence[str]) -> Sequence[str]:
    """Return the path for values of the columns in it; "" if one is missing."""
    return (form % tuple(values) if all(values) else "",)


def _boxes(header: Sequence[str], given: Given, where: str) -> Made:
    """Return the columns of corners. Raises: UsageError: their column is missing, or not alone."""
    form, name = given.boxes
    others = [header[at] for at in find_columns(header, BOX_ROLES)]
    if others and len(given.box_columns(header)) == 1:
        raise UsageError(f"{where}: columns: {form}={name}: {', '.join(others)} hold boxes, too")
    return Made(BOX_ROLES, given.box_places(header, where), partial(_corners, form))


def _corners(form: str, values: Sequence[str]) -> Sequence[str]:
    """Return the corners of a box; if there are no four numbers, the text, which is rejected.

    An empty list is no box.
    """
    text = values[0] if len(values) == 1 else ",".join(values)
    text = "" if text in ("[]", "()") else text
    numbers = _numbers_in(text)
    return list(map(repr, corners_of(form, *numbers))) if numbers else [text, *"   "]


def _numbers_in(text: str) -> _Numbers | None:
    """Return the four numbers of a list: ``[1, 2, 3, 4]``, ``(1 2 3 4)``, ``1,2,3,4``."""
    inner = text[1:-1] if _BRACKETS.fullmatch(text) else text
    try:
        x, y, right, down = map(float, inner.split("," if "," in inner else None))
    except ValueError:
        return None
    return (x, y, right, down) if math.isfinite(x + y + right + down) else None


def corners_of(form: str, x: float, y: float, width: float, height: float) -> _Numbers:
    """Return two corners of a box in one of :data:`BOX_LISTS`."""
    if form == "xyxy":
        return x, y, width, height
    if form == "center_xywh":
        x, y = x - width / 2, y - height / 2
    return x, y, x + width, y + height


def with_made_columns(items: Iterable[Item], given: Given, source: str) -> Iterable[Item]:
    """Return the records of a file with the fields of made columns.

    Reading them raises UsageError if the header lacks a column that is needed.
    """
    if given.roles == _LIST:
        items = _divided(items)
    is_made = given.boxes or _constants(given) or (given.header != "no" and names_in_path(given))
    return _filled(items, given, source) if is_made else items


def _divided(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the records of a list, divided at their first blanks if nothing else divides them."""
    is_list: bool | None = None  # until the first records show it
    for item in items:
        if isinstance(item, Records):
            if is_list is None:
                is_list = all(len(row) == 1 and " " in row[0].strip() for row in item.rows())
            if is_list:
                fields = (text.split(maxsplit=1) for text in item.texts)
                item = item._replace(quoted=dict(enumerate(fields)))
        yield item


def _filled(items: Iterable[Item], given: Given, source: str) -> Iterator[Item]:
    header: Sequence[str] = ()
    made: Sequence[Made] = ()
    for item in items:
        if isinstance(item, Reject):
            yield item
            continue
        first = next((record for record in item.each(strip=True) if any(record.fields)), None)
        if not header and first is not None:
            header = first.fields
            if given.header == "no":
                header = [str(at) for at, _ in enumerate(header, start=1)]
            made = made_below(header, given, f"{source}:{first.line}")
        yield from _with_fields(item, header, made, source) if made else [item]


def _with_fields(
    records: Records, header: Sequence[str], made: Sequence[Made], source: str
) -> Iterator[Item]:
    """Yield records with made fields, and rejects of those with fields beyond the header."""
    count = len(header)
    rows = records.rows()
    long = {at for at, fields in enumerate(rows) if any(map(str.strip, fields[count:]))}
    for at in sorted(long):
        yield headers.too_many_fields(count, len(rows[at])).reject(source, records.lines[at])
    whole = [fields[:count] + [""] * (count - len(fields)) for fields in rows]
    filled = {at: [*row, *_made_of(row, header, made)] for at, row in enumerate(whole) if any(row)}
    yield records._replace(quoted={**records.quoted, **filled}).without(long)


def _made_of(row: Sequence[str], header: Sequence[str], made: Sequence[Made]) -> list[str]:
    """Return the made fields of a complete row; their names in a line like the header."""
    if row[0].strip() == header[0] and [field.strip() for field in row] == header:
        return [name for each in made for name in each.columns]
    return [text for each in made for text in each.fill([row[at].strip() for at in each.places])]


# --- rows -----------------------------------------------------------------------------------------


# Spellings of known names in headers.
_FIRST_NAMES = KNOWN_COLUMNS | {name.replace("_", " ") for name in KNOWN_COLUMNS}
_LONGEST_NAME = max(map(len, _FIRST_NAMES))

# One odd row makes this many be parsed one by one, instead of a whole block.
_PIECE = 100

_UNREADABLE = "\ufffd"

#: (fields, source, line) → the row of the line
Parser = Callable[[Sequence[str], str, int], "Row | Reject"]

_Texts = Sequence["str | None"]
#: Splits, uris, annotations and groups, see :class:`RowBatch`.
Columns = tuple[_Texts, Sequence[str], _Texts, "_Texts | None"]


class Places(NamedTuple):
    """The indices of columns; :data:`NOWHERE` if a column is missing.

    Attributes:
        split: the column of splits.
        path: the column of paths.
        annotation: the columns of annotations, in the task's order.
    """

    split: int
    path: int
    annotation: Sequence[int]


class ByHeader:
    """Parses lines whose columns a header names.

    Attributes:
        places: the indices of the columns.
        count: the largest number of fields of a line.
        group: the index of the column of groups.
    """

    def __init__(self, parser: RowParser, header: Header, *, is_whole: bool = True) -> None:
        """Find the columns of a task; ``is_whole``: no line has more columns than the header."""
        columns = parser.columns_of(header.known)
        headers.check_twice(header.known, columns)
        split, path, text = ((*columns[role], NOWHERE)[0] for role in ("split", "path", "text"))
        self._takes_labels = parser.takes_labels
        annotation = [
            at
            for role in parser.roles
            for at in (columns[role] if self._takes_labels else (*columns[role], NOWHERE)[:1])
        ]
        self.places = Places(split, path, annotation)
        self.count = len(header.known) if is_whole else NOWHERE
        self.group = header.group
        self._text = text
        self._to_row = parser.to_row
        self._uncertain = parser.uncertain
        is_plain = not header.classes and parser.uncertain == AUTO
        self._classes = [] if is_plain else [header.classes.get(at, "") for at in annotation]

    def __call__(self, row: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line."""
        split, path, annotation_at = self.places
        if len(row) > self.count and any(field.strip() for field in row[self.count :]):
            error = headers.too_many_fields(self.count, len(row))
            return error.reject(source, line, field_at(row, path))
        annotation = [field_at(row, index) for index in annotation_at]
        if self._takes_labels:
            try:
                annotation = self.labels(annotation)
            except AnnotationError as exc:
                return exc.reject(source, line, field_at(row, path))
        text = row[self._text] if self._text < len(row) else ""
        ml_use, uri = field_at(row, split), field_at(row, path)
        made = self._to_row(ml_use, uri, text, annotation, source, line)
        if self.group == NOWHERE or isinstance(made, Reject):
            return made
        return made._replace(group=field_at(row, self.group) or None)

    def labels(self, fields: Sequence[str]) -> list[str]:
        """Return the labels in the columns of the annotation. Raises: AnnotationError."""
        if not self._classes:
            return list(filter(None, fields))
        return classes_of(fields, self._classes, self._uncertain)


class RowParser(CsvParser):
    """Makes rows from fields, for one task.

    Class attributes:
        paths: known names of the column of paths.
        texts: known names of the column of texts; none if payloads are files.
        strips: whether blanks around a field are removed.
    """

    paths: ClassVar[frozenset[str]]
    texts: ClassVar[frozenset[str]] = frozenset()
    strips: ClassVar[bool] = True

    def __init__(self, task: Task, adjusted: Adjustments) -> None:
        self._task = task
        self._adjusted = adjusted
        self._begun: tuple[Sequence[str], Given, str] | None = None
        self.label_separator = ""
        self.uncertain = AUTO

    @classmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Rows:
        """Parse the physical lines of an import file, see :class:`CsvParser`."""
        parser = cls(task, adjusted)
        uri_in = parser.uri_in if task.labelling in ADDING else None
        items = with_made_columns(read_blocks(lines, source, adjusted, uri_in), given, source)
        return parser.parse_records(items, source, given)

    def parse_records(
        self, items: Iterable[Item], source: str, given: Given, parse: Parser | None = None
    ) -> Rows:
        """Parse the records of an import file.

        Args:
            items: without ``parse``, the first record may be a header.
            source: the file's name.
            given: the options about columns.
            parse: the parser of the records, if their header is known.

        Raises: as :meth:`begin`.
        """
        repeated: Sequence[str] | None = None
        begin = 0
        may_have_headers = given.header != "no"
        for item in items:
            if isinstance(item, Reject):
                yield item
                continue
            rows = item.rows(strip=self.strips)
            if parse and (columns := self.parse_batch(rows, parse, repeated)):
                del rows  # a thousand lists, before the next ones are made
                yield RowBatch(source, item.lines, *columns)
                continue
            stripped = rows if self.strips else item.rows(strip=True)
            for at in range(0, len(rows), _PIECE):
                end = at + _PIECE
                some, lines = rows[at:end], item.lines[at:end]
                is_part = len(some) < len(rows)
                if parse and is_part and (columns := self.parse_batch(some, parse, repeated)):
                    yield RowBatch(source, lines, *columns)
                    continue
                for line, fields, names in zip(lines, some, stripped[at:end], strict=True):
                    if parse is None and any(fields):
                        self._begun = names, given, f"{source}:{line}"
                        parse, is_header = self.begin(*self._begun)
                        repeated, begin = (names if is_header else None), line
                        if is_header:
                            self._note_unused(names, given, source, line)
                    if names == repeated:
                        if line > begin:
                            self._adjusted.add_line(source, line, *REPEATED_HEADER)
                        continue
                    if may_have_headers and line > begin and self._reads_as_header(fields):
                        if _names(fields) == _names(repeated or ()):
                            self._adjusted.add_line(source, line, *REPEATED_HEADER)
                            continue
                        if len(fields) == 1:  # just as likely a text or a name
                            self._adjusted.add_line(source, line, *OTHER_HEADER)
                        else:
                            raise headers.other_header(fields, f"{source}:{line}")
                    yield (parse or self.parse_row)(fields, source, line)

    def parse_below(self, items: Iterable[Item], source: str, given: Given) -> Rows:
        """Parse records whose first one is the header, and no other one. Raises: as :meth:`begin`.

        All records have the fields of the header.
        """
        blocks = iter(items)
        header = next(blocks)
        if isinstance(header, Records):
            names = header.rows(strip=True)[0]
            parse, _ = self.begin(names, given, source)
            self._note_unused(names, given, source, 0)
            given = replace(given, header="no")
            yield from self.parse_records(blocks, source, given, parse)

    def uri_in(self, fields: Sequence[str]) -> str:
        """Return the uri of a line that is unreadable as a whole, or "" if it cannot be told.

        ``fields`` are its fields, in which U+FFFD stands for what is unreadable.
        """
        # A parser of its own: such a line must not adjust anything.
        parser = type(self)(self._task, Adjustments())
        parse = parser.begin(*self._begun)[0] if self._begun else parser.parse_row
        if parser.strips:
            fields = [field.strip() for field in fields]
        uri = parse(fields, "", 0).uri if fields else ""
        lost = [field for field in fields if _UNREADABLE in field]
        return "" if _UNREADABLE in uri or uri in map(content_uri, lost) else uri

    def _reads_as_header(self, fields: Sequence[str]) -> bool:
        """Return whether a line reads as the header of another file."""
        first = fields[0] if fields else ""
        # The first field alone rules out nearly every line.
        if len(first) > _LONGEST_NAME or first.lower() not in _FIRST_NAMES:
            return False
        return self.is_header(fields) and not any(field and is_ml_use(field) for field in fields)

    def has_header(self, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether one of the rows reads as the header of another file."""
        firsts = map(str.lower, map(itemgetter(0), rows))
        return not _FIRST_NAMES.isdisjoint(firsts) and any(map(self._reads_as_header, rows))

    def parse_batch(
        self, rows: Sequence[Sequence[str]], parse: Parser, repeated: Sequence[str] | None
    ) -> Columns | None:
        """Return the columns of rows, or None to parse the rows one by one.

        ``repeated`` are the fields of the header, or None if there is no header.
        """
        return None

    @abstractmethod
    def parse_row(self, fields: Sequence[str], source: str, line: int) -> Row | Reject:
        """Parse the fields of a line of a file without a header."""

    @abstractmethod
    def to_row(
        self, ml_use: str, path: str, text: str, fields: Sequence[str], source: str, line: int
    ) -> Row | Reject:
        """Make a row from the contents of its columns; ``fields`` are the annotation's."""

    def begin(self, fields: Sequence[str], given: Given, where: str) -> tuple[Parser, bool]:
        """Return the parser of a file's lines, and whether its first line is a header.

        Raises:
            UsageError: the line is a header without a column of payloads; or a given column is
                missing; or the task does not have the role of a given column.
        """
        self.check_roles(given)
        self.label_separator, self.uncertain = given.label_separator, given.uncertain
        if not headers.begins_with_header(fields, given):
            return self._without_header(fields, given, where), False
        columns = given.below(fields, where)
        found = self.columns_of(columns.known)
        if not (found["path"] or found["text"]):
            role = "text" if self.texts else "path"
            what = f"this line names no column of {role}s ({','.join(fields):.200})"
            raise UsageError(f"{where}: {what}; name it, such as --columns {role}=…,label=…")
        return ByHeader(self, columns), True

    def _without_header(self, fields: Sequence[str], given: Given, where: str) -> Parser:
        """Return the parser of the lines of a file without a header. Raises: UsageError."""
        if given.roles:
            return ByHeader(self, given.numbered(fields, where), is_whole=False)
        if given.group:
            what = f"without a header, group_by={given.group} needs the numbers of other columns"
            raise UsageError(f"{where}: {what}, such as --columns path=2,label=3")
        return self.parse_row

    def unused(self, header: Header, given: Given) -> list[str]:
        """Return the columns of a header that have no role."""
        used = {at for places in self.columns_of(header.known).values() for at in places}
        sizes = frozenset({LABEL_NUMBER}).union(*SIZE_COLUMNS.values())
        used |= {*find_columns(header.known, sizes), *header.classes, header.group, *header.boxes}
        named = {*chain.from_iterable(given.roles.values()), *names_in_path(given)}
        named |= {"", *(BOX_ROLES if given.boxes else ())}
        return [it for at, it in enumerate(header.names) if at not in used and it not in named]

    def _note_unused(self, names: Sequence[str], given: Given, source: str, line: int) -> None:
        note_unused(self.unused(given.below(names, source), given), self._adjusted, source, line)

    def check_roles(self, given: Given) -> None:
        """Check that the task has the given roles. Raises: UsageError."""
        roles = ["path", *(["text"] if self.texts else []), "split", *self._task.columns]
        roles += BOX_LISTS if BOX_ROLES[0] in roles else ()
        roles = [role for role in roles if self._task.columns.get(role, True)]
        for role in (*given.roles, *given.boxes[:1]):
            if role not in roles:
                raise UsageError(f"columns: {self._task.name} has {', '.join(roles)}, not {role!r}")

    def columns_of(self, header: Sequence[str]) -> dict[str, list[int]]:
        """Return the columns of a header in known names, by role; a missing role has none."""
        split, path = headers.find_split(header), headers.find_path(header, self.paths)
        found = {"split": [split], "path": [path], "text": find_columns(header, self.texts)[:1]}
        for role, names in self._task.columns.items():
            columns = find_columns(header, names)
            found[role] = list(headers.same_named(header, columns)) if columns else []
        return {role: [at for at in where if at != NOWHERE] for role, where in found.items()}

    def is_header(self, fields: Sequence[str]) -> bool:
        """Return whether a line names the payloads' column and, if it has more fields, another."""
        named, payloads = {r for r, at in self.columns_of(fields).items() if at}, {"path", "text"}
        return bool(named & payloads) and (len(fields) == 1 or not named <= payloads)

    def decoded(self, fields: Sequence[str]) -> str | None:
        """Return the annotation of fields that hold labels or boxes. Raises: AnnotationError."""
        if self.takes_labels:
            fields = separated(fields, self.label_separator)
        return self._task.from_fields(fields, self._adjusted)

    @property
    def roles(self) -> Sequence[str]:
        """The roles of the columns of an annotation, in the task's order."""
        return tuple(self._task.columns)

    @property
    def takes_labels(self) -> bool:
        """Whether an annotation consists only of labels."""
        return len(self._task.columns) == 1


def note_unused(names: Sequence[str], adjusted: Adjustments, source: str, line: int) -> None:
    """Note the columns that nothing reads: what they hold is not in the dataset."""
    if names:
        message = f"columns without a role are not read: {', '.join(names):.200}"
        adjusted.add_line(source, line, SKIPPED, message)


def _names(header: Sequence[str]) -> list[str]:
    return [headers.column_name(field) for field in without_padding(header)]


def columns_of_table(table: Table) -> tuple[tuple[str, str], ...]:
    """Return the columns of a table with their types and roles."""
    return tuple((column.name, _shown(column, table)) for column in table.columns)


def _shown(column: Column, table: Table) -> str:
    """Return the type of a column and its roles: ``float``, ``int (target, regression)``."""
    if column.name == table.split:
        return "split"
    roles = ["target", str(table.prediction)] if column.name == table.target else []
    roles += ["group"] if column.name == table.group else []
    return f"{column.type} ({', '.join(roles)})" if roles else str(column.type)


def has_row_parser(task: type[Task]) -> bool:
    """Return whether the lines of a task's CSV are ML_USE, a payload and its annotation.

    The CSV of other tasks has a layout of its own.
    """
    return bool(task.csv_parser) and issubclass(task.declared("csv_parser"), RowParser)


def own_columns(task: type[Task]) -> type[OwnColumns] | None:
    """Return the parser that finds the columns of a task; None if the task declares them."""
    found = task.csv_parser and task.declared("csv_parser")
    return found if found and issubclass(found, OwnColumns) else None


def row_parser(task: Task, adjusted: Adjustments) -> RowParser:
    """Return the task's parser of rows with named fields."""
    parser: RowParser = task.declared("csv_parser")(task, adjusted)
    return parser
