"""Checks of single images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from recordgen.checks.check import EACH, Check, CheckedTask, Examined, FoundRows
from recordgen.core.facts import IMAGES, MEASURES
from recordgen.measures.pictures import PictureFacts


class PictureCheck(Check):
    """A check of a measure of pixels, which finds pictures below its threshold."""

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

    code = "ONE_COLOUR"
    threshold = 2
    measure = "contrast"
    text = (
        "the picture has nearly one colour: its levels deviate by {contrast:.1f} of 255 around "
        "{brightness:.0f} (less than {threshold:g})"
    )


class Dark(PictureCheck):
    """A dark picture."""

    code = "DARK"
    threshold = 40
    measure = "lightest"
    text = (
        "the picture is dark: 99 % of it are at level {lightest} of 255 or below (less than "
        "{threshold:g})"
    )


class Light(PictureCheck):
    """An overexposed picture."""

    code = "LIGHT"
    threshold = 215
    measure = "darkest"
    is_most = True
    text = (
        "the picture is overexposed: 99 % of it are at level {darkest} of 255 or above (more than "
        "{threshold:g})"
    )


class Blurred(PictureCheck):
    """A picture without a sharp edge."""

    code = "BLURRED"
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

    code = "TINY"
    threshold = 16

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield images whose shorter side is below the threshold."""
        shorter = examined.shared(_sizes).min(axis=0)
        yield _with_size(examined, (shorter > 0) & (shorter < examined.thresholds[self.code]))


class OddRatio(_ImageCheck):
    """A strip."""

    code = "ODD_RATIO"
    threshold = 4

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield images whose longer side is more than this many times the shorter one."""
        sizes = examined.shared(_sizes)
        shorter, longer = sizes.min(axis=0), sizes.max(axis=0)
        yield _with_size(examined, longer > examined.thresholds[self.code] * shorter)


class ColourProfile(_ImageCheck):
    """An image whose colours viewers convert, and TensorFlow does not."""

    code = "COLOUR_PROFILE"
    remedies = ("convert the images to sRGB if their colours matter",)

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        names = examined.facts.columns["colours"].cast("string")
        rows = np.flatnonzero(names.is_valid().to_numpy())

        def message(at: int) -> str:
            name = names[int(rows[at])].as_py()
            return f"viewers convert the colours of the file ({name}), TensorFlow does not"

        yield FoundRows(rows, message)


class Frames(_ImageCheck):
    """A file with several pictures."""

    code = "FRAMES"
    remedies = ("save each picture that counts as its own file",)

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield files of which the record has only the first picture."""
        frames = examined.facts.columns["frames"].fill_null(1).to_numpy()
        rows = np.flatnonzero(frames > 1)

        def message(at: int) -> str:
            return f"the file has {frames[rows[at]]:,} pictures; the record has the first"

        yield FoundRows(rows, message)
