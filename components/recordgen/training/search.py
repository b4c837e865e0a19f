"""The settings of a hyperparameter search, decoded once from the Tuner's ``custom_config``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recordgen.errors import UsageError
from recordgen.options import declared_options, option
from recordgen.training.config import TRAINING_OPTIONS, TrainingConfig, check_keys

RANDOM = "random"
BAYESIAN = "bayesian"
LINEAR = "linear"
LOG = "log"

# Settings that do not improve a model; searching the seed would only find the luckiest one.
_NOT_SEARCHED = ("seed", "top_k", "checkpoint_dir", "checkpoint_minutes")

# Prefix of the values that KerasTuner's Hyperband adds, in a user's own tuner_fn.
_HYPERBAND = "tuner/"

_SIZE = "H W"


@dataclass(frozen=True, slots=True)
class Choices:
    """Values of a setting, of which each trial uses one.

    Attributes:
        values: text or numbers of one type; height and width as JSON, ``"[96, 96]"``, because
            KerasTuner has no lists.
    """

    values: tuple[str | int | float, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A range from which each trial samples a number: a whole number if both ends are ``int``.

    ``scale`` is ``linear`` if all numbers are equally likely, ``log`` if all orders of magnitude.
    """

    low: float
    high: float
    scale: str

    @property
    def values(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high


Space = Mapping[str, Choices | Range]


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
        RANDOM,
        "`random`: sample the values of each trial independently; `bayesian`: infer them from "
        "earlier trials, after three random trials for each setting that is searched",
        choices=(RANDOM, BAYESIAN),
    )

    def __post_init__(self) -> None:
        if self.algorithm not in (RANDOM, BAYESIAN):
            raise UsageError(
                f"algorithm must be one of {RANDOM}, {BAYESIAN} (got {self.algorithm!r})"
            )
        if not isinstance(self.trials, int) or isinstance(self.trials, bool) or self.trials < 1:
            raise UsageError(f"trials must be a whole number, at least 1 (got {self.trials!r})")
        if self.search is not None and not (isinstance(self.search, Mapping) and self.search):
            raise UsageError(
                f"search must map settings to their values, such as "
                f'{{"batch_size": [16, 32]}} (got {self.search!r}); omit it for the default'
            )
        for _ in self.variations():  # raises
            pass

    @classmethod
    def from_custom_config(cls, values: Mapping[str, Any] | None) -> SearchConfig:
        """Build a config from ``fn_args.custom_config``; missing keys have their defaults.

        ``{"search": {"batch_size": [16, 32]}, "trials": 2, "epochs": 3}`` →
        ``SearchConfig(training=TrainingConfig(epochs=3), search={…}, trials=2)``

        Raises:
            UsageError: a key is unknown, or a value is not allowed.
        """
        given = dict(values or {})
        check_keys("custom_config", given, [*SEARCH_OPTIONS, *TRAINING_OPTIONS])
        own = {name: given.pop(name) for name in SEARCH_OPTIONS if name in given}
        return cls(training=TrainingConfig.from_custom_config(given), **own)

    @property
    def space(self) -> Space:
        """The values to try, by setting. Raises: UsageError if a value is not allowed."""
        searched = default_search(self.training) if self.search is None else self.search
        check_keys(
            "search", searched, [name for name in TRAINING_OPTIONS if name not in _NOT_SEARCHED]
        )
        return {name: _dimension(name, values) for name, values in searched.items()}

    def variations(self) -> Iterator[TrainingConfig]:
        """Yield the settings with each searched value, one at a time; of ranges, with both ends.

        Raises:
            UsageError: a value is not allowed.
        """
        for name, dimension in self.space.items():
            for value in dimension.values:
                try:
                    yield self.of_trial({name: value})
                except UsageError as exc:
                    raise UsageError(f"search: {exc}") from exc

    def of_trial(self, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the settings of a trial. Raises: UsageError if values contradict each other."""
        settings = {**self.training.to_custom_config(), **decoded(values)}
        return TrainingConfig.from_custom_config(settings)


#: All keys of a search apart from the trainings' settings, in the order of documentation.
SEARCH_OPTIONS = declared_options(SearchConfig)


def default_search(config: TrainingConfig) -> dict[str, list[Any]]:
    """Return the default of ``search``: settings that matter for every task."""
    rates = {"learning_rate": config.learning_rate}
    if config.frozen_epochs:
        rates["fine_tune_rate"] = config.fine_tune_rate
    around = {name: [rate / 10, rate * 10, LOG] for name, rate in rates.items()}
    return {**around, "dropout": [0.0, 0.5, LINEAR]}


def tuned_settings(hyperparameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings that a Tuner found, as values of ``custom_config``.

    ``{"space": […], "values": {"batch_size": 16, "image_size": "[32, 32]"}}`` →
    ``{"batch_size": 16, "image_size": [32, 32]}``

    Args:
        hyperparameters: ``fn_args.hyperparameters``, the config of KerasTuner's HyperParameters;
            None if no Tuner ran.

    Raises:
        UsageError: a value is not a setting of Recordgen's training.
    """
    values = {} if hyperparameters is None else hyperparameters.get("values")
    if not isinstance(values, Mapping):
        raise UsageError(
            f"hyperparameters must be the config of KerasTuner's HyperParameters, with values (got "
            f"{hyperparameters!r})"
        )
    values = {name: it for name, it in values.items() if not name.startswith(_HYPERBAND)}
    check_keys("hyperparameters", values, [*TRAINING_OPTIONS])
    return decoded(values)


def decoded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return KerasTuner's values as values of ``custom_config``; see :class:`Choices`."""
    return {
        name: json.loads(value)
        if TRAINING_OPTIONS[name].metavar == _SIZE and isinstance(value, str)
        else value
        for name, value in values.items()
    }


def shown_settings(values: Mapping[str, Any]) -> str:
    """Return values for a log: ``learning_rate 0.00314, batch_size 16``."""
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in values.items()
    )


def _dimension(name: str, values: object) -> Choices | Range:
    """Return the values or the range in a list; the config checks the values themselves."""
    declared = TRAINING_OPTIONS[name]
    if not isinstance(values, list | tuple) or len(values) < 2:
        raise UsageError(
            f"search: {name} must be a list of at least two values, or two numbers and a scale, "
            f"such as [1, 8, {LOG!r}] (got {values!r})"
        )
    if None in values:
        raise UsageError(f"search: {name} must not have null among its values (got {values!r})")
    if declared.metavar == _SIZE:
        return Choices(tuple(map(json.dumps, values)))
    if declared.kind is not str and isinstance(values[-1], str):
        return _range(name, values)
    if declared.kind is float:
        # KerasTuner needs values of one type; in [0, 0.1], the 0 is an int.
        return Choices(tuple(float(it) if type(it) is int else it for it in values))
    return Choices(tuple(values))


def _range(name: str, values: Sequence[Any]) -> Range:
    kind = TRAINING_OPTIONS[name].kind
    noun, kinds = ("whole numbers", [int]) if kind is int else ("numbers", [int, float])
    are_ends = len(values) == 3 and all(type(end) in kinds for end in values[:2])
    if not are_ends or not values[0] < values[1]:
        raise UsageError(
            f"search: {name} must be two {noun}, the lower one first, and a scale (got {values!r})"
        )
    low, high, scale = values
    if scale not in (LINEAR, LOG) or (scale == LOG and low <= 0):
        raise UsageError(
            f"search: the scale of {name} must be {LINEAR!r}, or {LOG!r} for numbers above 0 (got "
            f"{values!r})"
        )
    return Range(low, high, scale) if kind is int else Range(float(low), float(high), scale)
