"""Call ``run_fn`` on a converted folder as TFX's Trainer does, for tests of every task's model."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import recordgen


def train(output: str | os.PathLike[str] | Sequence[str], root: Path, **config: Any) -> str:
    """Train on the splits ``train`` and ``eval`` of a dataset; return the saved model's folder.

    Args:
        output: the folder of the dataset, or of several.
        root: the folder for the model and the logs.
        **config: the Trainer's ``custom_config``.
    """
    from recordgen.training import run_fn  # loads TensorFlow

    model = str(root / "model")
    folders = [output] if isinstance(output, str | os.PathLike) else output
    files = {}
    for split in ("train", "eval"):
        files[f"{split}_files"] = [f"{folder}/Split-{split}/*" for folder in folders]
    given = {"train_steps": None, "eval_steps": None, "custom_config": config, **files}
    run_fn(SimpleNamespace(serving_model_dir=model, model_run_dir=str(root / "logs"), **given))
    return model


def evaluated(model: str, output: str, split: str = "eval") -> Any:
    """Return the evaluation of a model by a split of a dataset."""
    from recordgen.kubeflow.models import evaluation_of  # loads TensorFlow

    return evaluation_of(model, output, recordgen.read_dataset(output), split)


def trainer_of(output: str, earlier: Any = None, **settings: Any) -> Any:
    """Return the trainer of a dataset's task on split ``train``, with settings of the training."""
    from recordgen.tasks import TASKS
    from recordgen.training import TrainingConfig  # loads TensorFlow

    dataset = recordgen.read_dataset(output)
    made = TASKS[dataset.task].declared("trainer")
    return made(output, "train", dataset, TrainingConfig(**settings), earlier)


def save_untrained(output: str, model: str, **settings: Any) -> None:
    """Save a model for a dataset that has learnt nothing."""
    from recordgen.training.saving import save_for_serving  # loads TensorFlow

    trainer = trainer_of(output, **settings)
    save_for_serving(trainer.models().saved, model, trainer)


def convert_table(folder: Path, lines: Sequence[str], *, target: str) -> str:
    """Write a table with a column ``fold``, and convert it; return the dataset's folder."""
    from tests.conftest import convert_lines

    columns = {"split": "fold", "target": target}
    return str(convert_lines(folder, lines, task="tabular", columns=columns))


def tfma_input(truth: float, scores: Sequence[float]) -> Any:
    """Return one example of TFMA's, with a weight of 1."""
    import numpy as np
    from tensorflow_model_analysis import metrics

    known = {"label": np.array([truth]), "prediction": np.array(scores, np.float32)}
    return metrics.StandardMetricInputs(**known, example_weight=np.array([1.0]))


def write_texts(path: Path, *labels: str, count: int) -> None:
    """Write an import file of texts that contain the name of their label, for train and eval."""
    rows = [
        f"{split},{number} {split} is {label},{label}\n"
        for split in ("TRAIN", "VALIDATION")
        for label in labels
        for number in range(count)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(rows))


def records_of(output: str, split: str = "eval") -> list[bytes]:
    """Return the serialised examples of a split."""
    import tensorflow as tf

    files = tf.io.gfile.glob(f"{output}/Split-{split}/*")
    return list(tf.data.TFRecordDataset(files).as_numpy_iterator())


def train_and_listen(output: str, root: Path, **config: Any) -> tuple[str, str]:
    """Train as :func:`train` does; return the model's folder and the log."""
    log = io.StringIO()
    handler, logger = logging.StreamHandler(log), logging.getLogger("recordgen.training")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    try:
        return train(output, root, **config), log.getvalue()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
