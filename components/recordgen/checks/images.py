"""Checks of single images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from recordgen.checks.check import EACH, Check, CheckedTask, Examined, FoundRows, Tally
from recordgen.core.facts import IMAGES, MEASURES
from recordgen.core.facts.kept_rows import RowIndices
from recordgen.measures.pictures import PictureFacts

# The format of each suffix, as in ``image/format``. Other suffixes are not checked.
_FORMATS = {**dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "jpeg"), ".png": "png"}


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


class Suffix(_ImageCheck):
    """A file whose name has the suffix of another format."""

    code = "SUFFIX"

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        uris = examined.facts.columns["uri"]
        names = pc.utf8_lower(uris)
        formats = examined.facts.columns["format"].cast("string")
        is_odd = np.zeros(len(examined.facts), np.bool_)
        for suffix, expected in _FORMATS.items():
            is_other = pc.and_(pc.ends_with(names, suffix), pc.not_equal(formats, expected))
            is_odd |= is_other.fill_null(False).to_numpy()
        rows = np.flatnonzero(is_odd)

        def message(at: int) -> str:
            row = int(rows[at])
            return f"{uris[row].as_py()} is stored as {formats[row].as_py()}"

        yield FoundRows(rows, message)


class Gray(_ImageCheck):
    """A few gray images among many in colour, or the opposite."""

    code = "GRAY"
    threshold = 5

    def part(self, examined: Examined[CheckedTask]) -> Mapping[str, Tally]:
        """Return the numbers of gray images and of those in colour."""
        gray, colour = _by_gray(examined)
        return {"all": Tally((len(gray), len(colour)))}

    def findings(self, examined: Examined[CheckedTask]) -> Iterator[FoundRows]:
        """Yield the rarer kind if its share, in percent, is at most the threshold."""
        gray, colour = examined.total(self)["all"].sums
        is_gray_rare = gray <= colour
        few, many = (gray, colour) if is_gray_rare else (colour, gray)
        rows = _by_gray(examined)[not is_gray_rare]
        if few > examined.thresholds[self.code] / 100 * (few + many):
            rows = rows[:0]
        what, others = ("gray", "in colour") if is_gray_rare else ("in colour", "gray")
        text = f"the image is stored {what} ({few:,} images); {many:,} are {others}"
        yield FoundRows(rows, lambda at: text)


def _by_gray(examined: Examined[CheckedTask]) -> Sequence[RowIndices]:
    """Return the gray images and those in colour."""
    known = examined.facts.columns["gray"]
    is_kind = (pc.equal(known, value).fill_null(False).to_numpy() for value in (True, False))
    return [np.flatnonzero(kind) for kind in is_kind]


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
