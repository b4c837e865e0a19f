"""The settings of a hyperparameter search, decoded once from the Tuner's ``custom_config``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recordgen.options import declared_options, option
from recordgen.training.config import (
    TRAINING_OPTIONS,
    TrainingConfig,
    check_keys,
    check_value,
    own_settings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """The settings of a search. Every field but ``training`` is a key of ``custom_config``.

    ``training`` holds the settings of all trials, whose keys are in the same ``custom_config``.
    """

    training: TrainingConfig = field(default_factory=TrainingConfig)
    search: Mapping[str, Any] | None = option(
        None,
        "settings to search, each with a list of values, `[16, 32, 64]`, or a range of numbers: "
        '`[0.0001, 0.01, "log"]`, `[0, 0.5, "linear"]`',
        metavar="SPACE",
        unset="`learning_rate`, and `fine_tune_rate` with `frozen_epochs`, from a tenth to ten "
        "times their values; `dropout` from 0 to 0.5",
    )
    trials: int = option(10, "number of trainings, each with different values", metavar="N")
    algorithm: str = option(
        "random",
        "`random`: sample the values of each trial independently; `bayesian`: infer them from "
        "earlier trials, after three random trials for each setting that is searched",
        choices=("random", "bayesian"),
    )

    def __post_init__(self) -> None:
        for name in ("trials", "algorithm"):
            check_value(SEARCH_OPTIONS[name], getattr(self, name))

    @classmethod
    def from_custom_config(cls, values: Mapping[str, Any] | None) -> SearchConfig:
        """Build a config from ``fn_args.custom_config``; missing keys have their defaults.

        ``{"search": {"batch_size": [16, 32]}, "trials": 2, "epochs": 3}`` →
        ``SearchConfig(training=TrainingConfig(epochs=3), search={…}, trials=2)``

        Raises: UsageError: a key is unknown, or a value is not allowed.
        """
        given = own_settings(values)
        check_keys("custom_config", given, [*SEARCH_OPTIONS, *TRAINING_OPTIONS])
        own = {name: given.pop(name) for name in SEARCH_OPTIONS if name in given}
        return cls(training=TrainingConfig.from_custom_config(given), **own)


#: All keys of a search apart from the trainings' settings, in the order of documentation.
SEARCH_OPTIONS = declared_options(SearchConfig)


def tuned_settings(hyperparameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings that a Tuner found, as values of ``custom_config``.

    ``{"space": […], "values": {"batch_size": 16, "image_size": "[32, 32]"}}`` →
    ``{"batch_size": 16, "image_size": [32, 32]}``: KerasTuner's values cannot be lists.

    Args:
        hyperparameters: ``fn_args.hyperparameters``, the config of KerasTuner's HyperParameters;
            None if no Tuner ran. Values that Hyperband adds are ignored.

    Raises: UsageError: a value is not a setting of Recordgen's training.
    """
    values = (hyperparameters or {}).get("values", {})
    values = {name: it for name, it in values.items() if not name.startswith("tuner/")}
    check_keys("hyperparameters", values, [*TRAINING_OPTIONS])
    size = values.get("image_size")
    return {**values, "image_size": json.loads(size)} if isinstance(size, str) else values
