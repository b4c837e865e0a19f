"""How examples of each kind are read: its :class:`Kind` is all that the doors know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import tensorflow as tf

from recordgen.dataset.manifest import EXAMPLES
from recordgen.errors import UsageError
from recordgen.reading.entities import EntityReading
from recordgen.reading.images import ImageReading
from recordgen.reading.keywords import ReadKeywords
from recordgen.reading.options import (
    EntityOptions,
    ReadOptions,
    RecordOptions,
    TextOptions,
)
from recordgen.reading.plan import ReadPlan, plan_reading, plan_records, plan_texts
from recordgen.reading.records import Keep
from recordgen.reading.shards import ShardSet
from recordgen.reading.tables import (
    TableOptions,
    TableReading,
    are_labelled_images,
    plan_images,
    plan_table,
    read_images,
)
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
    """How examples of one kind are read; a task names its own as its ``reading``.

    Attributes:
        options: the class of what can be asked for.
        plan: decides all that can be decided before the first record is read.
        reading: prepares a planned reading.
        training: defaults that only training has.
    """

    options: type[RecordOptions]
    plan: Callable[[ShardSet, Any], ReadPlan]
    reading: Callable[[ShardSet, ReadPlan, Any], Reading]
    training: Mapping[str, Any] = field(default_factory=dict)


IMAGES = Kind(options=ReadOptions, plan=plan_reading, reading=ImageReading.of)
TEXTS = Kind(options=TextOptions, plan=plan_texts, reading=TextReading.of)
ENTITIES = Kind(
    options=EntityOptions,
    training={"buckets": AUTO},
    plan=plan_records,
    reading=EntityReading.of,
)
# Of a table with one column of images and one of labels, unless columns are named.
DECLARED = Kind(options=ReadOptions, plan=plan_images, reading=read_images)
TABLES = Kind(options=TableOptions, plan=plan_table, reading=TableReading.of)
VIDEOS = Kind(options=VideoOptions, plan=plan_videos, reading=VideoReading.of)


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
    written = shards.dataset.task if shards.dataset is not None else EXAMPLES
    name = task if written == EXAMPLES else written
    if task not in (AUTO, name):
        raise UsageError(
            f"task={task!r}, but dataset.json says {written!r}; leave task out to read that"
        )
    if name == AUTO:
        name = "image_classification"
    is_columns = name == Declared.name and ("columns" in options or not are_labelled_images(shards))
    kind = TABLES if is_columns else kind_for(name)
    _check_applicable(options, kind, name)
    return kind


def kind_for(task: str) -> Kind:
    """Return how examples of a task are read, unless their columns are declared and named.

    Raises:
        UsageError: there is no such task.
    """
    found: Kind = TASKS[task].declared("reading")
    return found


def _check_applicable(given: Iterable[str], kind: Kind, task: str) -> None:
    """Check that options are not those of other examples alone, such as ``image_size`` of texts.

    Args:
        given: names of options.
        kind: how the examples are read.
        task: what the examples are for.

    Raises:
        UsageError: an option exists, but not for these examples.
    """
    known = {field.name for field in fields(kind.options)}
    for name in given:
        if name not in known and name in ("image_size", *ReadKeywords.__annotations__):
            raise UsageError(f"{name} does not apply to these examples ({task}); leave it out")
