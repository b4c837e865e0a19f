"""AutoML's tasks: how each parses its rows, and turns them into features.

A row carries its *annotation*, the label, boxes or values of its line as one text that only the
task reads. The core (places, shards, commits) passes annotations on and asks the task for the rest.
Neither TensorFlow nor Beam is needed here, and each task is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordgen import registry
from recordgen.registry import TASKS as TASKS

if TYPE_CHECKING:
    from recordgen.core.task.annotation import AnnotationError as AnnotationError
    from recordgen.core.task.annotation import RowContent as RowContent
    from recordgen.core.task.task import BuiltExample as BuiltExample
    from recordgen.core.task.task import Task as Task
    from recordgen.core.task.task import each_row as each_row
    from recordgen.tasks.image_segmentation.task import ImageSegmentation as ImageSegmentation
    from recordgen.tasks.images.task import ImageClassification as ImageClassification
    from recordgen.tasks.images.task import ImageMultiLabel as ImageMultiLabel
    from recordgen.tasks.object_detection.task import ObjectDetection as ObjectDetection
    from recordgen.tasks.suiting import task_for as task_for
    from recordgen.tasks.tables.task import Declared as Declared
    from recordgen.tasks.tables.task import Tabular as Tabular
    from recordgen.tasks.texts.entities import TextEntities as TextEntities
    from recordgen.tasks.texts.task import TextClassification as TextClassification
    from recordgen.tasks.texts.task import TextMultiLabel as TextMultiLabel
    from recordgen.tasks.texts.task import TextSentiment as TextSentiment
    from recordgen.tasks.video_classification.task import VideoClassification as VideoClassification

#: The task of rows that are columns of a table, if nothing else is said.
TASK_OF_TABLES = "tabular"

# Paths of what this package exports: its tasks, what a task of another package needs, and what
# makes a task of options.
_EXPORTS = {
    path.partition(":")[2]: path
    for path in (
        *registry.OWN.values(),
        "recordgen.core.task.task:Task",
        "recordgen.core.task.annotation:AnnotationError",
        "recordgen.core.task.annotation:RowContent",
        "recordgen.core.task.task:BuiltExample",
        "recordgen.core.task.task:each_row",
        "recordgen.tasks.suiting:task_for",
    )
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'recordgen.tasks' has no attribute {name!r}")
    value = globals()[name] = registry.imported(_EXPORTS[name])
    return value
