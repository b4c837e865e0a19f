"""Hyperparameter search in TFX's Tuner: one training for each trial of KerasTuner.

A trial runs the same training as the Trainer with these settings. Its objective is the Evaluator's
score of the model: the task's measure on split ``eval``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import random
from typing import Any, NamedTuple

import keras_tuner
import tensorflow as tf
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import Trial, TrialStatus

from recordgen.errors import DataError, MissingPackageError, UsageError
from recordgen.tasks import TASKS
from recordgen.training.checkpoints import remove_checkpoints
from recordgen.training.fitting import Fitting
from recordgen.training.learner import shard_files
from recordgen.training.measures import EvalAccumulator, record_batches
from recordgen.training.replicas import find_replicas
from recordgen.training.run import (
    checkpoint_folder,
    examples_root,
    fit,
    plan_epochs,
    trainer_of,
    validation_data,
)
from recordgen.training.search import BAYESIAN, Choices, SearchConfig, Space, shown_settings

_log = logging.getLogger(__name__)


class TunerResult(NamedTuple):
    """A result for TFX's Tuner, like TFX's own ``TunerFnResult``, which would load TFX."""

    tuner: TrainingTuner
    fit_kwargs: dict[str, Any]


def make_tuner(fn_args: Any) -> TunerResult:
    """Prepare a search, and check all settings and values before the first trial.

    Args:
        fn_args: TFX's ``FnArgs``, as for :func:`recordgen.training.run.run`; ``custom_config``
            holds the keys of :class:`recordgen.training.search.SearchConfig`, and trials are kept
            in ``checkpoint_dir``, or else in ``working_dir``.

    Raises:
        UsageError: a setting or a value to try is not allowed, or does not suit the data, or there
            are no examples to evaluate on.
        SourceError, DataError: as for :func:`recordgen.training.run.run`.
    """
    config = SearchConfig.from_custom_config(fn_args.custom_config)
    replicas = find_replicas()
    if replicas.workers > 1:
        raise UsageError(
            f"a search runs on one machine, but TF_CONFIG names {replicas.workers}; start it on "
            f"one of them, without TF_CONFIG"
        )
    folders = []
    for settings in config.variations():
        replicas.check(settings)
        trainer = trainer_of(fn_args, settings)
        steps = plan_epochs(trainer.steps_per_epoch(), settings.epochs, fn_args.train_steps)
        folders.append(checkpoint_folder(fn_args, trainer, replicas, *steps))
    if validation_data(fn_args, trainer) is None:
        raise UsageError(
            "a search needs a split eval with labelled examples to score models on; convert with "
            "eval_from='train:10'"
        )
    # The folders depend on settings and data, so a search never resumes another search's trials.
    mark = json.dumps([folders, repr(config.space), config.trials, config.algorithm])
    name = f"search-{hashlib.sha256(mark.encode()).hexdigest()[:16]}"
    measure = TASKS[trainer.dataset.task].declared("measure")(len(trainer.dataset.labels))
    return TunerResult(TrainingTuner(fn_args, config, measure.measure, name), {"verbose": 0})


class TrainingTuner(BaseTuner):
    """Trains once for each trial.

    A search that was killed and started again keeps its finished trials, and resumes the unfinished
    trial from its last checkpoint, if ``checkpoint_dir`` outlives the process.
    """

    def __init__(self, fn_args: Any, config: SearchConfig, measure: str, name: str) -> None:
        """Prepare a search for the highest score, named ``measure``; trials go to ``name``."""
        self._fn_args = fn_args
        self._config = config
        self._measure = measure
        self._failure = ""
        directory = config.training.checkpoint_dir or fn_args.working_dir
        super().__init__(make_oracle(config, measure), directory=directory, project_name=name)

    def search(self, *args: Any, **kwargs: Any) -> None:
        """Run all trials.

        Raises:
            DataError: no trial has a score.
            SourceError, StorageError, RecordError: as for :func:`recordgen.training.run.run`.
        """
        try:
            super().search(*args, **kwargs)
        except keras_tuner.errors.FatalError as exc:
            raise exc.__cause__ or exc  # noqa: B904  (this is the cause)

    def run_trial(self, trial: Trial, **_: Any) -> dict[str, float]:
        """Train with the values of a trial; return its score.

        Raises:
            FailedTrialError: these values give no model, but others may.
            FatalError: no values would give a model.
        """
        values = trial.hyperparameters.values
        try:
            fitting = fit(self._fn_args, self._config.of_trial(values))
            score = self._score(fitting)
            fitting.remove_checkpoints()
        except (UsageError, tf.errors.ResourceExhaustedError) as exc:
            raise self._failed(trial, str(exc)) from exc
        except Exception as exc:  # KerasTuner would try the other values first
            raise keras_tuner.errors.FatalError(str(exc)) from exc
        if math.isnan(score):
            raise self._failed(trial, f"split eval determines no {self._measure} of its model")
        shown = (trial.trial_id, self._measure, score, shown_settings(values))
        _log.info("trial %s: %s %.4f with %s", *shown)
        return {self._measure: score}

    def on_search_end(self) -> None:
        """Check that there is a best trial, and remove the files of the finished search."""
        best = self.oracle.get_best_trials(1)
        if not best or best[0].status != TrialStatus.COMPLETED:
            raise DataError(f"no trial of the search has a score; the last one: {self._failure}")
        shown = (best[0].trial_id, shown_settings(best[0].hyperparameters.values))
        _log.info("best trial %s: %s", *shown)
        remove_checkpoints(self.project_dir)

    def _failed(self, trial: Trial, why: str) -> Exception:
        """Log a failure; return the error after which KerasTuner runs the next trial."""
        self._failure = f"{shown_settings(trial.hyperparameters.values)}: {why}"
        _log.warning("trial %s failed with %s", trial.trial_id, self._failure)
        failed: Exception = keras_tuner.errors.FailedTrialError(why)
        return failed

    def _score(self, fitting: Fitting) -> float:
        """Return the task's measure on split eval; NaN if the examples do not determine it."""
        trainer, model = fitting.trainer, fitting.models.saved

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def answer(records: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
            return trainer.scores(model, records), trainer.truth(records)

        dataset = trainer.dataset
        found: EvalAccumulator = TASKS[dataset.task].declared("measure")(len(dataset.labels))
        files = shard_files(*examples_root(self._fn_args.eval_files))
        # Use the same examples in each trial, whatever its batch size.
        most = (self._fn_args.eval_steps or 0) * self._config.training.batch_size
        for batch in record_batches(files, most=most or None):
            scores, truth = answer(tf.constant(batch))
            found.add_answers(scores.numpy(), {name: it.numpy() for name, it in truth.items()})
        return found.score()


def make_oracle(config: SearchConfig, measure: str) -> keras_tuner.Oracle:
    """Return the oracle that chooses the values of trials to maximise the score ``measure``.

    Raises:
        MissingPackageError: the algorithm needs scikit-learn.
    """
    oracle = keras_tuner.oracles.RandomSearchOracle
    if config.algorithm == BAYESIAN:
        oracle = keras_tuner.oracles.BayesianOptimizationOracle
    try:
        return oracle(
            objective=keras_tuner.Objective(measure, "max"),
            max_trials=config.trials,
            hyperparameters=to_hyperparameters(config.space),
            # KerasTuner treats seed 0 as none, and counts up from any other: neighbouring seeds
            # would try the same values.
            seed=random.Random(config.training.seed).randrange(1, 2**31),
            # Never reached: TrainingTuner decides which failure ends a search.
            max_consecutive_failed_trials=config.trials + 1,
        )
    except ImportError as exc:
        raise MissingPackageError(
            f"algorithm={BAYESIAN} needs scikit-learn, which is not installed: "
            f"pip install 'recordgen[demo]'"
        ) from exc


def to_hyperparameters(space: Space) -> keras_tuner.HyperParameters:
    """Return a space as KerasTuner's HyperParameters."""
    found = keras_tuner.HyperParameters()
    for name, values in space.items():
        if isinstance(values, Choices):
            found.Choice(name, list(values.values))
        else:
            add = found.Int if isinstance(values.low, int) else found.Float
            add(name, values.low, values.high, sampling=values.scale)
    return found
