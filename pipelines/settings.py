"""What a TFX pipeline does with its data, and the options of the commands that say it."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field, fields, replace
from typing import Any

from recordgen import storage
from recordgen.cli import add_options
from recordgen.errors import SourceError, UsageError, check_at_least
from recordgen.options import AUTO, OPTIONS, ConvertOptions, make_options
from recordgen.tasks import TASKS, Declared, ImageClassification, Tabular, task_for
from recordgen.training import TrainingConfig
from recordgen.training.config import TRAINING_OPTIONS

_SPAN_MARKS = ("{SPAN", "{YYYY}")  # placeholders of spans: numbers, or dates


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a pipeline, known before TFX is loaded.

    Attributes:
        input_base: folder or URL that contains the import files.
        pattern: the import files in it; may have ``{SPAN}``, ``{YYYY}-{MM}-{DD}``, ``{VERSION}``.
        name: the pipeline's name in ML Metadata; runs of one name share a cache.
        span: the span to read, if the pattern has spans or dates; None for the latest.
        dataset_version: your own name for the data, part of the cache key.
        fingerprint_images: whether size and time of every image are part of the cache key.
        min_score: the lowest score on ``eval`` of a blessed model, 0..1; the task's measure.
        curated_schema: a schema (pbtxt) to compare a span with; with it, the training continues
            from the last blessed model, on the last spans.
        window: number of these spans, including the newest.
    """

    input_base: str
    pattern: str = "*.csv"
    name: str = "recordgen"
    span: int | None = None
    dataset_version: str | None = None
    fingerprint_images: bool = True
    options: ConvertOptions = field(default_factory=ConvertOptions)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    min_score: float = 0.8
    curated_schema: str = ""
    window: int = 3

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("name must not be empty")
        if not 0 <= self.min_score <= 1:
            raise UsageError(f"min_score must be from 0 to 1 (got {self.min_score})")
        has_spans = any(mark in self.pattern for mark in _SPAN_MARKS)
        if (self.span is not None or self.curated_schema) and not has_spans:
            raise UsageError(
                f"a span and a curated schema need a pattern with {{SPAN}}, or with {{YYYY}}, "
                f"{{MM}} and {{DD}} (got {self.pattern!r})"
            )
        check_at_least(1, window=self.window)
        if self.task == Tabular.name and not self.options.columns.target:
            raise UsageError(
                "a model of a table needs the column to predict: --columns target=NAME"
            )
        if self.task == Declared.name:
            task_for(self.options)
            schema = self.options.declared_schema
            if schema is not None and schema.table.target is None:
                raise UsageError(
                    f"a model of declared columns needs a column to predict: declare it as label, "
                    f"int_label or float_label (got {', '.join(schema.columns)}, without one)"
                )

    @property
    def task(self) -> str:
        """The task. The measure must be known before the data, so ``auto`` is resolved here.

        ``auto`` becomes ``tabular`` if an option is for tables, else ``image_classification``.
        """
        if self.options.task != AUTO:
            return self.options.task
        return Tabular.name if self.options.of_tables() else ImageClassification.name

    @property
    def custom_config(self) -> dict[str, Any]:
        """The settings of the training that differ from its defaults, for TFX's Trainer."""
        defaults = TrainingConfig().to_custom_config()
        values = self.training.to_custom_config()
        return {name: value for name, value in values.items() if value != defaults[name]}


def add_pipeline_options(parser: argparse.ArgumentParser, *, other_task: str) -> None:
    """Add the options of :func:`to_settings`; ``other_task`` is the default in the help."""
    add = parser.add_argument
    text = (
        "import files in --data, or a folder of images, whose name ends with /; may contain "
        "{SPAN}, {YYYY}, …; default *.csv, or all of --data if there are none"
    )
    add("--pattern", default="*.csv", help=text)
    add("--span", type=int, help="the span to read (days since 1970 for dates); default: latest")
    add("--dataset-version", help="your own name for this data; part of the cache key")
    add("--task", choices=TASKS, help=f"task of the rows and the model; default: {other_task}")
    add("--name", default="recordgen", help="the pipeline's name in ML Metadata")
    text = "do not look up every image before"
    add("--no-fingerprint-images", dest="fingerprint_images", action="store_false", help=text)
    add("--seed", type=int, default=0, help="seed of conversion and training")
    stored = replace(OPTIONS["image_size"], name="stored_image_size")  # the training has its own
    for options in ({**OPTIONS, "image_size": stored}, TRAINING_OPTIONS):
        add_options(parser, options.values(), without=("task", "seed"))
    text = (
        "lowest score on eval of a blessed model: accuracy; mean AUC for several labels, mean "
        "average precision for boxes, F1 for entities, R² for numbers"
    )
    add("--min-score", type=float, default=0.8, help=text)


def to_settings(args: argparse.Namespace, input_base: str, pattern: str) -> Settings:
    """Return the settings on a command line. Raises: UsageError."""
    options = {name: getattr(args, name) for name in OPTIONS}
    options["image_size"] = args.stored_image_size
    given = {it.name: getattr(args, it.name) for it in fields(Settings) if it.name in args}
    return Settings(
        **{**given, "input_base": input_base, "pattern": pattern},
        options=make_options({**options, "task": args.task or AUTO}),
        training=TrainingConfig(**{name: getattr(args, name) for name in TRAINING_OPTIONS}),
    )


def local_input(data: str, pattern: str) -> tuple[str, str]:
    """Return folder and pattern of ``data``: import files, one file, or a folder of other labels.

    Raises: SourceError: there is nothing at ``data``.
    """
    if storage.is_local(data):
        data = os.path.abspath(storage.local_path(data))
    if not (storage.is_file(data) or storage.list_dir(data)):
        raise SourceError(f"{data}: no such file or folder; give a CSV file or a folder of them")
    parent, _, name = data.rstrip("/").rpartition("/")
    if storage.list_files(data) == [data]:
        return parent, name
    has_others = pattern == "*.csv" and not storage.list_files(storage.join(data, pattern))
    return (parent, f"{name}/") if has_others else (data, pattern)
