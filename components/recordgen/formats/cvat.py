"""CVAT's own XML for images.

    <annotations><image name="a.jpg" width="640" height="480" subset="Train">
      <box label="dog" xtl="10" ytl="20" xbr="40" ybr="60"/></image></annotations>

becomes the picture ``a.jpg`` of split train with the box (10, 20, 40, 60) of a dog, in pixels.
Rules: CVAT's "XML annotation format", version 1.1.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar
from xml.etree.ElementTree import Element

from recordgen.core.dataset.splits import is_ml_use
from recordgen.core.limits import MASK_PIXELS, MASK_RUNS
from recordgen.errors import SourceError
from recordgen.features import OCCLUDED
from recordgen.formats import pictures, shapes
from recordgen.formats.format import Evidence
from recordgen.formats.listing import Listing
from recordgen.formats.xml_elements import elements, parse
from recordgen.subjects.details import NOTHING, Details, flagged
from recordgen.subjects.picture import Corners, Marked, Picture, is_number
from recordgen.tasks import ImageMultiLabel, ImageSegmentation, ObjectDetection

_ROOT = b"<annotations"
_AREAS = ("box", "polygon", "ellipse", "mask")
# Shapes without an area, which are dropped.
_OTHERS = ("points", "polyline", "cuboid", "skeleton")


class Cvat(pictures.PictureFormat):
    """CVAT's ``annotations.xml`` for images."""

    name = "cvat"
    tasks: ClassVar = (ObjectDetection.name, ImageMultiLabel.name, ImageSegmentation.name)
    in_pixels = True
    has_sizes = True

    def detect(self, listing: Listing) -> Evidence | None:
        found = [name for name in listing.candidates(".xml") if _is_mine(listing.head(name))]
        if not found:
            return None
        head = listing.head(found[0])
        if b"<track " in head:
            where = f"{listing.root}{found[0]}"
            raise SourceError(f"{where}: these are tracks of a video; export as CVAT for images")
        are_boxes = any(f"<{tag} ".encode() in head for tag in _AREAS) or b"<tag " not in head
        task = self.tasks[0] if are_boxes else self.tasks[1]
        classes = [label for name in found for label in _labels(listing, name)]
        return Evidence(f"{found[0]} is CVAT's XML for images", task, found, classes)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        images = enumerate(_elements(listing, document, "image"), start=1)
        folder = posixpath.dirname(document)
        yield from pictures.examples(images, partial(_picture, listing, folder))


def _is_mine(head: bytes) -> bool:
    return _ROOT in head and (b"<image " in head or b"<meta>" in head)


def _elements(listing: Listing, name: str, tag: str) -> Iterator[Element]:
    """Yield each element of a tag once it is whole. Raises: SourceError."""
    with listing.whole(name, "XML document") as file:
        for element in elements(file, tag):
            yield element
            element.clear()  # an element keeps its children otherwise


def _labels(listing: Listing, name: str) -> Iterator[str]:
    """Yield the labels that the project declares, in their order."""
    meta, end, _ = listing.head(name).partition(b"<meta>")[2].partition(b"</meta>")
    try:
        declared = parse(b"<meta>" + meta + end)
    except ValueError:
        return  # there are none; the reader reports what is damaged
    for label in declared.iter("label"):
        if text := (label.findtext("name") or "").strip():
            yield text


def _picture(listing: Listing, folder: str, number: int, element: Element) -> Picture:
    """Return an image of a document in a folder. Raises: ValueError: it cannot be used."""
    name, subset = element.get("name", "").strip(), element.get("subset", "")
    split, images = subset if is_ml_use(subset) else None, posixpath.join(folder, "images")
    # Projects have a folder for each subset, with images of the same names.
    own = (posixpath.join(images, subset), posixpath.join(folder, subset)) if subset else ()
    places = (*own, folder, images, posixpath.dirname(folder))
    image = pictures.image_named(listing, name or "?", *places, split=split)
    size = pictures.size_of(element.get("width"), element.get("height"))
    with pictures.about(image):
        objects = [_marked(child, size) for child in element if child.tag in _AREAS]
    labels = [child.get("label", "").strip() for child in element if child.tag == "tag"]
    dropped = [child.tag for child in element if child.tag in _OTHERS]
    rotated = sum(bool(_rotation(child)) for child in element if child.tag in ("box", "ellipse"))
    notes = shapes.shape_notes(dropped, rotated)
    return Picture(number, image, split, size, objects, labels, notes)


def _marked(shape: Element, size: tuple[int, int] | None) -> Marked:
    """Return a shape with its box. Raises: ValueError: it has no numbers."""
    label = shape.get("label", "").strip()
    try:
        corners, details = _region(shape, size)
    except ValueError as exc:
        raise ValueError(f"the {shape.tag} of {label!r:.40} cannot be read: {exc}") from exc
    flags = flagged({OCCLUDED: shape.get("occluded", "0") != "0"})
    return Marked(label, corners, details._replace(flags=flags))


def _region(shape: Element, size: tuple[int, int] | None) -> shapes.Region:
    """Return the box and the outline or mask of a shape. Raises: ValueError: it has no numbers."""

    def number(name: str) -> float:
        return float(shape.get(name, "?"))

    degrees = _rotation(shape)
    if shape.tag == "box":
        xmin, ymin, xmax, ymax = map(number, ("xtl", "ytl", "xbr", "ybr"))
        center = ((xmin + xmax) / 2, (ymin + ymax) / 2)
        return shapes.rectangle((xmin, ymin, xmax, ymax), degrees, center)
    if shape.tag == "ellipse":
        x, y, rx, ry = map(number, ("cx", "cy", "rx", "ry"))
        return shapes.ellipse(x, y, rx, ry, degrees)
    if shape.tag == "polygon":
        pairs = [point.split(",") for point in shape.get("points", "").split(";")]
        return shapes.outlined([(float(x), float(y)) for x, y in pairs])
    left, top, width, height = map(number, ("left", "top", "width", "height"))
    box = (left, top, left + width, top + height)
    if size is None or "rle" not in shape.attrib:
        return box, NOTHING
    return box, _mask([int(run) for run in shape.attrib["rle"].split(",")], box, size)


def _mask(runs: Sequence[int], box: Corners, size: tuple[int, int]) -> Details:
    """Return the mask in a box, whose runs of 0 and 1 count along its rows. Raises: ValueError."""
    import numpy as np

    if not all(map(is_number, box)):
        raise ValueError(f"it has no box (got {box})")
    left, top, right, low = map(int, box)
    across, down = right - left, low - top
    if min(runs) < 0 or min(across, down) < 0 or sum(runs) != across * down:
        raise ValueError(f"its runs have {sum(runs):,} pixels, but its box {across * down:,}")
    MASK_PIXELS.check(across * down)
    MASK_RUNS.check(len(runs))
    are_set = np.repeat(np.arange(len(runs), dtype=np.uint8) % 2, runs).reshape(down, across)
    return Details(mask=shapes.mask_of([shapes.runs_below(are_set, left, top, *size)], *size))


def _rotation(shape: Element) -> float:
    """Return by how many degrees a shape is turned. Raises: ValueError: it is no number."""
    return float(shape.get("rotation") or 0)
