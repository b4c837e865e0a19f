"""Create ML: one JSON list of images with boxes around centers, in pixels.

    [{"image": "a.jpg", "annotations":
      [{"label": "dog", "coordinates": {"x": 25, "y": 40, "width": 30, "height": 40}}]}]

becomes the picture ``a.jpg`` with the box (10, 20, 40, 60) of a dog. Rules: Apple's "Building an
object detector data source"; ``MLObjectDetector.DataSource`` names the older keys.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import Any, ClassVar

from recordgen.formats import pictures
from recordgen.formats.format import Evidence
from recordgen.formats.json_values import items, key_paths, mapping, numbers, text
from recordgen.formats.listing import Listing
from recordgen.subjects.picture import Marked, Picture
from recordgen.tasks import ObjectDetection

_SIDES = ("x", "y", "width", "height")
_NAMES = ("image", "imagefilename")
_OBJECTS = ("annotations", "annotation")


class CreateMl(pictures.PictureFormat):
    """Create ML's ``annotations.json``, or Roboflow's ``_annotations.createml.json``."""

    name = "create_ml"
    tasks: ClassVar = (ObjectDetection.name,)
    in_pixels = True

    def detect(self, listing: Listing) -> Evidence | None:
        found = [name for name in listing.candidates(".json") if _is_mine(listing, name)]
        if not found:
            return None
        return Evidence(f"{found[0]} lists images and boxes by coordinates", self.tasks[0], found)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        make = partial(_picture, listing, posixpath.dirname(document))
        yield from pictures.examples(pictures.items_of(listing, document), make)


def _is_mine(listing: Listing, name: str) -> bool:
    head = listing.head(name)
    if b'"coordinates"' not in head:  # a folder may have another document for each image
        return False
    keys = key_paths(head.decode("utf-8", "replace"))
    coordinates = [f"{key}.coordinates" for key in _OBJECTS]
    return not (keys.isdisjoint(coordinates) or keys.isdisjoint(_NAMES))


def _picture(listing: Listing, folder: str, number: int, item: Any) -> Picture:
    """Return an item of the list. Raises: ValueError: it cannot be used."""
    found = mapping(item, "an item of the list")
    name = text(next((found[key] for key in _NAMES if key in found), None), "the image")
    image = pictures.image_named(listing, name, folder)
    with pictures.about(image):
        objects = [_marked(each) for key in _OBJECTS for each in items(found.get(key), key)]
    return Picture(number, image, objects=objects)


def _marked(item: Any) -> Marked:
    """Return an object. Raises: ValueError: it has no label or no box."""
    found = mapping(item, "an annotation")
    x, y, width, height = numbers(found.get("coordinates"), _SIDES, "coordinates")
    box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    return Marked(text(found.get("label"), "a label"), box)
