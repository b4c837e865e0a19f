"""``statistics``: describe a dataset's splits with TensorFlow Data Validation."""

from __future__ import annotations

from typing import Any

from recordgen import features, storage
from recordgen.console import logs
from recordgen.console.quiet import load_tensorflow
from recordgen.core.dataset.manifest import Dataset, read_dataset, split_dir
from recordgen.core.dataset.splits import TRAIN
from recordgen.errors import DataError, SourceError, UsageError
from recordgen.kubeflow.execution import StepInput, StepOutput, write_place

# The names that TFX's StatisticsGen and SchemaGen use.
STATISTICS_FILE = "FeatureStats.pb"
SCHEMA_FILE = "schema.pbtxt"
ANOMALIES_FILE = "anomalies.txt"


def run(step: StepInput) -> StepOutput:
    """Describe the input ``dataset``.

    Write ``statistics``: ``Split-train/FeatureStats.pb`` and so on; ``schema``: ``schema.pbtxt``,
    a copy of the input ``curated_schema``, or inferred from ``train``; ``anomalies``:
    ``anomalies.txt``, one line for each violation of the schema in a split, of an inferred one in
    the other splits. The number of violations is an output parameter.

    Raises:
        SourceError: there is no dataset, or the schema cannot be read.
        DataError: the dataset has no split ``train`` to infer a schema from, or there are anomalies
            and ``fail_on_anomalies`` is set.
        UsageError: the image was built without TFX.
    """
    tfdv = _tfdv()
    from google.protobuf import text_format

    fails = step.values("fail_on_anomalies").get("fail_on_anomalies")
    root, curated = step.path("dataset"), step.paths("curated_schema")
    dataset = read_dataset(root)
    if TRAIN not in dataset.splits and not curated:
        raise DataError(f"{root}: there is no split train to infer a schema from")
    given = _read_schema(curated[0]) if curated else None
    folder = write_place(step.outputs["statistics"])
    found = {split: _statistics(tfdv, root, split, dataset) for split in dataset.splits}
    for split, statistics in found.items():
        path = storage.join(folder, split_dir(split), STATISTICS_FILE)
        with storage.replacing(path) as file:
            file.write(statistics.SerializeToString(deterministic=True))
        logs.said(f"statistics of {dataset.splits[split].examples:,} examples of {split}")

    schema = given or tfdv.infer_schema(found.pop(TRAIN))
    path = storage.join(write_place(step.outputs["schema"]), SCHEMA_FILE)
    storage.write_text(path, text_format.MessageToString(schema))
    anomalies = [
        f"{split}: {name}: {info.description}"
        for split, statistics in found.items()
        for name, info in sorted(tfdv.validate_statistics(statistics, schema).anomaly_info.items())
    ]
    for line in anomalies:
        logs.said(line)
    path = storage.join(write_place(step.outputs["anomalies"]), ANOMALIES_FILE)
    storage.write_text(path, "".join(f"{line}\n" for line in anomalies))
    if anomalies and fails:
        raise DataError(
            f"{root}: {len(anomalies)} violations of the schema, such as {anomalies[0]}; see {path}"
        )
    return StepOutput({"anomaly_count": len(anomalies)})


def _read_schema(path: str) -> Any:
    """Read a schema, or the one in a folder, such as an output of this step or of SchemaGen."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    file = storage.join(path, SCHEMA_FILE)
    file = file if storage.exists(file) else path
    try:
        return text_format.Parse(storage.read_text(file), schema_pb2.Schema())
    except (OSError, ValueError, text_format.ParseError) as exc:
        raise SourceError(
            f"{path}: neither a TensorFlow Metadata schema nor a folder with {SCHEMA_FILE}: {exc}"
        ) from exc


def _statistics(tfdv: Any, root: str, split: str, dataset: Dataset) -> Any:
    from apache_beam.options.pipeline_options import PipelineOptions

    from recordgen.beam.runners import beam_flags

    return tfdv.generate_statistics_from_tfrecord(
        storage.join(root, split_dir(split), "*"),
        # Statistics of image bytes and unique names cost time and memory, and are useless.
        stats_options=tfdv.StatsOptions(
            feature_allowlist=features.statistics_features(dataset.task, dataset.features)
        ),
        pipeline_options=PipelineOptions(beam_flags(())),
    )


def _tfdv() -> Any:
    load_tensorflow()
    try:
        import tensorflow_data_validation as tfdv
    except ImportError as exc:
        raise UsageError(
            f"statistics needs TensorFlow Data Validation, which is not installed here ({exc}); "
            f"use an image built with TFX, or omit this step"
        ) from exc
    return tfdv
