"""The files of an output that name its labels: ``labels.txt``, and the files of the task."""

from __future__ import annotations

from collections.abc import Mapping

from recordgen.core.dataset.manifest import LABELS_FILE, Dataset
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.tasks import TASKS

#: The names of the files that name labels in any of Recordgen's own tasks.
LABEL_FILES = ("label_map.pbtxt", LABELS_FILE, "tags.txt")


def label_files(dataset: Dataset) -> Mapping[str, str]:
    """Return the contents of the files that name the labels, by file name."""
    if dataset.task not in TASKS:  # written from Python, or by a package that is not installed
        return {}
    return {LABELS_FILE: labels_text(dataset.labels), **TASKS[dataset.task].files(dataset.labels)}
