"""All steps as container components of kfp, typed and described.

All steps share one image and start ``python -m recordgen.kubeflow STEP`` with KFP's own description
of the call: nothing is installed when a step starts, and the image needs no kfp.

component.yaml specifies ``convert``; ``convert_artifact`` and ``check`` have the same inputs; the
inputs of ``train`` are the fields of :class:`recordgen.training.TrainingConfig`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from kfp import components

from recordgen.dataset.splits import EVAL
from recordgen.options import Option
from recordgen.training.config import TRAINING_OPTIONS

COMPONENT_FILE = Path(__file__).parents[1] / "component.yaml"


class _Value(NamedTuple):
    """An input or output; ``type`` is KFP's name of its type, ``default`` is text."""

    name: str
    type: str
    description: str
    default: str | None = None


class _Step(NamedTuple):
    """A step; ``command`` is the STEP of ``python -m recordgen.kubeflow``."""

    command: str
    description: str
    inputs: list[_Value]
    outputs: list[_Value]
    title: str = ""


_TYPES: dict[type, str] = {
    str: "String",
    int: "Integer",
    float: "Float",
    bool: "Boolean",
    list: "List",
}


def _default_of(option: Option) -> Any:
    """Return an option's default for KFP, which has neither None nor tuples."""
    if option.default is None:
        return option.kind()
    return list(option.default) if isinstance(option.default, tuple) else option.default


def _setting(option: Option) -> _Value:
    """Return the input for a field of ``TrainingConfig``."""
    name = "model_name" if option.name == "model" else option.name  # an output is named model
    default = _default_of(option)
    text = default if isinstance(default, str) else json.dumps(default)
    unset = f"; {default or 'empty'}: {option.unset}" if option.unset else ""
    return _Value(name, _TYPES[type(default)], f"{option.plain_help}{unset}", text)


@cache
def _specification() -> Mapping[str, Any]:
    """Return component.yaml."""
    return yaml.safe_load(COMPONENT_FILE.read_text(encoding="utf-8"))


def _steps() -> Mapping[str, _Step]:
    """Return every step by name, in the order of a pipeline."""
    specification = _specification()
    inputs, outputs = (
        [_Value(**item) for item in specification[side]] for side in ("inputs", "outputs")
    )
    convert = _Step(
        "convert", specification["description"], inputs, outputs, title=specification["name"]
    )
    # A separate step, because kfp's local runs have no optional input artifacts.
    source, *options = inputs
    text = "AutoML import file, or a folder of them, as an artifact."
    convert_artifact = convert._replace(inputs=[_Value(source.name, "Dataset", text), *options])
    dataset = _Value("dataset", "Dataset", "output of the conversion")
    model = _Value("model", "Model", "output of the training")
    return {
        "convert": convert,
        "convert_artifact": convert_artifact,
        "check": _Step(
            "check",
            "Read and check everything that a conversion would, without writing a dataset: report "
            "rejects, leaks between splits, contradictory labels and other findings.",
            [value for value in inputs if value.name != "transfer"],
            [
                _Value("findings", "Artifact", "folder of lint.jsonl and rejects.jsonl"),
                _Value("metrics", "Metrics", "rows, examples, rejects, findings, labels, seconds"),
                *(value for value in outputs if value.type == "Integer"),
            ],
        ),
        "statistics": _Step(
            "statistics",
            "Compute statistics of each split, infer a schema from train, and check the other "
            "splits against it.",
            [dataset],
            [
                _Value("statistics", "Artifact", "folder of Split-train/FeatureStats.pb and so on"),
                _Value("schema", "Artifact", "folder of schema.pbtxt"),
                _Value("anomalies", "Artifact", "folder of anomalies.txt, one line per anomaly"),
                _Value("anomaly_count", "Integer", "number of anomalies"),
            ],
        ),
        "train": _Step(
            "train",
            "Train a model on split train, and validate it on eval.",
            [dataset, *map(_setting, TRAINING_OPTIONS.values())],
            [
                _Value("model", "Model", "SavedModel: serving_default, evaluate and truth"),
                _Value("logs", "Artifact", "folder of TensorBoard's logs"),
            ],
        ),
        "evaluate": _Step(
            "evaluate",
            "Compare a model's answers with the labels of a split.",
            [dataset, model, _Value("split", "String", "the split to evaluate on", EVAL)],
            [
                _Value(
                    "metrics", "Metrics", "score, loss and examples; scores of up to 100 labels"
                ),
                _Value(
                    "confusion",
                    "ClassificationMetrics",
                    "confusion matrix of up to 100 labels, for examples with one label each",
                ),
                _Value(
                    "score",
                    "Float",
                    "0..1: accuracy; mean AUC for several labels, mean average precision for "
                    "boxes, F1 for entities, R² for numbers",
                ),
                _Value(
                    "loss",
                    "Float",
                    "mean cross-entropy; mean of 1 - IoU for boxes, mean squared error for numbers",
                ),
                _Value("examples", "Integer", "number of labelled examples"),
            ],
        ),
        "push": _Step(
            "push",
            "Copy a model to serving_dir/VERSION, as TensorFlow Serving expects it.",
            [model, _Value("serving_dir", "String", "folder or URL that the step can write to")],
            [_Value("pushed_to", "String", "where the model was copied to")],
        ),
    }


#: Every step by name, in the order of a pipeline.
STEPS = _steps()


def load_step(name: str, image: str | None = None) -> Any:
    """Return one of :data:`STEPS` as kfp's component; ``image`` overrides component.yaml's."""
    step = STEPS[name]
    container = {
        "image": image or _specification()["implementation"]["container"]["image"],
        "command": ["python", "-m", "recordgen.kubeflow", step.command],
        "args": ["--executor-input", {"executorInput": None}],
    }
    specification = {
        "name": step.title or name,
        "description": step.description,
        "inputs": list(map(_described, step.inputs)),
        "outputs": list(map(_described, step.outputs)),
        "implementation": {"container": container},
    }
    text = yaml.safe_dump(specification, allow_unicode=True)
    component = components.load_component_from_text(text)
    # kfp drops the descriptions when it loads this format.
    component.component_spec.description = step.description
    for kind, values in (("inputs", step.inputs), ("outputs", step.outputs)):
        found = getattr(component.component_spec, kind)
        for value in values:
            found[value.name].description = value.description
    return component


def _described(value: _Value) -> dict[str, str]:
    return {key: text for key, text in value._asdict().items() if text is not None}
