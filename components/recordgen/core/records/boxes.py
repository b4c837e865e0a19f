"""The boxes of a record, with the feature names of TensorFlow's Object Detection API.

Each feature is a list with one value per box. The corners are shares of the image's width and
height. Other writers may omit ``image/object/class/text`` (then the label is the number) or
``image/object/class/label``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recordgen import features
from recordgen.core.records.objects import details_in
from recordgen.core.rows.details import NOTHING, Details

#: Features with one value per box; lists even for a single box.
OBJECT_FEATURES = (*features.BBOX, features.IMAGE_OBJECT_TEXT, features.IMAGE_OBJECT_LABEL)

_DECIMALS = 4


class StoredBox(NamedTuple):
    """One box of a record."""

    label: str  # its text, or its number as text; empty if it has neither
    number: int  # `image/object/class/label`; -1 if there is none
    xmin: float  # left edge, 0..1 of the image's width
    ymin: float  # upper edge, 0..1 of the image's height
    xmax: float  # right edge
    ymax: float  # lower edge
    details: Details = NOTHING  # what else is known of it

    def in_pixels(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return x, y, width and height in pixels, as COCO has them, with four decimals.

        Corners that were whole pixels become whole again, though shares are float32.
        """
        left, right = round(self.xmin * width, _DECIMALS), round(self.xmax * width, _DECIMALS)
        upper, lower = round(self.ymin * height, _DECIMALS), round(self.ymax * height, _DECIMALS)
        return left, upper, round(right - left, _DECIMALS), round(lower - upper, _DECIMALS)


def stored_boxes(record: Mapping[str, Sequence[Any]]) -> list[StoredBox]:
    """Return the boxes of a record, clipped to the image and with their corners in order.

    Records of other writers may contain anything.

    Raises: ValueError: the features differ in length, or are not boxes.
    """
    *corners, texts, numbers = (record.get(name, ()) for name in OBJECT_FEATURES)
    count = len(corners[0])
    texts, numbers = texts or [b""] * count, numbers or [features.NO_LABEL] * count
    if any(len(column) != count for column in (*corners, texts, numbers)):
        found = ", ".join(f"{len(record.get(name, ()))} {name}" for name in OBJECT_FEATURES)
        raise ValueError(f"each box needs one value of each feature (got {found})")
    details = details_in(record, count) if count else ()
    return [_box(*values) for values in zip(details, texts, numbers, *corners, strict=True)]


def _box(details: Details, text: Any, number: Any, *corners: Any) -> StoredBox:
    if not (
        isinstance(text, bytes)
        and isinstance(number, int)
        and all(isinstance(value, int | float) and math.isfinite(value) for value in corners)
    ):
        raise ValueError(
            f"a box must have a text, a whole number and four finite numbers "
            f"(got {(text, number, *corners)!r:.120})"
        )
    label = text.decode("utf-8", "replace") or ("" if number == features.NO_LABEL else str(number))
    xs, ys = ([min(1.0, max(0.0, value)) for value in corners[axis::2]] for axis in (0, 1))
    return StoredBox(label, number, min(xs), min(ys), max(xs), max(ys), details)
