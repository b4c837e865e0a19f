"""``predict``: the answers of a SavedModel for one split of a dataset, as TFX's BulkInferrer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordgen import features, storage
from recordgen.console import logs
from recordgen.core.dataset.manifest import Dataset, read_dataset
from recordgen.core.dataset.splits import TEST
from recordgen.core.records.example import parse_example
from recordgen.kubeflow.evaluate import load_model
from recordgen.kubeflow.execution import StepInput, StepOutput, write_place
from recordgen.training.config import EVALUATE, SCORES
from recordgen.training.inputs import record_batches

PREDICTIONS_FILE = "predictions.jsonl.gz"

_IDS = (features.IMAGE_SOURCE_ID, features.TEXT_SOURCE_ID, features.VIDEO_SOURCE_ID)


def run(step: StepInput) -> StepOutput:
    """Score a split of the input ``dataset`` with the input ``model``.

    Write ``predictions``: ``predictions.jsonl.gz``, one line for each record, in their order.

    Raises:
        SourceError: there is no dataset, or the model has no list of its labels.
        DataError: the split does not exist, or its task has no models.
        RecordError: a record is damaged.
    """
    root, model = step.path("dataset"), step.path("model")
    split, top = str(step.parameters.get("split", TEST)), int(step.parameters.get("top_k", 5))
    path = storage.join(write_place(step.outputs["predictions"]), PREDICTIONS_FILE)
    examples = 0
    with (
        storage.replacing(path) as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as lines,
    ):
        for line in predict(model, root, read_dataset(root), split, top):
            lines.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            examples += 1
    logs.said(f"scored {examples} examples of {split}")
    return StepOutput({"examples": examples})


def predict(
    model_dir: str, root: str, dataset: Dataset, split: str, top: int
) -> Iterator[dict[str, Any]]:
    """Yield a JSON object for each record of a split: its place, and the model's scores.

    ``{"shard": "Split-test/…", "record": 0, "source_id": "cat.jpg", "labels": ["cat", "dog"],
    "scores": [0.9, 0.1]}``: a score for each label becomes the ``top`` best. Other scores, such as
    of boxes and of tokens, are those of the signature ``evaluate``.
    """
    import tensorflow as tf

    signatures, labels = load_model(model_dir, root, dataset, split)
    for shard in dataset.splits[split].shards:
        record = 0
        for batch in record_batches([storage.join(root, shard.file)]):
            scores = signatures[EVALUATE](examples=tf.constant(batch))[SCORES].numpy()
            for data, found in zip(batch, scores, strict=True):
                place = {"shard": shard.file, "record": record}
                yield {**place, **_source_id(data), **_answer(found, labels, top)}
                record += 1


def _source_id(data: bytes) -> dict[str, str]:
    """Return the record's own name; rows of a table have none."""
    values = parse_example(data)
    named = next((values[name][0] for name in _IDS if values.get(name)), None)
    return {"source_id": named.decode(errors="replace")} if isinstance(named, bytes) else {}


def _answer(scores: npt.NDArray[Any], labels: Sequence[str], top: int) -> dict[str, Any]:
    if not labels or scores.shape != (len(labels),):
        return {SCORES: scores.tolist()}
    best = np.argsort(-scores, kind="stable")[:top]
    return {"labels": [labels[n] for n in best], SCORES: scores[best].tolist()}
