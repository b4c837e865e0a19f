"""What a pipeline is made of: one frozen value, valid once it exists."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from recordgen import storage
from recordgen.errors import SourceError, UsageError
from recordgen.options import AUTO, ConvertOptions
from recordgen.tables.schema import Schema
from recordgen.tasks import Declared, ImageClassification, Tabular
from recordgen.training import TrainingConfig

# By its class path and in memory: plain "DirectRunner" may be Prism in newer Beams, which it
# downloads; and more processes cost more to start than small data takes.
LOCAL_BEAM_ARGS = (
    "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner",
    "--direct_running_mode=in_memory",
    "--direct_num_workers=1",
    # Without an image TFX packs its own sources for workers elsewhere, at the start of each step
    # that uses Beam: seconds that nobody here needs. No container is started.
    "--sdk_container_image=none",
)

# What a pattern has spans by: numbers, or days since 1970 that stand as dates.
SPAN_MARKS = ("{SPAN", "{YYYY}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """What :func:`pipelines.pipeline.create_pipeline` builds.

    Attributes:
        name: the pipeline's name in ML Metadata; runs of one name share a cache.
        input_base: folder or URL below which the import files lie.
        pattern: the import files in it; may hold ``{SPAN}``, ``{YYYY}-{MM}-{DD}``, ``{VERSION}``.
        pipeline_root: folder or URL for all artifacts.
        serving_dir: folder or URL to which blessed models are pushed.
        metadata_path: file of the SQLite metadata store; None where the platform has its own.
        span: the span to read, of a pattern that has spans or dates; None: the latest.
        dataset_version: your own name for the data, part of the cache key; None: none.
        fingerprint_images: put size and time of every image into the cache key.
        options: how to convert; see :attr:`task` for the task in them.
        training: how to train.
        train_steps: steps to train in all, instead of ``training.epochs``; None: by epochs.
        min_score: score on ``eval`` from which a model is blessed, 0..1: its accuracy; of tasks
            with several labels the mean of these labels' AUC, of ``object_detection`` the mean
            average precision.
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
        """What rows mean and the model predicts.

        What is measured is fixed before there are data: where the options say ``auto``, this is
        ``image_classification``, or ``tabular`` if one of them is for tables, and the conversion is
        told so.
        """
        if self.options.task != AUTO:
            return self.options.task
        return Tabular.name if self.options.of_tables() else ImageClassification.name


def _check_target(task: str, options: ConvertOptions) -> None:
    """Check that a table says what a model is to predict, before all of it is converted."""
    if task == Tabular.name and not options.target_column:
        raise UsageError(
            "a model of a table needs target_column, the column that it is to predict: "
            "--target-column NAME"
        )
    if task == Declared.name:
        schema = Schema.from_json(options.schema)
        if schema.table.target is None:
            raise UsageError(
                f"a model of declared columns needs one that it is to predict: declare it as "
                f"label, int_label or float_label (got {', '.join(schema.columns)}, none of them)"
            )


def check_span(span: int | None, pattern: str) -> None:
    """Check that ``span`` can be found by ``pattern``, as TFX's drivers do. Raises: UsageError."""
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
    """Return the config of a pipeline that keeps everything in one folder.

    Args:
        data: a folder of import files, or one import file.
        workdir: folder for artifacts, metadata and pushed models.
        pattern: the import files in the folder ``data``.
        **settings: further fields of :class:`PipelineConfig`.

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
