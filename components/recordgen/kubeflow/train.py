"""``train``: datasets' ``train`` splits → a SavedModel, as the Trainer of TFX pipelines does."""

from __future__ import annotations

from typing import Any

from recordgen.console.quiet import load_tensorflow
from recordgen.kubeflow.execution import StepInput, StepOutput, write_place
from recordgen.options import without_unset
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig
from recordgen.training.inputs import examples_root, read_examples, training_arguments

#: Inputs with datasets, which are read as one.
DATASETS = ("dataset", "earlier_dataset", "earlier_datasets")


def run(step: StepInput) -> StepOutput:
    """Train on the datasets of the inputs; write ``model`` and TensorBoard's ``logs``.

    The input ``base_model`` is a model whose weights the training begins with; ``hyperparameters``
    are settings that a search of your own has found.

    Raises: RecordgenError: as :func:`recordgen.training.run.run`.
    """
    settings = TrainingConfig.from_custom_config(settings_of(step)).to_custom_config()
    base = step.paths("base_model")
    given = training_arguments(
        step.paths(*DATASETS),
        settings,
        serving_model_dir=write_place(step.outputs["model"]),
        model_run_dir=write_place(step.outputs["logs"]),
        base_model=base[0] if base else None,
    )
    load_tensorflow()
    from recordgen.training.run import run as train

    dataset = read_examples(examples_root(given.train_files)[0])
    train(given)
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
    values = step.values(*TRAINING_OPTIONS, "model_name", "hyperparameters")
    found = values.pop("hyperparameters", {})
    # The parameter is not named model, because the step has an output of this name.
    if "model_name" in values:
        values["model"] = values.pop("model_name")
    return {**without_unset(values, TRAINING_OPTIONS), **found}
