"""The facts about examples that tasks have, and that checks need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

#: Format, height, width, colours and frames of one image in each example.
IMAGES = "images"
#: One text in each example.
TEXTS = "texts"
#: Measures of pixels or words: workers examine each payload, which takes time.
MEASURES = "measures"
#: Boxes in the annotation.
BOXES = "boxes"
#: A class for each pixel.
MASKS = "masks"
#: Rows of a table, a sample of which is kept.
ROWS = "rows"


class Seen(Protocol):
    """What a worker has seen of one payload, such as a small picture or a text."""

    @staticmethod
    def columns(seen: Sequence[Any]) -> Mapping[str, Any]:
        """Return measures of several of its kind, as columns of facts.

        Many at once cost less than one by one.
        """


class ImageNote(NamedTuple):
    """The image of an example; its fields are the values of the columns of images."""

    format: str  # see ImageStats
    height: int | None  # in pixels; None if unknown
    width: int | None  # likewise
    colours: str | None = None  # what viewers apply to its colours; None if nothing
    frames: int | None = None  # pictures in the file; None if unknown
