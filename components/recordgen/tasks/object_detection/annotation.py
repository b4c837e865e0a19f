"""The annotation of an image: its boxes, and the size that its row names; and boxes in files.

TensorFlow's Object Detection API made this CSV common, and tools such as Roboflow write it::

    filename,width,height,class,xmin,ymin,xmax,ymax
    raccoon-1.jpg,650,417,raccoon,81,88,522,408

Each row's corners are divided by its own width and height, which refer to the same picture, stored
or upright; without them, by those of the image. A file has boxes in pixels or in shares of the
image, never both.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recordgen.core.records.numbers import as_float32
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import bad_annotation
from recordgen.subjects.details import NOTHING, Details
from recordgen.subjects.objects import areas_of, details_in, shared_areas

# Annotations are made here, without circles.
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_decode, _BOXES = json.JSONDecoder().raw_decode, '{"boxes":'

# Quotes in labels are escaped, so that these are found only where they are written.
_SIZE = '],"size":['
_SHAPE = re.compile(
    r'"(?=polygons":|mask":)(?:polygons":(\[\[[\d,]*\],"[^"]*"\])(?:,"(?=mask":))?)?'
    r'(?:mask":(\["[^"]*",\d+,\d+\]))?(?:,("keypoints":\[[^]]*\]))?'
)

_WHOLE = re.compile(r"[0-9]{1,9}(\.0*)?", re.ASCII)


class ImageSize(NamedTuple):
    """The size of a picture, in pixels."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}×{self.height}"

    @classmethod
    def parse(cls, width: str, height: str) -> ImageSize | None:
        """Parse width and height; None if both are empty.

        Raises: AnnotationError: they are not whole numbers of at least 1.
        """
        if not width and not height:
            return None
        sides = [int(float(text)) if _WHOLE.fullmatch(text) else 0 for text in (width, height)]
        if min(sides) < 1:
            raise bad_annotation(
                f"width and height must be the image's, in whole pixels, at least 1 (got "
                f"{width!r:.40} and {height!r:.40})"
            )
        return cls(*sides)

    def is_alike(self, other: ImageSize) -> bool:
        """Return whether both sizes have the same proportions, up to a pixel."""
        skew = abs(self.width * other.height - self.height * other.width)
        return skew <= max(*self, *other)


Pairs: TypeAlias = "Iterable[tuple[Box, Details]]"

#: The size of an image that its row does not say, although its boxes are in pixels.
UNKNOWN_SIZE = ImageSize(0, 0)


class Box(NamedTuple):
    """One object: its label, and its corners as shares of the image's width and height."""

    label: str
    xmin: float
    ymin: float
    xmax: float
    ymax: float

    @property
    def stored(self) -> Box:
        """The box with the precision of records."""
        return Box(self.label, *map(as_float32, self[1:]))


class Boxes(NamedTuple):
    """The boxes of an image.

    Attributes:
        boxes: in the order of their label and corners, each once, with the precision of records: so
            they are the same before they are stored and when they are read back.
        size: the size of the image that its row names, until the image has been compared with it;
            a record does not hold it.
        details: what else is known of each box; empty if nothing is known of any.
    """

    boxes: tuple[Box, ...] = ()
    size: ImageSize | None = None
    details: tuple[Details, ...] = ()

    @classmethod
    def of(cls, found: Mapping[Box, Details], size: ImageSize | None = None) -> Boxes:
        """Return boxes with the precision of records, given in any order, and their details."""
        boxes = tuple(sorted(found))
        return cls(boxes, size, tuple(found[box] for box in boxes) if any(found.values()) else ())

    @classmethod
    def merged(cls, pairs: Pairs, size: ImageSize | None = None) -> Boxes:
        """Return boxes and details with the precision of records; equal boxes are merged."""
        found: dict[Box, Details] = {}
        for box, details in pairs:
            found[box] = found[box].merged(details) if box in found else details
        return cls.of(found, size)

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the boxes, each once."""
        return sorted({box.label for box in self.boxes})

    def pairs(self) -> Iterator[tuple[Box, Details]]:
        """Return each box with its details."""
        return zip(self.boxes, self.details or [NOTHING] * len(self.boxes), strict=True)

    def corners(self, box: Box) -> str:
        """Return two corners of a box, in whole pixels if the image's size is known."""
        form = ".3g" if self.size is None else ".0f"
        sides = [max(1, side) for side in self.size or UNKNOWN_SIZE] * 2
        left, top, right, bottom = (
            f"{at * side:{form}}" for at, side in zip(box[1:], sides, strict=True)
        )
        return f"{left},{top}–{right},{bottom}"

    def to_json(self) -> str | None:
        """Return the annotation; None without boxes.

        Without size and details it is only the list of boxes: digests of shards contain it.
        """
        if not self.boxes:
            return None
        details = [each.to_json() for each in self.details]
        values = {"boxes": self.boxes, "size": self.size, "details": details}
        known = {name: each for name, each in values.items() if each}
        return _encode(known if len(known) > 1 else self.boxes)

    @classmethod
    def from_json(cls, annotation: str | None) -> Boxes:
        """Return the boxes of an annotation, the inverse of :meth:`to_json`."""
        value = [] if annotation is None else json.loads(annotation)
        if not isinstance(value, Mapping):
            return cls(tuple(map(Box._make, value)))
        size = ImageSize(*value["size"]) if "size" in value else None
        details = tuple(map(Details.from_json, value.get("details", ())))
        return cls(tuple(map(Box._make, value["boxes"])), size, details)


def values_in(annotation: str) -> Sequence[Sequence[Any]]:
    """Return the boxes as JSON: they come first, and the outlines behind them are not decoded."""
    value, _ = _decode(annotation, len(_BOXES) if annotation.startswith(_BOXES) else 0)
    return value["boxes"] if isinstance(value, Mapping) else value


def without_size(annotation: str) -> str:
    """Return an annotation without the size of its image, as :meth:`Boxes.to_json` writes it."""
    boxes, mark, rest = annotation.partition(_SIZE)
    details = rest.partition("]")[2]
    if not mark:
        return annotation
    return f"{boxes}]{details}" if details != "}" else f"{boxes[len(_BOXES) :]}]"


def without_shapes(annotation: str) -> str:
    """Return an annotation with details that has digests in place of outlines and masks."""
    return _SHAPE.sub(_digest, annotation)


def _digest(shape: re.Match[str]) -> str:
    """Return the digest of the outline and the mask in the text of an object's details."""
    *parts, keypoints = shape.groups()
    values = ",".join(filter(None, parts)).replace(",", ", ").replace('"', "'")
    digest = hashlib.sha256(f"[{values}]".encode()).hexdigest()[:16]
    return ",".join(filter(None, (keypoints, f'"digest":"{digest}"')))


def with_outlines(annotation: str, record: Mapping[str, Sequence[Any]]) -> str | None:
    """Return an annotation with the details of its record, which has outlines, not digests."""
    row = Boxes.from_json(annotation)
    return row._replace(details=tuple(details_in(record, len(row.boxes)))).to_json()


#: A coordinate outside these limits counts pixels; nearer to 0..1, it is an inexact share.
FAR = (-1.0, 2.0)

# Boxes mark the same object from this intersection over union on, or if all corners are this close.
_SAME_BOX, _SAME_CORNER = 0.9, 0.005

#: Names in ``rows.adjusted`` of ``dataset.json``.
BOXES_CLIPPED = "boxes_clipped"
BOXES_SWAPPED = "boxes_swapped"
BOXES_DROPPED = "boxes_dropped"
BOXES_REPEATED = "boxes_repeated"

PIXELS, SHARES = "pixels", "shares of the image"

Corners = tuple[float, float, float, float]


class BoxUnit:
    """The unit of one file's boxes, decided by the first box that fits only one unit.

    Attributes:
        unit: ``PIXELS`` or ``SHARES``; empty if no box has decided it.
        example: the box that decided the unit.
        is_noted: whether a finding has already reported that the file is in pixels.
    """

    def __init__(self, unit: str = "", example: str = "") -> None:
        self.unit = unit
        self.example = example
        self.is_noted = False

    def is_pixels(self, corners: Corners) -> bool:
        """Return whether a box is in pixels whose row has no width and height.

        Raises: AnnotationError: it is in another unit than the other boxes, or may be in both.
        """
        # One large number may be a slip in a share.
        self._decide(
            "" if max(corners) > FAR[1] >= min(corners[2:]) else _unit_of(corners), corners
        )
        if not self.unit and all(map(float.is_integer, corners)):
            _check_inside(corners)
        return self.unit == PIXELS

    def to_shares(self, corners: Corners, size: ImageSize) -> Corners:
        """Return the corners xmin, ymin, xmax and ymax as shares of the image.

        ``size`` is the width and height in the row.

        Raises:
            AnnotationError: the box is in another unit than the other boxes, its unit is unknown,
                or it is far outside its image.
        """
        unit = _unit_of(corners)
        shares = divided(corners, size) if (unit or self.unit) == PIXELS else corners
        self._decide(unit, corners)
        if not self.unit:
            _check_inside(corners)
        return shares

    def _decide(self, unit: str, corners: Corners) -> None:
        """Take the unit of a box, if it is known. Raises: AnnotationError: boxes have another."""
        if unit and self.unit and unit != self.unit:
            raise bad_annotation(
                f"the box {shown(corners)} is in {unit}, but the others are in {self.unit} "
                f"(such as {self.example}); write all boxes of a file in one unit"
            )
        if unit and not self.unit:
            self.unit, self.example = unit, shown(corners)


def _check_inside(corners: Corners) -> None:
    """Check that a box of unknown unit is inside its image in both. Raises: AnnotationError."""
    if min(corners) < 0 or max(corners) > 1:
        raise bad_annotation(
            f"the box {shown(corners)} may be in pixels, or in shares of the image and reach over "
            f"its edge, and no box of the file shows which; add a row with a clear unit"
        )


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


def usable_boxes(
    boxes: Pairs, bad_boxes: str, adjusted: Adjustments, are_stored: bool = False
) -> dict[Box, Details]:
    """Return boxes within the image, and record the changes.

    ``are_stored``: those inside have the precision of records already. Raises: AnnotationError.
    """
    usable: dict[Box, Details] = {}
    for box, details in boxes:
        _, xmin, ymin, xmax, ymax = box
        is_inside = 0 <= xmin <= xmax <= 1 and 0 <= ymin <= ymax <= 1
        there = (box if are_stored else box.stored) if is_inside else _clipped(box)
        is_empty = there.xmin >= there.xmax or there.ymin >= there.ymax
        if (is_empty or not is_inside) and not _is_kept(box, there, is_empty, bad_boxes, adjusted):
            continue
        if there in usable:
            text = f"the line has the box {shown(box[1:])} of {box.label!r} twice"
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
            f"the box {shown(box[1:])} is {reasons}; --bad-boxes clip fixes or drops it"
        )
    text = f"the box {shown(box[1:])} of {box.label!r} is "
    if is_empty or bad_boxes == "drop":
        adjusted.add(BOXES_DROPPED, f"{text}{reasons}; it was dropped")
        return False
    for is_so, reason, kind in wrong:
        if is_so:
            adjusted.add(kind, f"{text}{reason}; it was stored as {shown(there[1:])}")
    return True


def _clipped(box: Box) -> Box:
    """Return a box within the image, with the precision of records. Raises: AnnotationError."""
    one, other = box[1:3], box[3:]
    upright = (*map(min, one, other), *map(max, one, other))
    if min(upright) < FAR[0] or max(upright) > FAR[1]:
        raise bad_annotation(
            f"coordinates must be shares of the image, 0 to 1, or all pixels (got {shown(box[1:])})"
        )
    return Box(box.label, *(min(1.0, max(0.0, value)) for value in upright)).stored


def nearly_coincide(boxes: Sequence[Box], others: Sequence[Box]) -> bool:
    """Return whether each box marks the same object as another one of the others.

    Two people who draw an object never draw the same box.
    """
    if len(boxes) != len(others):
        return False
    corners = np.array([box[1:] for box in others]).reshape(-1, 4)
    labels, areas = np.array([box.label for box in others], object), areas_of(corners)
    is_left = np.ones(len(others), np.bool_)
    for box in boxes:
        own = np.array(box[1:])
        is_close = (np.abs(own - corners) <= _SAME_CORNER).all(-1)
        shared = shared_areas(own, corners)
        overlaps = shared >= _SAME_BOX * (areas_of(own) + areas - shared)
        twins = np.flatnonzero(is_left & (labels == box.label) & (is_close | overlaps))
        if not len(twins):
            return False
        is_left[twins[0]] = False
    return True
