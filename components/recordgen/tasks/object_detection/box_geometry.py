"""Boxes of turned, cropped and padded images, and boxes of one object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from recordgen.core.rows.details import Details
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import bad_annotation
from recordgen.tasks.object_detection.annotation import Box
from recordgen.tasks.object_detection.box_unit import FAR, shown

if TYPE_CHECKING:
    from recordgen.payloads.resizing import View

# Boxes mark the same object from this intersection over union on, or if all corners are this close.
_SAME_BOX, _SAME_CORNER = 0.9, 0.005

# Coordinates are float32 in records.
_ROUNDED = 1e-6


def turned(box: Box, orientation: int) -> Box:
    """Return a box after its image was turned upright.

    ``Box("cat", 0, 0, 0.2, 0.1)`` of an image with EXIF orientation 6, which is turned clockwise →
    ``Box("cat", 0.9, 0, 1, 0.2)``. Exif 2.3, tag 0x0112 has the orientations 1 to 8.
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


def _mark_the_same(one: Box, other: Box) -> bool:
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


def nearly_coincide(boxes: Iterable[Box], others: Iterable[Box]) -> bool:
    """Return whether each box marks the same object as another one of the others."""
    left = list(others)
    for box in boxes:
        twin = next((there for there in left if _mark_the_same(box, there)), None)
        if twin is None:
            return False
        left.remove(twin)
    return not left


def is_cut(box: Box, view: View) -> bool:
    """Return whether a part of a box is outside the stored image."""
    return (
        min(box.xmin - view.left, box.ymin - view.top) < -_ROUNDED
        or box.xmax - view.left - view.width > _ROUNDED
        or box.ymax - view.top - view.height > _ROUNDED
    )


#: Names in ``rows.adjusted`` of ``dataset.json``.
BOXES_CLIPPED = "boxes_clipped"
BOXES_SWAPPED = "boxes_swapped"
BOXES_DROPPED = "boxes_dropped"
BOXES_REPEATED = "boxes_repeated"


def usable_boxes(
    boxes: Iterable[tuple[Box, Details]], bad_boxes: str, adjusted: Adjustments
) -> dict[Box, Details]:
    """Return boxes within the image, and record the changes. Raises: AnnotationError."""
    usable: dict[Box, Details] = {}
    for box, details in boxes:
        _, xmin, ymin, xmax, ymax = box
        is_inside = 0 <= xmin <= xmax <= 1 and 0 <= ymin <= ymax <= 1
        there = box.stored if is_inside else _clipped(box)
        is_empty = there.xmin >= there.xmax or there.ymin >= there.ymax
        if (is_empty or not is_inside) and not _is_kept(box, there, is_empty, bad_boxes, adjusted):
            continue
        if there in usable:
            text = f"the line has the box {_shown(box)} of {box.label!r} twice"
            adjusted.add(BOXES_REPEATED, f"{text}; it was stored once")
            details = usable[there].merged(details)
        usable[there] = details
    return usable


def _is_kept(box: Box, there: Box, is_empty: bool, bad_boxes: str, adjusted: Adjustments) -> bool:
    """Return whether a box is stored that had to be changed. Raises: AnnotationError."""
    is_inverted = box.xmin > box.xmax or box.ymin > box.ymax
    wrong = [
        (is_inverted, "inverted", BOXES_SWAPPED),
        (min(box[1:]) < 0 or max(box[1:]) > 1, "outside 0..1", BOXES_CLIPPED),
        (is_empty, "empty", BOXES_DROPPED),
    ]
    reasons = " and ".join(reason for is_so, reason, _ in wrong if is_so)
    if bad_boxes == "reject":
        raise bad_annotation(
            f"the box {_shown(box)} is {reasons}; --bad-boxes clip fixes or drops it"
        )
    text = f"the box {_shown(box)} of {box.label!r} is "
    if is_empty or bad_boxes == "drop":
        adjusted.add(BOXES_DROPPED, f"{text}{reasons}; it was dropped")
        return False
    for is_so, reason, kind in wrong:
        if is_so:
            adjusted.add(kind, f"{text}{reason}; it was stored as {_shown(there)}")
    return True


def _clipped(box: Box) -> Box:
    """Return a box within the image, with the precision of records. Raises: AnnotationError."""
    one, other = box[1:3], box[3:]
    upright = (*map(min, one, other), *map(max, one, other))
    if min(upright) < FAR[0] or max(upright) > FAR[1]:
        raise bad_annotation(
            f"coordinates must be shares of the image, 0 to 1, or all pixels (got {_shown(box)})"
        )
    return Box(box.label, *(min(1.0, max(0.0, value)) for value in upright)).stored


def _shown(box: Box) -> str:
    return shown(box[1:])
