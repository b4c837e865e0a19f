"""Declared columns: records → columns by name, with decoded images, and the label.

For schemas without an image or with several, and wherever ``columns`` are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.reading.checks import check_one_of
from recordgen.reading.decoding import ImageDecoder
from recordgen.reading.options import LabelOptions, ReadOptions
from recordgen.reading.parsing import parsed_as, to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_labelled
from recordgen.reading.records import (
    Keep,
    cached,
    finished,
    keeping,
    ordered,
    parallel_calls,
    read_records,
)
from recordgen.reading.shards import ShardSet
from recordgen.reading.targets import Targets
from recordgen.reading.tuning import AUTO
from recordgen.scales import scale_for
from recordgen.tables.schema import Schema
from recordgen.tasks import Declared

VECTORS = ("padded", "ragged")

# What two images of a row show belongs together: nothing is drawn for each.
_RESIZES = ("stretch", "fit", "center_crop")

# What only a column of labels has.
_OF_LABELS = ("label_mode", "labels", "vocabulary", "weights")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions(LabelOptions):
    """How declared columns are read; what :class:`LabelOptions` has, and the following.

    Attributes:
        task: ``declared``; ``auto``: as ``dataset.json`` says.
        columns: the columns that are handed out; None: all but the label.
        image_size: height and width of images, in pixels.
        dtype: of images; see :class:`ReadOptions`.
        scale: of images; see :class:`ReadOptions`.
        resize: ``stretch``, ``fit`` or ``center_crop``; see :class:`ReadOptions`.
        vectors: what lists of any length become: ``padded`` with 0 to the longest of a batch, or
            ``ragged``.
        extras: none: every column is one of those that are handed out.
    """

    task: str = AUTO
    columns: Sequence[str] | None = None
    image_size: tuple[int, int] = (224, 224)
    dtype: str = "float32"
    scale: str = AUTO
    resize: str = "stretch"
    vectors: str = "padded"

    def __post_init__(self) -> None:
        LabelOptions.__post_init__(self)
        ReadOptions(image_size=self.image_size, dtype=self.dtype, scale=self.scale)  # checks them
        if isinstance(self.columns, str) or (self.columns is not None and not self.columns):
            raise UsageError(f"columns must be a list of names, or None (got {self.columns!r})")
        if self.extras:
            raise UsageError(
                f"extras are for batches of images and labels; of declared columns all are handed "
                f"out, or those that columns=[…] names (got {list(self.extras)})"
            )
        for name, allowed in (
            ("task", (AUTO, Declared.name)),
            ("resize", _RESIZES),
            ("vectors", VECTORS),
        ):
            check_one_of(name, getattr(self, name), allowed)


def are_labelled_images(shards: ShardSet) -> bool:
    """Return whether declared columns are read as images and labels, unless columns are named.

    They are where there is one column of images and one of labels.
    """
    if shards.dataset is None or not shards.dataset.options.get("schema"):
        return True
    schema = stored_schema(shards)
    return schema.only_image is not None and schema.label is not None


def stored_schema(shards: ShardSet) -> Schema:
    """Return the schema of shards. Raises: UsageError: nobody says."""
    if shards.dataset is None or not shards.dataset.options.get("schema"):
        raise UsageError(
            f"{shards.files[0].path}: no dataset.json says which columns the examples have; read "
            f"them with recordgen.read(…, feature_spec=…)"
        )
    return Schema.from_json(shards.dataset.options["schema"])


def plan_columns(shards: ShardSet, options: ColumnOptions) -> ReadPlan:
    """Plan how columns are read.

    Raises:
        UsageError: an option does not go with the data.
        DataError: nothing is left to read.
    """
    schema = stored_schema(shards)
    if schema.label is None:
        allowed = (AUTO, None)
        default = {field.name: field.default for field in fields(options)}
        for name in _OF_LABELS:
            value = getattr(options, name)
            if value != default[name] and not (name == "label_mode" and value in allowed):
                raise UsageError(
                    f"{name} is for a column of labels, and the schema has none, only "
                    f"{', '.join(schema.columns)}; leave it out"
                )
        options = replace(options, label_mode=None)
    is_checked = shards.dataset is not None and shards.dataset.options.get("check") == "decode"
    return plan_labelled(shards, options, Declared.name, is_checked)


@dataclass(frozen=True)
class ColumnReader:
    """What turns records into columns: for training, evaluation and serving.

    Attributes:
        schema: what the columns hold.
        names: those that are wanted.
        decoder: how images are decoded.
        dtype: of images; see :class:`ReadOptions`.
        scale: of images; see :class:`ReadOptions`.
        vectors: what lists of any length become: ``padded`` or ``ragged``.
        trusts_sizes: records say how large their images are.
    """

    schema: Schema
    names: Sequence[str]
    decoder: ImageDecoder
    dtype: str = "float32"
    scale: str = AUTO
    vectors: str = "padded"
    trusts_sizes: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """How ``tf.io.parse_example`` parses what is needed."""
        known = self.schema.features
        wanted: list[str] = []
        for name in self.names:
            if self.schema.columns[name].kind != "image":
                wanted.append(name)
                continue
            parts = ("encoded", "height", "width") if self.trusts_sizes else ("encoded",)
            wanted += [self.schema.image_feature(name, part) for part in parts]
        return {name: parsed_as(known[name]) for name in wanted}

    def columns(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        """Return columns by name from a batch that was parsed by :attr:`spec`."""
        return {name: self._column(name, parsed) for name in self.names}

    def _column(self, name: str, parsed: Mapping[str, Any]) -> Any:
        if self.schema.columns[name].kind == "image":
            return self._images(name, parsed)
        values = parsed[name]
        if isinstance(values, tf.RaggedTensor) and self.vectors == "padded":
            return values.to_tensor()
        return values

    def _images(self, name: str, parsed: Mapping[str, Any]) -> tf.Tensor:
        def part(of: str) -> tf.Tensor:
            return parsed[self.schema.image_feature(name, of)]

        sizes = tf.stack([part("height"), part("width")], 1) if self.trusts_sizes else None
        pixels = self.decoder.decode(part("encoded"), sizes)
        if self.dtype == "uint8":
            return tf.cast(tf.round(pixels), tf.uint8)
        return tf.cast(scale_for(self.scale, self.dtype).apply(pixels, white=255), self.dtype)


@dataclass(frozen=True)
class ColumnReading:
    """A reading of declared columns.

    Attributes:
        plan: which files, and in which order.
        options: what was asked for.
        reader: how columns are read.
        targets: how labels are read.
        number: the column of numbers that are to be predicted, if they are wanted.
    """

    plan: ReadPlan
    options: ColumnOptions
    reader: ColumnReader
    targets: Targets
    number: str | None

    @classmethod
    def of(cls, shards: ShardSet, plan: ReadPlan, options: ColumnOptions) -> ColumnReading:
        """Prepare a planned reading. Raises: UsageError: an option does not go with the schema."""
        if plan.classes is None:
            raise TypeError("a plan for columns has classes")
        schema = stored_schema(shards)
        names = schema.inputs if options.columns is None else list(options.columns)
        for name in names:
            if name not in schema.inputs:
                raise UsageError(
                    f"columns: there is no column {name!r} beside the label; there are "
                    f"{', '.join(schema.inputs)}"
                )
        varying = [name for name in names if _varies(schema, name)]
        if options.map_example is not None and varying:
            raise UsageError(
                f"map_example needs examples of one shape, and vectors of {varying[0]!r} may have "
                f"any length; leave it out with columns=[…], declare it as floats[N], or use "
                f"map_batch"
            )
        # Of several images nothing is known in common.
        images = shards.images if schema.only_image is not None else None
        decoder = ImageDecoder(options.image_size, options.resize, options.tuning.decoder, images)
        reader = ColumnReader(
            schema,
            names,
            decoder,
            options.dtype,
            options.scale,
            options.vectors,
            plan.is_checked,
        )
        text, label = schema.label_features
        targets = Targets.of(plan.classes, options, text=text, label=label)
        is_number = schema.label is None and options.label_mode is not None
        return cls(plan, options, reader, targets, schema.target if is_number else None)

    @property
    def keep(self) -> Keep | None:
        """What says (bool []) whether a serialised record (string []) is wanted; None: all are."""
        is_wanted = self.targets.is_wanted if self.targets.numbers.classes.filters else None
        return keeping(self.options.predicate, self._spec_of_predicates, is_wanted)

    def _spec_of_predicates(self) -> dict[str, Any]:
        schema = self.reader.schema
        payloads = {schema.image_feature(name, "encoded") for name in schema.of_kind("image")}
        known = {name: spec for name, spec in schema.features.items() if name not in payloads}
        return dict(to_parsing_spec(known))

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""
        plan, options = self.plan, self.options
        records = read_records(plan, options, self.keep)
        records = ordered(cached(records, plan, options), plan, options)
        # Batch before parse: one vectorised call for all records.
        records = records.batch(options.batch_size, drop_remainder=options.has_full_batches)
        batches = records.map(self._elements, **parallel_calls(options))
        return finished(batches, plan, options)

    def _elements(self, records: tf.Tensor) -> Any:
        """Turn records (string [batch]) into what is handed out."""
        wanted = {**self.reader.spec, **self.targets.spec}
        if self.number is not None:
            wanted[self.number] = tf.io.FixedLenFeature((), tf.float32)
        parsed = tf.io.parse_example(records, wanted)
        columns = self.reader.columns(parsed)
        if self.number is not None:
            return columns, parsed[self.number]
        if self.targets.mode is None:
            return columns
        label = self.targets.labels(parsed)
        label = tf.ensure_shape(label, (records.shape[0], *label.shape[1:]))
        if self.targets.weights:
            return columns, label, self.targets.weights_of(label)
        return columns, label


def _varies(schema: Schema, name: str) -> bool:
    kind = schema.columns[name]
    return kind.kind == "floats" and kind.length is None
