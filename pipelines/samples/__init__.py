"""The data of the demos: ``samples.yaml`` lists them, and modules of this package write them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from recordgen import storage
from recordgen.registry import TASKS, imported
from recordgen.training import TrainingConfig

#: The splits of ten examples, one after another, of most samples.
USES = ("TRAIN",) * 8 + ("VALIDATION", "TEST")


@dataclass(frozen=True, slots=True)
class Sample:
    """Data for a task, and the settings of the demo's pipeline, see ``samples.yaml``."""

    name: str
    data: str
    write: Callable[[str, int | None], str]
    training: TrainingConfig
    min_score: float
    options: Mapping[str, Any]


def sample_of(task: str) -> Sample:
    """Return the sample of a task. Raises: UsageError if the task is unknown or has none."""
    samples = yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text(encoding="utf-8"))
    if task not in samples:  # another package's
        return TASKS[task].declared("sample")
    listed = {"options": {}, **samples[task]}
    write = imported(f"pipelines.samples.{listed['write']}")
    training = TrainingConfig.from_custom_config(listed["training"])
    return Sample(**{**listed, "write": write, "training": training})


def write_lines(path: str, lines: Iterable[str]) -> str:
    """Write lines to a file, unless it already has them; return its path."""
    content = "".join(f"{line}\n" for line in lines)
    if not storage.is_file(path) or storage.read_text(path) != content:
        storage.write_text(path, content)
    return path


def write_csv(path: str, rows: Iterable[Sequence[object]]) -> str:
    """Write rows as a CSV file, as :func:`write_lines` does; return its path."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return write_lines(path, text.getvalue().removesuffix("\n").split("\n"))


def write_image(path: str, image: Image.Image, image_format: str, **settings: Any) -> None:
    """Write an image file, unless it exists; an existing file is complete."""
    if not storage.is_file(path):
        with storage.replacing(path) as file:
            image.save(file, image_format, **settings)
