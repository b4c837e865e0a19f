"""An image as a document of another tool describes it, before a task makes an annotation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from recordgen.core.rows.row import Range
from recordgen.subjects.details import NOTHING, Details

#: xmin, ymin, xmax, ymax; from the upper left corner.
Corners: TypeAlias = tuple[float, float, float, float]


# Coordinates are far smaller; some of JSON's integers do not even fit into a float.
_MAX_NUMBER = 1e15
_REAL = (int, float)  # a tuple of types is compared in half the time of a union
_KINDS = frozenset(_REAL)


def is_number(value: Any) -> bool:
    """Return whether a value of a document is a number that a coordinate may have."""
    return isinstance(value, _REAL) and type(value) is not bool and abs(value) < _MAX_NUMBER


def are_numbers(values: Any) -> TypeGuard[list[float]]:
    """Return whether these are a list of numbers that coordinates may have."""
    are_real = isinstance(values, list) and _KINDS.issuperset(map(type, values))
    return are_real and not [each for each in values if not -_MAX_NUMBER < each < _MAX_NUMBER]


def is_size(size: tuple[int, int]) -> bool:
    """Return whether these may be the width and height of an image."""
    return all(1 <= side < 1 << 31 for side in size)


class Marked(NamedTuple):
    """An object in a picture."""

    label: str
    corners: Corners  # its box, in pixels if the picture has a size, else in shares of the picture
    details: Details = NOTHING  # what else is known of it, in the same unit

    def scaled(self, width: float, height: float) -> Marked:
        """Return an object in shares of a picture in pixels, given the picture's size."""
        xmin, ymin, xmax, ymax = self.corners
        corners = (xmin * width, ymin * height, xmax * width, ymax * height)
        return Marked(self.label, corners, self.details.divided(1 / width, 1 / height))


class Picture(NamedTuple):
    """One image, and what a document says about it."""

    line: int  # 1-based line or number of the item in the document
    # The image, relative to the root of the listing, or a URL; in a container, its name below that
    # of the container, such as `train-000.tar/1.jpg`.
    uri: str
    # The word for its split, such as `train` or `val`, if a document says it; None if names of
    # files and folders decide.
    split: str | None = None
    # Width and height, in pixels, of the picture that the corners refer to.
    size: tuple[int, int] | None = None
    # The objects that are marked in it; none: it shows none of the classes.
    objects: Sequence[Marked] = ()
    labels: Sequence[str] = ()  # the labels of the whole image
    # Pairs of a code and a message about what had to be changed in it.
    notes: Sequence[tuple[str, str]] = ()
    document: str = ""  # its own document, if each image has one; empty if several share one
    # Where its bytes, and those of its mask, are in a container; None for a file of its own.
    payloads: Sequence[Range | None] = ()
    # The image with a class for each pixel, as `uri`; empty if the objects are drawn instead, and
    # None if nothing is said of masks or objects in it.
    mask: str | None = ""
    # The class of each colour in the mask, such as `#ff0000`; empty if its pixels are the numbers
    # of classes.
    colours: Mapping[str, str] = {}
    measured: Any = None  # what a task has computed of its objects, see Task.together
