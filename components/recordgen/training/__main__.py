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
from collections.abc import Sequence

from recordgen import storage
from recordgen.console import logs
from recordgen.console.quiet import load_tensorflow, quiet_libraries
from recordgen.console.stopping import exit_code_of, exit_now
from recordgen.errors import UsageError
from recordgen.training import run_fn
from recordgen.training.config import MODEL_DIR, TRAINING_OPTIONS
from recordgen.training.inputs import training_arguments


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m recordgen.training",
        description="Train a model on split train of a dataset, or of several that are read as "
        "one, and save it for serving.",
    )
    add = parser.add_argument
    path = storage.normal
    add("datasets", nargs="+", metavar="DATASET", type=path, help="convert's output, or its URL")
    add("--model-dir", type=path, help=f"folder or URL for the model; default: {MODEL_DIR}")
    add("--base-model", type=path, help="model whose weights the training begins with")
    for option in TRAINING_OPTIONS.values():
        count = len(option.metavar.split())
        # Vertex AI's hyperparameter tuning spells names with underscores.
        parser.add_argument(
            *{f"--{option.name.replace('_', '-')}": 1, f"--{option.name}": 1},
            dest=option.name,
            type=path if option.metavar in ("DIR", "FILE") else option.kind,
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
    logs.set_up("text", level=logging.ERROR)
    quiet_libraries()

    def run() -> None:
        if not model:
            raise UsageError(f"--model-dir is missing, and {MODEL_DIR} is not set")
        beside = storage.join(posixpath.dirname(model.rstrip("/")), "logs")
        folders = {"serving_model_dir": model, "model_run_dir": beside, "base_model": base_model}
        given = training_arguments(roots, values, **folders)
        load_tensorflow()  # takes seconds, so the datasets are looked for first
        run_fn(given)
        logs.said(f"the model is in {model}")

    return exit_code_of(run, "; the same command goes on from the last checkpoint")


if __name__ == "__main__":
    exit_now(main())
