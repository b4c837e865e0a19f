"""Tables: a line of CSV is an example, and its columns are the features.

Vertex AI "Prepare tabular training data for classification and regression"::

    split,age,job,balance,deposit
    TRAIN,58,management,2143.5,no

become ``age: 58``, ``balance: 2143.5``, ``deposit: b"no"`` and ``job: b"management"``. An empty
field is a missing value, and its feature is omitted. Equal lines are separate examples: each is an
observation.

Columns may be declared, too: numbers, text, vectors, a label, any number of images.
``Schema({"split": "split", "photo": "image", "age": "int", "breed": "label"})``::

    split,photo,age,breed
    TRAIN,1.jpg,3,cat

becomes ``image/encoded``, …, ``age: 3``, ``image/class/text: b"cat"`` and ``image/class/label: 0``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import IMAGES, MEASURES, ROWS
from recordgen.core.image_settings import PayloadSettings
from recordgen.core.records.example import FeatureValue, serialize_example
from recordgen.core.records.numbers import is_exact
from recordgen.core.rows.row import Adjustments, requested_uris
from recordgen.core.task import task
from recordgen.core.task.annotation import (
    AnnotationError,
    RowContent,
    check_label,
    check_uri,
    printable,
)
from recordgen.errors import PayloadError, UsageError
from recordgen.features import FeatureSpec
from recordgen.messages import listed
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject, RejectCode
from recordgen.tables.columns import IMAGE_PARTS, Column, Schema, Table

if TYPE_CHECKING:
    from recordgen.core.rows.columns import PlannedBatch

# Approximate bytes of a feature in a record besides its name and value.
_FEATURE_BYTES = 14


class TableTask(task.Task):
    """A task whose examples are rows of a table."""

    noun = "row"
    features: ClassVar = {}
    trainer = "recordgen.tasks.tables.training:TableTrainer"
    measure = "recordgen.training.measures:TableAccumulator"

    table: Table


class Tabular(TableTask):
    """Classification and regression of tables.

    An annotation is the line of CSV. Examples are made by columns, many at a time.
    """

    name = "tabular"
    kind = "table"
    expected = "a header, then a field for each of its columns"
    csv_parser = "recordgen.formats.table_columns:TableParser"
    reading = "recordgen.tasks.tables.reading:TABLES"
    pairing = "recordgen.tasks.pairing:rows"
    names_payloads = False
    facts = (ROWS,)
    batch_rows = 8192  # enough for Arrow, and few compared to the lines of a shard

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        return annotation or "", None

    def __init__(self, table: Table) -> None:
        self.table = table
        self.labelling = task.ONE if table.has_labels else None

    @classmethod
    def of(cls, options: ConvertOptions) -> task.Task:
        if options.shard_by == "label":
            raise UsageError(f"shard_by=label is not for {cls.name}: use shard_by=hash")
        table = options.inferred_table
        if table is None:
            raise UsageError("the columns are not decided: detect them from the import files first")
        if options.stratify == "label" and not table.has_labels:
            raise UsageError(
                "stratify=label needs a target of classes; name one with --columns target=NAME, or "
                "omit stratify"
            )
        return cls(table)

    def own_sizes(self, uris: task.Texts, annotations: task.Texts) -> task.Sizes:
        import pyarrow.compute as pc

        # Every record repeats the names.
        names = sum(len(column.name) + _FEATURE_BYTES for column in self.table.stored)
        return pc.add(super().own_sizes(uris, annotations), names)

    def label_lists(self, annotations: task.Texts) -> task.Lists:
        from recordgen.tables.examples import label_lists

        return label_lists(annotations, self.table)

    def nearly_agree(self, one: str, other: str) -> bool:
        return not self.table.has_labels  # equal inputs may have different amounts

    def column_values(self, annotations: task.Texts) -> Mapping[str, Any]:
        """Return the values of each column that becomes a feature, null if one is missing."""
        from recordgen.tables.examples import column_values

        return column_values(annotations, self.table)

    def make(
        self,
        rows: PlannedBatch,
        payloads: Sequence[task.FetchPayloads],
        vocabulary: Vocabulary,
        settings: PayloadSettings,
    ) -> task.BuiltBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        from recordgen.core.facts.columns import FactsBuilder
        from recordgen.core.facts.kept_rows import odd_rows
        from recordgen.core.rows.columns import joined
        from recordgen.tables.examples import make_examples

        columns = rows.columns
        made = make_examples(columns["annotation"].combine_chunks(), self.table)
        errors = sorted(made.errors)
        refused = columns.take(pa.array(errors, pa.int64()))
        odd = odd_rows(made.values.values()) if settings.needs_rows else None
        assigned, lost = (pc.sum(part["assigned"]).as_py() or 0 for part in (columns, refused))
        lines = zip(refused["source"].to_pylist(), refused["line"].to_pylist(), strict=True)
        return task.BuiltBatch(
            examples=len(made.records),
            column=made.records,
            digested=[joined(made.records)],
            assigned=assigned - lost,
            labels=Counter(made.labels),
            unlabelled=len(made.records) - sum(made.labels.values()),
            rejects=[
                Reject(source, line, "", RejectCode.BAD_ANNOTATION.value, made.errors[at])
                for at, (source, line) in zip(errors, lines, strict=True)
            ],
            payload_bytes=rows.payload_bytes,
            changes=Counter(
                {f"{task.GAP}{name}": count for name, count in made.gaps.items()}
                | {f"{task.INEXACT}{name}": count for name, count in made.inexact.items()}
            ),
            facts=FactsBuilder.of(made.contents, errors, made.targets, odd),
        )

    def stored_features(self) -> Mapping[str, FeatureSpec]:
        return self.table.features()

    def advice(self) -> Sequence[str]:
        return self.table.notes


# --- declared columns ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared(TableTask):
    """A table whose columns a schema declares.

    The annotation is a JSON list of the values, in the order of the columns that become features. A
    row with one image has the image's uri; rows of one image with different values are separate
    examples. Rows with no image or several have no uri: each is an example.
    """

    name = "declared"
    kind = "declared"
    expected = "the columns of its schema"
    csv_parser = "recordgen.formats.declared_rows:DeclaredParser"
    reading = "recordgen.tasks.tables.reading:DECLARED"
    pairing = "recordgen.tasks.pairing:rows"
    facts = (IMAGES, MEASURES, ROWS)
    details_noun = "features"
    batch_rows = 16

    schema: Schema
    table: Table = field(init=False, repr=False, compare=False)

    def preview(self, uri: str, annotation: str | None) -> tuple[str, str | None]:
        return uri, "" if annotation is None else self.shown(annotation)

    def shown(self, annotation: str) -> str:
        return listed([*self._values(annotation).values()])

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.schema.table)
        object.__setattr__(self, "labelling", task.ONE if self.table.has_labels else None)

    @classmethod
    def of(cls, options: ConvertOptions) -> task.Task:
        if options.declared_schema is None:
            raise UsageError(
                f"the task {cls.name} needs a schema with the types of the columns, such as "
                f'schema={{"photo": "image", "age": "int"}}'
            )
        return cls(options.declared_schema)

    @cached_property
    def _annotation_columns(self) -> Sequence[Column]:
        """The columns whose values an annotation holds."""
        return [column for column in self.table.stored if column.name != self.table.only_image]

    @property
    def can_append(self) -> bool:
        return self.table.only_image is not None

    def from_record(self, record: Mapping[str, Any], adjusted: Adjustments) -> Sequence[RowContent]:
        only = self.table.only_image
        uri = "" if only is None else _value(self.table.column(only), record.get(only))
        values = [_value(column, record.get(column.name)) for column in self._annotation_columns]
        return [RowContent(uri, json.dumps(values, ensure_ascii=False))]

    def _values(self, annotation: str | None) -> dict[str, Any]:
        names = (column.name for column in self._annotation_columns)
        return dict(zip(names, json.loads(annotation or "[]"), strict=False))

    def column_values(self, annotations: task.Texts) -> Mapping[str, Any]:
        """Return the values of each column of single values, null if one is missing."""
        import pyarrow as pa

        rows = [self._values(text) for text in annotations.to_pylist()]
        kinds = {"int64": pa.int64(), "float32": pa.float64(), "bytes": pa.string()}
        return {
            column.name: pa.array(
                [row[column.name] for row in rows],
                pa.string() if column.type.is_label else kinds[column.dtype],
            )
            for column in self._annotation_columns
            if column.type.kind not in ("floats", "image")
        }

    def labels(self, annotation: str) -> Sequence[str]:
        label = self._values(annotation).get(self.table.label or "")
        return () if label is None else (label,)

    def details(self, annotation: str) -> Sequence[Any]:
        values = self._values(annotation)
        return [value for name, value in values.items() if name != self.table.label]

    def part(self, uri: str, annotation: str | None) -> str:
        return annotation or ""

    def stored_uris(
        self, uris: Sequence[str], annotations: Sequence[str | None]
    ) -> Sequence[Sequence[str]]:
        if self.table.only_image is not None:
            return super().stored_uris(uris, annotations)
        images = self.table.images
        values = map(self._values, annotations)
        return [[mine[name] for name in images] for mine in values] if images else [()] * len(uris)

    def with_uris(self, annotation: str | None, uris: Mapping[str, str]) -> str | None:
        if self.table.only_image is not None:
            return annotation
        values = self._values(annotation)
        values |= {name: uris[values[name]] for name in self.table.images}
        return json.dumps(list(values.values()), ensure_ascii=False)

    @task.each_row
    def make(self, fetched: task.FetchedRow) -> task.BuiltExample:
        row, payloads, vocabulary, settings = fetched
        from recordgen.core.rows.row import stored_bytes
        from recordgen.payloads.check import check_image

        values = self._values(row.annotation)
        made: dict[str, FeatureValue] = {}
        reencoded = image = picture = None
        changes: Counter[str] = Counter()
        images = self.table.images
        uris = [values.get(name, row.uri) for name in images]
        asked = requested_uris(uris, row.addresses)
        for name, data, uri, address in zip(images, payloads, uris, asked, strict=True):
            try:
                checked = check_image(data, settings, stored_bytes(address, data))
            except PayloadError as exc:
                where = "" if len(images) == 1 else f"column {name!r}, {printable(uri)}: "
                raise PayloadError(exc.code, f"{where}{exc.message}") from exc
            parts = checked.data, checked.format.encode(), checked.height, checked.width
            stored = zip(IMAGE_PARTS, (*parts, uri.encode()), strict=True)
            made |= {self.table.image_feature(name, part): value for part, value in stored}
            reencoded = reencoded or checked.reencoded
            if len(images) == 1:
                image, picture = checked.note, checked.small
                sha256 = hashlib.sha256(checked.data).hexdigest()
                made[features.IMAGE_SHA256] = sha256.encode()
        for column in self._annotation_columns:
            value = values[column.name]
            if column.type.is_label and value is not None:
                text, label = self.table.label_features
                made |= {text: value.encode(), label: vocabulary.index(value)}
            elif column.name not in images and value is not None:
                made[column.name] = value.encode() if isinstance(value, str) else value
            if column.dtype == "int64" and value is None:
                changes[f"{task.GAP}{column.name}"] += 1
            elif column.dtype == "int64" and not is_exact(value):
                changes[f"{task.INEXACT}{column.name}"] += 1
        record = serialize_example(made)
        labels = self.labels(row.annotation) if row.annotation is not None else ()
        seen = payloads or serialize_example(
            {name: value for name, value in made.items() if name not in self.table.label_features}
        )
        content = hashlib.sha256(b"".join(seen)).digest()
        return task.BuiltExample(
            record, labels, None, reencoded, image, content, picture, changes=changes
        )

    def stored_features(self) -> Mapping[str, FeatureSpec]:
        return dict(sorted(self.table.features().items()))


def _value(column: Column, given: Any) -> Any:
    """Parse a value of a column; None if it is missing. Raises: AnnotationError."""
    is_image = column.type.kind == "image"
    try:
        value = column.type.parse(given)
        if value is None and (is_image or column.type.kind == "float_label"):
            raise ValueError(f"must be {column.type.expected} (got nothing)")
    except ValueError as exc:
        code = RejectCode.NO_PATH if is_image else RejectCode.BAD_ANNOTATION
        raise AnnotationError(code, f"column {column.name!r} {exc}") from exc
    if is_image:
        return check_uri(value)
    if value == []:
        return None  # a record cannot hold an empty list
    if column.type.kind == "label" and value is not None:
        return check_label(value)
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as exc:
            message = f"column {column.name!r} is not Unicode text"
            raise AnnotationError(RejectCode.BAD_ENCODING, message) from exc
    return value
