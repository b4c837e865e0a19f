"""The steps of ``pipelines/kubeflow.py`` beside conversion, as kfp's container components.

Each starts ``python -m recordgen.kubeflow STEP`` in the one image and hands it KFP's own
description of the call: nothing is installed when a step starts, and the image needs no kfp.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pipelines.component import to_component
from recordgen.dataset.splits import EVAL
from recordgen.kubeflow.train import NO_WEIGHTS
from recordgen.options import Option
from recordgen.training.config import TRAINING_OPTIONS


class _Value(NamedTuple):
    """An input or output; ``type`` is KFP's name for it, a default is written as text."""

    name: str
    type: str
    description: str
    default: str | None = None


class _Step(NamedTuple):
    description: str
    inputs: list[_Value]
    outputs: list[_Value]


def _setting(option: Option) -> _Value:
    """Return the input for a field of ``TrainingConfig``."""
    name = "model_name" if option.name == "model" else option.name  # an output is named model
    kind = "List" if option.metavar == "H W" else option.kind.__name__
    default = NO_WEIGHTS if option.default is None else option.default
    text = default if isinstance(default, str) else json.dumps(default)
    types = {"str": "String", "int": "Integer", "float": "Float"}
    return _Value(name, types.get(kind, kind), option.plain_help, text)


_DATASET = _Value("dataset", "Dataset", "what the conversion wrote")
_MODEL = _Value("model", "Model", "what the training saved")

_STEPS = {
    "statistics": _Step(
        "Compute statistics of each split, infer a schema from train, check the others against it.",
        [_DATASET],
        [
            _Value("statistics", "Artifact", "folder of Split-train/FeatureStats.pb and so on"),
            _Value("schema", "Artifact", "folder of schema.pbtxt"),
            _Value("anomalies", "Artifact", "folder of anomalies.txt, one line per anomaly"),
            _Value("anomaly_count", "Integer", "number of anomalies"),
        ],
    ),
    "train": _Step(
        "Train a model on split train, and validate it on eval.",
        [_DATASET, *map(_setting, TRAINING_OPTIONS.values())],
        [
            _Value("model", "Model", "SavedModel: serving_default, evaluate and truth"),
            _Value("logs", "Artifact", "folder of TensorBoard's logs"),
        ],
    ),
    "evaluate": _Step(
        "Compare a model's answers with the labels of a split.",
        [_DATASET, _MODEL, _Value("split", "String", "the split to evaluate on", EVAL)],
        [
            _Value("metrics", "Metrics", "score, loss and examples; scores of up to 100 labels"),
            _Value(
                "confusion",
                "ClassificationMetrics",
                "confusion matrix of up to 100 labels, for examples with one label each",
            ),
            _Value(
                "score",
                "Float",
                "0..1: accuracy; for several labels mean AUC, for boxes mean average precision, "
                "for entities F1, for numbers R²",
            ),
            _Value(
                "loss",
                "Float",
                "mean cross-entropy; for boxes mean of 1 - IoU, for numbers mean squared error",
            ),
            _Value("examples", "Integer", "number of labelled examples"),
        ],
    ),
    "push": _Step(
        "Copy a model to serving_dir/VERSION, as TensorFlow Serving expects it.",
        [_MODEL, _Value("serving_dir", "String", "folder or URL that the step can write to")],
        [_Value("pushed_to", "String", "where the model was copied to")],
    ),
}


def load_step(name: str, image: str) -> Any:
    """Return a step as kfp's component: ``statistics``, ``train``, ``evaluate`` or ``push``."""
    step = _STEPS[name]
    command = ["python", "-m", "recordgen.kubeflow", name]
    arguments = ["--executor-input", {"executorInput": None}]
    container = {"image": image, "command": command, "args": arguments}
    return to_component(
        {
            "name": name,
            "description": step.description,
            "inputs": list(map(_described, step.inputs)),
            "outputs": list(map(_described, step.outputs)),
            "implementation": {"container": container},
        }
    )


def _described(value: _Value) -> dict[str, str]:
    return {key: text for key, text in value._asdict().items() if text is not None}
