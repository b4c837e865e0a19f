"""AutoML's tasks: what the rows of each mean, and which features they become.

A row carries its *annotation*: what the line says of the payload, as one text that only the task
reads. The core (places, shards, commits) moves annotations about and asks the task for the rest.
Neither TensorFlow nor Beam is needed here.
"""

from __future__ import annotations

from collections.abc import Mapping

from recordgen.errors import UsageError
from recordgen.options import AUTO, ConvertOptions
from recordgen.tasks.declared_table import Declared
from recordgen.tasks.image_classification import ImageClassification
from recordgen.tasks.image_multi_label import ImageMultiLabel
from recordgen.tasks.object_detection import ObjectDetection
from recordgen.tasks.tabular import Tabular
from recordgen.tasks.task import Task
from recordgen.tasks.text_classification import TextClassification
from recordgen.tasks.text_entities import TextEntities
from recordgen.tasks.text_multi_label import TextMultiLabel
from recordgen.tasks.text_sentiment import TextSentiment
from recordgen.tasks.video_classification import VideoClassification

__all__ = [
    "TASKS",
    "Declared",
    "ImageClassification",
    "ImageMultiLabel",
    "ObjectDetection",
    "Tabular",
    "Task",
    "TextClassification",
    "TextEntities",
    "TextMultiLabel",
    "TextSentiment",
    "VideoClassification",
    "task_for",
]

#: All tasks by name.
TASKS: Mapping[str, type[Task]] = {
    kind.name: kind
    for kind in (
        ImageClassification,
        ImageMultiLabel,
        ObjectDetection,
        TextClassification,
        TextMultiLabel,
        TextSentiment,
        TextEntities,
        Tabular,
        VideoClassification,
        Declared,
    )
}


def task_for(options: ConvertOptions) -> Task:
    """Return the task that ``options.task`` names, which must be decided by now.

    Raises:
        UsageError: there is no such task, or an option does not go with it.
    """
    if options.task == AUTO:
        raise UsageError("the task is not decided: look at the import files first")
    return TASKS[options.task].of(options)
