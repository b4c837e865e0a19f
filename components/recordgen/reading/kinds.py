"""How examples of each kind are read: the entry of a kind is all that the doors know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.features import TEXT_TASKS
from recordgen.reading.columns import (
    ColumnOptions,
    ColumnReading,
    are_labelled_images,
    plan_columns,
)
from recordgen.reading.declared import plan_declared, read_declared
from recordgen.reading.entities import EntityReading
from recordgen.reading.images import ImageReading
from recordgen.reading.options import (
    EntityOptions,
    ReadOptions,
    RecordOptions,
    TextOptions,
)
from recordgen.reading.plan import ReadPlan, plan_reading, plan_records, plan_texts
from recordgen.reading.records import Keep
from recordgen.reading.shards import ShardSet
from recordgen.reading.tables import TableOptions, TableReading
from recordgen.reading.texts import TextReading
from recordgen.reading.tuning import AUTO
from recordgen.reading.videos import VideoOptions, VideoReading, plan_videos
from recordgen.tasks import TASKS, Declared


class Reading(Protocol):
    """The stages of one reading."""

    @property
    def keep(self) -> Keep | None:
        """What says (bool []) whether a serialised record (string []) is wanted; None: all are."""

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""


@dataclass(frozen=True)
class Kind:
    """How examples of one kind are read.

    Attributes:
        options: the class of what can be asked for.
        training: defaults that only training has.
        plan: decides all that can be decided before the first record is read.
        reading: prepares a planned reading.
        labelled: the tasks whose examples without a label are left out.
    """

    options: type[RecordOptions]
    training: Mapping[str, Any]
    plan: Callable[[ShardSet, Any], ReadPlan]
    reading: Callable[[ShardSet, ReadPlan, Any], Reading]
    labelled: frozenset[str]


#: By :attr:`recordgen.tasks.Task.kind`.
KINDS: Mapping[str, Kind] = {
    "image": Kind(
        options=ReadOptions,
        training={},
        plan=plan_reading,
        reading=ImageReading.of,
        labelled=frozenset({"image_classification", "image_multi_label"}),
    ),
    "text": Kind(
        options=TextOptions,
        training={},
        plan=plan_texts,
        reading=TextReading.of,
        labelled=frozenset(TEXT_TASKS),
    ),
    "entities": Kind(
        options=EntityOptions,
        training={"buckets": AUTO},
        plan=plan_records,
        reading=EntityReading.of,
        labelled=frozenset(),
    ),
    "declared": Kind(
        options=ReadOptions,
        training={},
        plan=plan_declared,
        reading=read_declared,
        labelled=frozenset(),
    ),
    "table": Kind(
        options=TableOptions,
        training={},
        plan=plan_records,
        reading=TableReading.of,
        labelled=frozenset(),
    ),
    "video": Kind(
        options=VideoOptions,
        training={},
        plan=plan_videos,
        reading=VideoReading.of,
        labelled=frozenset({"video_classification"}),
    ),
}

# Declared columns that are no pairs of an image and a label.
_COLUMNS = Kind(
    options=ColumnOptions,
    training={},
    plan=plan_columns,
    reading=ColumnReading.of,
    labelled=frozenset(),
)


def kind_of(shards: ShardSet, options: Mapping[str, Any]) -> Kind:
    """Return how shards are read.

    Args:
        shards: files; what others wrote, and what was written from Python, are images unless
            ``task`` says otherwise.
        options: what the user asks for: of it ``task``, what the examples are for, and whether
            ``columns`` are named.

    Raises:
        UsageError: there is no such task, or an option is for examples of other tasks.
    """
    task = options.get("task", AUTO)
    name = shards.dataset.task if shards.dataset is not None else task
    if name not in TASKS:  # written from Python
        name = task
    if name == AUTO:
        name = "image_classification"
    if name not in TASKS:
        raise UsageError(f"task must be one of {', '.join((AUTO, *TASKS))} (got {task!r})")
    is_columns = name == Declared.name and ("columns" in options or not are_labelled_images(shards))
    kind = _COLUMNS if is_columns else KINDS[TASKS[name].kind]
    _check_applicable(options, kind, name)
    return kind


def _check_applicable(given: Iterable[str], kind: Kind, task: str) -> None:
    """Check that options are not those of other examples alone, such as ``image_size`` of texts.

    Args:
        given: names of options.
        kind: how the examples are read.
        task: what the examples are for.

    Raises:
        UsageError: an option exists, but not for these examples.
    """
    known = _option_names(kind)
    elsewhere = {name for other in (*KINDS.values(), _COLUMNS) for name in _option_names(other)}
    for name in given:
        if name in elsewhere - known:
            raise UsageError(f"{name} does not apply to these examples ({task}); leave it out")


def _option_names(kind: Kind) -> set[str]:
    return {field.name for field in fields(kind.options)}
