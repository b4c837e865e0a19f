"""``train``: a dataset's ``train`` split → a SavedModel, with the training of the TFX pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordgen import storage
from recordgen.console.quiet import load_tensorflow
from recordgen.dataset.manifest import read_dataset, split_dir
from recordgen.dataset.splits import EVAL, TRAIN
from recordgen.kubeflow.execution import StepInput, StepOutput
from recordgen.kubeflow.places import read_place, write_place
from recordgen.training.config import TrainingConfig

#: What stands for "none" in the parameter ``weights``, since an optional text has no default.
NO_WEIGHTS = "none"


@dataclass(frozen=True, slots=True)
class TrainerArguments:
    """What :func:`recordgen.training.run.run` takes of TFX's ``FnArgs``.

    Attributes:
        train_files: pattern of the files to train on.
        eval_files: pattern of the files to validate with; none: no validation.
        custom_config: fields of :class:`recordgen.training.config.TrainingConfig`.
        serving_model_dir: where the model is saved.
        model_run_dir: where TensorBoard's logs are written.
        train_steps: steps in all; None: the config's epochs.
        eval_steps: steps of a validation; None: all there are.
    """

    train_files: tuple[str, ...]
    eval_files: tuple[str, ...]
    custom_config: Mapping[str, Any]
    serving_model_dir: str
    model_run_dir: str
    train_steps: int | None = None
    eval_steps: int | None = None


def run(step: StepInput) -> StepOutput:
    """Train on the input ``dataset``; write ``model`` and TensorBoard's ``logs``.

    Raises:
        RecordgenError: as :func:`recordgen.training.run.run`.
    """
    values = dict(step.parameters)
    # An output is named model already.
    if "model_name" in values:
        values["model"] = values.pop("model_name")
    if values.get("weights") == NO_WEIGHTS:
        del values["weights"]
    config = TrainingConfig.from_custom_config(values)
    root = read_place(step.artifacts["dataset"])
    dataset = read_dataset(root)

    load_tensorflow()
    from recordgen.training.run import run as train

    train(
        TrainerArguments(
            (_pattern(root, TRAIN),),
            (_pattern(root, EVAL),) if EVAL in dataset.splits else (),
            config.to_custom_config(),
            write_place(step.outputs["model"]),
            write_place(step.outputs["logs"]),
        )
    )
    settings = config.to_custom_config()
    return StepOutput(
        metadata={
            "model": {
                # Kubeflow's metadata knows no null.
                **{name: value for name, value in settings.items() if value is not None},
                "framework": "TensorFlow SavedModel",
                "label_count": len(dataset.labels),
                "dataset_digest": dataset.digest,
            }
        }
    )


def _pattern(root: str, split: str) -> str:
    return storage.join(root, split_dir(split), "*")
