"""The unit of the boxes in an import file whose rows give their image's width and height.

TensorFlow's Object Detection API made this CSV common, and tools such as Roboflow write it::

    filename,width,height,class,xmin,ymin,xmax,ymax
    raccoon-1.jpg,650,417,raccoon,81,88,522,408

Each row's corners are divided by its own width and height, which refer to the same picture, stored
or upright; without them, by those of the image. A file has boxes in pixels or in shares of the
image, never both.
"""

from __future__ import annotations

import math
from typing import Any

from recordgen.core.task.annotation import bad_annotation
from recordgen.tasks.object_detection.annotation import ImageSize

#: A coordinate outside these limits counts pixels; nearer to 0..1, it is an inexact share.
FAR = (-1.0, 2.0)

PIXELS, SHARES = "pixels", "shares of the image"

Corners = tuple[float, float, float, float]


class BoxUnit:
    """The unit of one file's boxes, decided by the first box that fits only one unit.

    Attributes:
        unit: ``PIXELS`` or ``SHARES``; empty until a row with a size has been read.
        example: the box that decided the unit.
        is_noted: whether a finding has already reported that the file is in pixels.
    """

    def __init__(self) -> None:
        self.unit = ""
        self.example = ""
        self.is_noted = False

    def is_pixels(self, corners: Corners) -> bool:
        """Return whether a box is in pixels whose row has no width and height.

        Raises: AnnotationError: it is in another unit than the boxes before it.
        """
        # One large number may be a slip in a share.
        self._decide(
            "" if max(corners) > FAR[1] >= min(corners[2:]) else _unit_of(corners), corners
        )
        return self.unit == PIXELS

    def to_shares(self, corners: Corners, size: ImageSize) -> Corners:
        """Return the corners xmin, ymin, xmax and ymax as shares of the image.

        ``size`` is the width and height in the row.

        Raises:
            AnnotationError: the box is in another unit than the boxes before it, its unit is
                unknown, or it is far outside its image.
        """
        unit = _unit_of(corners) or self.unit
        if not unit:
            if min(corners) < 0 or max(corners) > 1:
                raise bad_annotation(
                    f"the box {shown(corners)} may be in pixels, or in shares of the image and "
                    f"reach over its edge, and no row before it shows which; put a row with a "
                    f"clear unit before it"
                )
            unit = SHARES
        shares = divided(corners, size) if unit == PIXELS else corners
        self._decide(unit, corners)
        return shares

    def _decide(self, unit: str, corners: Corners) -> None:
        """Take the unit of a box, if it is known. Raises: AnnotationError: boxes have another."""
        if unit and self.unit and unit != self.unit:
            raise bad_annotation(
                f"the box {shown(corners)} is in {unit}, but boxes before it are in {self.unit} "
                f"(such as {self.example}); write all boxes of a file in one unit"
            )
        if unit and not self.unit:
            self.unit, self.example = unit, shown(corners)


def shown(corners: Corners) -> str:
    """Return corners as a line of CSV."""
    return ",".join(f"{value:g}" for value in corners)


def divided(corners: Corners, size: ImageSize) -> Corners:
    """Return pixels as shares of their image. Raises: AnnotationError: they are far outside."""
    xmin, ymin, xmax, ymax = corners
    width, height = size
    found = (xmin / width, ymin / height, xmax / width, ymax / height)
    if min(found) < FAR[0] or max(found) > FAR[1]:
        raise bad_annotation(
            f"the box {shown(corners)} is far outside its image of {size} pixels; are its width "
            f"and height right?"
        )
    return found


def _unit_of(corners: Corners) -> str:
    """Return the only unit that fits a box; empty if both do."""
    if min(corners) < FAR[0] or max(corners) > FAR[1]:
        return PIXELS
    is_whole = all(value.is_integer() for value in corners)
    return SHARES if min(corners) >= 0 and max(corners) <= 1 and not is_whole else ""


def parse_number(value: Any, what: str) -> float:
    """Parse a coordinate, a number or text. Raises: AnnotationError."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise bad_annotation(f"{what} must be a number from 0 to 1 (got {value!r:.40})")
