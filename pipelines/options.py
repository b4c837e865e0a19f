"""The options that all commands have which build the pipeline: how to convert, how to train."""

from __future__ import annotations

import argparse
from typing import Any

from recordgen.cli import schema_text
from recordgen.options import AUTO, ConvertOptions
from recordgen.tasks import TASKS
from recordgen.training import TrainingConfig


def add_pipeline_options(parser: argparse.ArgumentParser, *, other_task: str) -> None:
    """Add the options of :func:`pipeline_settings`.

    Args:
        parser: gets them.
        other_task: says what the task is if none is given.
    """
    training, options = TrainingConfig(), ConvertOptions()
    add = parser.add_argument
    add(
        "--task",
        choices=TASKS,
        help=f"what rows mean and the model predicts; default: {other_task}",
    )
    add("--name", default="recordgen", help="the pipeline's name in ML Metadata")
    add("--no-fingerprint-images", action="store_true", help="do not look up every image first")
    add("--max-reject-fraction", type=float, default=options.max_reject_fraction)
    add(
        "--schema",
        type=schema_text,
        default="",
        metavar="FILE",
        help="what the columns of a table hold: a JSON file, or the JSON itself",
    )
    add("--target-column", default="", metavar="NAME", help="of a table, what is to be predicted")
    add("--weight-column", default="", metavar="NAME", help="of a table, the rows' weights")
    add(
        "--eval-from",
        default="",
        metavar="SPLIT:PERCENT",
        help="move a share of a split to eval, such as train:10; for data without eval rows",
    )
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
            schema=args.schema,
            seed=args.seed,
            eval_from=args.eval_from,
            max_reject_fraction=args.max_reject_fraction,
            target_column=args.target_column,
            weight_column=args.weight_column,
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
