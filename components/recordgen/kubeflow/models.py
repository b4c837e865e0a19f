"""The steps behind a conversion: ``statistics``, ``train``, ``evaluate`` and ``push``.

``statistics``: describe a dataset's splits with TensorFlow Data Validation.
``train``: datasets' ``train`` splits → a SavedModel, as the Trainer of TFX pipelines does.
``evaluate``: compare a SavedModel's answers with one split of a dataset. ``push``: serve it.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recordgen import features, storage
from recordgen.console import logs
from recordgen.console.quiet import load_tensorflow
from recordgen.core.dataset.manifest import Dataset, read_dataset, split_dir
from recordgen.core.dataset.splits import EVAL, TRAIN
from recordgen.core.dataset.vocabulary import shown_labels
from recordgen.errors import DataError, SourceError, UsageError
from recordgen.kubeflow.execution import StepInput, StepOutput, write_place
from recordgen.options import without_unset
from recordgen.tasks import TASKS
from recordgen.training import config, inputs
from recordgen.training.measures import MOST_LABELS, UNKNOWN_LABELS, EvalAccumulator, check_answers
from recordgen.training.model_files import read_model_labels

# Servers consider a version complete once this file exists.
_LAST_FILE = "saved_model.pb"

#: The step evaluate's verdict: an output, and a key of the metadata of ``metrics``.
BLESSED = "blessed"


def push(step: StepInput) -> StepOutput:
    """Copy the input ``model`` to ``serving_dir/VERSION``; the version is the time in seconds.

    If the input ``evaluation``, the metrics of the step evaluate, does not bless the model, nothing
    is pushed and ``pushed_to`` is empty.

    Raises:
        UsageError: ``serving_dir`` is empty or cannot be written to, or ``evaluation`` is not of
            the step evaluate.
        SourceError: the model is not a SavedModel.
        StorageError: storage failed.
    """
    serving_dir = step.values("serving_dir").get("serving_dir")
    if not serving_dir:
        raise UsageError("serving_dir must be a folder or URL to which models are pushed")
    for evaluation in step.artifacts.get("evaluation", ()):
        if BLESSED not in evaluation.metadata:
            raise UsageError(
                f"evaluation must be the output metrics of evaluate ({evaluation.uri})"
            )
        if not evaluation.metadata[BLESSED]:
            logs.said("not pushed: the evaluation does not bless the model")
            return StepOutput({"pushed_to": ""})
    model = step.path("model")
    target = storage.join(storage.normal(serving_dir), str(int(time.time())))
    copy_model(model, target)
    logs.said(f"pushed to {target}")
    return StepOutput({"pushed_to": target})


def newest_version(serving_dir: str) -> list[str]:
    """Return the model in ``serving_dir`` with the highest version; [] if there is none."""
    if not serving_dir:
        return []
    folder = storage.normal(serving_dir)
    versions = [name for name in storage.list_folders(folder, "") if name.isdecimal()]
    paths = [storage.join(folder, name) for name in sorted(versions, key=int, reverse=True)]
    # A push that was interrupted has no last file.
    return next(([path] for path in paths if storage.is_file(storage.join(path, _LAST_FILE))), [])


def copy_model(model: str, target: str) -> None:
    """Copy a SavedModel; last, the file that marks it as complete. Raises: as :func:`run`."""
    files = {path[len(model) :].lstrip("/"): path for path in storage.list_files(f"{model}/**")}
    if _LAST_FILE not in files:
        raise SourceError(f"{model}: not a SavedModel: there is no {_LAST_FILE}")
    for name in sorted(files, key=lambda name: name == _LAST_FILE):
        with (
            storage.open_read(files[name]) as source,
            storage.replacing(storage.join(target, name)) as copy,
        ):
            shutil.copyfileobj(source, copy)


_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an evaluation.

    Attributes:
        measure: the name of the score, such as ``accuracy`` or ``auc``.
        score: 0..1; NaN if the examples do not determine it.
        by_label: the scores of single labels, for the artifact ``metrics``.
        unknown: counts of the labels that the model does not know, the most frequent first.
        confusion: metadata of the artifact ``confusion``, a ``system.ClassificationMetrics``.
    """

    measure: str
    score: float
    loss: float
    examples: int
    by_label: Mapping[str, float] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    confusion: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, counted: EvalAccumulator, labels: Sequence[str]) -> Evaluation:
        """Return the result, with scores of single labels if there are at most 100 labels."""
        are_few = len(labels) <= MOST_LABELS
        by_label = counted.by_label() if are_few else {}
        matrix = {}
        if are_few and counted.has_confusion:
            names, counts = counted.confusion(labels)
            specs = [{"displayName": name} for name in names]
            rows = [{"row": row} for row in counts.tolist()]
            matrix = {"confusionMatrix": {"annotationSpecs": specs, "rows": rows}}
        return cls(
            measure=counted.measure,
            score=counted.score(),
            loss=counted.loss(),
            examples=counted.examples,
            by_label={f"{counted.measure}/{labels[n]}": score for n, score in by_label.items()},
            unknown=dict(counted.unknown.most_common()),
            confusion=matrix,
        )


def evaluate(step: StepInput) -> StepOutput:
    """Evaluate the input ``model`` on a split of the input ``dataset``, and a baseline, if any.

    The baseline is the model of the input ``baseline``, or the newest one in ``serving_dir``. The
    model is blessed if its score is at least ``min_score``, and better than the baseline's by at
    least ``min_change``, which may be negative.

    Raises: SourceError: there is no dataset; DataError: as :func:`evaluation_of`.
    """
    values = step.values("split", "serving_dir", "min_score", "min_change")
    root = step.path("dataset")
    dataset, split = read_dataset(root), str(values.get("split", EVAL))
    found = evaluation_of(step.path("model"), root, dataset, split)
    logs.said(
        f"{found.measure} {found.score:.4f}, loss {found.loss:.4f} on {found.examples:,} examples "
        f"of {split}"
    )
    unknown: dict[str, int] = {}
    if found.unknown:
        counts = [f"{label!r} {count}" for label, count in found.unknown.items()]
        logs.said(
            f"the model does not know {len(counts)} labels of {split}, which count as wrong "
            f"answers: {', '.join(counts[:_SHOWN])}{', …' if len(counts) > _SHOWN else ''}"
        )
        most = list(found.unknown.items())[:MOST_LABELS]
        unknown = {f"{UNKNOWN_LABELS}:{label}": count for label, count in most}
        unknown[UNKNOWN_LABELS] = len(found.unknown)
    rest = {"loss": found.loss, "examples": found.examples}
    compared = {}
    is_good = found.score >= values.get("min_score", 0)
    if baseline := step.paths("baseline")[:1] or newest_version(values.get("serving_dir", "")):
        before = evaluation_of(baseline[0], root, dataset, split).score
        compared = {"baseline": before, "change": found.score - before}
        is_good = is_good and found.score - before >= values.get("min_change", 0)
        logs.said(f"baseline {baseline[0]}: {found.measure} {before:.4f}")
    logs.said("blessed" if is_good else "not blessed")
    metrics = {found.measure: found.score, **rest, **compared, BLESSED: int(is_good)}
    return StepOutput(
        {"score": found.score, **rest, BLESSED: is_good},
        {"metrics": {**metrics, **found.by_label, **unknown}, "confusion": found.confusion},
    )


def evaluation_of(model_dir: str, root: str, dataset: Dataset, split: str) -> Evaluation:
    """Evaluate a SavedModel of :mod:`recordgen.training` on the examples of ``split``.

    Labels are compared by their texts, because the model's dataset may number them differently. A
    label that the model does not know counts as a wrong answer.

    Raises:
        SourceError: the model has no list of its labels.
        DataError: the dataset's task has no models, the split does not exist, its labels do not
            determine a score, or the model knows none of them.
    """
    config.check_task(dataset.task, root)
    if split not in dataset.splits:
        raise _nothing_to_evaluate_on(root, dataset, split)
    load_tensorflow()
    import tensorflow as tf

    labels = read_model_labels(model_dir)
    signatures = tf.saved_model.load(model_dir).signatures
    accumulator: EvalAccumulator = TASKS[dataset.task].declared("measure")(len(labels))
    accumulator.known_labels = shown_labels(labels)
    shards = dataset.splits[split].shards
    for batch in inputs.record_batches(storage.join(root, shard.file) for shard in shards):
        records = tf.constant(batch)
        scores = signatures[config.EVALUATE](examples=records)[config.SCORES].numpy()
        check_answers(scores)
        truth = signatures[config.TRUTH](examples=records)
        accumulator.add_answers(scores, {name: value.numpy() for name, value in truth.items()})
    if not accumulator.examples:
        raise _nothing_to_evaluate_on(root, dataset, split)
    try:
        accumulator.check_labels()
    except DataError as exc:
        raise DataError(f"{model_dir}, {root}, split {split!r}: {exc.message}") from exc
    found = Evaluation.of(accumulator, labels)
    if math.isnan(found.score):
        raise DataError(
            f"{root}: split {split!r} has no {accumulator.needs}, so it has no {found.measure}"
        )
    return found


def _nothing_to_evaluate_on(root: str, dataset: Dataset, split: str) -> DataError:
    return DataError(
        f"{root}: split {split!r} has no labelled examples to evaluate on (splits: "
        f"{', '.join(dataset.splits)})"
    )


# --- train ---------------------------------------------------------------------------------------


#: Inputs with datasets, which are read as one.
DATASETS = ("dataset", "earlier_dataset", "earlier_datasets")


def train(step: StepInput) -> StepOutput:
    """Train on the datasets of the inputs; write ``model`` and TensorBoard's ``logs``.

    The input ``base_model`` is a model whose weights the training begins with; ``hyperparameters``
    are settings that a search of your own has found.

    Raises: RecordgenError: as :func:`recordgen.training.run.run`.
    """
    settings = config.TrainingConfig.from_custom_config(settings_of(step)).to_custom_config()
    base = step.paths("base_model")
    given = inputs.training_arguments(
        step.paths(*DATASETS),
        settings,
        serving_model_dir=write_place(step.outputs["model"]),
        model_run_dir=write_place(step.outputs["logs"]),
        base_model=base[0] if base else None,
    )
    load_tensorflow()
    from recordgen.training.run import run as run_trainer

    dataset = inputs.read_examples(inputs.examples_root(given.train_files)[0])
    run_trainer(given)
    return StepOutput(
        metadata={
            "model": {
                # Kubeflow's metadata has no null.
                **{name: value for name, value in settings.items() if value is not None},
                "framework": "TensorFlow SavedModel",
                "label_count": len(dataset.labels),
                "labels_digest": dataset.labels_digest,
                "dataset_digest": dataset.digest,
            }
        }
    )


def settings_of(step: StepInput) -> dict[str, Any]:
    """Return the given settings of a training, as keys of a ``custom_config``."""
    values = step.values(*config.TRAINING_OPTIONS, "model_name", "hyperparameters")
    found = values.pop("hyperparameters", {})
    # The parameter is not named model, because the step has an output of this name.
    if "model_name" in values:
        values["model"] = values.pop("model_name")
    return {**without_unset(values, config.TRAINING_OPTIONS), **found}


# --- statistics ----------------------------------------------------------------------------------


# The names that TFX's StatisticsGen and SchemaGen use.
STATISTICS_FILE = "FeatureStats.pb"
SCHEMA_FILE = "schema.pbtxt"
ANOMALIES_FILE = "anomalies.txt"


def statistics(step: StepInput) -> StepOutput:
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
    load_tensorflow()
    try:
        import tensorflow_data_validation as tfdv
    except ImportError as exc:
        raise UsageError(
            f"statistics needs TensorFlow Data Validation, which is not installed here ({exc}); "
            f"use an image built with TFX, or omit this step"
        ) from exc
    from apache_beam.options.pipeline_options import PipelineOptions
    from google.protobuf import text_format

    from recordgen.beam import beam_flags

    fails = step.values("fail_on_anomalies").get("fail_on_anomalies")
    root, curated = step.path("dataset"), step.paths("curated_schema")
    dataset = read_dataset(root)
    if TRAIN not in dataset.splits and not curated:
        raise DataError(f"{root}: there is no split train to infer a schema from")
    given = _read_schema(curated[0]) if curated else None
    folder = write_place(step.outputs["statistics"])
    # Statistics of image bytes and unique names cost time and memory, and are useless.
    useful = features.statistics_features(dataset.task, dataset.features)
    found = {
        split: tfdv.generate_statistics_from_tfrecord(
            storage.join(root, split_dir(split), "*"),
            stats_options=tfdv.StatsOptions(feature_allowlist=useful),
            pipeline_options=PipelineOptions(beam_flags(())),
        )
        for split in dataset.splits
    }
    for split, described in found.items():
        path = storage.join(folder, split_dir(split), STATISTICS_FILE)
        storage.write_bytes(path, described.SerializeToString(deterministic=True))
        logs.said(f"statistics of {dataset.splits[split].examples:,} examples of {split}")

    schema = given or tfdv.infer_schema(found.pop(TRAIN))
    path = storage.join(write_place(step.outputs["schema"]), SCHEMA_FILE)
    storage.write_text(path, text_format.MessageToString(schema))
    anomalies = [
        f"{split}: {name}: {info.description}"
        for split, described in found.items()
        for name, info in sorted(tfdv.validate_statistics(described, schema).anomaly_info.items())
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
    file = file if storage.is_file(file) else path
    try:
        return text_format.Parse(storage.read_text(file), schema_pb2.Schema())
    except (OSError, ValueError, text_format.ParseError) as exc:
        raise SourceError(
            f"{path}: neither a TensorFlow Metadata schema nor a folder with {SCHEMA_FILE}: {exc}"
        ) from exc
