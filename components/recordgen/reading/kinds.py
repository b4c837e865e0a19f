"""The kinds of examples: for each, its option class and the functions that plan and read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import tensorflow as tf

from recordgen.access.shards import ShardSet
from recordgen.core.dataset.manifest import EXAMPLES, Dataset
from recordgen.errors import UsageError
from recordgen.features import FeatureSpec
from recordgen.reading.decoding import as_written
from recordgen.reading.foreign import check_record, keeping_labelled
from recordgen.reading.images import ImageReading
from recordgen.reading.keywords import ReadKeywords
from recordgen.reading.options import AUTO, LabelOptions, ReadOptions, RecordOptions, TaskOptions
from recordgen.reading.parsing import parse_named, to_parsing_spec
from recordgen.reading.plan import ReadPlan, plan_reading, plan_records, plan_texts
from recordgen.reading.records import BatchReading, keeping
from recordgen.reading.targets import Targets
from recordgen.registry import OF_OTHER_RECORDS, TASKS


@dataclass(frozen=True)
class Kind:
    """How examples of one kind are read; the attribute ``reading`` of a task.

    Attributes:
        plan: plans a reading, before the first record is read.
        reading: prepares a planned reading.
        has_target: whether the examples are rows, whose target is a class or a number.
        chosen: returns the kind for these shards and options, if it depends on them.
    """

    options: type[RecordOptions]
    plan: Callable[[ShardSet, Any], ReadPlan]
    reading: Callable[[ShardSet, ReadPlan, Any], BatchReading | ImageReading]
    has_target: bool = False
    chosen: Callable[[ShardSet, Mapping[str, Any]], Kind] | None = None


def kind_of(shards: ShardSet, options: Mapping[str, Any]) -> Kind:
    """Return the kind of the examples in shards, and check the names of the options.

    The kind depends on ``dataset.json`` and the options ``task`` and ``columns``. Other tools'
    files, and files written from Python, hold images unless ``task`` names another task.

    Raises: UsageError: there is no such task, or an option is for other tasks.
    """
    task = options.get("task", AUTO)
    written = shards.dataset.task if shards.dataset is not None else EXAMPLES
    name = task if written == EXAMPLES else written
    if task not in (AUTO, name):
        raise UsageError(
            f"task={task!r}, but dataset.json says {written!r}; remove task to read the dataset"
        )
    name = OF_OTHER_RECORDS if name == AUTO else name
    kind = kind_for(name)
    if kind.chosen is not None:
        kind = kind.chosen(shards, options)
    known = {field.name for field in fields(kind.options)}
    for option in options:
        if option not in known and option in ("image_size", *ReadKeywords.__annotations__):
            raise UsageError(f"{option} does not apply to these examples ({name}); remove it")
    return kind


def kind_for(task: str) -> Kind:
    """Return the kind that a task declares. Raises: UsageError: there is no such task."""
    found: Kind = TASKS[task].declared("reading")
    return found


def parsed_kind(
    features: Mapping[str, FeatureSpec], to_batch: Callable[[Mapping[str, tf.Tensor]], Any]
) -> Kind:
    """Return the :class:`Kind` of a task, for its ``reading``.

    Args:
        features: the features of the task.
        to_batch: takes a batch of parsed features by name, and returns the batch that the user
            gets: tensors, or tuples and dicts of them.
    """
    spec = to_parsing_spec(features)

    def parse(records: tf.Tensor) -> Any:
        return to_batch(tf.io.parse_example(records, dict(spec)))

    def reading(shards: ShardSet, plan: ReadPlan, options: TaskOptions) -> BatchReading:
        del shards
        return BatchReading(plan, options, keeping(options.predicate, lambda: spec), parse)

    return Kind(options=TaskOptions, plan=plan_records, reading=reading)


def labelled_kind(
    features: Mapping[str, FeatureSpec],
    inputs: Callable[[Mapping[str, tf.Tensor], Dataset | None], Any],
    *,
    text: str,
    label: str,
) -> Kind:
    """Return the :class:`Kind` of a task that labels whole examples, for its ``reading``.

    Args:
        features: the features that ``inputs`` takes.
        inputs: takes a batch of parsed features by name, and the dataset of the shards, if they
            have one; returns what a model gets.
        text: the feature with the texts of labels.
        label: the feature with their numbers.
    """
    spec = to_parsing_spec(features)

    def reading(shards: ShardSet, plan: ReadPlan, options: LabelOptions) -> BatchReading:
        if plan.classes is None:
            raise TypeError("a plan for labels has classes")
        targets = Targets(plan.classes, options, text=text, label=label)
        extras, stored = check_record(shards, plan, options, tuple(targets.spec))

        @as_written
        def to_batch(records: tf.Tensor) -> Any:
            parsed = parse_named(records, {**spec, **targets.spec}, stored)
            parts = [inputs(parsed, shards.dataset)]
            if targets.mode is not None:
                parts += targets.parts(targets.labels(parsed), records.shape[0])
            if extras:
                found = tf.io.parse_example(records, dict(extras))
                parts.append({name: found[name] for name in extras})
            return parts[0] if len(parts) == 1 else tuple(parts)

        keep = keeping_labelled(shards, plan, options, targets, stored, {})
        return BatchReading(plan, options, keep, to_batch)

    return Kind(options=LabelOptions, plan=plan_texts, reading=reading)


#: Images with labels, boxes or masks, which the engine reads itself.
IMAGES = Kind(options=ReadOptions, plan=plan_reading, reading=ImageReading)
