"""``python -m pipelines.demo``: a small sample through the whole pipeline, in a few minutes."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.config import PipelineConfig, local_config, metadata_path
from pipelines.terminal import run_main
from recordgen.console.quiet import quiet_libraries
from recordgen.options import ConvertOptions
from recordgen.tasks import (
    Declared,
    ImageClassification,
    ImageMultiLabel,
    ObjectDetection,
    Tabular,
    TextClassification,
    TextEntities,
    TextMultiLabel,
    TextSentiment,
    VideoClassification,
)
from recordgen.training import TrainingConfig


@dataclass(frozen=True, slots=True)
class Demo:
    """What is shown of a task.

    Attributes:
        name: the pipeline's name.
        data: what the sample is.
        workdir: folder for everything, unless another is given.
        training: how to train.
        min_score: from which score on the model is good enough.
        options: how to convert, beside the task.
    """

    name: str
    data: str
    workdir: str
    training: TrainingConfig
    min_score: float
    options: Mapping[str, Any] = field(default_factory=dict)


# Of the table of wines.
TARGET = "cultivar"

#: Of the readings of meters: what their columns hold.
METERS = {
    "split": "split",
    "day": "image",
    "night": "image",
    "usual": "int",
    "note": "text",
    "verdict": "label",
}

# Digits of 8 by 8 pixels, enlarged so that the small CNN has something to halve.
DEMOS = {
    ImageClassification.name: Demo(
        name="digits",
        data="scanned digits",
        workdir=".demo",
        training=TrainingConfig(image_size=(16, 16), batch_size=32, epochs=12, learning_rate=3e-3),
        min_score=0.95,
    ),
    ImageMultiLabel.name: Demo(
        name="digit-groups",
        data="scanned digits, one to three per image",
        workdir=os.path.join(".demo", ImageMultiLabel.name),
        training=TrainingConfig(image_size=(16, 48), batch_size=32, epochs=10, learning_rate=3e-3),
        min_score=0.95,
    ),
    ObjectDetection.name: Demo(
        name="scattered-digits",
        data="scanned digits, none to eight per image",
        workdir=os.path.join(".demo", ObjectDetection.name),
        training=TrainingConfig(
            image_size=(64, 64), batch_size=8, epochs=8, learning_rate=3e-3, top_k=10
        ),
        min_score=0.9,
    ),
    TextEntities.name: Demo(
        name="travels",
        data="sentences on travels, with persons, cities and dates",
        workdir=os.path.join(".demo", TextEntities.name),
        training=TrainingConfig(batch_size=32, epochs=8, learning_rate=3e-3),
        min_score=0.9,
    ),
    TextClassification.name: Demo(
        name="reviews",
        data="made-up reviews",
        workdir=os.path.join(".demo", TextClassification.name),
        training=TrainingConfig(batch_size=16, epochs=10, learning_rate=1e-2),
        min_score=0.85,
    ),
    TextMultiLabel.name: Demo(
        name="review-topics",
        data="made-up reviews of one to three topics",
        workdir=os.path.join(".demo", TextMultiLabel.name),
        training=TrainingConfig(batch_size=16, epochs=10, learning_rate=1e-2),
        min_score=0.9,
    ),
    TextSentiment.name: Demo(
        name="review-sentiments",
        data="made-up reviews from 0 to 4",
        workdir=os.path.join(".demo", TextSentiment.name),
        training=TrainingConfig(batch_size=16, epochs=10, learning_rate=1e-2),
        min_score=0.85,
    ),
    Tabular.name: Demo(
        name="wines",
        data="a table of wines",
        workdir=os.path.join(".demo", Tabular.name),
        training=TrainingConfig(batch_size=16, epochs=30, learning_rate=3e-3),
        min_score=0.9,
        options={"target_column": TARGET},
    ),
    VideoClassification.name: Demo(
        name="clips",
        data="animated GIFs of a moving square",
        workdir=os.path.join(".demo", VideoClassification.name),
        training=TrainingConfig(image_size=(24, 24), batch_size=16, epochs=5, learning_rate=3e-3),
        min_score=0.9,
    ),
    Declared.name: Demo(
        name="meters",
        data="made-up readings of two meters, in scanned digits, with a number and a note",
        workdir=os.path.join(".demo", Declared.name),
        training=TrainingConfig(image_size=(16, 16), batch_size=32, epochs=12, learning_rate=3e-3),
        min_score=0.95,
        options={"schema": json.dumps(METERS)},
    ),
}


def demo_config(task: str, workdir: str, *, images: int | None = None) -> PipelineConfig:
    """Write the demo's data if it is not there, and return its pipeline's config."""
    from pipelines.samples import WRITERS

    demo = DEMOS[task]
    return local_config(
        WRITERS[task](os.path.join(workdir, "data"), images),
        workdir,
        name=demo.name,
        options=ConvertOptions(task=task, **demo.options),
        training=demo.training,
        min_score=demo.min_score,
    )


def run_demo(task: str, workdir: str, *, images: int | None = None) -> None:
    """Run the demo of a task and print what came out of it.

    Raises:
        RecordgenError: something is at fault.
    """
    from pipelines.lineage import lineage_lines, pushed_model
    from pipelines.local import print_report, run_pipeline
    from pipelines.metadata import Metadata

    since = time.monotonic()
    workdir = os.path.abspath(workdir)
    print(f"writing {DEMOS[task].data} …", flush=True)
    report = run_pipeline(demo_config(task, workdir, images=images))
    print_report(report, workdir)
    if report.blessed:
        metadata = Metadata(metadata_path(workdir))
        print("\nlineage")
        for line in lineage_lines(metadata, pushed_model(metadata)):
            print(f"  {line}")
    print(
        f"\ndone in {time.monotonic() - since:.0f} s; again: python -m pipelines.lineage "
        f"--workdir {os.path.relpath(workdir)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.demo",
        description="Convert, check, train, evaluate and push a small sample of a task.",
    )
    add = parser.add_argument
    add("--task", choices=DEMOS, default=ImageClassification.name, help="default %(default)s")
    add("--workdir", help="folder for everything; default .demo, of other tasks .demo/TASK")
    add("--images", type=int, metavar="N", help="only the first N; default: all, 900 or more")
    args = parser.parse_args(argv)
    if args.images is not None and args.images < 100:
        parser.error(f"--images must be at least 100 (got {args.images})")
    quiet_libraries()
    workdir = args.workdir or DEMOS[args.task].workdir
    return run_main(lambda: run_demo(args.task, workdir, images=args.images))


if __name__ == "__main__":
    sys.exit(main())
