"""Checks of single examples: pictures and files of images, boxes, and wrongly decoded texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from recordgen.checks.check import EACH, Check, CheckedTask, Examined, FoundRows
from recordgen.checks.labels import LineCheck
from recordgen.core.facts import BOXES, IMAGES, MEASURES, TEXTS
from recordgen.core.facts.kept_rows import RowIndices
from recordgen.measures.pictures import PictureFacts
from recordgen.measures.texts import REPLACEMENT
from recordgen.subjects.objects import areas_of, shared_areas


class PictureCheck(Check):
    """A check of a measure of pixels, which finds pictures below its threshold."""

    is_default = False
    scope = EACH
    needs = (IMAGES, MEASURES)
    measure: ClassVar[str]  # the measure, a field of PictureFacts
    # The threshold is the most that a picture may have, not the least.
    is_most: ClassVar[bool] = False
    text: ClassVar[str]  # the message, formatted with the measures of a picture and the threshold

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        rows, pictures = examined.facts.looks
        found = self.of_pictures(pictures, examined.thresholds)
        yield found._replace(rows=rows[found.rows])

    def of_pictures(self, pictures: PictureFacts, thresholds: Mapping[str, float]) -> FoundRows:
        """Return the odd pictures; their rows are indices in ``pictures``."""
        values, threshold = getattr(pictures, self.measure), thresholds[self.code]
        is_odd = values > threshold if self.is_most else values < threshold
        if self.code != OneColour.code:  # a picture of one colour has no other finding
            is_odd &= pictures.contrast >= thresholds[OneColour.code]
        odd = np.flatnonzero(is_odd)

        def message(at: int) -> str:
            measures = {name: column[odd[at]] for name, column in pictures._asdict().items()}
            return self.text.format(threshold=threshold, **measures)

        return FoundRows(odd, message)


class OneColour(PictureCheck):
    """A picture of nearly one colour."""

    is_default = True
    threshold = 2
    measure = "contrast"
    text = (
        "the picture has nearly one colour: its levels deviate by {contrast:.1f} of 255 around "
        "{brightness:.0f} (less than {threshold:g})"
    )


class Dark(PictureCheck):
    """A dark picture."""

    threshold = 40
    measure = "lightest"
    text = (
        "the picture is dark: 99 % of it are at level {lightest} of 255 or below (less than "
        "{threshold:g})"
    )


class Light(PictureCheck):
    """An overexposed picture."""

    threshold = 215
    measure = "darkest"
    is_most = True
    text = (
        "the picture is overexposed: 99 % of it are at level {darkest} of 255 or above (more than "
        "{threshold:g})"
    )


class Blurred(PictureCheck):
    """A picture without a sharp edge."""

    threshold = 0.3
    measure = "sharpness"
    text = (
        "the picture is blurred: its sharpest edge has a sharpness of {sharpness:.2f} (less than "
        "{threshold:g}; 1 is sharp)"
    )


#: The checks of measures of pixels.
PICTURE_CHECKS: Sequence[type[PictureCheck]] = (OneColour, Dark, Light, Blurred)


class _ImageCheck(Check):
    scope = EACH
    needs = (IMAGES,)


def _sizes(examined: Examined[CheckedTask]) -> npt.NDArray[np.int32]:
    """Return width and height of each image, 0 if unknown: int32 [2, n]."""
    columns = (examined.facts.columns[name] for name in ("width", "height"))
    return np.stack([column.fill_null(0).to_numpy() for column in columns])


def _with_size(examined: Examined[CheckedTask], is_odd: npt.NDArray[np.bool_]) -> FoundRows:
    rows, (width, height) = np.flatnonzero(is_odd), examined.shared(_sizes)
    return FoundRows(rows, lambda at: f"the image has {width[rows[at]]}×{height[rows[at]]} pixels")


class Tiny(_ImageCheck):
    """An image of few pixels."""

    is_default = False
    threshold = 16

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield images whose shorter side is below the threshold."""
        shorter = examined.shared(_sizes).min(axis=0)
        yield _with_size(examined, (shorter > 0) & (shorter < examined.thresholds[self.code]))


class OddRatio(_ImageCheck):
    """A strip."""

    is_default = False
    threshold = 4

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield images whose longer side is more than this many times the shorter one."""
        sizes = examined.shared(_sizes)
        shorter, longer = sizes.min(axis=0), sizes.max(axis=0)
        yield _with_size(examined, longer > examined.thresholds[self.code] * shorter)


def _with_value(column: Any, is_odd: Any, text: Callable[[Any], str]) -> FoundRows:
    """Return the examples whose value in a column of Arrow is odd; ``text`` describes a value."""
    rows = np.flatnonzero(is_odd.fill_null(False))
    return FoundRows(rows, lambda at: text(column[int(rows[at])].as_py()))


class ColourProfile(_ImageCheck):
    """Images whose colours viewers convert, and TensorFlow does not."""

    is_about_all = True
    remedies = ("convert the images to sRGB if their colours matter",)

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        names = examined.facts.columns["colours"].cast("string")
        text = "viewers convert the colours of the file ({}), TensorFlow does not"
        yield _with_value(names, names.is_valid(), text.format)


class Frames(_ImageCheck):
    """A file with several pictures."""

    remedies = ("save each picture that counts as its own file",)

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield files of which the record has only the first picture."""
        frames = examined.facts.columns["frames"]
        text = "the file has {:,} pictures; the record has the first"
        yield _with_value(frames, pc.greater(frames, 1), text.format)


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
    is_default = False
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

    threshold = 0.01

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images with boxes that cover less of them than the threshold, in percent."""
        tiny = np.flatnonzero(examined.shared(_percents) < examined.thresholds[self.code])
        yield self.about(examined, tiny, "covers {:.2g} % of the image")


class WholeImageBox(_BoxCheck):
    """A box of a whole image."""

    threshold = 98

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images with boxes that cover more of them than the threshold, in percent."""
        whole = np.flatnonzero(examined.shared(_percents) > examined.thresholds[self.code])
        yield self.about(examined, whole, "covers {:.3g} % of the image")


class DoubleBox(_BoxCheck):
    """An object with two boxes."""

    threshold = 0.9

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield images with boxes whose intersection over union is above the threshold."""
        boxes, least = examined.shared(_all_boxes), examined.thresholds[self.code]
        areas = areas_of(boxes.corners)
        is_found = np.zeros(len(areas), np.bool_)
        for step in range(1, _WINDOW + 1):
            before, after = np.arange(len(areas) - step), np.arange(step, len(areas))
            alike = (boxes.rows[before] == boxes.rows[after]) & (
                boxes.labels[before] == boxes.labels[after]
            )
            before, after = before[alike], after[alike]
            shared = shared_areas(boxes.corners[before], boxes.corners[after])
            is_found[after] |= shared > least * (areas[before] + areas[after] - shared)
        twice = np.flatnonzero(is_found)
        yield self.about(examined, twice, "is nearly the same as another box with its label")


class BadBox(LineCheck):
    """A box that was swapped, clipped at the border of its image, or dropped."""

    counted_as = ("boxes_swapped", "boxes_clipped", "boxes_dropped")


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


class Mojibake(Check):
    """A text that was decoded wrongly."""

    scope = EACH
    needs = (TEXTS, MEASURES)

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        garbled = examined.facts.columns["garbled"].combine_chunks()

        def text(part: str) -> str:
            if REPLACEMENT in part:
                return f"a character of the text was lost when it was decoded: {part!r}"
            return f"the text is UTF-8 that was decoded as something else: {part!r}"

        yield _with_value(garbled, garbled.is_valid(), text)
