"""The kinds of examples: for each, its option class and the functions that plan and read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from recordgen.dataset.manifest import EXAMPLES
from recordgen.errors import UsageError
from recordgen.reading.entities import read_entities
from recordgen.reading.images import ImageReading
from recordgen.reading.keywords import ReadKeywords
from recordgen.reading.options import EntityOptions, ReadOptions, RecordOptions, TextOptions
from recordgen.reading.plan import ReadPlan, plan_reading, plan_records, plan_texts
from recordgen.reading.records import BatchReading
from recordgen.reading.shards import ShardSet
from recordgen.reading.tables import (
    TableOptions,
    are_labelled_images,
    plan_images,
    plan_table,
    read_images,
    read_table,
)
from recordgen.reading.texts import read_texts
from recordgen.reading.tuning import AUTO
from recordgen.reading.videos import VideoOptions, plan_videos, read_videos
from recordgen.tasks import TASKS, Declared


@dataclass(frozen=True)
class Kind:
    """How examples of one kind are read; the attribute ``reading`` of a task.

    Attributes:
        options: the option class.
        plan: plans a reading, before the first record is read.
        reading: prepares a planned reading.
        training: further default options for training.
    """

    options: type[RecordOptions]
    plan: Callable[[ShardSet, Any], ReadPlan]
    reading: Callable[[ShardSet, ReadPlan, Any], BatchReading | ImageReading]
    training: Mapping[str, Any] = field(default_factory=dict)


IMAGES = Kind(options=ReadOptions, plan=plan_reading, reading=ImageReading)
TEXTS = Kind(options=TextOptions, plan=plan_texts, reading=read_texts)
ENTITIES = Kind(
    options=EntityOptions, plan=plan_records, reading=read_entities, training={"buckets": AUTO}
)
# A table with one column of images and one of labels, unless ``columns`` is given.
DECLARED = Kind(options=ReadOptions, plan=plan_images, reading=read_images)
TABLES = Kind(options=TableOptions, plan=plan_table, reading=read_table)
VIDEOS = Kind(options=VideoOptions, plan=plan_videos, reading=read_videos)


def kind_of(shards: ShardSet, options: Mapping[str, Any]) -> Kind:
    """Return the kind of the examples in shards, and check the names of the options.

    Args:
        shards: the files. Other tools' files, and files written from Python, hold images unless the
            option ``task`` names another task.
        options: the user's options; the kind depends on ``task``, ``columns`` and ``dataset.json``.

    Raises:
        UsageError: there is no such task, or an option is for other tasks.
    """
    task = options.get("task", AUTO)
    written = shards.dataset.task if shards.dataset is not None else EXAMPLES
    name = task if written == EXAMPLES else written
    if task not in (AUTO, name):
        raise UsageError(
            f"task={task!r}, but dataset.json says {written!r}; remove task to read the dataset"
        )
    if name == AUTO:
        name = "image_classification"
    is_columns = name == Declared.name and ("columns" in options or not are_labelled_images(shards))
    kind = TABLES if is_columns else kind_for(name)
    known = {field.name for field in fields(kind.options)}
    for option in options:
        if option not in known and option in ("image_size", *ReadKeywords.__annotations__):
            raise UsageError(f"{option} does not apply to these examples ({name}); remove it")
    return kind


def kind_for(task: str) -> Kind:
    """Return the kind of a task's examples, without regard to ``columns``.

    Raises:
        UsageError: there is no such task.
    """
    found: Kind = TASKS[task].declared("reading")
    return found
