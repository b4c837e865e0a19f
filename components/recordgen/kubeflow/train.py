"""``train``: a dataset's ``train`` split → a SavedModel, as the Trainer of TFX pipelines does."""

from __future__ import annotations

from types import SimpleNamespace

from recordgen import storage
from recordgen.console.quiet import load_tensorflow
from recordgen.core.dataset.manifest import read_dataset, split_dir
from recordgen.core.dataset.splits import EVAL, TRAIN
from recordgen.kubeflow.execution import StepInput, StepOutput, read_place, write_place
from recordgen.options import without_unset
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig


def run(step: StepInput) -> StepOutput:
    """Train on the input ``dataset``; write ``model`` and TensorBoard's ``logs``.

    Raises:
        RecordgenError: as :func:`recordgen.training.run.run`.
    """
    values = dict(step.parameters)
    # The parameter is not named model, because the step has an output of this name.
    if "model_name" in values:
        values["model"] = values.pop("model_name")
    config = TrainingConfig.from_custom_config(without_unset(values, TRAINING_OPTIONS))
    root = read_place(step.artifacts["dataset"])
    dataset = read_dataset(root)

    load_tensorflow()
    from recordgen.training.run import run as train

    settings = config.to_custom_config()
    # The FnArgs that TFX passes to run_fn.
    train(
        SimpleNamespace(
            train_files=[_pattern(root, TRAIN)],
            eval_files=[_pattern(root, EVAL)] if EVAL in dataset.splits else [],
            train_steps=None,
            eval_steps=None,
            custom_config=settings,
            serving_model_dir=write_place(step.outputs["model"]),
            model_run_dir=write_place(step.outputs["logs"]),
        )
    )
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


def _pattern(root: str, split: str) -> str:
    return storage.join(root, split_dir(split), "*")
