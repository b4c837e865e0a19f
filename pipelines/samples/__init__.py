"""The data of the demos: each task names its :class:`Sample`, as its ``sample``."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from recordgen import storage
from recordgen.tasks import TASKS
from recordgen.training import TrainingConfig


@dataclass(frozen=True, slots=True)
class Sample:
    """Data for a task, and the settings of the demo's pipeline.

    Attributes:
        name: the name of the demo's pipeline.
        data: a description of the data in a few words.
        write: writes a number of examples (None: all) to a folder; returns the path to import. It
            keeps complete files, and so their times, so that TFX's cache holds.
        min_score: the lowest score of a model that is good enough.
        options: options of the conversion, apart from the task.
    """

    name: str
    data: str
    write: Callable[[str, int | None], str]
    training: TrainingConfig
    min_score: float
    options: Mapping[str, Any] = field(default_factory=dict)


def sample_of(task: str) -> Sample:
    """Return the sample of a task. Raises: UsageError if the task is unknown or has none."""
    return TASKS[task].declared("sample")


def write_lines(path: str, lines: Iterable[str]) -> str:
    """Write lines to a file, unless it already has them; return its path."""
    content = "".join(f"{line}\n" for line in lines)
    if storage.is_local(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if not storage.exists(path) or storage.read_text(path) != content:
        storage.write_text(path, content)
    return path


def write_csv(path: str, rows: Iterable[Sequence[object]]) -> str:
    """Write rows as a CSV file, as :func:`write_lines` does; return its path."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return write_lines(path, text.getvalue().removesuffix("\n").split("\n"))


def write_image(path: str, image: Image.Image, image_format: str, **settings: Any) -> None:
    """Write an image file, unless it exists; renaming ensures that an existing file is complete."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        image.save(f"{path}.tmp", image_format, **settings)
        os.replace(f"{path}.tmp", path)
