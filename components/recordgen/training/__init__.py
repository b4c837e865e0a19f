"""Training as a TFX step: ``Trainer(run_fn="recordgen.training.run_fn")``.

TensorFlow is loaded when training starts, not when a pipeline is defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recordgen.training.config import TrainingConfig

__all__ = ["TrainingConfig", "run_fn", "save"]


def run_fn(fn_args: Any) -> None:
    """Train, and save the model for serving; see :func:`recordgen.training.run.run`.

    Args:
        fn_args: TFX's ``FnArgs``; ``custom_config`` holds the fields of
            :class:`recordgen.training.config.TrainingConfig`.
    """
    from recordgen.training.run import run

    run(fn_args)


def save(
    model: Any, path: str, examples: str | Sequence[str], *, split: str = "train", **settings: Any
) -> None:
    """Save your own Keras model as ``run_fn`` does; see :mod:`recordgen.training.saving`.

    The saved model has the same signatures, labels and lineage, so that TensorFlow Serving,
    Evaluator, BulkInferrer, ``base_model`` and ``recordgen.export`` take it. Its inputs and outputs
    are those of the task's own model: for images, RGB from 0 to 1 (float32 [batch, height, width,
    3]) → a score for each label, in the order of ``labels.txt``.

    Args:
        model: a Keras model.
        path: the folder to write: ``fn_args.serving_model_dir`` in your ``run_fn``.
        examples: the folder or URL of the dataset that it learned from, or TFX's
            ``fn_args.train_files``.
        split: the split that it learned from, unless ``examples`` names it.
        **settings: fields of :class:`TrainingConfig` that describe how examples become inputs, such
            as ``top_k``. ``image_size`` is the model's own, if its input has a fixed size.

    Raises:
        UsageError: a setting is not allowed, or does not suit the data.
        SourceError, DataError: Recordgen did not write the examples, or their task has no model.
        StorageError: the model cannot be written.
    """
    from recordgen.training.saving import save_model

    save_model(model, path, examples, split, settings)
