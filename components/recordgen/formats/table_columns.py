"""The columns of a table, inferred from all rows before the first row is converted.

A column of whole numbers is int64, a column of other numbers float32, any other column text.
Numbers must look as programs write them: ``007`` and whole numbers of more than 64 bits are text,
because they would lose digits as numbers. Empty fields are missing values and decide nothing, and
so do markers such as ``NA`` and ``?``, which are missing values if all other fields are numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.dataset.splits import ML_USE_EXPECTED, ML_USE_WORDS, PUBLISHED_WORDS
from recordgen.core.records.number_texts import FORMS, NUMBER
from recordgen.core.rows.row import Adjustments
from recordgen.errors import SourceError, UsageError
from recordgen.formats.column_names import NOWHERE, NUMBERED_COLUMNS, SPLIT_COLUMNS, column_name
from recordgen.formats.csv_records import EMPTY_FIELDS, Item, Plain, Record, is_empty, read_blocks
from recordgen.formats.header import Given, no_column
from recordgen.formats.lines import open_file
from recordgen.formats.other_forms import are_numbered
from recordgen.formats.row_parser import without_padding
from recordgen.formats.table_csv import fitted, without_headers
from recordgen.formats.table_header import names_of
from recordgen.formats.table_layout import Layout, columns_of_table
from recordgen.options import AUTO, ConvertOptions
from recordgen.quoting import listed
from recordgen.rejects import Reject
from recordgen.tables.arrow import (
    are_markers,
    decimals,
    parse,
    trimmed,
    whole_numbers,
    without_markers,
)
from recordgen.tables.columns import Column, Prediction, Table
from recordgen.tables.csv_fields import is_number, split_plain
from recordgen.types import Weight

if TYPE_CHECKING:
    from recordgen.formats.import_file import ImportFile

# Least share of ML_USE words in a column with a known name. Rows with misspelt words are rejected:
# if they made the column a feature, a model would see the split.
_SPLIT_SHARE = 0.75

# A column with another name holds the split only beyond doubt: nearly all of its values are ML_USE
# words, and enough of its fields are filled.
_UNNAMED_SPLIT_SHARE = 0.95
_UNNAMED_SPLIT_FILLED = 0.5

# Most lines and characters that are parsed together; the last line may exceed the characters.
_BLOCK_LINES = 20_000
_BLOCK_CHARACTERS = 16 << 20

#: Most different whole numbers that are taken for classes, unless the option says what they are.
MAX_CLASSES = 20

# From and to this many different whole numbers, the choice may well be wrong.
_DOUBTFUL = MAX_CLASSES // 2 + 1, 2 * MAX_CLASSES

# Nobody reads a longer list.
_MARKERS_SHOWN = 5

# If this share of a text column's values are numbers, the other values look like mistakes.
_NUMBER_SHARE = 0.9

# Float32 represents all whole numbers up to this one.
_MAX_EXACT = float(1 << 24)

# Whole numbers as programs write them, also in columns of fractions.
_WHOLE = r"^[+-]?[0-9]+(\.0*)?$"


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
    from recordgen.formats.tfmd_schema import column_types

    types = column_types(options.schema_file)
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
) -> tuple[list[str], list[_ColumnStats]]:
    header: list[str] = []
    stats: list[_ColumnStats] = []
    header_file = ""
    for file in files:
        with open_file(file) as lines:
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
                stats = [_ColumnStats() for _ in header]
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
            _add_records(rows, stats)
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
    first: Record, header: Sequence[str], stats: list[_ColumnStats], path: str, header_file: str
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


@dataclass
class _ColumnStats:
    """Statistics of a column's fields, collected over rows in any order.

    Attributes:
        rows: number of fields.
        values: number of fields that are not empty.
        filled: number of fields that contain more than blanks.
        markers: how often fields mean a missing value, by their text.
        numbers: number of fields that are numbers, as programs or people write them.
        is_whole: all filled fields are markers, or whole numbers of 64 bits as programs write them.
        is_decimal: all filled fields are markers, or float32 numbers without needless leading
            zeros.
        has_fraction: one of the numbers has a point or an exponent.
        words: number of ML_USE words.
        published: number of ML_USE words that Vertex AI publishes.
        distinct: the different whole numbers; None if there are many.
        texts: the different values of a column of text; None if there are many.
        misfits: number of fields that are neither numbers nor markers; None if there are clearly
            many.
        misfit: the first of them.
        inexact: the first whole number that float32 cannot represent; else empty.
    """

    rows: int = 0
    values: int = 0
    filled: int = 0
    markers: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    is_whole: bool = True
    is_decimal: bool = True
    has_fraction: bool = False
    words: int = 0
    published: int = 0
    distinct: set[int] | None = field(default_factory=set)
    texts: set[str] | None = field(default_factory=set)
    misfits: int | None = 0
    misfit: str = ""
    inexact: str = ""

    def has_gaps(self, dtype: str) -> bool:
        """Return whether a row has no value, if the column has this dtype."""
        markers = 0 if dtype == "bytes" else self.markers.total()
        return self.filled - markers < self.rows

    @property
    def dtype(self) -> str:
        if self.numbers and self.is_whole:
            return "int64"
        # Whole numbers that do not fit into 64 bits are keys, so they stay text.
        return "float32" if self.is_decimal and self.has_fraction else "bytes"

    def is_split(self, name: str) -> bool:
        """Return whether a column of this name holds the split."""
        if column_name(name) in SPLIT_COLUMNS:
            return self.words > 0 and self.words >= _SPLIT_SHARE * self.values
        is_filled = self.values >= _UNNAMED_SPLIT_FILLED * self.rows
        # A column that contains only "valid", or only "dev", may well be a feature.
        return self.published > 0 and is_filled and self.words >= _UNNAMED_SPLIT_SHARE * self.values

    @property
    def odd(self) -> str:
        """A value that is not a number although nearly all others are; else empty."""
        is_odd = self.misfits and self.misfits <= (1 - _NUMBER_SHARE) * self.values
        return self.misfit if is_odd else ""


def column_stats(records: Iterable[Record | Reject], header: Sequence[str]) -> list[_ColumnStats]:
    """Return the statistics of the columns of records; rejects are ignored."""
    stats = [_ColumnStats() for _ in header]
    _add_records(records, stats)
    return stats


def _add_records(items: Iterable[Item], stats: Sequence[_ColumnStats]) -> None:
    """Add the records that have a field for every column to the columns' statistics."""
    for lines in in_blocks(_whole(items, len(stats))):
        columns = parse(pa.array(lines, pa.string()), len(stats), range(len(stats)))
        for item, texts in zip(stats, columns, strict=True):
            item.rows += len(texts)
            if texts.null_count < len(texts):
                _add_column(item, texts)


def _first_record(blocks: Iterator[Item]) -> tuple[Record | Reject | None, list[Item]]:
    """Return the first record or its reject, or None, and the rest of its block."""
    for item in blocks:
        if not isinstance(item, Plain):
            return item, []
        for at, text in enumerate(item.texts):
            if not is_empty(text):
                line = item.line + at
                return Record(line, text, split_plain(text)), [
                    Plain(line + 1, item.texts[at + 1 :])
                ]
    return None, []


def in_blocks(parts: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Yield lines in blocks of about :data:`_BLOCK_LINES`, which bounds memory."""
    block: list[str] = []
    size = 0
    for lines in parts:
        block += lines
        size += sum(map(len, lines))
        if len(block) >= _BLOCK_LINES or size >= _BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _whole(items: Iterable[Item], width: int) -> Iterator[Sequence[str]]:
    """Yield the texts of the records that have a field for every column."""
    commas = width - 1
    for item in items:
        if isinstance(item, Plain):
            yield [t for t in item.texts if t.count(",") == commas and t.strip(EMPTY_FIELDS)]
        elif isinstance(item, Record) and len(item.fields) == width and any(item.fields):
            yield (item.text,)


def _add_column(item: _ColumnStats, texts: Any) -> None:
    item.values += len(texts) - texts.null_count
    bare = trimmed(texts)
    item.filled += len(bare) - bare.null_count
    if item.is_decimal:
        if _are_numbers(item, bare):
            return
        without = without_markers(bare)
        if without.null_count > bare.null_count and _are_numbers(item, without):
            found = pc.value_counts(bare)
            _add_markers(item, found.field("values"), found.field("counts").to_numpy())
            return
    item.is_whole, item.is_decimal, item.distinct = False, False, None
    found = pc.value_counts(texts.drop_null())
    values, counts = trimmed(found.field("values")), found.field("counts").to_numpy()
    _add_markers(item, values, counts)
    if item.texts is not None:
        item.texts.update(values.slice(0, MAX_CLASSES + 1).drop_null().to_pylist())
        item.texts = item.texts if len(item.texts) <= MAX_CLASSES else None
    lower = pc.utf8_lower(values)
    item.words += int(counts[np.asarray(pc.is_in(lower, pa.array(ML_USE_WORDS)))].sum())
    item.published += int(counts[np.asarray(pc.is_in(lower, pa.array(PUBLISHED_WORDS)))].sum())
    _count_misfits(item, values, counts)


def _add_markers(item: _ColumnStats, values: Any, counts: Any) -> None:
    """Count the trimmed texts that mean missing numbers; ``counts`` is how often each occurs."""
    for at in np.flatnonzero(np.asarray(are_markers(values))):
        item.markers[values[int(at)].as_py()] += int(counts[at])


def _are_numbers(item: _ColumnStats, texts: Any) -> bool:
    """Return whether trimmed texts are all numbers, and if so add them to the statistics."""
    if item.is_whole and (whole := whole_numbers(texts)) is not None:
        item.numbers += len(whole) - whole.null_count
        item.inexact = item.inexact or _inexact(whole, texts)
        if item.distinct is not None:
            item.distinct.update(v for v in pc.unique(whole).to_pylist() if v is not None)
            if len(item.distinct) > _DOUBTFUL[1]:
                item.distinct = None
        return True
    if (numbers := decimals(texts)) is None:
        return False
    item.numbers += len(numbers) - numbers.null_count
    item.is_whole, item.distinct = False, None
    item.inexact = item.inexact or _inexact(numbers, texts)
    item.is_decimal = not _any_match(texts, r"^[+-]?0[0-9]")
    item.has_fraction = item.has_fraction or _any_match(texts, "[.eE]")
    return True


def _inexact(numbers: Any, texts: Any) -> str:
    """Return the text of the first whole number that float32 cannot represent, else ""."""
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    if np.abs(values).max(initial=0) <= _MAX_EXACT:
        return ""
    lost = texts.filter(pa.array(values.astype(np.float32) != values))
    whole = lost.filter(pc.match_substring_regex(lost, _WHOLE))
    return str(whole[0].as_py()) if len(whole) else ""


def _any_match(texts: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _count_misfits(item: _ColumnStats, values: Any, counts: Any) -> None:
    """Count the trimmed texts that are not numbers; ``counts`` is how often each occurs."""
    if item.misfits is None:
        return

    def matches(pattern: str) -> Any:
        return np.asarray(pc.fill_null(pc.match_substring_regex(values, pattern), False))

    is_number = matches(NUMBER)
    is_written = np.any([is_number, *map(matches, FORMS.values())], axis=0)
    is_odd = ~is_number & ~np.asarray(are_markers(values)) & np.asarray(values.is_valid())
    if is_odd.any() and not item.misfits:
        item.misfit = str(values[int(np.argmax(is_odd))].as_py())
    item.misfits += int(counts[is_odd].sum())
    item.numbers += int(counts[is_written].sum())
    # The column is clearly text: stop counting, there will be no hint about odd values.
    if item.misfits > _BLOCK_LINES and item.misfits * 2 > item.values:
        item.misfits = None


def decide_table(
    header: Sequence[str],
    stats: Sequence[_ColumnStats],
    options: ConvertOptions,
    types: Mapping[str, str],
) -> Table:
    """Return the table of columns with these statistics; ``types`` are their known dtypes by name.

    Raises:
        UsageError: the options or the types do not fit the columns.
    """
    found = dict(zip(header, stats, strict=True))
    for role, [name, *_] in options.columns.by_role:
        if name not in found:
            no_column(name, header, f"columns {role}={name}")
    split = options.columns.split or _split_column(found)
    if split is None or split == options.columns.split:
        _check_numbered(found, options)
    target, weight = options.columns.target or None, options.columns.weight or None
    used = [name for name in (split, target, weight) if name is not None]
    if len(set(used)) < len(used):
        raise UsageError(
            f"columns: split, target and weight must be different columns (got {', '.join(used)})"
        )
    columns = tuple(
        Column.of(name, types.get(name) or ("bytes" if name == split else item.dtype))
        for name, item in found.items()
    )
    dtypes = {column.name: column.dtype for column in columns}
    if weight is not None:
        if dtypes[weight] == "bytes":
            odd = found[weight].odd
            raise UsageError(
                f"the weight {weight!r} must hold numbers"
                + (f" (got {odd!r})" if odd else ", but some of its values are not numbers")
            )
        columns = tuple(Column(weight, Weight) if c.name == weight else c for c in columns)
    prediction, kind = None, ""
    if target is not None:
        if options.columns.prediction == AUTO and dtypes[target] == "bytes":
            kind = _numbers_as_text(target, found[target])
            if kind and target not in types:
                raise UsageError(kind)
        prediction = _prediction(target, dtypes[target], found[target], options)
    notes = [
        f"column {name!r} loses digits of whole numbers such as {item.inexact}: its type, float32, "
        f"is exact up to 16,777,216; write keys as text"
        for name, item in found.items()
        if dtypes[name] == "float32" and item.inexact
    ]
    notes += [
        f"column {name!r} is the index that pandas wrote: it only numbers the rows, and is a "
        f"feature; delete it, or write to_csv(…, index=False)"
        for name in header
        if name.startswith("Unnamed: ") and dtypes[name] == "int64"
    ]
    if split and not options.columns.split and column_name(split) not in SPLIT_COLUMNS:
        notes.append(
            f"column {split!r} is taken for the split, because its values are words of ML_USE; it "
            f"is not a feature; --columns split={split} confirms it, or names another column"
        )
    if target is not None and dtypes[target] == "int64" and options.columns.prediction == AUTO:
        kind = _target_kind(target, prediction, found[target])
    has_gaps = prediction == "classification" and found[str(target)].has_gaps(dtypes[str(target)])
    markers = tuple(
        _marked(name, item)
        for name, item in found.items()
        if item.markers and dtypes[name] != "bytes" and name != split
    )
    group_at = Given.of(options).find_group(header, "group_by")
    group = header[group_at] if group_at != NOWHERE else None
    return Table(
        columns, split, target, weight, prediction, tuple(notes), has_gaps, group, kind, markers
    )


def _marked(name: str, item: _ColumnStats) -> str:
    """Return which fields of a column of numbers are read as missing values, and how many."""
    often = sorted(item.markers.items(), key=lambda each: (-each[1], each[0]))
    shown = ", ".join(f"{text!r} ({count:,})" for text, count in often[:_MARKERS_SHOWN])
    return (
        f"column {name!r} holds numbers, and {item.markers.total():,} of its fields are read as "
        f"missing values: {shown}{', …' if len(often) > _MARKERS_SHOWN else ''}"
    )


def _numbers_as_text(target: str, item: _ColumnStats) -> str:
    """Return why a target of text may be meant as numbers, or "" if there is no doubt."""
    filled = item.filled - item.markers.total()
    if item.texts is not None or item.numbers * 2 <= filled:
        return ""
    because = f" because of values such as {item.misfit!r}" if item.misfit else ""
    return (
        f"target {target!r} is text{because}, though {item.numbers / filled:.0%} of its values are "
        f"numbers: they are taken for more than {MAX_CLASSES} classes; write all numbers like "
        f"1234.5 and leave fields without a number empty, or use --columns target:class={target} "
        f"if they are classes"
    )


def _target_kind(target: str, prediction: Prediction | None, item: _ColumnStats) -> str:
    """Return why whole numbers are taken for classes or not, or "" if there is no doubt."""
    count = 0 if item.distinct is None else len(item.distinct)
    if not _DOUBTFUL[0] <= count <= _DOUBTFUL[1]:
        return ""
    if prediction == "classification":
        return (
            f"target {target!r} holds {count} different whole numbers, at most {MAX_CLASSES}: they "
            f"are taken for classes; --columns target:class={target} confirms it, and "
            f"target:number={target} means amounts"
        )
    return (
        f"target {target!r} holds {count} different whole numbers, more than {MAX_CLASSES}: they "
        f"are taken for amounts; --columns target:number={target} confirms it, and "
        f"target:class={target} means classes"
    )


def _split_column(found: Mapping[str, _ColumnStats]) -> str | None:
    names = [name for name, item in found.items() if item.is_split(name)]
    if len(names) > 1:
        which = "both" if len(names) == 2 else "all"
        raise UsageError(
            f"the columns {listed(names, between=' and ')} {which} hold {ML_USE_EXPECTED}; name "
            f"the split's column with --columns split=NAME"
        )
    return names[0] if names else None


def _check_numbered(found: Mapping[str, _ColumnStats], options: ConvertOptions) -> None:
    """Check that no column says the split by numbers. Raises: UsageError.

    Not with a schema, which says that it is a feature.
    """
    others = (options.columns.target, options.columns.weight, options.group_by)
    for name, item in found.items():
        is_split = name == options.columns.split or (
            not options.columns.split and column_name(name) in NUMBERED_COLUMNS
        )
        numbers = {str(number) for number in item.distinct or ()}
        is_open = is_split and name not in others and not options.schema_file
        if is_open and numbers and are_numbered(numbers):
            raise UsageError(
                f"the column {name!r} names splits or folds by "
                f"{', '.join(sorted(numbers))}; write TRAIN, VALIDATION or TEST instead, or "
                f"rename it if it is a feature"
            )


def _prediction(name: str, dtype: str, item: _ColumnStats, options: ConvertOptions) -> Prediction:
    """Return how a target is predicted. Raises: UsageError: its type does not fit the option."""
    if options.columns.prediction == "classification":
        if dtype == "float32":
            raise UsageError(
                f"columns: a target:class must hold text or whole numbers; the column "
                f"{name!r} holds fractions"
            )
        return "classification"
    if options.columns.prediction == "regression":
        if dtype == "bytes":
            raise UsageError(
                f"columns: a target:number must hold numbers; the column {name!r} holds text"
                + (f", such as {item.odd!r}" if item.odd else "")
            )
        return "regression"
    has_few = item.distinct is not None and len(item.distinct) <= MAX_CLASSES
    return "classification" if dtype == "bytes" or (dtype == "int64" and has_few) else "regression"
