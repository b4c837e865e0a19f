"""``tune``: search the settings of a training, as the Tuner of TFX pipelines does."""

from __future__ import annotations

import tempfile

from recordgen.console import logs
from recordgen.console.quiet import load_tensorflow
from recordgen.kubeflow.execution import StepInput, StepOutput
from recordgen.kubeflow.train import DATASETS, settings_of
from recordgen.training import tuner_fn
from recordgen.training.arguments import training_arguments
from recordgen.training.config import TRAINING_OPTIONS
from recordgen.training.search import SEARCH_OPTIONS, SearchConfig, tuned_settings


def run(step: StepInput) -> StepOutput:
    """Train once for each trial; return the settings of the best one and its score.

    Raises: RecordgenError: as :func:`recordgen.training.tuner.make_tuner`.
    """
    values = settings_of(step, {**TRAINING_OPTIONS, **SEARCH_OPTIONS})
    if not values.get("search"):  # KFP has no None
        values.pop("search", None)
    SearchConfig.from_custom_config(values)
    load_tensorflow()
    with tempfile.TemporaryDirectory() as folder:
        roots = step.paths(*DATASETS)
        found = tuner_fn(training_arguments(roots, values, model_run_dir=None, working_dir=folder))
        found.tuner.search(**found.fit_kwargs)
        [best] = found.tuner.oracle.get_best_trials(1)
    settings = tuned_settings({"values": best.hyperparameters.values})
    logs.said(f"best of {len(found.tuner.oracle.trials)} trials: {best.score:.4f} with {settings}")
    return StepOutput({"hyperparameters": settings, "score": float(best.score)})
