"""``python -m recordgen.training DATASET …``: train without TFX, as in a custom job of Vertex AI.

The job's variables say where files go: the model to ``AIP_MODEL_DIR``, TensorBoard's logs to
``AIP_TENSORBOARD_LOG_DIR`` or else beside the model, and checkpoints to ``AIP_CHECKPOINT_DIR``.
Every setting of a training is a flag.
"""

from __future__ import annotations

import argparse
import logging
import os
import posixpath
import sys
from collections.abc import Sequence

from recordgen.errors import RecordgenError, UsageError
from recordgen.training import run_fn
from recordgen.training.arguments import training_arguments
from recordgen.training.config import MODEL_DIR, TRAINING_OPTIONS


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m recordgen.training",
        description="Train a model on split train of a dataset, or of several that are read as "
        "one, and save it for serving.",
    )
    add = parser.add_argument
    add("datasets", nargs="+", metavar="DATASET", help="folder or URL of convert's output")
    add("--model-dir", help=f"folder or URL for the model; default: {MODEL_DIR}")
    add("--base-model", help="model whose weights the training begins with")
    for option in TRAINING_OPTIONS.values():
        count = len(option.metavar.split())
        parser.add_argument(
            f"--{option.name.replace('_', '-')}",
            f"--{option.name}",  # as Vertex AI's hyperparameter tuning spells it
            dest=option.name,
            type=option.kind,
            nargs=count if count > 1 else None,
            metavar=tuple(option.metavar.split()) if count > 1 else option.metavar or None,
            choices=option.choices,
            default=argparse.SUPPRESS,
            help=option.plain_help.replace("%", "%%"),
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    values = vars(build_parser().parse_args(argv))
    roots, base_model = values.pop("datasets"), values.pop("base_model")
    model = values.pop("model_dir") or os.environ.get(MODEL_DIR)
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("recordgen").setLevel(logging.INFO)
    try:
        if not model:
            raise UsageError(f"--model-dir is missing, and {MODEL_DIR} is not set")
        beside = posixpath.join(posixpath.dirname(model.rstrip("/")), "logs")
        folders = {"serving_model_dir": model, "model_run_dir": beside, "base_model": base_model}
        run_fn(training_arguments(roots, values, **folders))
    except RecordgenError as exc:
        logging.getLogger("recordgen").error("error: %s", exc)
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
