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
    "NEAR_LEAK": Check(WARNING, "nearly the same image is in two splits"),
    "NEAR_DUPLICATE": Check(WARNING, "nearly the same image is twice in a split"),
    # images
    "DARK": Check(WARNING, "an image is dark", 40, "of 255"),
    "LIGHT": Check(WARNING, "an image is overexposed", 215, "of 255"),
    "BLURRED": Check(WARNING, "an image is blurred", 0.35, "of the sharpest edge"),
    "ONE_COLOUR": Check(WARNING, "an image has nearly one colour", 2, "of 255"),
    "TINY": Check(WARNING, "an image is tiny", 16, "pixels on the shorter side"),
    "ODD_RATIO": Check(WARNING, "an image is very long or high", 4, "times as long as high"),
    "SUFFIX": Check(WARNING, "an image has another format than its name says"),
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

#: The checks for which each image is looked at, which takes time.
ON_LOOKS = frozenset({"NEAR_LEAK", "NEAR_DUPLICATE", "DARK", "LIGHT", "BLURRED", "ONE_COLOUR"})


def count_level(counts: Mapping[str, int], level: str) -> int:
    """Return how many findings of a level there are, given how many of each code."""
    return sum(count for code, count in counts.items() if CHECKS[code].level == level)
