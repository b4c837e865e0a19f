"""Checks of boxes: tiny boxes, boxes of whole images, double boxes, too many, all of one size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordgen.checks.contents import LintedTask
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import FoundRows, RowIndices

# A box is compared with this number of boxes that follow it from left to right.
_WINDOW = 8

# Boxes of a class have one size if their sides deviate by less than this part of them.
_SAME_SIDE = 0.01


class BoxTask(LintedTask, Protocol):
    """A task of images with boxes."""

    def boxes(self, annotation: str) -> Sequence[Any]:
        """Return the boxes of an image: label, xmin, ymin, xmax, ymax as shares of the image."""


class _Boxes(NamedTuple):
    """All boxes, sorted by image, then by label, then from left to right.

    Attributes:
        rows: each box's example.
        labels: the index of each box's label in ``names``.
        names: the labels.
        corners: xmin, ymin, xmax, ymax as shares of the image: float64 [n, 4].
    """

    rows: RowIndices
    labels: npt.NDArray[np.intp]
    names: Sequence[str]
    corners: npt.NDArray[np.float64]


def find_odd_boxes(
    facts: ExampleFacts, task: BoxTask, thresholds: Mapping[str, float]
) -> Iterator[FoundRows]:
    """Yield images with odd boxes, each image once per code."""
    boxes = _all_boxes(facts, task)
    areas = areas_of(boxes.corners) * 100

    def about(code: str, found: npt.NDArray[np.intp], text: str) -> FoundRows:
        """Return a finding for each image; ``text`` describes the first box."""
        rows, first, counts = np.unique(boxes.rows[found], return_index=True, return_counts=True)

        def message(at: int) -> str:
            box = found[first[at]]
            more = f", and {counts[at] - 1:,} more" if counts[at] > 1 else ""
            corners = ",".join(f"{corner:.4g}" for corner in boxes.corners[box])
            name = boxes.names[boxes.labels[box]]
            return f"the box {corners} of {name!r} {text.format(areas[box])}{more}"

        return FoundRows(code, rows, message)

    tiny = np.flatnonzero(areas < thresholds["TINY_BOX"])
    yield about("TINY_BOX", tiny, "covers {:.2g} % of the image")
    whole = np.flatnonzero(areas > thresholds["WHOLE_IMAGE_BOX"])
    yield about("WHOLE_IMAGE_BOX", whole, "covers {:.3g} % of the image")
    twice = _doubled(boxes, thresholds["DOUBLE_BOX"])
    yield about("DOUBLE_BOX", twice, "is nearly the same as another box with its label")
    rows, counts = np.unique(boxes.rows, return_counts=True)
    many = counts > thresholds["MANY_BOXES"]
    yield FoundRows(
        "MANY_BOXES", rows[many], lambda at: f"the image has {counts[many][at]:,} boxes"
    )
    yield _of_one_size(boxes, thresholds["ONE_BOX_SIZE"])


def _all_boxes(facts: ExampleFacts, task: BoxTask) -> _Boxes:
    texts = facts.columns["annotation"].combine_chunks().dictionary_encode()
    numbers = facts.annotations
    found = [task.boxes(text) for text in texts.dictionary.to_pylist()]
    rows = np.repeat(np.arange(len(facts)), [len(found[n]) if n >= 0 else 0 for n in numbers])
    boxes: list[Any] = [box for number in numbers if number >= 0 for box in found[number]]
    names = sorted({box[0] for box in boxes})
    ranks = {name: rank for rank, name in enumerate(names)}
    labels = np.fromiter((ranks[box[0]] for box in boxes), np.intp, len(boxes))
    corners = np.array([box[1:5] for box in boxes], np.float64).reshape(-1, 4)
    order = np.lexsort((corners[:, 0], labels, rows))
    return _Boxes(rows[order], labels[order], names, corners[order])


def areas_of(corners: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the part of the image that each box covers, given the corners: float64 [n, 4]."""
    sides = np.maximum(corners[:, 2:] - corners[:, :2], 0)
    return sides[:, 0] * sides[:, 1]


def _doubled(boxes: _Boxes, least: float) -> RowIndices:
    """Return boxes whose intersection over union with an earlier box is above ``least``."""
    areas = areas_of(boxes.corners)
    is_found = np.zeros(len(areas), np.bool_)
    for step in range(1, _WINDOW + 1):
        before, after = np.arange(len(areas) - step), np.arange(step, len(areas))
        alike = (boxes.rows[before] == boxes.rows[after]) & (
            boxes.labels[before] == boxes.labels[after]
        )
        before, after = before[alike], after[alike]
        one, other = boxes.corners[before], boxes.corners[after]
        shared = areas_of(
            np.hstack((np.maximum(one[:, :2], other[:, :2]), np.minimum(one[:, 2:], other[:, 2:])))
        )
        is_found[after] |= shared > least * (areas[before] + areas[after] - shared)
    return np.flatnonzero(is_found)


def _of_one_size(boxes: _Boxes, least: float) -> FoundRows:
    """Return the first image of each class whose boxes all have one size."""
    # Sort by class once: a mask for each class would take classes × boxes.
    order = np.argsort(boxes.labels, kind="stable")
    rows_by_class = boxes.rows[order]
    sides = (boxes.corners[:, 2:] - boxes.corners[:, :2])[order]
    bounds = np.searchsorted(boxes.labels[order], np.arange(len(boxes.names) + 1))
    rows, messages = [], []
    for name, start, end in zip(boxes.names, bounds[:-1], bounds[1:], strict=True):
        mine = sides[start:end]
        mean = mine.mean(axis=0)
        if len(mine) >= least and (mine.std(axis=0) <= _SAME_SIDE * mean).all():
            rows.append(rows_by_class[start:end].min())
            messages.append(
                f"all {len(mine):,} boxes of {name!r} have the size of this one, "
                f"{mean[0]:.3g}×{mean[1]:.3g} of the image"
            )
    return FoundRows("ONE_BOX_SIZE", np.array(rows, np.intp), messages.__getitem__)
