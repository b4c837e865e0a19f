"""The settings of a TFX pipeline, and the options of the commands that build it."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from typing import Any

from recordgen import storage
from recordgen.cli import add_options
from recordgen.errors import SourceError, UsageError
from recordgen.options import AUTO, OPTIONS, ConvertOptions
from recordgen.tables.schema import Schema
from recordgen.tasks import TASKS, Declared, ImageClassification, Tabular
from recordgen.training import TrainingConfig
from recordgen.training.config import TRAINING_OPTIONS

# Not "DirectRunner", for which newer Beams may download Prism. One process: for small data, further
# processes take longer to start than they save.
LOCAL_BEAM_ARGS = (
    "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    "--direct_running_mode=in_memory",
    "--direct_num_workers=1",
    # Without an image, TFX packs its sources for remote workers at the start of each Beam step,
    # which takes seconds. No container is started.
    "--sdk_container_image=none",
)

# Placeholders of spans in a pattern: numbers, or dates, which become days since 1970.
SPAN_MARKS = ("{SPAN", "{YYYY}")

PATTERN_HELP = (
    "import files in --data, or a folder of images, whose name ends with /; may contain {SPAN}, "
    "{YYYY}, …; default *.csv"
)

# One task and one seed serve all steps.
_SHARED = ("task", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """The settings of :func:`pipelines.pipeline.create_pipeline`.

    Attributes:
        name: the pipeline's name in ML Metadata; runs of one name share a cache.
        input_base: folder or URL that contains the import files.
        pattern: the import files in it; may have ``{SPAN}``, ``{YYYY}-{MM}-{DD}``, ``{VERSION}``.
        pipeline_root: folder or URL for all artifacts.
        serving_dir: folder or URL to which blessed models are pushed.
        metadata_path: file of the SQLite metadata store; None if the platform has its own.
        span: the span to read, if the pattern has spans or dates; None for the latest.
        dataset_version: your own name for the data, part of the cache key.
        fingerprint_images: whether size and time of every image are part of the cache key.
        options: the options of the conversion.
        training: the settings of the training.
        train_steps: total of steps to train; overrides ``training.epochs``.
        min_score: the lowest score on ``eval`` of a blessed model, 0..1; the task's measure.
        beam_args: Beam options of all components.
    """

    name: str
    input_base: str
    pattern: str = "*.csv"
    pipeline_root: str
    serving_dir: str
    metadata_path: str | None = None
    span: int | None = None
    dataset_version: str | None = None
    fingerprint_images: bool = True
    options: ConvertOptions = field(default_factory=ConvertOptions)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    train_steps: int | None = None
    min_score: float = 0.8
    beam_args: tuple[str, ...] = LOCAL_BEAM_ARGS

    def __post_init__(self) -> None:
        for name in ("name", "input_base", "pattern", "pipeline_root", "serving_dir"):
            if not getattr(self, name):
                raise UsageError(f"{name} must not be empty")
        if self.task == Declared.name:
            Declared.of(self.options)
        _check_target(self.task, self.options)
        if not 0 <= self.min_score <= 1:
            raise UsageError(f"min_score must be from 0 to 1 (got {self.min_score})")
        check_span(self.span, self.pattern)
        check_train_steps(self.train_steps)

    @property
    def task(self) -> str:
        """The task. The measure must be known before the data, so ``auto`` is resolved here.

        ``auto`` becomes ``tabular`` if an option is for tables, else ``image_classification``.
        """
        if self.options.task != AUTO:
            return self.options.task
        return Tabular.name if self.options.of_tables() else ImageClassification.name


def _check_target(task: str, options: ConvertOptions) -> None:
    """Check before the conversion that a table has a column to predict."""
    if task == Tabular.name and not options.target_column:
        raise UsageError(
            "a model of a table needs target_column, the column to predict: --target-column NAME"
        )
    if task == Declared.name:
        schema = Schema.from_json(options.schema)
        if schema.table.target is None:
            raise UsageError(
                f"a model of declared columns needs a column to predict: declare it as label, "
                f"int_label or float_label (got {', '.join(schema.columns)}, without one)"
            )


def check_span(span: int | None, pattern: str) -> None:
    """Check that ``pattern`` has spans if ``span`` is set, as TFX does. Raises: UsageError."""
    if span is None:
        return
    if span < 0:
        raise UsageError(f"span must be at least 0 (got {span})")
    if not any(mark in pattern for mark in SPAN_MARKS):
        raise UsageError(
            f"span {span} needs a pattern with {{SPAN}}, or with {{YYYY}}, {{MM}} and {{DD}} "
            f"(got {pattern!r})"
        )


def check_train_steps(steps: int | None) -> None:
    """Check the number of steps. Raises: UsageError."""
    if steps is not None and steps < 1:
        raise UsageError(f"train_steps must be at least 1 (got {steps})")


def local_config(
    data: str, workdir: str, *, pattern: str = "*.csv", **settings: Any
) -> PipelineConfig:
    """Return the config of a pipeline that keeps artifacts, metadata and models in ``workdir``.

    ``data`` is a folder of import files or one file; ``settings`` are fields of PipelineConfig.

    Raises:
        SourceError: there is nothing at ``data``.
        UsageError: a setting is not allowed.
    """
    if storage.is_local(data):
        data = os.path.abspath(storage.local_path(data))
    if not storage.exists(data):
        raise SourceError(f"{data}: no such file or folder; give a CSV file or a folder of them")
    if storage.list_files(data) == [data]:
        data, pattern = data.rsplit("/", 1)
    workdir = os.path.abspath(workdir)
    return PipelineConfig(
        name=settings.pop("name", "recordgen"),
        input_base=data,
        pattern=pattern,
        pipeline_root=os.path.join(workdir, "artifacts"),
        serving_dir=os.path.join(workdir, "serving"),
        metadata_path=metadata_path(workdir),
        **settings,
    )


def metadata_path(workdir: str) -> str:
    """Return the file of the metadata store in ``workdir``."""
    return os.path.join(os.path.abspath(workdir), "metadata.db")


def add_pipeline_options(parser: argparse.ArgumentParser, *, other_task: str) -> None:
    """Add the options of :func:`pipeline_settings`; ``other_task`` is the default in the help."""
    add = parser.add_argument
    add(
        "--task",
        choices=TASKS,
        help=f"the task of the rows and the model; default: {other_task}",
    )
    add("--name", default="recordgen", help="the pipeline's name in ML Metadata")
    add("--no-fingerprint-images", action="store_true", help="do not look up every image before")
    add("--seed", type=int, default=0, help="seed of conversion and training")
    for options in (OPTIONS, TRAINING_OPTIONS):
        add_options(parser, options.values(), without=_SHARED)
    add(
        "--min-score",
        type=float,
        default=0.8,
        help="lowest score on eval of a blessed model: accuracy; mean AUC for several labels, mean "
        "average precision for boxes, F1 for entities, R² for numbers",
    )


def pipeline_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of :class:`PipelineConfig` that the options set. Raises: UsageError."""
    return {
        "name": args.name,
        "fingerprint_images": not args.no_fingerprint_images,
        "options": ConvertOptions(
            task=args.task or AUTO,
            **{name: getattr(args, name) for name in OPTIONS if name != "task"},
        ),
        "training": TrainingConfig.from_custom_config(
            {name: getattr(args, name) for name in TRAINING_OPTIONS}
            | {"image_size": list(args.image_size)}
        ),
        "min_score": args.min_score,
    }
