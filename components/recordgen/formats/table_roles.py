"""Which columns of a table hold the split, the target, the weight and the group; their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from recordgen import storage
from recordgen.core.dataset.splits import ML_USE_EXPECTED
from recordgen.core.dataset.vocabulary import NO_LABELS
from recordgen.errors import NotUnderstoodError, SourceError, UsageError
from recordgen.formats.column_names import NOWHERE, NUMBERED_COLUMNS, SPLIT_COLUMNS, column_name
from recordgen.formats.column_stats import DOUBTFUL, MAX_CLASSES, ColumnStats
from recordgen.formats.header import Given, no_column
from recordgen.formats.split_names import numbered_split
from recordgen.messages import listed
from recordgen.options import AUTO, ConvertOptions
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
    header: Sequence[str],
    stats: Sequence[ColumnStats],
    options: ConvertOptions,
    types: Mapping[str, str],
) -> Table:
    """Return the table of columns with these statistics; ``types`` are their known dtypes by name.

    Raises: UsageError: the options or the types do not fit the columns.
    """
    found = dict(zip(header, stats, strict=True))
    for role, [name, *_] in options.columns.by_role:
        if name not in found:
            no_column(name, header, f"columns {role}={name}")
    split = options.columns.split or _split_column(found, options)
    if split is None or split == options.columns.split:
        _check_numbered(found, options)
    target, weight = options.columns.target or None, options.columns.weight or None
    used = [name for name in (split, target, weight) if name is not None]
    if len(set(used)) < len(used):
        raise UsageError(
            f"columns: split, target and weight must be different columns (got {', '.join(used)})"
        )
    dtypes = {
        name: types.get(name) or ("bytes" if name == split else _dtype(name, item, options))
        for name, item in found.items()
    }
    if weight is not None and dtypes[weight] == "bytes":
        odd = found[weight].odd
        raise UsageError(
            f"the weight {weight!r} must hold numbers"
            + (f" (got {odd!r})" if odd else ", but some of its values are not numbers")
        )
    has_index = dtypes.get(INDEX) == "int64" and INDEX not in used
    own_types: dict[str | None, ColumnType] = {
        weight: Weight,
        **({INDEX: Ignored} if has_index else {}),
    }
    columns = tuple(
        Column(name, own_types[name]) if name in own_types else Column.of(name, dtype)
        for name, dtype in dtypes.items()
    )
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
    if has_index:
        notes.append(f"column {INDEX!r} is the index that pandas wrote, and is left out")
    if target is None and options.labels != NO_LABELS:
        notes += [
            f"no column is the target, and {name!r} is an input: --columns target={name} makes it "
            f"the target, labels=none confirms data to predict"
            for name in header
            if column_name(name) in _TARGET_COLUMNS
        ]
    if target is not None and dtypes[target] != "bytes" and options.columns.prediction == AUTO:
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


def _dtype(name: str, item: ColumnStats, options: ConvertOptions) -> str:
    """Return the inferred dtype of a column; classes written as 0.0 and 1.0 are text."""
    is_class = name == options.columns.target and options.columns.prediction == "classification"
    is_whole = item.dtype == "float32" and item.distinct is not None
    return "bytes" if is_class and is_whole else item.dtype


def _marked(name: str, item: ColumnStats) -> str:
    """Return which fields of a column of numbers are read as missing values, and how many."""
    often = sorted(item.markers.items(), key=lambda each: (-each[1], each[0]))
    shown = ", ".join(f"{text!r} ({count:,})" for text, count in often[:_MARKERS_SHOWN])
    return (
        f"column {name!r} holds numbers, and {item.markers.total():,} of its fields are read as "
        f"missing values: {shown}{', …' if len(often) > _MARKERS_SHOWN else ''}"
    )


def _numbers_as_text(target: str, item: ColumnStats) -> str:
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
    return (
        f"target {target!r} holds {count} different whole numbers, {form}: they are taken for "
        f"{taken}; --columns target:{kind}={target} confirms it, and target:{other}={target} means "
        f"{meant}"
    )


def _split_column(found: Mapping[str, ColumnStats], options: ConvertOptions) -> str | None:
    """Return the column of the split: it has a known name, and words of ML_USE.

    Raises:
        UsageError: several columns have.
        NotUnderstoodError: a column of another name holds such words; a schema makes it a feature.
    """
    names = [name for name, item in found.items() if item.is_split(name)]
    if len(names) > 1:
        which = "both" if len(names) == 2 else "all"
        raise UsageError(
            f"the columns {listed(names, between=' and ')} {which} hold {ML_USE_EXPECTED}; name "
            f"the split's column with --columns split=NAME"
        )
    name = names[0] if names else None
    if name and column_name(name) not in SPLIT_COLUMNS and not options.schema_file:
        columns = Columns.of({**options.columns.roles, "split": name})
        raise NotUnderstoodError(
            f"the column {name!r} holds words of ML_USE, and has no known name of a split; if it "
            f"is a feature, declare the columns with --schema",
            options={"columns": str(replace(options.columns, by_role=columns.by_role))},
        )
    return name


def _check_numbered(found: Mapping[str, ColumnStats], options: ConvertOptions) -> None:
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
        if is_open and (problem := numbered_split(name, numbers)):
            raise UsageError(f"{problem}, or rename it if it is a feature")


def _prediction(name: str, dtype: str, item: ColumnStats, options: ConvertOptions) -> Prediction:
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
            f"{options.schema_file} must name the columns of the header, except the split's (only "
            f"one of the two has {listed([*unknown, *missing])})"
        )
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
