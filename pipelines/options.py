"""The options that all commands have which build the pipeline: how to convert, how to train."""

from __future__ import annotations

import argparse
from typing import Any

from recordgen.cli import add_options
from recordgen.options import AUTO, ConvertOptions
from recordgen.training import TrainingConfig
from recordgen.training.config import MODEL_TASKS

# Options of the conversion that a pipeline has as they are; its seed is the training's, too.
CONVERSION = ("schema", "target_column", "weight_column", "eval_from", "max_reject_fraction")


def add_pipeline_options(parser: argparse.ArgumentParser, *, other_task: str) -> None:
    """Add the options of :func:`pipeline_settings`.

    Args:
        parser: gets them.
        other_task: says what the task is if none is given.
    """
    training = TrainingConfig()
    add = parser.add_argument
    add(
        "--task",
        choices=MODEL_TASKS,
        help=f"what rows mean and the model predicts; default: {other_task}",
    )
    add("--name", default="recordgen", help="the pipeline's name in ML Metadata")
    add("--no-fingerprint-images", action="store_true", help="do not look up every image first")
    add_options(parser, CONVERSION)
    add("--seed", type=int, default=0, help="of the conversion and the training")
    add("--model", default=training.model, help="small_cnn or a keras.applications name")
    add("--weights", choices=["imagenet"], help="pretrained weights; Keras downloads them")
    add("--image-size", type=int, nargs=2, metavar=("H", "W"), default=training.image_size)
    add("--frames", type=int, default=training.frames, help="to look at, of a video's segment")
    add("--batch-size", type=int, default=training.batch_size)
    add("--epochs", type=int, default=training.epochs)
    add("--learning-rate", type=float, default=training.learning_rate)
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
            model=args.model,
            weights=args.weights,
            image_size=tuple(args.image_size),
            frames=args.frames,
            batch_size=args.batch_size,
            epochs=args.epochs,
            learning_rate=args.learning_rate,
            seed=args.seed,
        ),
        "min_score": args.min_score,
    }
