"""VGG Image Annotator: a project or its export as JSON or CSV, with regions in pixels.

    {"a.jpg1024": {"filename": "a.jpg", "size": 1024, "file_attributes": {}, "regions": [
       {"shape_attributes": {"name": "rect", "x": 10, "y": 20, "width": 30, "height": 40},
        "region_attributes": {"class": "dog"}}]}}

becomes the picture ``a.jpg`` with the box (10, 20, 40, 60) of a dog. The class is the only
attribute of regions, or the one named like a label; if no region has any, all are of the class
``object``. Rules: VIA's "File formats", versions 1 and 2.
"""

from __future__ import annotations

import itertools
import math
import posixpath
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from recordgen.errors import SourceError
from recordgen.formats import json_values, pictures
from recordgen.formats.format import Evidence
from recordgen.formats.json_values import json_value, mapping, numbers
from recordgen.formats.listing import Listing
from recordgen.formats.shapes import Region, ellipse, outlined, shape_notes
from recordgen.subjects.details import NOTHING
from recordgen.subjects.picture import Marked, Picture, are_numbers
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import ImageSegmentation, ObjectDetection

_PROJECT = "_via_img_metadata"
_FILE, _SHAPE, _ATTRIBUTES = "filename", "region_shape_attributes", "region_attributes"
_OTHERS = ("point", "polyline")
_ONE_CLASS = "object"


class Via(pictures.PictureFormat):
    """VGG Image Annotator's regions."""

    name = "via"
    tasks: ClassVar = (ObjectDetection.name, ImageSegmentation.name)
    in_pixels = True

    def detect(self, listing: Listing) -> Evidence | None:
        documents = listing.candidates(".json", ".csv")
        found = [name for name in documents if _is_mine(listing.head(name), name)]
        if not found:
            return None
        return Evidence(f"{found[0]} has the regions of VGG Image Annotator", self.tasks[0], found)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        where = f"{listing.root}{document}"
        read = _csv_images if document.lower().endswith(".csv") else _json_images
        try:
            images = list(read(listing, document))
        except ValueError as exc:
            raise SourceError(f"{where}: no whole export of VGG Image Annotator: {exc}") from exc
        folder, attribute = posixpath.dirname(document), _attribute(where, images)
        if attribute is None and any(image.regions for image in images):
            yield pictures.Note(0, f"regions have no attributes; all are of the class {_ONE_CLASS}")
        make = partial(_picture, listing, folder, attribute)
        yield from pictures.examples(enumerate(images, start=1), make)


class _Image(NamedTuple):
    name: str
    #: pairs of a shape and of the attributes of its region
    regions: Sequence[tuple[Any, Any]] = ()
    problem: str = ""  # why the regions cannot be used


def _is_mine(head: bytes, name: str) -> bool:
    if name.lower().endswith(".csv"):
        return _SHAPE.encode() in head.partition(b"\n")[0]
    if b'"regions"' not in head and b'"_via_settings"' not in head:
        return False
    keys = json_values.key_paths(head.decode("utf-8", "replace"))
    images = [key.removesuffix(".regions") for key in keys if key.endswith(".regions")]
    return "_via_settings" in keys or any(f"{image}.filename" in keys for image in images)


def _json_images(listing: Listing, name: str) -> Iterator[_Image]:
    """Yield the images of a project, or of an export. Raises: ValueError."""
    with listing.open(name) as file:
        for key, value in json_values.top_items(file):
            if key == _PROJECT:
                yield from map(_image, mapping(value, key).values())
            elif not key.startswith("_via_"):
                yield _image(value)


def _image(item: Any) -> _Image:
    name = ""
    try:
        name = json_values.text(mapping(item, "an image").get("filename"), "filename")
        regions = item.get("regions")
        if isinstance(regions, dict):  # version 1
            regions = list(regions.values())
        found = [mapping(region, "a region") for region in json_values.items(regions, "regions")]
    except ValueError as exc:
        return _Image(name, problem=str(exc))
    return _Image(name, [(each.get("shape_attributes"), each.get(_ATTRIBUTES)) for each in found])


def _csv_images(listing: Listing, name: str) -> Iterator[_Image]:
    """Yield the images of a CSV, whose lines are regions. Raises: SourceError.

    Lines that cannot be read come first, each as an image of its own.
    """
    regions: dict[str, list[tuple[Any, Any]]] = {}
    for item in pictures.columns_of(listing, name, _FILE, _SHAPE, _ATTRIBUTES):
        if isinstance(item, pictures.Problem):
            yield _Image(item.uri, problem=f"line {item.line}: {item.message}")
            continue
        line, record = item
        try:
            pair = json_value(record[_SHAPE]), json_value(record[_ATTRIBUTES])
        except ValueError as exc:
            yield _Image(record[_FILE], problem=f"line {line}: {exc}")
            continue
        found = regions.setdefault(record[_FILE], [])
        found += [pair] if pair[0] else []  # {}: no region
    yield from itertools.starmap(_Image, regions.items())


def _attribute(where: str, images: Sequence[_Image]) -> str | None:
    """Return the attribute that names the class of regions; None if they have no attributes.

    Raises: SourceError: it may be one of several.
    """
    regions = [attributes for image in images for _, attributes in image.regions]
    found = dict.fromkeys(name for each in regions if isinstance(each, dict) for name in each)
    named = [name for name in found if name.strip().lower() in LABEL_COLUMNS]
    likely = named if len(found) > 1 else list(found)
    if len(likely) == 1 or not found:
        return likely[0] if likely else None
    remedy = "name the attribute of the classes 'class' in VIA, and export again"
    raise SourceError(f"{where}: regions have the attributes {', '.join(found)}; {remedy}")


def _picture(
    listing: Listing, folder: str, attribute: str | None, number: int, image: _Image
) -> Picture:
    """Return an image of a document in a folder. Raises: ValueError: it cannot be used."""
    found = pictures.image_named(listing, image.name, folder, "images") if image.name else ""
    if image.problem:
        raise pictures.ExampleError(image.problem, found)
    kinds = [shape.get("name") if isinstance(shape, dict) else "" for shape, _ in image.regions]
    dropped = [str(kind) for kind in kinds if kind in _OTHERS]
    areas = [each for each, kind in zip(image.regions, kinds, strict=True) if kind not in _OTHERS]
    with pictures.about(found):
        objects = [Marked(_label(each, attribute), *_region(shape)) for shape, each in areas]
    rotated = sum(bool(shape.get("theta")) for shape, _ in areas)
    return Picture(number, found, objects=objects, notes=shape_notes(dropped, rotated))


def _label(attributes: Any, name: str | None) -> str:
    """Return the class of a region, which its attribute of a name says.

    Raises: ValueError: it has none, or several.

    ``{"class": "dog"}``, or of check boxes ``{"class": {"dog": true}}`` → dog
    """
    if name is None:
        return _ONE_CLASS
    value = attributes.get(name) if isinstance(attributes, dict) else None
    if isinstance(value, dict):
        chosen = [key for key, is_chosen in value.items() if is_chosen]
        value = chosen[0] if len(chosen) == 1 else None
    label = str(value).strip() if isinstance(value, str | int) else ""
    if not label:
        raise ValueError(f"a region needs one {name} (got {attributes!r:.80})")
    return label


def _region(shape: Any) -> Region:
    """Return a shape. Raises: ValueError: it has no numbers, or is unknown."""
    kind = mapping(shape, "a shape").get("name")
    if kind == "rect":
        x, y, width, height = numbers(shape, ("x", "y", "width", "height"), "a rect")
        return (x, y, x + width, y + height), NOTHING
    if kind == "circle":
        x, y, radius = numbers(shape, ("cx", "cy", "r"), "a circle")
        return ellipse(x, y, radius, radius)
    if kind == "ellipse":
        x, y, across, down = numbers(shape, ("cx", "cy", "rx", "ry"), "an ellipse")
        [radians] = numbers(shape, ["theta"], "an ellipse") if shape.get("theta") else [0.0]
        return ellipse(x, y, across, down, math.degrees(radians))
    xs, ys = shape.get("all_points_x"), shape.get("all_points_y")
    if kind == "polygon" and are_numbers(xs) and are_numbers(ys) and len(xs) == len(ys) > 0:
        return outlined(zip(xs, ys, strict=True))
    raise ValueError(f"a region is no rect, circle, ellipse or polygon (got {shape!r:.80})")
