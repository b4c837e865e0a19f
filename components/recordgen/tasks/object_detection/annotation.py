"""The annotation of an image: its boxes, and the size that its row names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recordgen.core.records.numbers import as_float32
from recordgen.core.rows.details import NOTHING, Details, without_shape
from recordgen.core.task.annotation import bad_annotation

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode, _BOXES = json.JSONDecoder().raw_decode, '{"boxes":'

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


@dataclass(frozen=True, slots=True)
class Boxes:
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
    def merged(cls, pairs: Iterable[tuple[Box, Details]], size: ImageSize | None = None) -> Boxes:
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

    def to_json(self) -> str | None:
        """Return the annotation; None without boxes.

        Without size and details it is only the list of boxes: digests of shards contain it.
        """
        if not self.boxes:
            return None
        value: Any = self.boxes
        if self.size is not None or self.details:
            value = {"boxes": self.boxes}
            value |= {} if self.size is None else {"size": self.size}
            value |= {"details": [each.to_json() for each in self.details]} if self.details else {}
        return _encode(value)

    @classmethod
    def from_json(cls, annotation: str | None) -> Boxes:
        """Return the boxes of an annotation, the inverse of :meth:`to_json`."""
        value = [] if annotation is None else json.loads(annotation)
        if not isinstance(value, Mapping):
            return cls(tuple(Box(*box) for box in value))
        size = ImageSize(*value["size"]) if "size" in value else None
        details = tuple(map(Details.from_json, value.get("details", ())))
        return cls(tuple(Box(*box) for box in value["boxes"]), size, details)


def boxes_in(annotation: str) -> Sequence[Box]:
    """Return the boxes of an annotation, without decoding what else is known of them."""
    return [Box(*box) for box in _values(annotation)]


def labels_in(annotation: str) -> Sequence[str]:
    """Return the labels of an annotation, each once, without decoding its boxes."""
    return sorted({label for label, *_ in _values(annotation)})


def _values(annotation: str) -> Sequence[Sequence[Any]]:
    """Return the boxes as JSON: they come first, and the outlines behind them are not decoded."""
    value, _ = _decode(annotation, len(_BOXES) if annotation.startswith(_BOXES) else 0)
    return value["boxes"] if isinstance(value, Mapping) else value


def without_shapes(annotation: str) -> str:
    """Return an annotation with details that has digests in place of outlines and masks."""
    value = json.loads(annotation)
    return _encode({**value, "details": list(map(without_shape, value["details"]))})
