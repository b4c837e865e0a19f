"""Boxes of turned, cropped and padded images, and boxes of one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recordgen.tasks.object_detection.annotation import Box

if TYPE_CHECKING:
    from recordgen.payloads.resizing import View

# Boxes mark the same object from this intersection over union on, or if all corners are this close.
_SAME_BOX, _SAME_CORNER = 0.9, 0.005

# Coordinates are float32 in records.
_ROUNDED = 1e-6


def turned(box: Box, orientation: int) -> Box:
    """Return a box after its image was turned upright.

    ``Box("cat", 0, 0, 0.2, 0.1)`` of an image with EXIF orientation 6, which is turned clockwise →
    ``Box("cat", 0.9, 0, 1, 0.2)``.

    Args:
        box: a box of the picture as it is stored in the file.
        orientation: 1 to 8 (Exif 2.3, tag 0x0112).
    """
    label, xmin, ymin, xmax, ymax = box
    if orientation >= 5:  # the picture lies on its side
        xmin, ymin, xmax, ymax = ymin, xmin, ymax, xmax
    if orientation in (2, 3, 6, 7):
        xmin, xmax = 1 - xmax, 1 - xmin
    if orientation in (3, 4, 7, 8):
        ymin, ymax = 1 - ymax, 1 - ymin
    return Box(label, xmin, ymin, xmax, ymax)


def seen_through(box: Box, view: View) -> Box | None:
    """Return a box relative to the stored part of its image; None if it is outside.

    ``Box("cat", 0, 0.2, 0.5, 0.6)`` of an image whose right three quarters are stored →
    ``Box("cat", 0, 0.2, 0.333, 0.6)``.
    """
    xs = ((x - view.left) / view.width for x in (box.xmin, box.xmax))
    ys = ((y - view.top) / view.height for y in (box.ymin, box.ymax))
    xmin, xmax, ymin, ymax = (min(1.0, max(0.0, value)) for value in (*xs, *ys))
    there = Box(box.label, xmin, ymin, xmax, ymax).stored
    return there if there.xmin < there.xmax and there.ymin < there.ymax else None


def nearly_coincide(one: Box, other: Box) -> bool:
    """Return whether two boxes mark the same object, as two people draw it."""
    if one.label != other.label:
        return False
    if all(abs(a - b) <= _SAME_CORNER for a, b in zip(one[1:], other[1:], strict=True)):
        return True
    width = min(one.xmax, other.xmax) - max(one.xmin, other.xmin)
    height = min(one.ymax, other.ymax) - max(one.ymin, other.ymin)
    shared = max(0.0, width) * max(0.0, height)
    areas = ((box.xmax - box.xmin) * (box.ymax - box.ymin) for box in (one, other))
    return shared >= _SAME_BOX * (sum(areas) - shared)


def is_cut(box: Box, view: View) -> bool:
    """Return whether a part of a box is outside the stored image."""
    return (
        min(box.xmin - view.left, box.ymin - view.top) < -_ROUNDED
        or box.xmax - view.left - view.width > _ROUNDED
        or box.ymax - view.top - view.height > _ROUNDED
    )
