"""TFX's BulkInferrer on a model and a split, without a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2
from tfx import v1 as tfx
from tfx.components.bulk_inferrer.executor import Executor
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import channel_utils, standard_artifacts
from tfx.types.artifact_utils import encode_split_names

from recordgen.core.dataset.manifest import read_dataset


def bulk_scores(model: str, dataset: str, split: str, root: Path) -> list[tuple[bytes, Any]]:
    """Return each record of a split, and its output of ``evaluate`` from BulkInferrer's executor.

    Args:
        model: the folder of a SavedModel.
        dataset: the folder of a dataset.
        split: the split to infer.
        root: an empty folder for the results.
    """
    (root / "model").mkdir()
    (root / "model/Format-Serving").symlink_to(model)  # the path in TFX's Trainer
    examples, trained = standard_artifacts.Examples(), standard_artifacts.Model()
    result = standard_artifacts.InferenceResult()
    examples.uri, trained.uri, result.uri = dataset, str(root / "model"), str(root / "result")
    examples.split_names = encode_split_names(list(read_dataset(dataset).splits))
    component = tfx.components.BulkInferrer(
        examples=channel_utils.as_channel([examples]),
        model=channel_utils.as_channel([trained]),
        data_spec=tfx.proto.DataSpec(example_splits=[split]),
        model_spec=tfx.proto.ModelSpec(model_signature_name=["evaluate"]),
    )
    Executor(BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=str(root))).Do(
        {"examples": [examples], "model": [trained]},
        {"inference_result": [result]},
        component.exec_properties,
    )
    return scores_in(result.uri)


def scores_in(result: str) -> list[tuple[bytes, Any]]:
    """Return each record in the folder of an InferenceResult, and its output of ``evaluate``."""
    files = tf.io.gfile.glob(f"{result}/*.gz")
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record).predict_log
        for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()
    ]
    examples = [log.request.inputs["examples"].string_val[0] for log in logs]
    scores = [tf.make_ndarray(log.response.outputs["scores"])[0] for log in logs]
    return list(zip(examples, scores, strict=True))
