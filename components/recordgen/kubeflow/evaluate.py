"""``evaluate``: compare a SavedModel's answers with one split of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from recordgen import storage
from recordgen.console import logs
from recordgen.console.quiet import load_tensorflow
from recordgen.dataset.manifest import Dataset, read_dataset
from recordgen.dataset.splits import EVAL
from recordgen.errors import DataError
from recordgen.kubeflow.execution import StepInput, StepOutput, read_place
from recordgen.records.tfrecord import read_records
from recordgen.tasks import TASKS
from recordgen.training.config import EVALUATE, LABEL, SCORES, TRUTH, WEIGHT, check_task
from recordgen.training.measures import EvalAccumulator, Evaluation

_BATCH = 64


def run(step: StepInput) -> StepOutput:
    """Evaluate the input ``model`` on a split of the input ``dataset``.

    Raises:
        SourceError: there is no dataset.
        DataError: as :func:`evaluate`.
    """
    root = read_place(step.artifacts["dataset"])
    split = str(step.parameters.get("split", EVAL))
    found = evaluate(read_place(step.artifacts["model"]), root, read_dataset(root), split)
    logs.said(
        f"{found.measure} {found.score:.4f}, loss {found.loss:.4f} on {found.examples} examples of "
        f"{split}"
    )
    rest = {"loss": found.loss, "examples": found.examples}
    return StepOutput(
        {"score": found.score, **rest},
        {
            "metrics": {found.measure: found.score, **rest, **found.by_label},
            "confusion": found.confusion,
        },
    )


def evaluate(model_dir: str, root: str, dataset: Dataset, split: str) -> Evaluation:
    """Evaluate a SavedModel of :mod:`recordgen.training` on the examples of ``split``.

    Raises:
        DataError: the dataset's task has no models, the split does not exist, or its labels do not
            determine a score.
    """
    check_task(dataset.task, root)
    if split not in dataset.splits:
        raise _nothing_to_evaluate_on(root, dataset, split)
    load_tensorflow()
    import tensorflow as tf

    signatures = tf.saved_model.load(model_dir).signatures
    accumulator: EvalAccumulator = TASKS[dataset.task].declared("measure")(len(dataset.labels))
    examples = 0
    for batch in _batches(root, dataset, split):
        records = tf.constant(batch)
        scores = signatures[EVALUATE](examples=records)[SCORES].numpy()
        truth = signatures[TRUTH](examples=records)
        is_labelled = truth[WEIGHT].numpy() > 0
        examples += int(is_labelled.sum())
        accumulator.add(truth[LABEL].numpy()[is_labelled], scores[is_labelled])
    if not examples:
        raise _nothing_to_evaluate_on(root, dataset, split)
    found = accumulator.evaluation(dataset.labels)
    if math.isnan(found.score):
        raise DataError(
            f"{root}: split {split!r} has no {accumulator.needs}: there is no {found.measure} of it"
        )
    return found


def _nothing_to_evaluate_on(root: str, dataset: Dataset, split: str) -> DataError:
    return DataError(
        f"{root}: split {split!r} has no labelled examples to evaluate on (there are "
        f"{', '.join(dataset.splits)})"
    )


def _batches(root: str, dataset: Dataset, split: str) -> Iterator[list[bytes]]:
    records = (
        record
        for shard in dataset.splits[split].shards
        for record in read_records(storage.join(root, shard.file))
    )
    while batch := list(islice(records, _BATCH)):
        yield batch
