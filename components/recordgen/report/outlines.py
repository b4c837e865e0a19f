"""Boxes as lines over a picture, in SVG: a few bytes each, and thin at any size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from recordgen.payloads.drawing import label_colour
from recordgen.records.boxes import StoredBox

# More on one small picture would only cover it.
_BOXES_DRAWN = 100


@dataclass(frozen=True, slots=True)
class Outline:
    """The boxes of one label.

    Attributes:
        text: the label.
        count: how many boxes it has.
        colour: of their lines, as ``#rrggbb``.
        path: the lines as SVG path data, in shares of the image's width and height; empty: none is
            drawn.
    """

    text: str
    count: int
    colour: str
    path: str


def outlines(boxes: Sequence[StoredBox]) -> list[Outline]:
    """Return the boxes of an image by label, in the order of their numbers.

    A box of "cat", 0, from (0.1, 0.2) to (0.5, 0.5) →
    ``Outline("cat", 1, "#ff2626", "M0.1 0.2H0.5V0.5H0.1z")``
    """
    counts: dict[tuple[int, str], int] = defaultdict(int)
    paths: dict[tuple[int, str], str] = defaultdict(str)
    for place, box in enumerate(boxes):
        label = (box.number, box.label)
        counts[label] += 1
        if place < _BOXES_DRAWN:
            left, top, right, bottom = (f"{value:.3g}" for value in box[2:])
            paths[label] += f"M{left} {top}H{right}V{bottom}H{left}z"
    return [
        Outline(text, count, _hex(number), paths[number, text])
        for (number, text), count in sorted(counts.items())
    ]


def _hex(number: int) -> str:
    return "#{:02x}{:02x}{:02x}".format(*label_colour(number))
