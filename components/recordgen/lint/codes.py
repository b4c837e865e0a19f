"""Every check by its code. docs/lint.md describes them in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ERROR, WARNING = "error", "warning"

#: The word for all codes.
ALL = "ALL"


#: What runs checks, by import path: a function of facts, task and thresholds that yields
#: :class:`recordgen.lint.findings.Hits`. A task names those that are about its payloads.
REPEATED = "recordgen.lint.contents:find_repeated"
ALIKE = "recordgen.lint.alike:find_alike"
ODD_IMAGES = "recordgen.lint.images:find_odd_images"
ODD_TEXTS = "recordgen.lint.texts:find_odd_texts"
ODD_BOXES = "recordgen.lint.boxes:find_odd_boxes"
OVERLAPS = "recordgen.lint.videos:find_overlaps"
SEGMENT_ENDS = "recordgen.lint.videos:find_ends_beyond"
ODD_COLUMNS = "recordgen.lint.tables:find_odd_columns"


@dataclass(frozen=True)
class Check:
    """What a code stands for.

    Attributes:
        level: ``error``: a model trained or measured on the data is misled; ``warning``: look.
        finder: what finds it, one of the above; empty: :mod:`recordgen.lint.labels`, or
            the reader of the import file.
        threshold: the number from which on it is found; None: the check has none.
        remedy: what to do, where the code alone does not say it; docs/lint.md has it of all.
        extra: the extra of this package that installs what opens payloads for this check. Such a
            check runs only if its code is selected, and its finder is also given what opens them.
    """

    level: str
    finder: str = ""
    threshold: float | None = None
    remedy: str = ""
    extra: str = ""


#: What ``rows.adjusted`` counts, and the code of the check that says so.
CHANGED: Mapping[str, str] = {
    "boxes_swapped": "BOX_INVERTED",
    "boxes_clipped": "BOX_OUTSIDE",
    "boxes_dropped": "BOX_EMPTY",
}

CHECKS: Mapping[str, Check] = {
    # payloads
    "LEAK": Check(
        ERROR,
        REPEATED,
        remedy="--split-by content keeps copies in one split where rows name none; of rows that "
        "name two, delete one",
    ),
    "CONFLICT": Check(ERROR, REPEATED, remedy="correct the label that is wrong"),
    "DUPLICATE": Check(WARNING, REPEATED),
    "NEAR_LEAK": Check(
        WARNING,
        ALIKE,
        remedy="of images, --split-by near keeps them in one split where rows name none; of texts, "
        "delete one",
    ),
    "NEAR_DUPLICATE": Check(WARNING, ALIKE),
    # images; numbers of the first four: the table of `python -m benchmarks.lint_precision`
    "DARK": Check(WARNING, ODD_IMAGES, 40),
    "LIGHT": Check(WARNING, ODD_IMAGES, 215),
    "BLURRED": Check(WARNING, ODD_IMAGES, 0.3),
    "ONE_COLOUR": Check(WARNING, ODD_IMAGES, 2),
    "TINY": Check(WARNING, ODD_IMAGES, 16),
    "ODD_RATIO": Check(WARNING, ODD_IMAGES, 4),
    "SUFFIX": Check(WARNING, ODD_IMAGES),
    "GRAY": Check(WARNING, ODD_IMAGES, 5),
    # texts
    "LONG_TEXT": Check(WARNING, ODD_TEXTS, 20),
    "MOJIBAKE": Check(WARNING, ODD_TEXTS),
    "LABEL_IN_TEXT": Check(WARNING, ODD_TEXTS, 90),
    # boxes
    "TINY_BOX": Check(WARNING, ODD_BOXES, 0.01),
    "WHOLE_IMAGE_BOX": Check(WARNING, ODD_BOXES, 98),
    "DOUBLE_BOX": Check(WARNING, ODD_BOXES, 0.9),
    "BOX_INVERTED": Check(WARNING),
    "BOX_OUTSIDE": Check(WARNING),
    "BOX_EMPTY": Check(WARNING),
    "MANY_BOXES": Check(WARNING, ODD_BOXES, 500),
    "ONE_BOX_SIZE": Check(WARNING, ODD_BOXES, 10),
    # segments of videos
    "OVERLAP": Check(WARNING, OVERLAPS),
    "SEGMENT_END": Check(WARNING, SEGMENT_ENDS, extra="video"),
    # columns of tables
    "CONSTANT": Check(WARNING, ODD_COLUMNS),
    "MIXED_TYPES": Check(WARNING, ODD_COLUMNS, 90),
    "GIVE_AWAY": Check(
        WARNING, ODD_COLUMNS, 99, "leave the column out if it is not known when a model predicts"
    ),
    "OUTLIER": Check(WARNING, ODD_COLUMNS, 10),
    "SKEW": Check(WARNING, ODD_COLUMNS, 0.1),
    "TARGET_KIND": Check(WARNING, ODD_COLUMNS),
    # import files
    "REPEATED_HEADER": Check(WARNING),
    "BYTE_ORDER_MARK": Check(WARNING),
    # classes and splits
    "NOT_TRAINED": Check(WARNING),
    "NOT_EVALUATED": Check(WARNING),
    "FEW_EXAMPLES": Check(WARNING, threshold=10),
    "LOST_CLASS": Check(WARNING),
    "IMBALANCE": Check(WARNING, threshold=100),
    "LABEL_DRIFT": Check(WARNING, threshold=0.2),
    "LOOK_ALIKES": Check(WARNING),
    "LABEL_FORM": Check(WARNING),
    "UNLABELLED": Check(WARNING),
    "NO_EVAL": Check(WARNING),
    "MIXED_SPLITS": Check(WARNING),
}

#: Codes whose threshold is the least likeness of two payloads, above 0 and at most 1; the default
#: depends on what is compared.
LIKENESS = frozenset({"NEAR_LEAK", "NEAR_DUPLICATE"})

#: The checks for which each image or text is looked at, which takes time.
ON_LOOKS = LIKENESS | {
    *("DARK", "LIGHT", "BLURRED", "ONE_COLOUR"),
    *("LONG_TEXT", "MOJIBAKE", "LABEL_IN_TEXT"),
}


#: Extras, and the package that each installs for checks.
PACKAGES: Mapping[str, str] = {"video": "av"}

#: The checks that run unless others are selected.
BY_DEFAULT = frozenset(code for code, check in CHECKS.items() if not check.extra)


def only_level(counts: Mapping[str, int], level: str) -> dict[str, int]:
    """Return how many findings of each code of a level there are."""
    return {code: count for code, count in counts.items() if CHECKS[code].level == level}


def count_level(counts: Mapping[str, int], level: str) -> int:
    """Return how many findings of a level there are, given how many of each code."""
    return sum(only_level(counts, level).values())
