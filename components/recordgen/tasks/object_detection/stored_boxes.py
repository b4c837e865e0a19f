"""The boxes of a stored image, which move with its pixels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.image_settings import Limits
from recordgen.core.records.example import FeatureValue
from recordgen.core.records.objects import features_of
from recordgen.core.rows.details import Details
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode
from recordgen.tasks.object_detection.annotation import Box, Boxes, ImageSize
from recordgen.tasks.object_detection.box_geometry import is_cut, seen_through, turned
from recordgen.tasks.object_detection.object_moves import Move, as_stored

if TYPE_CHECKING:
    from recordgen.payloads.reencoding import CheckedImage

#: Names in ``rows.adjusted`` of ``dataset.json``.
BOXES_CUT = "boxes_cut"
BOXES_OUTSIDE = "boxes_outside"

# Processor time on a current machine for each pixel of a mask that must be unpacked.
_SECONDS_PER_PIXEL = 4e-9


def stored_boxes(
    row: Boxes,
    image: CheckedImage,
    changes: defaultdict[str, int],
    *,
    orientation: str,
    moves_boxes: bool,
    limit: Limits,
) -> Boxes:
    """Return the boxes of the stored image; count those that are cut or outside.

    ``orientation`` is the picture that the row's boxes belong to, ``stored`` or ``upright``;
    ``moves_boxes``: the stored image may show another part of it; ``limit``: the time that moving
    the masks may take. Raises: PayloadError.
    """
    if row.size is not None:
        _check_size(row.size, image, orientation)
    way = image.orientation if orientation == "stored" else 1
    if row.size is None and way == 1 and not moves_boxes and not row.details:
        return row
    view = image.placed.view if moves_boxes and image.placed is not None else None
    move = Move.of(row.size, way, image)
    if way == 1 and view is None and all(map(move.keeps, row.details)):
        return replace(row, size=None)
    masks = [details.mask for details in row.details if details.mask and not move.keeps(details)]
    pixels = sum(mask.height * mask.width for mask in masks)
    limit.check_seconds(pixels * _SECONDS_PER_PIXEL, "moving its masks")
    boxes, found = [], []
    for box, details in row.pairs():
        upright = turned(box, way)
        there = upright if view is None else seen_through(upright, view)
        if there is None:
            changes[BOXES_OUTSIDE] += 1
            continue
        if view is not None and is_cut(upright, view):
            changes[BOXES_CUT] += 1
        boxes.append(there.stored)
        found.append(move(details, upright))
    return in_shares(boxes, found)


def _check_size(size: ImageSize, image: CheckedImage, orientation: str) -> None:
    """Check a row's width and height against its image. Raises: PayloadError."""
    if image.width is None or image.height is None:
        return
    width, height = (image.width, image.height) if image.placed is None else image.placed.size
    upright, lying = ImageSize(width, height), ImageSize(height, width)
    is_on_its_side = image.orientation >= 5
    stored = lying if is_on_its_side else upright
    right, other = upright, stored
    if orientation == "stored":
        right, other = stored, upright
    if size.is_alike(right):
        return
    remedy = "correct the row, whose box is a share of them"
    if is_on_its_side and size.is_alike(other):
        way = "upright" if orientation == "stored" else "stored"
        remedy = f"boxes of the {way} picture need --box-orientation {way}"
    raise PayloadError(
        RejectCode.BAD_ANNOTATION.value,
        f"the row says that the image has {size} pixels, but it has {right}; {remedy}",
    )


def box_features(row: Boxes, vocabulary: Vocabulary) -> Mapping[str, FeatureValue]:
    """Return the features of the boxes of a stored image."""
    corners = zip(*(box[1:] for box in row.boxes), strict=True)
    return {
        **dict(zip(features.BBOX, map(list, corners), strict=True)),
        features.IMAGE_OBJECT_TEXT: [box.label.encode() for box in row.boxes],
        features.IMAGE_OBJECT_LABEL: [vocabulary.index(box.label) for box in row.boxes],
        **features_of(row.details),
    }


def in_shares(boxes: Sequence[Box], details: Sequence[Details]) -> Boxes:
    """Return boxes of a stored image with their details, in shares of it."""
    stored = as_stored(details, [each.area for each in details])
    return Boxes.merged(zip(boxes, stored, strict=True))
