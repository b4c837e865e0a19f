"""What a search for hyperparameters tries, decoded once from the Tuner's ``custom_config``."""

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

# What these are decides no model, or the search would choose the luckiest seed.
_NOT_SEARCHED = ("seed", "top_k", "checkpoint_dir", "checkpoint_minutes")

# Hyperband, in a tuner_fn of one's own, marks its values so.
_TUNERS_OWN = "tuner/"

_SIZE = "H W"


@dataclass(frozen=True, slots=True)
class Choices:
    """Values of a setting, one of which a trial takes.

    Attributes:
        values: text or numbers of one type; heights and widths are JSON, as KerasTuner has no
            lists: ``"[96, 96]"``.
    """

    values: tuple[str | int | float, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from which a trial draws one: whole ones if both ends are ``int``.

    Attributes:
        low: the lowest.
        high: the highest.
        scale: ``linear``: all are equally likely; ``log``: all orders of magnitude are.
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
    """How to search. Every field is a key of the Tuner's ``custom_config``, beside the settings.

    ``training`` is no key: it holds the settings of all trials, which have keys of their own.
    """

    training: TrainingConfig = field(default_factory=TrainingConfig)
    search: Mapping[str, Any] | None = option(
        None,
        "settings to search, each with a list of its values, `[16, 32, 64]`, or with a range of "
        'numbers: `[0.0001, 0.01, "log"]`, `[0, 0.5, "linear"]`',
        metavar="SPACE",
        unset="`learning_rate`, and `fine_tune_rate` after `frozen_epochs`, from a tenth to ten "
        "times the value that is set; `dropout` from 0 to 0.5",
    )
    trials: int = option(10, "trainings, each with other values", metavar="N")
    algorithm: str = option(
        RANDOM,
        "`random`: draw the values of each trial anew; `bayesian`: infer them from the trials "
        "before, after three random ones for each setting that is searched",
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
                f'{{"batch_size": [16, 32]}} (got {self.search!r}); leave it out for the default'
            )
        for _ in self.variations():  # raises
            pass

    @classmethod
    def from_custom_config(cls, values: Mapping[str, Any] | None) -> SearchConfig:
        """Build a config from ``fn_args.custom_config``; what is not given keeps its default.

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
        """The values to try, by setting. Raises: UsageError: some are not allowed."""
        searched = default_search(self.training) if self.search is None else self.search
        check_keys(
            "search", searched, [name for name in TRAINING_OPTIONS if name not in _NOT_SEARCHED]
        )
        return {name: _dimension(name, values) for name, values in searched.items()}

    def variations(self) -> Iterator[TrainingConfig]:
        """Yield the settings with each single value that is searched, and each end of a range.

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
        """Return the settings of a trial. Raises: UsageError: values do not go together."""
        settings = {**self.training.to_custom_config(), **decoded(values)}
        return TrainingConfig.from_custom_config(settings)


#: Every key of a search beside the settings, in the order in which it is shown.
SEARCH_OPTIONS = declared_options(SearchConfig)


def default_search(config: TrainingConfig) -> dict[str, list[Any]]:
    """Return what is searched unless ``search`` says it: what matters for every task."""
    rates = {"learning_rate": config.learning_rate}
    if config.frozen_epochs:
        rates["fine_tune_rate"] = config.fine_tune_rate
    around = {name: [rate / 10, rate * 10, LOG] for name, rate in rates.items()}
    return {**around, "dropout": [0.0, 0.5, LINEAR]}


def tuned_settings(hyperparameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings that a Tuner found, as ``custom_config`` has them.

    ``{"space": […], "values": {"batch_size": 16, "image_size": "[32, 32]"}}`` →
    ``{"batch_size": 16, "image_size": [32, 32]}``

    Args:
        hyperparameters: ``fn_args.hyperparameters``, the config of KerasTuner's HyperParameters;
            None: no Tuner ran.

    Raises:
        UsageError: they are not of a training by Recordgen.
    """
    values = {} if hyperparameters is None else hyperparameters.get("values")
    if not isinstance(values, Mapping):
        raise UsageError(
            f"hyperparameters must be the config of KerasTuner's HyperParameters, with values (got "
            f"{hyperparameters!r})"
        )
    values = {name: it for name, it in values.items() if not name.startswith(_TUNERS_OWN)}
    check_keys("hyperparameters", values, [*TRAINING_OPTIONS])
    return decoded(values)


def decoded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of KerasTuner as ``custom_config`` has them; see :class:`Choices`."""
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
    """Return what a list of values says; the values themselves are checked by the config."""
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
        # KerasTuner takes values of one type, and 0 is one of 0, 0.1.
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
