"""The annotation of an image: its boxes, and the size that its row names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from recordgen.core.records.float32 import as_float32
from recordgen.core.task.annotation import bad_annotation

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

        Raises:
            AnnotationError: they are not whole numbers of at least 1.
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
    """

    boxes: tuple[Box, ...] = ()
    size: ImageSize | None = None

    @classmethod
    def of(cls, boxes: Iterable[Box], size: ImageSize | None = None) -> Boxes:
        """Return the boxes of an image, given in any order."""
        return cls(tuple(sorted({box.stored for box in boxes})), size)

    def to_json(self) -> str | None:
        """Return the annotation; None without boxes.

        Without a size it is only the list of boxes: digests of shards contain it.
        """
        if not self.boxes:
            return None
        value = self.boxes if self.size is None else {"boxes": self.boxes, "size": self.size}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, annotation: str | None) -> Boxes:
        """Return the boxes of an annotation, the inverse of :meth:`to_json`."""
        value = [] if annotation is None else json.loads(annotation)
        boxes, size = value, None
        if isinstance(value, dict):
            boxes, size = value["boxes"], ImageSize(*value["size"])
        return cls(tuple(Box(*box) for box in boxes), size)
