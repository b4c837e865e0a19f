"""All checks by their code. docs/lint.md describes them in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ERROR, WARNING = "error", "warning"

#: The word for all codes.
ALL = "ALL"


#: Import paths of the functions that run checks: they take facts, task and thresholds, and yield
#: :class:`recordgen.checks.findings.FoundRows`. A task names the functions for its payloads.
REPEATED = "recordgen.checks.contents:find_repeated"
ALIKE = "recordgen.checks.near_pairs:find_alike"
ODD_IMAGES = "recordgen.checks.images:find_odd_images"
ODD_TEXTS = "recordgen.checks.texts:find_odd_texts"
ODD_BOXES = "recordgen.checks.boxes:find_odd_boxes"
OVERLAPS = "recordgen.checks.videos:find_overlaps"
SEGMENT_ENDS = "recordgen.checks.videos:find_ends_beyond"
ODD_COLUMNS = "recordgen.checks.tables:find_odd_columns"


@dataclass(frozen=True)
class Check:
    """The definition of a check.

    Attributes:
        level: ``error`` if the data misleads a model's training or metrics, else ``warning``.
        finder: import path of its function, one of the above; empty for checks in
            :mod:`recordgen.checks.labels` and in the readers of import files.
        threshold: the number from which on the check finds something, or None.
        remedies: what helps, if the code does not suggest it; one that names an option is only for
            tasks in which the option acts. docs/lint.md has all remedies.
        extra: the extra of this package that the check needs to open payloads. Such a check runs
            only if its own code is selected; its finder also gets a function that opens payloads.
    """

    level: str
    finder: str = ""
    threshold: float | None = None
    remedies: tuple[str, ...] = ()
    extra: str = ""


#: Counts in ``rows.adjusted``, and the codes that report them.
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
        remedies=(
            "--group-by content keeps copies in one split if rows name none",
            "give copies the same split, or delete one",
        ),
    ),
    "CONFLICT": Check(ERROR, REPEATED, remedies=("correct the label that is wrong",)),
    "DUPLICATE": Check(WARNING, REPEATED),
    "NEAR_LEAK": Check(
        WARNING,
        ALIKE,
        remedies=(
            "--group-by near keeps similar images in one split if rows name none",
            "give similar ones the same split, or delete one",
        ),
    ),
    "NEAR_DUPLICATE": Check(WARNING, ALIKE),
    # images; `python -m benchmarks.lint_precision` has a table for the first four thresholds
    "DARK": Check(WARNING, ODD_IMAGES, 40),
    "LIGHT": Check(WARNING, ODD_IMAGES, 215),
    "BLURRED": Check(WARNING, ODD_IMAGES, 0.3),
    "ONE_COLOUR": Check(WARNING, ODD_IMAGES, 2),
    "TINY": Check(WARNING, ODD_IMAGES, 16),
    "ODD_RATIO": Check(WARNING, ODD_IMAGES, 4),
    "SUFFIX": Check(WARNING, ODD_IMAGES),
    "GRAY": Check(WARNING, ODD_IMAGES, 5),
    "COLOUR_PROFILE": Check(
        WARNING, ODD_IMAGES, remedies=("convert the images to sRGB if their colours matter",)
    ),
    "FRAMES": Check(
        WARNING, ODD_IMAGES, remedies=("save each picture that counts as its own file",)
    ),
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
        WARNING, ODD_COLUMNS, 99, ("remove the column if it is not known when a model predicts",)
    ),
    "OUTLIER": Check(WARNING, ODD_COLUMNS, 10),
    "SKEW": Check(WARNING, ODD_COLUMNS, 0.1),
    "TARGET_KIND": Check(WARNING, ODD_COLUMNS),
    "MARKERS": Check(WARNING, ODD_COLUMNS),
    # import files
    "REPEATED_HEADER": Check(WARNING),
    "BYTE_ORDER_MARK": Check(WARNING),
    "SKIPPED": Check(WARNING),
    "SEVERAL_SPLITS": Check(
        WARNING, remedies=("write the same split into all rows of the image or text",)
    ),
    # classes and splits
    "NOT_TRAINED": Check(WARNING),
    "NOT_EVALUATED": Check(WARNING),
    "FEW_EXAMPLES": Check(WARNING, threshold=10),
    "LOST_CLASS": Check(WARNING),
    "UNUSED_NUMBER": Check(WARNING),
    "IMBALANCE": Check(WARNING, threshold=100),
    "LABEL_DRIFT": Check(
        WARNING,
        threshold=0.2,
        remedies=(
            "--stratify label gives each split its share of each label if rows name no splits and "
            "have one label",
            "move rows between the splits, or add examples",
        ),
    ),
    "LOOK_ALIKES": Check(WARNING),
    "LABEL_FORM": Check(WARNING),
    "UNLABELLED": Check(WARNING),
    "NO_EVAL": Check(WARNING),
    "MIXED_SPLITS": Check(WARNING),
}

#: Codes whose threshold is the least similarity of two payloads, above 0 and at most 1; the default
#: depends on the kind of payload.
LIKENESS = frozenset({"NEAR_LEAK", "NEAR_DUPLICATE"})

#: The checks that examine each image or text, which takes time.
ON_LOOKS = LIKENESS | {
    *("DARK", "LIGHT", "BLURRED", "ONE_COLOUR"),
    *("LONG_TEXT", "MOJIBAKE", "LABEL_IN_TEXT"),
}


#: Extras, and the package that checks need from each.
PACKAGES: Mapping[str, str] = {"video": "av"}

#: The checks that run by default.
BY_DEFAULT = frozenset(code for code, check in CHECKS.items() if not check.extra)


def only_level(counts: Mapping[str, int], level: str) -> dict[str, int]:
    """Return the counts of a level's codes."""
    return {code: count for code, count in counts.items() if level_of(code) == level}


def level_of(code: str) -> str:
    """Return the level of a code; a code of another version is a warning."""
    return CHECKS[code].level if code in CHECKS else WARNING


def count_level(counts: Mapping[str, int], level: str) -> int:
    """Return the number of findings of a level, given the counts by code."""
    return sum(only_level(counts, level).values())
