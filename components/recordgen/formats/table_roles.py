"""The columns of a table: their types and their roles, by statistics over all of its rows.

Roles are the split, the target, the weight and the group. Statistics are collected in blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import storage
from recordgen.core.dataset.splits import ML_USE_EXPECTED, ML_USE_WORDS, PUBLISHED_WORDS
from recordgen.core.dataset.vocabulary import NO_LABELS
from recordgen.core.facts.kept_rows import fits_one
from recordgen.core.records.numbers import FORMS, NUMBER
from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats.csv_records import Item
from recordgen.formats.header import NUMBERED_COLUMNS, SPLIT_COLUMNS, Given, column_name, no_column
from recordgen.formats.split_names import numbered_split
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
from recordgen.rejects import Reject
from recordgen.tables import examples
from recordgen.tables.columns import Column, Prediction, Table
from recordgen.tables.roles import LABEL_COLUMNS, Columns
from recordgen.tables.types import ColumnType, Ignored, Weight

#: The name that pandas gives to a column without one, which is the index of a frame.
INDEX = "Unnamed: 0"

# Names of a column that is hardly an input.
_TARGET_COLUMNS = LABEL_COLUMNS | {"target"}

# Nobody reads a longer list.
_MARKERS_SHOWN = 5


def decide_table(
    found: Mapping[str, ColumnStats], options: ConvertOptions, types: Mapping[str, str]
) -> Table:
    """Return the table of columns with these statistics; ``types`` are their known dtypes by name.

    Raises: UsageError: the options or the types do not fit the columns.
    """
    header = [*found]
    for role, [name, *_] in options.columns.by_role:
        if name not in found:
            no_column(name, header, f"columns {role}={name}")
    split = options.columns.split or _split_column(found, options)
    if split is None or split == options.columns.split:
        _check_numbered(found, options)
    target, weight = options.columns.target or None, options.columns.weight or None
    used = [name for name in (split, target, weight) if name is not None]
    if len(set(used)) < len(used):
        raise UsageError(f"columns: split, target and weight must differ (got {', '.join(used)})")
    dtypes = {
        name: types.get(name) or ("bytes" if name == split else _dtype(name, item, options))
        for name, item in found.items()
    }
    if weight is not None and dtypes[weight] == "bytes":
        raise UsageError(f"the weight {weight!r} must hold numbers, no texts{found[weight].shown}")
    has_index = dtypes.get(INDEX) == "int64" and INDEX not in used
    own: dict[str | None, ColumnType] = {weight: Weight, **({INDEX: Ignored} if has_index else {})}
    columns = tuple(
        Column(name, own[name]) if name in own else Column.of(name, dtype)
        for name, dtype in dtypes.items()
    )
    prediction, kind, has_gaps = None, "", False
    if target is not None:
        item, dtype, is_open = found[target], dtypes[target], options.columns.prediction == AUTO
        if is_open and dtype == "bytes":
            kind = _numbers_as_text(target, item)
            if kind and target not in types:
                raise UsageError(kind)
        prediction = _prediction(target, dtype, item, options)
        if is_open and dtype != "bytes":
            kind = _target_kind(target, prediction, item)
        has_gaps = prediction == "classification" and item.has_gaps(dtype)
    notes = [
        f"column {name!r} loses digits of whole numbers such as {item.inexact}: its type, float32, "
        f"is exact up to 16,777,216; write keys as text"
        for name, item in found.items()
        if dtypes[name] == "float32" and item.inexact
    ]
    if has_index:
        notes.append(f"column {INDEX!r} is the index that pandas wrote, and is left out")
    if target is None and options.labels != NO_LABELS:
        notes += [
            f"no column is the target, and {name!r} is an input: --columns target={name} makes it "
            f"the target, labels=none confirms data to predict"
            for name in header
            if column_name(name) in _TARGET_COLUMNS
        ]
    markers = tuple(
        _marked(name, item)
        for name, item in found.items()
        if item.markers and dtypes[name] != "bytes" and name != split
    )
    group_at = Given.of(options).find_group(header, "group_by")
    group = header[group_at] if group_at < len(header) else None
    return Table(
        columns, split, target, weight, prediction, tuple(notes), has_gaps, group, kind, markers
    )


def _dtype(name: str, item: ColumnStats, options: ConvertOptions) -> str:
    """Return the inferred dtype of a column; classes written as 0.0 and 1.0 are text."""
    is_class = name == options.columns.target and options.columns.prediction == "classification"
    is_whole = item.dtype == "float32" and item.distinct is not None
    return "bytes" if is_class and is_whole else item.dtype


def _marked(name: str, item: ColumnStats) -> str:
    """Return which fields of a column of numbers are read as missing values, and how many."""
    often = sorted(item.markers.items(), key=lambda each: (-each[1], each[0]))
    shown = ", ".join(f"{text!r} ({count:,})" for text, count in often[:_MARKERS_SHOWN])
    shown += ", …" if len(often) > _MARKERS_SHOWN else ""
    what = f"{item.markers.total():,} of its fields are read as missing values: {shown}"
    return f"column {name!r} holds numbers, and {what}"


def _numbers_as_text(target: str, item: ColumnStats) -> str:
    """Return why a target of text may be meant as numbers, or "" if there is no doubt."""
    filled = item.filled - item.markers.total()
    if item.texts is not None or item.numbers * 2 <= filled:
        return ""
    because = f" because of values{item.shown}" if item.misfit else ""
    what = f"target {target!r} is text{because}, though {item.numbers / filled:.0%} are numbers"
    remedy = "write them like 1234.5, and leave fields without a number empty"
    return f"{what}: {remedy}; --columns target:class={target} confirms many classes"


def _target_kind(target: str, prediction: Prediction | None, item: ColumnStats) -> str:
    """Return why whole numbers are taken for classes or not, or "" if there is no doubt."""
    count = 0 if item.distinct is None else len(item.distinct)
    is_few = 0 < count <= MAX_CLASSES
    is_doubtful = is_few if item.has_fraction else DOUBTFUL[0] <= count <= DOUBTFUL[1]
    if not is_doubtful:
        return ""
    kinds = [("number", "amounts"), ("class", "classes")]
    (kind, taken), (other, meant) = reversed(kinds) if prediction == "classification" else kinds
    form = f"{'at most' if is_few else 'more than'} {MAX_CLASSES}"
    form = "written as fractions" if item.has_fraction else form
    what = f"target {target!r} holds {count} different whole numbers, {form}, taken for {taken}"
    confirmed = f"--columns target:{kind}={target} confirms it"
    return f"{what}: {confirmed}, target:{other}={target} means {meant}"


def _split_column(found: Mapping[str, ColumnStats], options: ConvertOptions) -> str | None:
    """Return the column of the split: it has a known name, and words of ML_USE.

    Raises:
        UsageError: several columns have.
        NotUnderstoodError: a column of another name holds such words; a schema makes it a feature.
    """
    names = [name for name, item in found.items() if item.is_split(name)]
    if len(names) > 1:
        what = f"the columns {listed(names, between=' and ')} hold {ML_USE_EXPECTED}"
        raise UsageError(f"{what}; name that of the split with --columns split=NAME")
    name = names[0] if names else None
    if name and column_name(name) not in SPLIT_COLUMNS and not options.schema_file:
        columns = Columns.of({**options.columns.roles, "split": name})
        advice = {"columns": str(replace(options.columns, by_role=columns.by_role))}
        what = f"the column {name!r} holds words of ML_USE, and has no known name of a split"
        raise NotUnderstoodError(f"{what}; if it is a feature, use --schema", options=advice)
    return name


def _check_numbered(found: Mapping[str, ColumnStats], options: ConvertOptions) -> None:
    """Check that no column says the split by numbers. Raises: UsageError.

    Not with a schema, which says that it is a feature.
    """
    others = (options.columns.target, options.columns.weight, options.group_by)
    for name, item in found.items():
        is_numbered = not options.columns.split and column_name(name) in NUMBERED_COLUMNS
        is_split = name == options.columns.split or is_numbered
        numbers = {str(number) for number in item.distinct or ()}
        is_open = is_split and name not in others and not options.schema_file
        if is_open and (problem := numbered_split(name, numbers)):
            raise UsageError(f"{problem}, or rename it if it is a feature")


def _prediction(name: str, dtype: str, item: ColumnStats, options: ConvertOptions) -> Prediction:
    """Return how a target is predicted. Raises: UsageError: its type does not fit the option."""
    if options.columns.prediction == "classification":
        if dtype == "float32":
            raise UsageError(f"columns: the column {name!r} of target:class must hold no fractions")
        return "classification"
    if options.columns.prediction == "regression":
        if dtype == "bytes":
            raise UsageError(f"columns: column {name!r} of target:number holds text{item.shown}")
        return "regression"
    has_few = item.distinct is not None and len(item.distinct) <= MAX_CLASSES
    return "classification" if dtype == "bytes" or (dtype == "int64" and has_few) else "regression"


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
        what = f"only the schema or only the header has {listed([*unknown, *missing])}"
        raise UsageError(f"{options.schema_file} must name the columns of the header: {what}")
    return types


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
        raise UsageError("a .pbtxt schema needs: pip install tensorflow-metadata") from exc
    try:
        text = storage.read_text(path)
    except OSError as exc:
        raise SourceError(f"{path}: cannot read this schema: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise SourceError(f"{path}: this pbtxt is not UTF-8 (byte {exc.start + 1})") from exc
    try:
        schema = text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as exc:
        raise SourceError(f"{path}: not a TensorFlow Metadata schema as text: {exc}") from exc
    kinds = schema_pb2.INT, schema_pb2.FLOAT, schema_pb2.BYTES
    dtypes = dict(zip(kinds, ("int64", "float32", "bytes"), strict=True))
    for feature in schema.feature:
        if feature.type not in dtypes:
            got, known = schema_pb2.FeatureType.Name(feature.type), "INT, FLOAT or BYTES"
            raise SourceError(f"{path}: the type of {feature.name!r} must be {known} (got {got})")
    if not schema.feature:
        raise SourceError(f"{path}: this schema names no feature")
    return {feature.name.strip(): dtypes[feature.type] for feature in schema.feature}


# --- statistics of columns -----------------------------------------------------------------------

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

#: From and to this many different whole numbers, the choice may well be wrong.
DOUBTFUL = MAX_CLASSES // 2 + 1, 2 * MAX_CLASSES

# Float32 represents all whole numbers up to this one.
_MAX_EXACT = float(1 << 24)

# Whole numbers as programs write them, also in columns of fractions.
_WHOLE = r"^[+-]?[0-9]+(\.0*)?$"


@dataclass
class ColumnStats:
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
        distinct: the different whole numbers, also written as 1.0; None if there are many, or
            fractions.
        texts: the different values of a column of text; None if there are many.
        misfit: the first field that is neither a number nor a marker.
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
    def shown(self) -> str:
        """The words for its misfit; else empty."""
        return f" such as {self.misfit!r:.80}" if self.misfit else ""


def add_records(items: Iterable[Item], stats: Sequence[ColumnStats]) -> None:
    """Add the records that have a field for every column to the columns' statistics."""
    records = (item for item in items if not isinstance(item, Reject))
    whole = (item.without(item.of_other_widths(len(stats))).texts for item in records)
    for lines in in_blocks(whole):
        columns = examples.parse(pa.array(lines, pa.string()), len(stats), range(len(stats)))
        for item, texts in zip(stats, columns, strict=True):
            item.rows += len(texts)
            if texts.null_count < len(texts):
                _add_column(item, texts)


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


def _add_column(item: ColumnStats, texts: Any) -> None:
    item.values += len(texts) - texts.null_count
    bare = examples.trimmed(texts)
    item.filled += len(bare) - bare.null_count
    if item.is_decimal:
        if _are_numbers(item, bare):
            return
        without = examples.without_markers(bare)
        if without.null_count > bare.null_count and _are_numbers(item, without):
            found = pc.value_counts(bare)
            _add_markers(item, found.field("values"), found.field("counts").to_numpy())
            return
    item.is_whole, item.is_decimal, item.distinct = False, False, None
    found = pc.value_counts(texts.drop_null())
    values, counts = examples.trimmed(found.field("values")), found.field("counts").to_numpy()
    _add_markers(item, values, counts)
    if item.texts is not None:
        item.texts.update(values.slice(0, MAX_CLASSES + 1).drop_null().to_pylist())
        item.texts = item.texts if len(item.texts) <= MAX_CLASSES else None
    lower = pc.utf8_lower(values)
    item.words += int(counts[np.asarray(pc.is_in(lower, pa.array(ML_USE_WORDS)))].sum())
    item.published += int(counts[np.asarray(pc.is_in(lower, pa.array(PUBLISHED_WORDS)))].sum())
    _count_numbers(item, values, counts)


def _add_markers(item: ColumnStats, values: Any, counts: Any) -> None:
    """Count the trimmed texts that mean missing numbers; ``counts`` is how often each occurs."""
    for at in np.flatnonzero(np.asarray(examples.are_markers(values))):
        item.markers[values[int(at)].as_py()] += int(counts[at])


def _add_distinct(item: ColumnStats, numbers: Any) -> None:
    if item.distinct is None:
        return
    found = pc.unique(numbers).drop_null().to_pylist()
    item.distinct.update(int(number) for number in found if int(number) == number)
    if len(item.distinct) > DOUBTFUL[1] or any(int(number) != number for number in found):
        item.distinct = None


def _are_numbers(item: ColumnStats, texts: Any) -> bool:
    """Return whether trimmed texts are all numbers, and if so add them to the statistics."""
    if item.is_whole and (whole := examples.whole_numbers(texts)) is not None:
        item.numbers += len(whole) - whole.null_count
        item.inexact = item.inexact or _inexact(whole, texts)
        _add_distinct(item, whole)
        return True
    if (numbers := examples.decimals(texts)) is None:
        return False
    item.numbers += len(numbers) - numbers.null_count
    item.is_whole = False
    _add_distinct(item, numbers)
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


def _count_numbers(item: ColumnStats, values: Any, counts: Any) -> None:
    """Count the trimmed texts that are numbers; ``counts`` is how often each occurs."""
    if item.values > 2 * _BLOCK_LINES and item.numbers * 2 < item.values:
        return  # the column is clearly text
    is_number = fits_one(values, NUMBER)
    is_written = np.any([is_number, *(fits_one(values, form) for form in FORMS.values())], axis=0)
    is_odd = ~is_number & ~np.asarray(examples.are_markers(values)) & np.asarray(values.is_valid())
    if is_odd.any() and not item.misfit:
        item.misfit = str(values[int(np.argmax(is_odd))].as_py())
    item.numbers += int(counts[is_written].sum())
