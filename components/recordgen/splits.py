"""Splits: the spellings of ML_USE, and the seeded draw for rows that name none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from recordgen.errors import UsageError

TRAIN = "train"
EVAL = "eval"
TEST = "test"

#: TFX's Trainer, Evaluator and Transform look for ``train`` and ``eval`` by name.
SPLITS = (TRAIN, EVAL, TEST)

# Vertex AI "About data splits for AutoML models" and the spellings its exports use.
_ML_USE: Mapping[str, str | None] = {
    "train": TRAIN,
    "training": TRAIN,
    "validation": EVAL,
    "validate": EVAL,
    "test": TEST,
    "unassigned": None,
    "": None,
}

#: The spellings of ML_USE in small letters, but for the empty one.
ML_USE_WORDS = tuple(filter(None, _ML_USE))

# Beside the spellings of ML_USE: what folders and files are called.
_EVAL_NAMES = frozenset({"val", "valid", "eval", "dev"})

ML_USE_EXPECTED = "TRAIN, VALIDATION, TEST, UNASSIGNED or empty"


def split_order(split: str) -> tuple[int, str]:
    """Return where a split comes: train, eval, test, then others by name."""
    return (SPLITS.index(split) if split in SPLITS else len(SPLITS)), split


def is_ml_use(text: str) -> bool:
    """Say whether ``text`` is a spelling of ML_USE (the empty field is one)."""
    return text.lower() in _ML_USE


def parse_ml_use(text: str) -> str | None:
    """Return the split that an ML_USE field names, or None for "draw one".

    ``TRAIN``, ``training`` → ``"train"``; ``Validate`` → ``"eval"``; ``UNASSIGNED`` → None.

    Raises:
        ValueError: the spelling is unknown.
    """
    try:
        return _ML_USE[text.lower()]
    except KeyError:
        raise ValueError(f"ml_use must be {ML_USE_EXPECTED} (got {text!r})") from None


def is_split_name(name: str) -> bool:
    """Say whether a folder or file of this name holds a split: ``train``, ``val``, ``Test``."""
    return name != "" and (name.lower() in _EVAL_NAMES or is_ml_use(name))


def split_of_name(name: str) -> str | None:
    """Return the split that such a name stands for; None: draw one."""
    return EVAL if name.lower() in _EVAL_NAMES else parse_ml_use(name)


@dataclass(frozen=True, slots=True)
class SplitFractions:
    """Named shares for rows that name no split, such as train 80, eval 10, test 10.

    Attributes:
        names: the splits, in the order in which they are drawn.
        weights: one whole number ≥ 0 per split; only their ratio counts.
    """

    names: tuple[str, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.weights) or not self.names:
            raise UsageError(
                f"split fractions need one weight per split (got {len(self.names)} names and "
                f"{len(self.weights)} weights)"
            )
        if min(self.weights) < 0 or sum(self.weights) == 0:
            raise UsageError(f"split fractions must be ≥ 0 with a sum above 0 (got {self.weights})")

    @classmethod
    def parse(cls, text: str) -> SplitFractions:
        """Parse ``"80,10,10"`` (train, eval, test; trailing splits may be left out).

        Raises:
            UsageError: not one to three whole numbers, or all of them 0.
        """
        try:
            weights = tuple(int(part) for part in text.split(","))
        except ValueError:
            weights = ()
        if not 1 <= len(weights) <= len(SPLITS):
            raise UsageError(
                f"split fractions must be up to three whole numbers for train,eval,test, such as "
                f"80,10,10 (got {text!r})"
            )
        return cls(SPLITS[: len(weights)], weights)

    def choose(self, draw: int) -> str:
        """Return the split for a 64-bit ``draw``: each split owns a share of the 64-bit range."""
        ticket = draw * sum(self.weights) >> 64
        for name, end in zip(self.names, accumulate(self.weights), strict=True):
            if ticket < end:
                return name
        raise AssertionError("unreachable: a ticket is below the sum of all weights")

    def __str__(self) -> str:
        return ",".join(f"{n}:{w}" for n, w in zip(self.names, self.weights, strict=True))


DEFAULT_FRACTIONS = SplitFractions(SPLITS, (80, 10, 10))
