"""Checks of boxes: tiny boxes, boxes of whole images, double boxes, and changed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordgen.checks.check import EACH, Check, Examined, FoundRows
from recordgen.checks.labels import LineCheck
from recordgen.core.facts import BOXES
from recordgen.core.facts.kept_rows import RowIndices

# A box is compared with this number of boxes that follow it from left to right.
_WINDOW = 8


class _Boxes(NamedTuple):
    """All boxes, sorted by image, then by label, then from left to right."""

    rows: RowIndices
    labels: npt.NDArray[np.intp]  # the index of each box's label in `names`
    names: Sequence[str]
    # xmin, ymin, xmax, ymax as shares of the image: float64 [n, 4].
    corners: npt.NDArray[np.float64]


class _BoxCheck(Check):
    scope = EACH
    needs = (BOXES,)

    def about(self, examined: Examined[Any], found: npt.NDArray[np.intp], text: str) -> FoundRows:
        """Return each image with found boxes once; ``text`` describes the first of them."""
        boxes, areas = examined.shared(_all_boxes), examined.shared(_percents)
        rows, first, counts = np.unique(boxes.rows[found], return_index=True, return_counts=True)

        def message(at: int) -> str:
            box = found[first[at]]
            more = f", and {counts[at] - 1:,} more" if counts[at] > 1 else ""
            corners = ",".join(f"{corner:.4g}" for corner in boxes.corners[box])
            name = boxes.names[boxes.labels[box]]
            return f"the box {corners} of {name!r} {text.format(areas[box])}{more}"

        return FoundRows(rows, message)


class TinyBox(_BoxCheck):
    """A box of few pixels."""

    code = "TINY_BOX"
    threshold = 0.01

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images with boxes that cover less of them than the threshold, in percent."""
        tiny = np.flatnonzero(examined.shared(_percents) < examined.thresholds[self.code])
        yield self.about(examined, tiny, "covers {:.2g} % of the image")


class WholeImageBox(_BoxCheck):
    """A box of a whole image."""

    code = "WHOLE_IMAGE_BOX"
    threshold = 98

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images with boxes that cover more of them than the threshold, in percent."""
        whole = np.flatnonzero(examined.shared(_percents) > examined.thresholds[self.code])
        yield self.about(examined, whole, "covers {:.3g} % of the image")


class DoubleBox(_BoxCheck):
    """An object with two boxes."""

    code = "DOUBLE_BOX"
    threshold = 0.9

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images with boxes whose intersection over union is above the threshold."""
        twice = _doubled(examined.shared(_all_boxes), examined.thresholds[self.code])
        yield self.about(examined, twice, "is nearly the same as another box with its label")


class BoxInverted(LineCheck):
    """Corners of a box that were swapped."""

    code = "BOX_INVERTED"
    counted_as = "boxes_swapped"


class BoxOutside(LineCheck):
    """A box that was clipped at the border of its image."""

    code = "BOX_OUTSIDE"
    counted_as = "boxes_clipped"


class BoxEmpty(LineCheck):
    """A box without area that was dropped."""

    code = "BOX_EMPTY"
    counted_as = "boxes_dropped"


def _percents(examined: Examined[Any]) -> npt.NDArray[np.float64]:
    """Return the part of its image that each box covers, in percent."""
    return areas_of(examined.shared(_all_boxes).corners) * 100


def _all_boxes(examined: Examined[Any]) -> _Boxes:
    facts, task = examined.facts, examined.task
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
