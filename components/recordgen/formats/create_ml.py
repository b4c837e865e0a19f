"""Create ML: one JSON list of images with boxes around centers, in pixels.

    [{"image": "a.jpg", "annotations":
      [{"label": "dog", "coordinates": {"x": 25, "y": 40, "width": 30, "height": 40}}]}]

becomes the picture ``a.jpg`` with the box (10, 20, 40, 60) of a dog. Rules: Apple's "Building an
object detector data source"; ``MLObjectDetector.DataSource`` names the older keys.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from recordgen.core.rows.picture import Marked, Picture, is_number
from recordgen.formats.format import Evidence
from recordgen.formats.json_items import key_paths
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Note, PictureFormat, Problem, image_or_problem, items_of
from recordgen.tasks import ObjectDetection

_SIDES = ("x", "y", "width", "height")
_NAMES = ("image", "imagefilename")
_OBJECTS = ("annotations", "annotation")


class CreateMl(PictureFormat):
    """Create ML's ``annotations.json``, or Roboflow's ``_annotations.createml.json``."""

    name = "create_ml"
    tasks: ClassVar = (ObjectDetection.name,)
    in_pixels = True

    def detect(self, listing: Listing) -> Evidence | None:
        found = [name for name in listing.candidates(".json") if _is_mine(listing, name)]
        if not found:
            return None
        reason = f"{found[0]} lists images and boxes with coordinates"
        return Evidence(reason, self.tasks[0], found)

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        for number, item in items_of(listing, document):
            yield _picture(listing, posixpath.dirname(document), number, item)


def _is_mine(listing: Listing, name: str) -> bool:
    head = listing.head(name)
    if b'"coordinates"' not in head:  # a folder may have another document for each image
        return False
    keys = key_paths(head.decode("utf-8", "replace"))
    coordinates = [f"{key}.coordinates" for key in _OBJECTS]
    return not (keys.isdisjoint(coordinates) or keys.isdisjoint(_NAMES))


def _picture(listing: Listing, folder: str, number: int, item: Any) -> Picture | Problem:
    found = item if isinstance(item, dict) else {}
    name = next((found[key] for key in _NAMES if isinstance(found.get(key), str)), "")
    if not name:
        return Problem(number, f"item {number} of the list names no image")
    image = image_or_problem(listing, name, folder, line=number)
    if isinstance(image, Problem):
        return image
    try:
        objects = [_marked(each) for key in _OBJECTS for each in found.get(key) or ()]
    except ValueError as exc:
        return Problem(number, str(exc), image)
    return Picture(number, image, objects=objects)


def _marked(item: Any) -> Marked:
    """Return an object. Raises: ValueError: it has no label or no box."""
    label = item.get("label") if isinstance(item, dict) else None
    box = item.get("coordinates") if isinstance(item, dict) else None
    values: list[Any] = [box.get(side) for side in _SIDES] if isinstance(box, Mapping) else []
    if not isinstance(label, str) or not values or not all(map(is_number, values)):
        raise ValueError(f"an annotation needs a label and coordinates (got {item!r:.80})")
    x, y, width, height = values
    return Marked(label.strip(), (x - width / 2, y - height / 2, x + width / 2, y + height / 2))
