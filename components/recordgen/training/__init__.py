"""Training as a TFX step: ``Trainer(run_fn="recordgen.training.run_fn")``.

``Tuner(tuner_fn="recordgen.training.tuner_fn")`` searches hyperparameters for the Trainer.
TensorFlow is loaded when training starts, not when a pipeline is defined.
"""

from __future__ import annotations

from typing import Any

from recordgen.errors import MissingPackageError
from recordgen.training.config import TrainingConfig
from recordgen.training.search import SearchConfig

__all__ = ["SearchConfig", "TrainingConfig", "run_fn", "tuner_fn"]


def run_fn(fn_args: Any) -> None:
    """Train, and save the model for serving; see :func:`recordgen.training.run.run`.

    Args:
        fn_args: TFX's ``FnArgs``; ``custom_config`` holds the fields of
            :class:`recordgen.training.config.TrainingConfig`.
    """
    from recordgen.training.run import run

    run(fn_args)


def tuner_fn(fn_args: Any) -> Any:
    """Prepare a search for hyperparameters; see :func:`recordgen.training.tuner.make_tuner`.

    Args:
        fn_args: TFX's ``FnArgs``; ``custom_config`` holds the fields of
            :class:`recordgen.training.search.SearchConfig`.

    Returns:
        A KerasTuner and the arguments of its ``search``, with the names of TFX's
        ``TunerFnResult``: ``tuner`` and ``fit_kwargs``.

    Raises:
        MissingPackageError: KerasTuner is not installed.
    """
    try:
        from recordgen.training.tuner import make_tuner
    except ImportError as exc:
        raise MissingPackageError.of(exc, "a search for hyperparameters") or exc from exc
    return make_tuner(fn_args)
