r"""Tables as CSV or DataFrames: columns, inferred from all rows before the first one is converted.

    age,job       above   58,management    a header
    58,management above   44,technician    a row: the run stops, unless ``header`` says what it is

A column of whole numbers is int64, a column of other numbers float32, any other column text.
Numbers must look as programs write them: ``007`` and whole numbers of more than 64 bits are text,
because they would lose digits as numbers. Empty fields are missing values and decide nothing, and
so do markers such as ``NA`` and ``?``, which are missing values if all other fields are numbers.

Then each record with a field for every column is a row, whose annotation is its line::

    58,management  →  RowBatch("wines.csv", [2], splits=[None], uris=[""], ["58,management"])

The rows of a DataFrame become lines of CSV, numbered from 1. Its columns of text stay text, even if
all values are digits, and columns of floats stay floats, even if they held whole numbers before
pandas met their gaps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen.core.limits import TABLE_COLUMNS
from recordgen.core.records.numbers import is_marker
from recordgen.core.rows.row import Adjustments, RowBatch
from recordgen.core.task.annotation import AnnotationError, bad_line, named_split
from recordgen.core.task.task import Task
from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats import named_records, table_roles
from recordgen.formats.csv_records import BLOCK_LINES, TOO_LONG, Item, Record, Records, read_blocks
from recordgen.formats.field_kinds import NUMBER, is_like, kind_of, without_padding
from recordgen.formats.format import Layout, OpenFrame, OwnColumns, Rows
from recordgen.formats.header import Given, names_without_blanks, too_many_fields
from recordgen.formats.import_file import open_file
from recordgen.formats.row_parser import columns_of_table
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import REPEATED_HEADER, Reject, RejectCode
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import MAX_RECORD_BYTES, csv_line
from recordgen.tables.roles import TABLE_ROLES
from recordgen.tasks import Tabular

if TYPE_CHECKING:
    import pandas as pd

    from recordgen.formats.import_file import Files

# So many rows show whether the first line is like them.
_ROWS_BELOW = 100

_WORDS_OF_A_NAME = 2

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+")


def find_table(files: Files, options: ConvertOptions) -> Table:
    """Return the columns of import files; each begins with the header, or none does.

    Raises:
        SourceError: a file is missing or unreadable, or begins with a different header.
        UsageError: the columns contradict the options.
    """
    header: list[str] = []
    stats: dict[str, table_roles.ColumnStats] = {}
    header_file = ""
    is_bare = options.columns.header == "no"
    for file in files:
        with open_file(file, options.encoding) as lines:
            blocks = read_blocks(lines, file.path)
            begin = list(islice(blocks, 2))
            if not begin:
                continue
            item = begin[0]
            if isinstance(item, Reject):
                if not header:
                    raise SourceError(f"{file.path}:{item.line}: unreadable header: {item.message}")
            else:
                first = next(item.each())
                where = f"{file.path}:{first.line}"
                if not header:
                    header, header_file = names_of(first, begin, where, options), file.path
                    stats = {name: table_roles.ColumnStats() for name in header}
                elif is_bare:
                    _check_width(first, header, where)
                else:
                    _check_header(first.fields, header, file.path, where, header_file)
            rows = fitted(chain(begin, blocks), len(header))
            if not is_bare:
                # The reader of the rows reports repeated headers, so they are not collected here.
                rows = without_headers(rows, header, file.path, Adjustments())
            table_roles.add_records(rows, [*stats.values()])
    if not header:
        raise SourceError(f"{files[0].path}: this table is empty; it needs a header and rows")
    table = table_roles.decide_table(stats, options, table_roles.schema_types(header, options))
    return replace(table, is_bare=is_bare)


def table_of(
    names: Sequence[str], items: Iterable[Item], options: ConvertOptions, types: Mapping[str, str]
) -> Table:
    """Return the columns of records that have names and, as far as known, types.

    Raises: UsageError: the options do not fit.
    """
    stats = {name: table_roles.ColumnStats() for name in names}
    table_roles.add_records(items, [*stats.values()])
    return table_roles.decide_table(stats, options, types)


def _check_width(first: Record, names: Sequence[str], where: str) -> None:
    """Check that a file without a header has the columns of the first file."""
    if len(first.fields) != len(names):
        got = f"expected {len(names)} fields as in the first file (got {first.text!r:.200})"
        raise SourceError(f"{where}: {got}; convert tables with other columns separately")


def _check_header(
    fields: Sequence[str], header: Sequence[str], path: str, where: str, header_file: str
) -> None:
    """Check that a later file begins with the header. Raises: NotUnderstoodError."""
    if (names := named(without_padding(fields))) == header:
        return
    more, lacking = {*names} - {*header, ""}, {*header} - {*names}
    fullest = path if len(more) > len(lacking) else header_file
    differing = listed(sorted(more | lacking)) or "the order of its columns"
    source = fullest if len(lacking) < len(header) else ""
    what = f"the first line differs from the header of {header_file} by {differing}"
    raise NotUnderstoodError(f"{where}: {what}; repeat it, or convert this alone", source=source)


# --- the first line -----------------------------------------------------------------------------


def names_of(first: Record, some: Iterable[Item], where: str, options: ConvertOptions) -> list[str]:
    """Return the names of columns: the header, or numbers from 1 if the file has none.

    Args:
        first: the first record.
        some: the records of the file, or the first of them.
        where: file and line of the first record.
        options: ``header``, and the options that name columns.

    Raises: SourceError: the first line is no header, or its names cannot be names of features.
    """
    fields, names = first.fields, names_without_blanks(first.fields)
    if len(fields) == 1 and "," in fields[0]:
        raise SourceError(f"{where}: the line is quoted as one field; remove these quotes")
    _check_columns(fields, where)
    if options.columns.header == "no":
        return [str(number) for number, _ in enumerate(fields, start=1)]
    found = (item.rows(strip=True) for item in some if not isinstance(item, Reject))
    rows = [row for row in islice(chain.from_iterable(found), 1, _ROWS_BELOW + 1) if row != names]
    given = {options.columns.target, options.columns.weight, options.columns.split}
    is_named = any(it in names and not NUMBER.fullmatch(it) for it in given if it)
    is_open = options.columns.header == AUTO and not is_named
    if is_open and (why := _why_row(fields, rows)):
        from recordgen.formats.proposal import propose_table  # most tables need none

        what = f"this line reads as a row, not as the names of columns: {why} ({first.text:.100})"
        reason = f"{where}: {what}; if it is the header, use --columns header=yes"
        raise NotUnderstoodError(reason, options=propose_table([fields, *rows]))
    return check_header(fields, where)


def check_header(fields: Sequence[str], where: str) -> list[str]:
    """Return the names of columns. Raises: SourceError: they cannot be names of features."""
    names = named(without_padding(fields))
    _check_columns(names, where)
    if "" in names:
        raise SourceError(f"{where}: column {names.index('') + 1} has no name in the header")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{where}: two columns are named {listed(twice)}; rename one")
    return names


def _check_columns(names: Sequence[str], where: str) -> None:
    """Check how many columns there are: not too many, nor one that is several, without commas."""
    try:
        TABLE_COLUMNS.check(len(names), where)
    except ValueError as exc:
        raise SourceError(str(exc)) from exc
    is_one = len(names) == 1
    found = is_one and any(sign in names[0] for sign in ("::", ";", "\t", "|"))
    if found or (is_one and len(names[0].split()) > _WORDS_OF_A_NAME):
        raise SourceError(f"{where}: expected commas, semicolons, tabs or bars: {names[0]:.80}")


def _why_row(fields: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return why a first line reads as a row of a table, or "" if it reads as a header."""
    if number := next(filter(NUMBER.fullmatch, fields), None):
        return f"{number!r} is a number"
    columns = [[row[at] for row in rows if at < len(row)] for at in range(len(fields))]
    pairs = zip(fields, columns, strict=True)
    alike = [field for field, values in pairs if field and _is_like(field, values)]
    if alike and len(alike) * 2 >= len(fields):
        return f"{alike[0]!r} is like the values below it"
    return ""


def _is_like(field: str, values: Sequence[str]) -> bool:
    """Return whether a field occurs below it, or has the kind or the form of the fields there."""
    if not (kind := _kind(field)):
        return is_like(field, values)
    filled = list(filter(None, values))
    return field in values or (bool(filled) and all(_kind(value) == kind for value in filled))


def _kind(field: str) -> str:
    return "email" if _EMAIL.fullmatch(field.strip()) else kind_of(field.strip())


def named(header: Sequence[str]) -> list[str]:
    """Return names without blanks around them; the first may be empty, as pandas' index is."""
    names = names_without_blanks(header)
    return [table_roles.INDEX, *names[1:]] if names and not names[0] else names


def fitted(items: Iterable[Item], width: int) -> Iterator[Item]:
    """Yield items without the empty fields that spreadsheets add behind the last column."""
    for item in items:
        if isinstance(item, Records) and (item.quoted or ",\n" in "\n".join([*item.texts, ""])):
            texts, quoted = [_fitted(text, width - 1) for text in item.texts], {**item.quoted}
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
    # It is in every header.
    sure = max({*names} - {table_roles.INDEX}, key=len, default="").replace('"', '""')
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
    for item in items:
        yield from [item] if isinstance(item, Reject) else _lines(item, source, table)


def _lines(records: Records, source: str, table: Table) -> Iterator[RowBatch | Reject]:
    """Yield the rejects among records, and the others together."""
    count, names = len(table.columns), table.names
    odd = records.of_other_widths(count)
    errors = {at: _of_width(width, count, records.texts[at]) for at, width in odd.items()}
    records = yield from _without(records, errors, source)
    splits: Sequence[str | None] = [None] * len(records.texts)
    if table.split is not None:
        words = _column(records, names.index(table.split))
        found, wrong = dict[str, str | None](), dict[str, AnnotationError]()
        for word in {*words}:
            try:
                found[word] = named_split(word.strip(), table.split)
            except AnnotationError as exc:
                wrong[word] = exc
        errors = {at: wrong[word] for at, word in enumerate(words) if word in wrong}
        records = yield from _without(records, errors, source)
        splits = [found[word] for word in words if word not in wrong]
    groups = None
    if table.group is not None:
        groups = [text.strip() or None for text in _column(records, names.index(table.group))]
    if texts := records.texts:
        yield RowBatch(source, records.lines, splits, [""] * len(texts), texts, groups)


def _without(
    records: Records, errors: Mapping[int, AnnotationError], source: str
) -> Generator[Reject, None, Records]:
    """Yield a reject for each record with an error, and return the others."""
    for at, error in errors.items():
        yield error.reject(source, records.lines[at])
    return records.without(errors)


def _of_width(width: int, count: int, text: str) -> AnnotationError:
    """Return the error about a record with too many fields, too few, or only empty ones."""
    if not width:
        return bad_line("no field has a value")
    code = RejectCode.TOO_MANY_FIELDS if width > count else RejectCode.BAD_LINE
    return AnnotationError(code, f"{too_many_fields(count, width)}: {text[:80]!r}")


def _column(records: Records, at: int) -> list[str]:
    """Return the fields of a column, which all records have."""
    if records.quoted:
        return [row[at] for row in records.rows()]
    return [text.split(",", at + 1)[at] for text in records.texts]


# --- files and DataFrames ------------------------------------------------------------------------

_DTYPES = {
    "integer": "int64",
    "floating": "float32",
    "mixed-integer-float": "float32",
    "decimal": "",  # the digits decide
}


class TableParser(OwnColumns):
    """Makes rows from the lines of tables, and from DataFrames."""

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
    def layout(cls, files: Files, options: ConvertOptions) -> Layout:
        table = find_table(files, options)
        decided = replace(options, table=table.to_json())
        return Layout(decided, columns_of_table(table), options.columns.header != "no")

    @classmethod
    def open_frame(cls, frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
        table = frame_table(frame, options)
        decided = replace(options, table=table.to_json())
        items = _frame_records(frame, table.target if table.has_labels else None)
        rows = lines_of(items, named_records.SOURCE, table)
        return OpenFrame(decided, rows, columns_of_table(table))

    @classmethod
    def wrong_role(cls, roles: Iterable[str]) -> str:
        wrong = [role for role in roles if role not in ("split", *TABLE_ROLES)]
        if not wrong:
            return ""
        remedy = "name the column to predict with --columns target=NAME"
        return f"columns: a table has split, target and weight, and no {wrong[0]!r}; {remedy}"


def frame_table(frame: pd.DataFrame, options: ConvertOptions) -> Table:
    """Return the columns of a frame.

    Raises:
        SourceError: the names of its columns cannot be names of features.
        UsageError: the columns contradict the options.
    """
    header = check_header([str(name) for name in frame.columns], named_records.SOURCE)
    types = table_roles.schema_types(header, options)
    if not types:
        types = {name: _frame_dtype(frame.iloc[:, at]) for at, name in enumerate(header)}
    classes = _classes_with_gaps(frame, header, options)
    if classes is not None:
        types = {**types, classes: "int64"}
    return table_of(header, _frame_records(frame, classes), options, types)


def _classes_with_gaps(
    frame: pd.DataFrame, header: Sequence[str], options: ConvertOptions
) -> str | None:
    """Return the target if it holds numbers of classes, which gaps made floats; else None.

    Raises: UsageError: such a target may also hold amounts, and no option says which.
    """
    target = options.columns.target
    if target not in header or not _was_whole(column := frame.iloc[:, header.index(target)]):
        return None
    if options.columns.prediction == AUTO and column.nunique() <= table_roles.MAX_CLASSES:
        what = f"the target {target!r} holds floats and gaps, and all floats are whole"
        remedy = f"for classes, use --columns target:class={target}"
        raise UsageError(f"{what}: {remedy}, for amounts target:number={target}")
    return target if options.columns.prediction == "classification" else None


def _frame_dtype(column: pd.Series[Any]) -> str:
    import pandas as pd

    cells = column.astype(object)
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if kind.startswith("mixed"):
        are_there = [not (isinstance(cell, str) and is_marker(cell.strip())) for cell in cells]
        kind = pd.api.types.infer_dtype(cells[np.array(are_there, bool)], skipna=True)
    return _DTYPES.get(kind, "bytes")


def _was_whole(column: pd.Series[Any]) -> bool:
    """Return whether a column of floats has gaps and otherwise only whole numbers."""
    present = column.dropna()
    has_gaps = column.dtype.kind == "f" and 0 < len(present) < len(column)
    return has_gaps and bool((present % 1 == 0).all())


def _frame_records(frame: pd.DataFrame, classes: str | None) -> Iterator[Item]:
    """Yield the rows of a frame; the column ``classes`` may hold whole numbers as floats."""
    names = names_without_blanks(frame.columns)
    rows = (
        (line, [_field(cell, name, line, classes) for cell, name in zip(row, names, strict=True)])
        for line, row in enumerate(named_records.frame_cells(frame), start=1)
    )
    return table_items(rows, named_records.SOURCE)


def _field(value: Any, column: str, line: int, classes: str | None) -> str:
    """Return a cell as a field; None is empty. Raises: UsageError: it is not a single value."""
    dimensions: int = getattr(value, "ndim", 0)
    if isinstance(value, dict | bytes) or named_records.is_list(value) or dimensions:
        what = f"column {column!r} must hold single values or texts (got {value!r:.80})"
        raise UsageError(f"row {line} of the DataFrame: {what}")
    value = named_records.as_before_gaps(value) if column == classes else value
    return "" if value is None else str(value)


def table_items(rows: Iterable[tuple[int, list[str] | Reject]], source: str) -> Iterator[Item]:
    """Yield numbered rows as lines of CSV, and a reject for each row that cannot be one."""
    lines, texts, quoted = list[int](), list[str](), dict[int, list[str]]()
    for line, fields in rows:
        if isinstance(fields, Reject):
            yield fields
            continue
        text = csv_line(fields)
        if (error := _error(text)) is not None:
            yield error.reject(source, line)
            continue
        if '"' in text or not any(fields):
            quoted[len(texts)] = fields
        lines.append(line)
        texts.append(text)
        if len(texts) == BLOCK_LINES:
            yield Records(lines, texts, quoted)
            lines, texts, quoted = [], [], {}
    if texts:
        yield Records(lines, texts, quoted)


def _error(text: str) -> AnnotationError | None:
    """Return why no CSV file could hold a row; None if one can."""
    if "\0" in text:
        return bad_line(f"a row must not hold a NUL (got {text!r:.80})")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        message = f"a row must hold whole characters, not halves of pairs (got {text!r:.80})"
        return AnnotationError(RejectCode.BAD_ENCODING, message)
    return bad_line(TOO_LONG) if size > MAX_RECORD_BYTES else None
