"""Every check by its code. docs/lint.md describes them in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ERROR, WARNING = "error", "warning"

#: The word for all codes.
ALL = "ALL"


@dataclass(frozen=True)
class Check:
    """What a code stands for.

    Attributes:
        level: ``error``: a model trained or measured on the data is misled; ``warning``: look.
        about: what was found, in a few words.
        threshold: the number from which on it is found; None: the check has none.
        unit: what the threshold counts, for messages.
    """

    level: str
    about: str
    threshold: float | None = None
    unit: str = ""


CHECKS: Mapping[str, Check] = {
    # payloads
    "LEAK": Check(ERROR, "the same payload is in two splits"),
    "CONFLICT": Check(ERROR, "the same payload has different labels"),
    "DUPLICATE": Check(WARNING, "the same payload is twice in a split"),
    # classes and splits
    "NOT_TRAINED": Check(WARNING, "a class has no example in train"),
    "NOT_EVALUATED": Check(WARNING, "a class has no example in eval"),
    "FEW_EXAMPLES": Check(WARNING, "a class has few examples", 10, "examples"),
    "LOST_CLASS": Check(WARNING, "all examples of a class were rejected"),
    "IMBALANCE": Check(
        WARNING, "the largest class has many times the examples of the smallest", 100, "times"
    ),
    "LABEL_DRIFT": Check(
        WARNING, "classes have other shares in a split than in train", 0.2, "of the examples"
    ),
    "LOOK_ALIKES": Check(WARNING, "labels differ only by capitals, blanks or Unicode form"),
    "LABEL_FORM": Check(WARNING, "labels that not all tools take"),
    "UNLABELLED": Check(WARNING, "examples without a label"),
    "NO_EVAL": Check(WARNING, "no example is in eval"),
    "MIXED_SPLITS": Check(WARNING, "some rows of a split name it, and others were assigned to it"),
}


def count_level(counts: Mapping[str, int], level: str) -> int:
    """Return how many findings of a level there are, given how many of each code."""
    return sum(count for code, count in counts.items() if CHECKS[code].level == level)
