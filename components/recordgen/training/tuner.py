"""Hyperparameter search in TFX's Tuner: KerasTuner, with a whole training for each trial.

A trial runs the same training as the Trainer with these settings. Its objective is the Evaluator's
score of the model: the task's measure on split ``eval``.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from typing import Any, NamedTuple

import keras_tuner

from recordgen.errors import DataError, UsageError
from recordgen.training.checkpoints import remove_checkpoints
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig, check_keys
from recordgen.training.inputs import examples_root
from recordgen.training.progress_log import log_info
from recordgen.training.replicas import find_replicas
from recordgen.training.run import (
    checkpoint_folder,
    fit,
    trainer_of,
    validation_data,
)
from recordgen.training.search import SearchConfig, tuned_settings

# Settings that do not improve a model; searching the seed would only find the luckiest one.
_NOT_SEARCHED = ("seed", "top_k", "checkpoint_dir", "checkpoint_minutes")


class TunerResult(NamedTuple):
    """A result for TFX's Tuner, like TFX's own ``TunerFnResult``, which would load TFX."""

    tuner: keras_tuner.Tuner
    fit_kwargs: dict[str, Any]


def make_tuner(fn_args: Any) -> TunerResult:
    """Prepare a search; its trials are kept in ``checkpoint_dir``, or else in ``working_dir``.

    Args:
        fn_args: TFX's ``FnArgs``, as for :func:`recordgen.training.run.run`; ``custom_config``
            holds the keys of :class:`recordgen.training.search.SearchConfig`.

    Raises:
        UsageError: a setting is not allowed, or there are no examples to evaluate on.
        SourceError, DataError: as for :func:`recordgen.training.run.run`.
    """
    config = SearchConfig.from_custom_config(fn_args.custom_config)
    space, settings, replicas = to_hyperparameters(config), config.training, find_replicas()
    trainer = trainer_of(fn_args, settings)
    if replicas.workers > 1 or validation_data(fn_args, trainer) is None:
        raise UsageError(
            "a search runs on one machine, without TF_CONFIG, and needs a split eval with labelled "
            "examples to score models on, as convert writes it with eval_from='train:10'"
        )
    # The name depends on settings and data, so a search never resumes another search's trials.
    folder = checkpoint_folder(fn_args, trainer, replicas, fn_args.train_steps or 0, 0)
    mark = json.dumps([folder, space.get_config(), config.trials, config.algorithm])
    is_random = config.algorithm == "random"
    tuner = (_RandomSearch if is_random else _BayesianOptimization)(
        objective=keras_tuner.Objective(trainer.accumulator().measure, "max"),
        max_trials=config.trials,
        hyperparameters=space,
        # KerasTuner counts up from a seed: neighbouring seeds would try the same values.
        seed=random.Random(settings.seed).randrange(1, 2**31),
        directory=settings.checkpoint_dir or fn_args.working_dir,
        project_name=f"search-{hashlib.sha256(mark.encode()).hexdigest()[:16]}",
    )
    return TunerResult(tuner, {"fn_args": fn_args, "settings": settings, "verbose": 0})


def to_hyperparameters(config: SearchConfig) -> keras_tuner.HyperParameters:
    """Return the values to try as KerasTuner's HyperParameters. Raises: UsageError."""
    rates = ["learning_rate", *(["fine_tune_rate"] if config.training.frozen_epochs else [])]
    around = {name: getattr(config.training, name) for name in rates}
    default = {name: [rate / 10, rate * 10, "log"] for name, rate in around.items()}
    searched = config.search or {**default, "dropout": [0.0, 0.5, "linear"]}
    check_keys("search", searched, [name for name in TRAINING_OPTIONS if name not in _NOT_SEARCHED])
    found = keras_tuner.HyperParameters()
    for name, values in searched.items():
        kind = TRAINING_OPTIONS[name].kind
        try:
            if kind is not str and isinstance(values[-1], str):
                low, high, scale = values
                (found.Int if kind is int else found.Float)(name, low, high, sampling=scale)
            elif name == "image_size":
                found.Choice(name, list(map(json.dumps, values)))  # KerasTuner has no lists
            else:
                found.Choice(name, [kind(it) if type(it) is int else it for it in values])
        except (TypeError, ValueError, IndexError) as exc:
            raise UsageError(f"search: {name} cannot be {values!r}: {exc}") from exc
    return found


class _Trainings:
    """Trains once for each trial, in both of KerasTuner's tuners."""

    oracle: Any
    project_dir: str

    def run_trial(
        self, trial: Any, *, fn_args: Any, settings: TrainingConfig, **_: Any
    ) -> dict[str, float]:
        """Train with the values of a trial; return its score."""
        values = tuned_settings({"values": trial.hyperparameters.values})
        config = TrainingConfig.from_custom_config({**settings.to_custom_config(), **values})
        fitting = fit(fn_args, config)
        count_answers = fitting.trainer.counting(fitting.models.saved)
        # Use the same examples in each trial, whatever its batch size.
        most = (fn_args.eval_steps or 0) * settings.batch_size
        found = count_answers(*examples_root(fn_args.eval_files), most)
        fitting.remove_checkpoints()
        score = found.score()
        if math.isnan(score):
            raise DataError(f"split eval determines no {found.measure} of its model")
        log_info("trial %s: %s %.4f with %s", trial.trial_id, found.measure, score, values)
        return {found.measure: score}

    def on_search_end(self) -> None:
        """Check that there is a best trial, and remove the files of the finished search."""
        best = self.oracle.get_best_trials(1)
        if not best or best[0].score is None:
            why = best[0].message if best else "there is none"
            raise DataError(f"no trial of the search has a score: {why}")
        log_info("best trial %s: %s", best[0].trial_id, best[0].hyperparameters.values)
        remove_checkpoints(self.project_dir)


class _RandomSearch(_Trainings, keras_tuner.RandomSearch):
    """Samples the values of each trial independently."""


class _BayesianOptimization(_Trainings, keras_tuner.BayesianOptimization):
    """Infers the values of a trial from the scores of earlier ones."""
