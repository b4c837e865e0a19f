"""What a document says of an object besides its label and its box.

    {"flags": ["is_crowd"], "area": 812.5, "keypoints": [0.1, 0.1, 2]}

is the text of a crowd with an area and one keypoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from recordgen.core.rows.polygons import NO_POLYGONS, Points, Polygons

_SHAPES = ("polygons", "mask")

#: Numbers of a keypoint: x, y, and its visibility (0: not labelled, 1: hidden, 2: visible).
KEYPOINT = 3


class Mask(NamedTuple):
    """The pixels of an object."""

    counts: str  # COCO's compressed runs, see run_lengths
    height: int  # of the picture, in pixels
    width: int  # of the picture, in pixels


@dataclass(frozen=True, slots=True)
class Details:
    """What is known of an object; all of it may be missing."""

    flags: frozenset[str] = frozenset()  # words of FLAGS
    area: float | None = None  # its area in pixels of the picture
    polygons: Polygons = NO_POLYGONS  # its outline, in the unit of its box
    mask: Mask | None = None  # its pixels, if they are not given as polygons
    keypoints: Points = ()  # x, y and visibility of each keypoint, in the unit of its box
    digest: str = ""  # stands for outline and mask where these are left out

    def __bool__(self) -> bool:
        return self != NOTHING

    def divided(self, width: float, height: float) -> Details:
        """Return polygons and keypoints as shares of a picture of this size."""
        if not (self.polygons or self.keypoints):
            return self
        sides = (width, height)
        return replace(
            self,
            polygons=self.polygons.mapped(lambda points: points / sides),
            keypoints=tuple(
                value if at % KEYPOINT == 2 else value / sides[at % KEYPOINT]
                for at, value in enumerate(self.keypoints)
            ),
        )

    def merged(self, other: Details) -> Details:
        """Return what two rows say of the same object: all flags, and the first of the rest."""
        return Details(
            self.flags | other.flags,
            other.area if self.area is None else self.area,
            self.polygons or other.polygons,
            self.mask or other.mask,
            self.keypoints or other.keypoints,
            self.digest or other.digest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return only what is known."""
        found: dict[str, Any] = {} if self.area is None else {"area": self.area}
        if self.flags:
            found["flags"] = sorted(self.flags)
        if self.polygons.sizes:
            found["polygons"] = self.polygons.to_json()
        if self.mask:
            found["mask"] = self.mask
        if self.keypoints:
            found["keypoints"] = self.keypoints
        if self.digest:
            found["digest"] = self.digest
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Details:
        """Return the inverse of :meth:`to_json`."""
        return cls(
            frozenset(data.get("flags", ())),
            data.get("area"),
            Polygons.from_json(data["polygons"]) if "polygons" in data else NO_POLYGONS,
            Mask(*data["mask"]) if "mask" in data else None,
            tuple(data.get("keypoints", ())),
            data.get("digest", ""),
        )


NOTHING = Details()


def without_shape(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return details as JSON with a digest of outline and mask in their place."""
    shape = [data[name] for name in _SHAPES if name in data]
    if not shape:
        return data
    kept = {name: value for name, value in data.items() if name not in _SHAPES}
    return {**kept, "digest": hashlib.sha256(repr(shape).encode()).hexdigest()[:16]}


def flagged(given: Mapping[str, Any]) -> frozenset[str]:
    """Return the flags that hold: ``{"difficult": 1, "truncated": 0}`` → ``{"difficult"}``."""
    return frozenset(name for name, value in given.items() if value)


def keypoints_of(numbers: Sequence[float], size: int = KEYPOINT) -> Points:
    """Return keypoints of ``size`` numbers each, with a visibility if they have none.

    A keypoint at (0, 0), or outside on the left or above, is not labelled.
    """
    if size == KEYPOINT:
        return tuple(numbers)
    found: list[float] = []
    for x, y in zip(numbers[::2], numbers[1::2], strict=True):
        is_there = min(x, y) >= 0 and max(x, y) > 0
        found += (x, y, 2.0) if is_there else (0.0, 0.0, 0.0)
    return tuple(found)
