"""What a document says of an object besides its label and its box.

    {"flags": ["is_crowd"], "area": 812.5, "keypoints": [0.1, 0.1, 2]}

is the text of a crowd with an area and one keypoint.

An outline is polygons, whose points are one array:

    {"polygons": [[3], "QEIPQEIPAAk9QEIPAAk9gI1b"]}

is the text of the triangle (0.1, 0.1), (0.4, 0.1), (0.4, 0.6) in shares of its image. A document
may have millions of points, so nothing goes through them one by one.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.float64]

#: x and y of each point, one after the other.
Points: TypeAlias = tuple[float, ...]

#: Seven decimals tell all float32 from 0.5 to 1 apart, and come back from those below.
PARTS = 10_000_000

_FLOAT, _SINGLE, _PART = "<f8", "<f4", "<i4"

# A number of parts needs three of its four bytes, which are four letters in Base64.
_BYTES = 3


@dataclass(slots=True, unsafe_hash=True)  # frozen ones take twice the time to make
class Polygons:
    """The polygons of an object, which never change."""

    sizes: tuple[int, ...] = ()  # points of each polygon
    # X and y of each point: float64 or float32 in the unit of the object's box; or, once rounded,
    # 24 bits in ten millionths of the image's sides.
    data: bytes = b""

    @classmethod
    def of(cls, polygons: Iterable[Sequence[float]]) -> Polygons:
        """Return polygons, each given as x and y of each point, one after the other."""
        import numpy as np

        arrays = [np.asarray(points, _FLOAT) for points in polygons]
        sizes = tuple(points.size // 2 for points in arrays)
        return cls(sizes, b"".join(points.tobytes() for points in arrays))

    @classmethod
    def split(cls, sizes: Sequence[tuple[int, ...]], points: npt.NDArray[Any]) -> list[Polygons]:
        """Return the outlines of objects, whose points are float64 or :func:`rounded`."""
        data, each = points.tobytes(), points.itemsize * points.shape[1]
        ends = pairwise(accumulate((each * sum(mine) for mine in sizes), initial=0))
        return [cls(mine, data[at:end]) for mine, (at, end) in zip(sizes, ends, strict=True)]

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Points]:
        for part in self.arrays():
            yield tuple(part.ravel().tolist())

    def arrays(self) -> Sequence[Array]:
        """Return the points of each polygon, float64 [points, 2]."""
        points = points_of([self])
        return [points[start:end] for start, end in pairwise(accumulate(self.sizes, initial=0))]

    def mapped(self, change: Callable[[Array], Array]) -> Polygons:
        """Return the polygons with all points changed, given and returned as float64 [n, 2]."""
        return Polygons(self.sizes, change(points_of([self])).tobytes()) if self.sizes else self

    def to_json(self) -> Sequence[Any]:
        """Return the sizes, and the points in Base64."""
        return self.sizes, binascii.b2a_base64(self.data, newline=False).decode()

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Polygons:
        """Return the inverse of :meth:`to_json`."""
        sizes, text = value
        return cls(tuple(sizes), binascii.a2b_base64(text))


NO_POLYGONS = Polygons()


def points_of(outlines: Sequence[Polygons]) -> Array:
    """Return all points of outlines whose data have one type, float64 [n, 2]."""
    import numpy as np

    data = b"".join([each.data for each in outlines])
    count = 2 * sum(chain.from_iterable([each.sizes for each in outlines]))
    if len(data) == _BYTES * count:
        parts = np.zeros((count, 4), np.uint8)
        parts[:, :_BYTES] = np.frombuffer(data, np.uint8).reshape(-1, _BYTES)
        return parts.view(_PART).reshape(-1, 2) / PARTS
    kind = _SINGLE if len(data) == 4 * count else _FLOAT
    return np.frombuffer(data, kind).astype(_FLOAT, copy=False).reshape(-1, 2)


def rounded(shares: Array) -> npt.NDArray[np.uint8]:
    """Return points in shares of an image with the precision of records, the bytes of each."""
    import numpy as np

    parts = np.rint(shares * PARTS).astype(_PART)
    return parts.view(np.uint8).reshape(-1, 2, 4)[..., :_BYTES].reshape(-1, 2 * _BYTES)


#: Numbers of a keypoint: x, y, and its visibility (0: not labelled, 1: hidden, 2: visible).
KEYPOINT = 3


class Mask(NamedTuple):
    """The pixels of an object."""

    counts: str  # COCO's compressed runs, see recordgen.subjects.masks
    height: int  # of the picture, in pixels
    width: int  # of the picture, in pixels


NO_FLAGS = frozenset[str]()


class Details(NamedTuple):
    """What is known of an object; all of it may be missing."""

    flags: frozenset[str] = NO_FLAGS  # words of FLAGS
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
        return self._replace(
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
            frozenset(data["flags"]) if "flags" in data else NO_FLAGS,
            data.get("area"),
            Polygons.from_json(data["polygons"]) if "polygons" in data else NO_POLYGONS,
            Mask(*data["mask"]) if "mask" in data else None,
            tuple(data["keypoints"]) if "keypoints" in data else (),
            data.get("digest", ""),
        )


NOTHING = Details()


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
