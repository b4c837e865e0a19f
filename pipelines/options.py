"""The options that all commands have which build the pipeline: how to convert, how to train."""

from __future__ import annotations

import argparse
from typing import Any

from recordgen.cli import add_options
from recordgen.options import AUTO, OPTIONS, ConvertOptions
from recordgen.tasks import TASKS
from recordgen.training import TrainingConfig
from recordgen.training.config import TRAINING_OPTIONS

# What a pipeline has of the options of conversion and training; one seed is for both.
CONVERSION = ("schema", "target_column", "weight_column", "eval_from", "max_reject_fraction")
TRAINING = (
    "model",
    "weights",
    "image_size",
    "frames",
    "batch_size",
    "epochs",
    "learning_rate",
)


def add_pipeline_options(parser: argparse.ArgumentParser, *, other_task: str) -> None:
    """Add the options of :func:`pipeline_settings`.

    Args:
        parser: gets them.
        other_task: says what the task is if none is given.
    """
    add = parser.add_argument
    add(
        "--task",
        choices=TASKS,
        help=f"what rows mean and the model predicts; default: {other_task}",
    )
    add("--name", default="recordgen", help="the pipeline's name in ML Metadata")
    add("--no-fingerprint-images", action="store_true", help="do not look up every image first")
    add_options(parser, (OPTIONS[name] for name in CONVERSION))
    add("--seed", type=int, default=0, help="of the conversion and the training")
    add_options(parser, (TRAINING_OPTIONS[name] for name in TRAINING))
    add(
        "--min-score",
        type=float,
        default=0.8,
        help="on eval, for a model to be blessed: the accuracy, of several labels the mean of "
        "their AUC, of boxes mean average precision, of entities F1, of numbers R²",
    )


def pipeline_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of :class:`pipelines.config.PipelineConfig` that the options say.

    Raises:
        UsageError: a value is not allowed.
    """
    return {
        "name": args.name,
        "fingerprint_images": not args.no_fingerprint_images,
        "options": ConvertOptions(
            task=args.task or AUTO,
            seed=args.seed,
            **{name: getattr(args, name) for name in CONVERSION},
        ),
        "training": TrainingConfig(
            seed=args.seed,
            **{name: getattr(args, name) for name in TRAINING if name != "image_size"},
            image_size=tuple(args.image_size),
        ),
        "min_score": args.min_score,
    }
