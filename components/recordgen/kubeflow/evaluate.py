"""``evaluate``: a SavedModel's answers to one split of a dataset → accuracy, loss, confusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from recordgen import logs, storage
from recordgen.dataset import Dataset, read_dataset
from recordgen.errors import DataError
from recordgen.kubeflow.execution import StepInput, StepOutput
from recordgen.kubeflow.places import read_place
from recordgen.quiet import load_tensorflow
from recordgen.splits import EVAL
from recordgen.tfrecord import read_records
from recordgen.training.config import EVALUATE, LABEL, SCORES, TRUTH, WEIGHT

_BATCH = 64
# Consoles draw each cell, and the matrix lies in the artifact's metadata.
_MATRIX_LABELS = 100
_SMALLEST = 1e-7  # of a probability, as Keras has it


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model's answers came to.

    Attributes:
        confusion: examples by label (rows) and answer (columns), int64 [classes, classes].
        loss: mean cross-entropy.
    """

    confusion: npt.NDArray[np.int64]
    loss: float

    @property
    def examples(self) -> int:
        """How many labelled examples were looked at."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """Share of right answers, 0..1."""
        return float(self.confusion.trace()) / self.examples


def run(step: StepInput) -> StepOutput:
    """Evaluate the input ``model`` on a split of the input ``dataset``.

    Raises:
        SourceError: there is no dataset.
        DataError: the split has no labelled examples.
    """
    root = read_place(step.artifacts["dataset"])
    split = str(step.parameters.get("split", EVAL))
    dataset = read_dataset(root)
    found = evaluate(read_place(step.artifacts["model"]), root, dataset, split)
    logs.said(
        f"accuracy {found.accuracy:.4f}, loss {found.loss:.4f} on {found.examples} examples of "
        f"{split}"
    )
    numbers = {"accuracy": found.accuracy, "loss": found.loss, "examples": found.examples}
    labels = dataset.labels
    return StepOutput(
        numbers,
        {
            "metrics": numbers,
            "confusion": confusion_metadata(labels, found.confusion)
            if len(labels) <= _MATRIX_LABELS
            else {},
        },
    )


def evaluate(model_dir: str, root: str, dataset: Dataset, split: str) -> Evaluation:
    """Return what a SavedModel of :mod:`recordgen.training` answers to the examples of ``split``.

    Raises:
        DataError: the split is not there, or none of its examples has a label.
    """
    if split not in dataset.splits or not sum(dataset.splits[split].labels.values()):
        raise DataError(
            f"{root}: split {split!r} has no labelled examples to evaluate on (there are "
            f"{', '.join(dataset.splits)})"
        )
    load_tensorflow()
    import tensorflow as tf

    signatures = tf.saved_model.load(model_dir).signatures
    classes = len(dataset.labels)
    confusion = np.zeros((classes, classes), np.int64)
    loss = 0.0
    for batch in _batches(root, dataset, split):
        records = tf.constant(batch)
        scores = signatures[EVALUATE](examples=records)[SCORES].numpy()
        truth = signatures[TRUTH](examples=records)
        is_labelled = truth[WEIGHT].numpy() > 0
        label, scores = truth[LABEL].numpy()[is_labelled], scores[is_labelled]
        np.add.at(confusion, (label, scores.argmax(axis=1)), 1)
        right = scores[np.arange(len(label)), label]
        loss -= float(np.log(np.clip(right, _SMALLEST, 1)).sum())
    return Evaluation(confusion, loss / int(confusion.sum()))


def confusion_metadata(labels: Sequence[str], confusion: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the metadata from which consoles draw a ``system.ClassificationMetrics``."""
    return {
        "confusionMatrix": {
            "annotationSpecs": [{"displayName": label} for label in labels],
            "rows": [{"row": row} for row in confusion.tolist()],
        }
    }


def _batches(root: str, dataset: Dataset, split: str) -> Iterator[list[bytes]]:
    records = (
        record
        for shard in dataset.splits[split].shards
        for record in read_records(storage.join(root, shard.file))
    )
    while batch := list(islice(records, _BATCH)):
        yield batch
