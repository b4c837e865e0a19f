"""The annotation of an image: its mask, and the colours of classes in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from recordgen.core.task.annotation import bad_annotation

#: The class of black pixels, if a mask has colours and none of them is black.
BACKGROUND = "background"

BLACK = "#000000"

_COLOUR = re.compile(r"#[0-9a-f]{6}")


class MaskRow(NamedTuple):
    """What a row says about the mask of its image.

    As JSON: ``["masks/1.png"]``, or ``["masks/1.png", {"#ff0000": "cat"}]``.

    Attributes:
        uri: the mask.
        colours: the class of each colour, such as ``#ff0000``; empty if pixels are class numbers.
    """

    uri: str
    colours: Mapping[str, str] = {}

    @classmethod
    def from_json(cls, annotation: str) -> MaskRow:
        """Parse an annotation."""
        return cls(*json.loads(annotation))

    def to_json(self) -> str:
        """Return the annotation."""
        parts = [self.uri, self.colours] if self.colours else [self.uri]
        return json.dumps(parts, ensure_ascii=False)


def with_background(colours: Mapping[str, str]) -> Mapping[str, str]:
    """Return colours in their order, with :data:`BACKGROUND` for black unless it has a class."""
    found = {BLACK: BACKGROUND, **colours} if colours else {}
    if wrong := [colour for colour in found if not _COLOUR.fullmatch(colour)]:
        raise bad_annotation(f"a colour must be like #ff0000 (got {wrong[0]!r:.40})")
    return dict(sorted(found.items()))
