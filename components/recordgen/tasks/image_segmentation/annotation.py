"""The annotation of an image: its mask, and the colours of classes in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recordgen.core.records.class_masks import BACKGROUND
from recordgen.core.task.annotation import bad_annotation

BLACK = "#000000"

_COLOUR = re.compile(r"#[0-9a-f]{6}")


class MaskRow(NamedTuple):
    """What a row says about the mask of its image.

    As JSON: ``["masks/1.png"]``, or ``["masks/1.png", {"#ff0000": "cat"}]``, or
    ``["", {}, [["cat", {"polygons": [[0.1, 0.1, 0.4, 0.1, 0.4, 0.3]]}]]]``.

    Attributes:
        uri: the mask; empty if objects are drawn instead.
        colours: the class of each colour, such as ``#ff0000``; empty if pixels are class numbers.
        drawn: the class and the outline of each object, in shares of the image, as
            :meth:`recordgen.core.rows.details.Details.to_json` returns it; None without.
    """

    uri: str
    colours: Mapping[str, str] = {}
    drawn: Sequence[tuple[str, Mapping[str, Any]]] | None = None

    @classmethod
    def from_json(cls, annotation: str) -> MaskRow:
        """Parse an annotation."""
        return cls(*json.loads(annotation))

    def to_json(self) -> str:
        """Return the annotation."""
        parts: list[Any] = [self.uri, self.colours] if self.colours else [self.uri]
        if self.drawn is not None:
            parts = list(self)
        return json.dumps(parts, ensure_ascii=False)


def with_background(colours: Mapping[str, str]) -> Mapping[str, str]:
    """Return colours in their order, with :data:`BACKGROUND` for black unless it has a class."""
    found = {BLACK: BACKGROUND, **colours} if colours else {}
    if wrong := [colour for colour in found if not _COLOUR.fullmatch(colour)]:
        raise bad_annotation(f"a colour must be like #ff0000 (got {wrong[0]!r:.40})")
    return dict(sorted(found.items()))
