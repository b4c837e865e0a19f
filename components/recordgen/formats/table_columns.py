"""The columns of a table, inferred from all rows before the first row is converted.

A column of whole numbers is int64, a column of other numbers float32, any other column text.
Numbers must look as programs write them: ``007`` and whole numbers of more than 64 bits are text,
because they would lose digits as numbers. Empty fields are missing values and decide nothing, and
so do markers such as ``NA`` and ``?``, which are missing values if all other fields are numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from recordgen import storage
from recordgen.core.rows.row import Adjustments
from recordgen.errors import SourceError, UsageError
from recordgen.formats.by_header import without_padding
from recordgen.formats.column_stats import ColumnStats, add_records
from recordgen.formats.csv_records import Item, Record, read_blocks, records_of
from recordgen.formats.lines import open_file
from recordgen.formats.table_csv import fitted, without_headers
from recordgen.formats.table_header import names_of
from recordgen.formats.table_layout import Layout, columns_of_table
from recordgen.formats.table_roles import decide_table
from recordgen.options import ConvertOptions
from recordgen.quoting import listed
from recordgen.rejects import Reject
from recordgen.tables.columns import Table
from recordgen.tables.csv_fields import is_number

if TYPE_CHECKING:
    from recordgen.formats.import_file import ImportFile


def table_layout(files: Sequence[ImportFile], options: ConvertOptions) -> Layout:
    """Return the columns of tables. Raises: as :func:`find_table`."""
    table = find_table(files, options)
    decided = replace(options, table=table.to_json())
    return Layout(decided, columns_of_table(table), options.columns.header != "no")


def find_table(files: Sequence[ImportFile], options: ConvertOptions) -> Table:
    """Return the columns of import files; the first file begins with a header, or none does.

    Raises:
        SourceError: a file is missing or unreadable, or begins with a different header.
        UsageError: the columns contradict the options.
    """
    header, stats = _read_all(files, options)
    table = decide_table(header, stats, options, schema_types(header, options))
    return replace(table, is_bare=options.columns.header == "no")


def schema_types(header: Sequence[str], options: ConvertOptions) -> Mapping[str, str]:
    """Return the schema's dtypes by column, or none if there is no schema.

    Raises:
        UsageError: the schema does not name exactly the columns of the header, except the split's.
        SourceError: the schema is unreadable.
    """
    if not options.schema_file:
        return {}
    types = _column_types(options.schema_file)
    missing = [name for name in types if name not in header]
    unknown = [name for name in header if name not in types]
    if options.columns.split:
        unknown = [name for name in unknown if name != options.columns.split]
    elif len(unknown) == 1:
        unknown = []  # the split's column, if its values are ML_USE words
    if missing or unknown:
        raise UsageError(
            f"{options.schema_file} must name the columns of the header, except the split's: "
            + "; ".join(
                f"{word} {listed(names)}"
                for word, names in (("it has no", unknown), ("the header has no", missing))
                if names
            )
        )
    return types


def _read_all(
    files: Sequence[ImportFile], options: ConvertOptions
) -> tuple[list[str], list[ColumnStats]]:
    header: list[str] = []
    stats: list[ColumnStats] = []
    header_file = ""
    for file in files:
        with open_file(file, options.encoding) as lines:
            blocks = read_blocks(lines, file.path)
            first, rest = _first_record(blocks)
            if first is None:
                continue
            where = f"{file.path}:{first.line}"
            if isinstance(first, Reject):
                if not header:
                    raise SourceError(f"{where}: cannot read the header: {first.message}")
            elif not header:
                rest += islice(blocks, 1)
                header, header_file = names_of(first, rest, where, options), file.path
                stats = [ColumnStats() for _ in header]
            elif options.columns.header == "no":
                _check_width(first, header, where)
            elif list(without_padding(first.fields)) != header:
                _check_first_row(first, header, stats, file.path, header_file)
                rest.append(first)
            rows: Iterator[Item] = chain(rest, blocks)
            if options.columns.header == "no":
                rows = fitted(chain([first], rows), len(header))
            else:
                # The reader of the rows reports repeated headers, so they are not collected here.
                rows = fitted(rows, len(header))
                rows = without_headers(rows, header, file.path, Adjustments())
            add_records(rows, stats)
    if not header:
        raise SourceError(f"{files[0].path}: this table is empty; it needs a header and rows")
    return header, stats


def _check_width(first: Record, names: Sequence[str], where: str) -> None:
    """Check that a file without a header has the columns of the first file."""
    if len(first.fields) != len(names):
        raise SourceError(
            f"{where}: the first line of the first file has {len(names)} fields (got "
            f"{len(first.fields)}: {first.text!r:.200}); convert tables with other columns "
            f"separately"
        )


def _check_first_row(
    first: Record, header: Sequence[str], stats: list[ColumnStats], path: str, header_file: str
) -> None:
    """Check that the first line of a later file is a row, since it is not the header."""
    fields = first.fields
    named = len(set(fields) & set(header))
    # Rows usually contain a number and headers do not. If all fields are text, one name is enough.
    is_header = named * 2 > len(header) or (named > 0 and not any(map(is_number, fields)))
    misfit = any(
        item.dtype != "bytes" and text.strip() and not is_number(text)
        for text, item in zip(fields, stats, strict=False)
    )
    if is_header and not any(map(is_number, fields)):
        raise SourceError(
            f"{path}:{first.line}: this header differs from that of {header_file}: "
            f"{_difference(fields, header, path, header_file)}; if the line is a row, repeat the "
            f"header above it"
        )
    if is_header or misfit or len(fields) != len(header):
        raise SourceError(
            f"{path}:{first.line}: the first line is neither the header of the first file nor a "
            f"row that fits its columns (expected {','.join(header)!r:.200}, got "
            f"{first.text!r:.200}); convert tables with other columns separately, and repeat the "
            f"header above a row that looks like another header"
        )


def _difference(names: Sequence[str], header: Sequence[str], path: str, header_file: str) -> str:
    """Return how the header of a file differs from that of the first file, and the remedy."""
    more = [name for name in names if name and name not in header]
    lacking = [name for name in header if name not in names]
    if not more and not lacking:
        return "the columns have another order; write them in one order, or convert each file alone"
    said = f"it also has {listed(more)}" if more else ""
    if lacking:
        said += f"{' and ' if more else 'it '}lacks {listed(lacking)}"
    if more and lacking:
        return f"{said}; convert each file alone"
    # A test set often lacks the target.
    return f"{said}; convert {path if more else header_file} alone"


def _first_record(blocks: Iterator[Item]) -> tuple[Record | Reject | None, list[Item]]:
    """Return the first record or its reject, or None, and the rest of its block."""
    for item in blocks:
        if records := list(records_of(item, strip=False)):
            return records[0], list(records[1:])
    return None, []


def _column_types(path: str) -> dict[str, str]:
    """Return the dtype of each column that a TensorFlow Metadata schema (pbtxt) names.

    ``feature {name: "age" type: INT}`` → ``{"age": "int64"}``

    Raises:
        UsageError: tensorflow_metadata is not installed.
        SourceError: the file is missing, is not a schema, or lacks a type.
    """
    try:
        from google.protobuf import text_format
        from tensorflow_metadata.proto.v0 import schema_pb2
    except ImportError as exc:
        raise UsageError(
            "a .pbtxt schema needs tensorflow_metadata: pip install tensorflow-metadata"
        ) from exc
    try:
        text = storage.read_text(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this schema: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise SourceError(
            f"{path}: this schema is not UTF-8 (byte {exc.start + 1}); it must be text (pbtxt)"
        ) from exc
    try:
        schema = text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as exc:
        raise SourceError(f"{path}: not a TensorFlow Metadata schema as text: {exc}") from exc
    kinds = schema_pb2.INT, schema_pb2.FLOAT, schema_pb2.BYTES
    dtypes = dict(zip(kinds, ("int64", "float32", "bytes"), strict=True))
    for feature in schema.feature:
        if feature.type not in dtypes:
            raise SourceError(
                f"{path}: the type of {feature.name!r} must be INT, FLOAT or BYTES (got "
                f"{schema_pb2.FeatureType.Name(feature.type)})"
            )
    if not schema.feature:
        raise SourceError(f"{path}: this schema names no feature")
    return {feature.name: dtypes[feature.type] for feature in schema.feature}
