"""Rows of a table whose columns a schema declares: a CSV, a DataFrame, or named records.

The first line of a CSV is a header with ``--columns header=yes`` or, by default, if a field is a
declared column. Then columns may be in any order, and undeclared columns are ignored. Without a
header, the file has exactly the declared columns, in the declared order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recordgen.core.rows.row import Adjustments, Row, batched
from recordgen.core.task.annotation import AnnotationError, named_split
from recordgen.core.task.task import Task
from recordgen.errors import SourceError, UsageError
from recordgen.formats.csv_records import each_record, read_blocks
from recordgen.formats.format import Layout, OpenFrame, OwnColumns, Rows
from recordgen.formats.header import NOTHING_GIVEN, NOWHERE, Given, names_without_blanks
from recordgen.formats.import_file import Files, open_file
from recordgen.formats.named_records import SOURCE, as_before_gaps, frame_cells
from recordgen.formats.objects import StoredFile
from recordgen.formats.pictures import in_addresses
from recordgen.formats.row_parser import columns_of_table
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import REPEATED_HEADER, Reject, RejectCode
from recordgen.tasks import Declared, task_for

if TYPE_CHECKING:
    import pandas as pd

    from recordgen.tables.columns import Schema


class DeclaredParser(OwnColumns):
    """Makes rows from the lines of a CSV with the columns of a schema."""

    @classmethod
    def parse_lines(
        cls, lines: Iterable[bytes], *, source: str, task: Task, adjusted: Adjustments, given: Given
    ) -> Iterator[Row | Reject]:
        """Parse the physical lines of a CSV, see :class:`CsvParser`.

        Raises:
            SourceError: the file as a whole is not a CSV, or its columns do not match the schema.
        """
        task = declared(task)
        schema = task.schema
        columns: Sequence[int] | None = None
        count, group_at, begin = 0, NOWHERE, 0
        repeated: Sequence[str] | None = None
        for item in each_record(read_blocks(lines, source, adjusted)):
            if isinstance(item, Reject):
                yield item
                continue
            fields = item.fields
            if columns is None:
                first = names_without_blanks(fields)
                columns, is_header = _columns(first, schema, given.header, f"{source}:{item.line}")
                count, begin = len(fields), item.line
                group_at = given.find_group(first, f"{source}:{item.line}")
                repeated = fields if is_header else None
            if fields == repeated:
                if item.line > begin:
                    adjusted.add_line(source, item.line, *REPEATED_HEADER)
                continue
            if len(fields) != count:
                what = f"expected {count} fields, as the first line has (got {len(fields)})"
                message = f"{what}; quote a field that holds a comma"
                yield Reject(source, item.line, "", RejectCode.TOO_MANY_FIELDS.value, message)
            else:
                record = dict(zip(schema.columns, (fields[at] for at in columns), strict=True))
                group = fields[group_at].strip() if group_at != NOWHERE else ""
                yield declared_row(record, source, item.line, task, group)

    @classmethod
    def layout(cls, files: Files, options: ConvertOptions) -> Layout:
        task = declared(task_for(options))
        with open_file(files[0], options.encoding) as lines:
            records = each_record(read_blocks(lines, files[0].path))
            first = next((item.fields for item in records if not isinstance(item, Reject)), [])
        has_names = _is_header(names_without_blanks(first), task.schema, options.columns.header)
        return Layout(options, columns_of_table(task.table), has_names)

    @classmethod
    def open_frame(cls, frame: pd.DataFrame, options: ConvertOptions) -> OpenFrame:
        task = declared(task_for(options))
        rows = batched(frame_rows(frame, task, Given.of(options)))
        return OpenFrame(options, rows, columns_of_table(task.table))

    @classmethod
    def wrong_role(cls, roles: Iterable[str]) -> str:
        return "columns: the schema already names the columns; omit one of the two" if roles else ""


def frame_rows(frame: pd.DataFrame, task: Task, given: Given = NOTHING_GIVEN) -> Rows:
    """Yield a Row or a Reject for each row of a frame with the columns of the schema.

    Other columns are ignored. Missing values are empty fields; a value of ``floats`` may be a list
    or an array.

    Raises: UsageError: a column is missing, or there twice.
    """
    task = declared(task)
    schema = task.schema
    names = names_without_blanks(frame.columns)
    at = [_place(name, names, "the DataFrame", UsageError) for name in schema.columns]
    group_at = given.find_group(names, SOURCE)
    for line, cells in enumerate(frame_cells(frame), start=1):
        record = {name: cells[index] for name, index in zip(schema.columns, at, strict=True)}
        group = str(as_before_gaps(cells[group_at])).strip() if group_at != NOWHERE else ""
        yield declared_row(record, SOURCE, line, task, group)


def rows_of_records(
    records: Iterable[tuple[int, Any] | Reject], source: str, task: Declared, given: Given
) -> Iterator[Row | Reject]:
    """Yield the rows of records with the columns of the schema.

    An image is its path, or a :class:`recordgen.formats.objects.StoredFile`, whose path is its uri.
    """
    columns = [*task.schema.columns]
    group = given.find_group(columns, source)
    for item in records:
        if isinstance(item, Reject):
            yield item
            continue
        line, record = item
        values = {name: record.get(name) for name in columns}
        said = values[columns[group]] if group != NOWHERE else None
        stored = {
            name: it for name in task.table.images if isinstance(it := values[name], StoredFile)
        }
        values |= {name: it.path for name, it in stored.items()}
        places = [it and it.place for it in map(stored.get, task.table.images)]
        row = declared_row(values, source, line, task, "" if said is None else str(said))
        yield row if isinstance(row, Reject) else row._replace(addresses=in_addresses(places))


def declared(task: Task) -> Declared:
    """Return the task, which must have a schema. Raises: TypeError."""
    if not isinstance(task, Declared):
        raise TypeError(f"{task.name} has no schema")
    return task


def _columns(
    fields: Sequence[str], schema: Schema, header: str, where: str
) -> tuple[list[int], bool]:
    """Return the index of each declared column, and whether the first line is a header."""
    if _is_header(fields, schema, header):
        return [_place(name, fields, where, SourceError) for name in schema.columns], True
    if len(fields) != len(schema.columns):
        what = f"the line has {len(fields)} fields ({_shown(fields)}), and names no declared column"
        remedy = (
            f"add a header, or declare all in order, ignored ones too ({_shown(schema.columns)})"
        )
        raise SourceError(f"{where}: {what}; {remedy}")
    return list(range(len(fields))), False


def _is_header(fields: Sequence[str], schema: Schema, header: str) -> bool:
    return header == "yes" or (header == AUTO and any(field in schema.columns for field in fields))


def _place(name: str, there: Sequence[str], where: str, error: Callable[[str], Exception]) -> int:
    found = [index for index, field in enumerate(there) if field == name]
    if not found:
        raise error(f"{where}: no column {name!r}, which the schema declares, only {_shown(there)}")
    if len(found) > 1:
        raise error(f"{where}: {len(found)} columns are named {name!r}; rename the others")
    return found[0]


def declared_row(
    record: Mapping[str, Any], source: str, line: int, task: Declared, group: str = ""
) -> Row | Reject:
    """Return the row of a record, which has values by column, or its reject."""
    table = task.table
    image = record.get(table.only_image or "")
    uri = "" if image is None else str(image).strip()
    split = None
    try:
        if table.split is not None:
            split = named_split(str(record.get(table.split) or "").strip(), table.split)
        [content] = task.from_record(record, Adjustments())
    except AnnotationError as exc:
        return exc.reject(source, line, uri)
    return Row(source, line, split, *content, group or None)


def _shown(names: Iterable[str]) -> str:
    return f"{', '.join(names):.200}"
