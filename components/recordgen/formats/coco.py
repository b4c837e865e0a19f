"""COCO: one JSON document with all images, boxes and categories of a split.

    {"images": [{"id": 7, "file_name": "a.jpg", "width": 640, "height": 480}],
     "annotations": [{"image_id": 7, "category_id": 18, "bbox": [10, 20, 30, 40]}],
     "categories": [{"id": 18, "name": "dog"}]}

becomes the picture ``a.jpg`` with the box (10, 20, 40, 60) of a dog, in pixels. Rules: "COCO data
format" (cocodataset.org); the number of a class is its position among the categories in the order
of their ids, as Detectron2, torchvision and Ultralytics number them.
"""

from __future__ import annotations

import posixpath
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from recordgen.core.rows.picture import Corners, Marked, Picture, is_number, is_size
from recordgen.errors import SourceError
from recordgen.formats.foreign_formats import key_paths
from recordgen.formats.format import Evidence
from recordgen.formats.json_items import top_items
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import (
    Note,
    PictureFormat,
    Problem,
    image_or_problem,
    size_in_file,
)
from recordgen.formats.split_names import split_in_path
from recordgen.tasks import ObjectDetection

#: Name in ``rows.adjusted``: boxes around crowds of objects, which are not stored.
BOXES_CROWD = "boxes_crowd"

# Documents of COCO's other tasks, by a key path that only they have, and what they hold.
_OTHERS = {
    "annotations.caption": "captions of images",
    "annotations.segments_info": "panoptic segments",
}

# Each COCO document begins with one of these keys.
_WORDS = (b'"images"', b'"annotations"', b'"categories"', b'"image_id"', b'"licenses"')

# The only ones that are kept, since there may be a hundred thousand images.
_IMAGE_KEYS = ("id", "file_name", "width", "height")

_MAX_DIGITS = 300

# Objects of a box that cannot be used.
_NO_CATEGORY, _NO_BOX = -1, -2


class Coco(PictureFormat):
    """COCO's ``instances_….json`` or Roboflow's ``_annotations.coco.json``."""

    name = "coco"
    tasks: ClassVar = (ObjectDetection.name,)
    gives = "boxes"
    expects = "a COCO document, JSON with images, annotations and categories"

    def detect(self, listing: Listing) -> Evidence | None:
        found, others = [], []
        for name in listing.candidates(".json"):
            try:
                found += [name] if _is_coco(listing, name) else []
            except SourceError as exc:  # captions often lie beside the instances
                others.append(exc)
        if not found and others:
            raise others[0]
        if not found:
            return None
        documents = [listing.parsed(name, _parse) for name in found]
        classes = _classes(listing, found, documents)
        reason = f"{found[0]} has {len(documents[0].images):,} images and {len(classes)} categories"
        return Evidence(reason, self.tasks[0], found, classes)

    def read(self, listing: Listing, document: str) -> Iterator[Picture | Problem | Note]:
        parsed: _Document = listing.parsed(document, _parse)
        yield from parsed.notes()
        split = split_in_path(f"{listing.root}{document}")
        folders = _folders(document)
        seen: Counter[str] = Counter()
        for line, (image, boxes) in enumerate(parsed.pictures(), start=1):
            name = image.get("file_name")
            if not isinstance(name, str) or not name.strip():
                yield Problem(line, f"the image {image.get('id')!r:.40} has no file_name")
                continue
            if boxes and parsed.is_shared(image):
                message = (
                    f"the image {name} has no id of its own (got {image.get('id')!r:.40}), so its "
                    f"boxes are unknown"
                )
                yield Problem(line, message, name)
                continue
            found: str | Problem = name
            if "://" not in name:
                if not listing.images:
                    raise SourceError(
                        f"{listing.root}{document}: there are no images below its folder; pass the "
                        f"folder that holds both the document and the images"
                    )
                found = image_or_problem(listing, name, *folders, line=line)
            if isinstance(found, Problem):
                yield found
                continue
            seen[found] += 1
            size = _size_of(image) or (size_in_file(listing, found) if found in listing else None)
            if size is None and boxes:
                message = (
                    f"the image {found} needs its width and height, since boxes are in pixels (got "
                    f"{image.get('width')!r:.20} and {image.get('height')!r:.20})"
                )
                yield Problem(line, message, found)
                continue
            yield parsed.picture(line, found, split, size, boxes)
        if twice := sum(count > 1 for count in seen.values()):
            yield Note(0, f"{twice:,} images are listed more than once; their boxes were merged")


def _is_coco(listing: Listing, name: str) -> bool:
    """Return whether a document is COCO's. Raises: SourceError: it is one of another task."""
    head = listing.head(name)
    # A folder may have another tool's document for each image.
    if not any(word in head for word in _WORDS):
        return False
    keys = key_paths(head.decode("utf-8", "replace"))
    # Thousands of categories may come before the first image.
    firsts = {"images.file_name", "images.coco_url", "categories.supercategory"}
    has_images = not firsts.isdisjoint(keys)
    has_boxes = {"annotations.image_id", "annotations.category_id"} <= keys
    if {"image_id", "category_id", "score"} <= keys:
        raise SourceError(
            f"{listing.root}{name}: these are results of a model in COCO's format, a list without "
            f"images; pass the document with images, annotations and categories"
        )
    for key, what in _OTHERS.items():
        if key in keys:
            raise SourceError(
                f"{listing.root}{name}: this COCO document holds {what}, which no task reads; pass "
                f"the document of instances, with a bbox in each annotation"
            )
    is_named = "coco" in name.lower() or name.lower().startswith("instances_")
    return has_images or has_boxes or (is_named and {"info", "licenses"} <= keys)


@dataclass
class _Document:
    """A parsed document. Boxes are in arrays, since there may be millions.

    Attributes:
        images: the images, with their :data:`_IMAGE_KEYS` as written.
        names: the name of each category, by its id.
        groups: the supercategory of each category, by its id.
    """

    images: list[Mapping[str, Any]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    has_annotations: bool = False
    _number_of: dict[str, int] = field(default_factory=dict)  # of an image, by its id
    _image: array[int] = field(default_factory=lambda: array("q"))
    _category: array[int] = field(default_factory=lambda: array("q"))
    _id: array[int] = field(default_factory=lambda: array("q"))
    _is_crowd: array[int] = field(default_factory=lambda: array("b"))
    _corners: array[float] = field(default_factory=lambda: array("d"))
    _categories: dict[str, int] = field(default_factory=dict)

    def add_annotation(self, item: Mapping[str, Any]) -> None:
        """Add an annotation."""
        corners = _corners_of(item)
        category = item.get("category_id")
        number = self._categories.setdefault(_key(category), len(self._categories))
        if category is None:
            number = _NO_CATEGORY
        if corners is None:
            number, corners = _NO_BOX, (0.0, 0.0, 0.0, 0.0)
        key = _key(item.get("image_id"))
        self._image.append(self._number_of.setdefault(key, len(self._number_of)))
        self._category.append(number)
        own = item.get("id")
        self._id.append(own if isinstance(own, int) and abs(own) < 1 << 62 else -1)
        self._is_crowd.append(bool(item.get("iscrowd")))
        self._corners.extend(corners)

    @cached_property
    def _id_of(self) -> Sequence[str]:
        return list(self._categories)

    @cached_property
    def _file_of(self) -> Mapping[str, Any]:
        """The name of the image with each id; None if several images have it."""
        found: dict[str, Any] = {}
        for image in self.images:
            if (own := image.get("id")) is not None:
                name = image.get("file_name")
                if found.setdefault(_key(own), name) != name:
                    found[_key(own)] = None
        return found

    @property
    def has_boxes(self) -> bool:
        """Whether any annotation is of a listed image."""
        return not self._file_of.keys().isdisjoint(self._number_of)

    def is_shared(self, image: Mapping[str, Any]) -> bool:
        """Return whether another image has the id of an image."""
        return self._file_of.get(_key(image.get("id"))) is None

    @property
    def used(self) -> frozenset[str]:
        """The ids of the categories that annotations have."""
        return frozenset(self._categories)

    def notes(self) -> Iterator[Note]:
        """Yield what is odd about the whole document."""
        orphans = [number for key, number in self._number_of.items() if key not in self._file_of]
        if lost := int(np.isin(np.asarray(self._image), orphans).sum()) if orphans else 0:
            yield Note(
                0, f"{lost:,} annotations are of images that are not listed; they were skipped"
            )
        same = [name for name, count in Counter(self.names.values()).items() if count > 1]
        if same:
            yield Note(
                0,
                f"several categories are named {same[0]!r}; they were merged, so that later ones "
                f"have smaller numbers",
            )

    def pictures(self) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
        """Yield each image with the indices of its annotations."""
        numbers = np.asarray(self._image, np.int64)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        for image in self.images:
            number = self._number_of.get(_key(image.get("id")), -1)
            start, end = np.searchsorted(ordered, [number, number + 1])
            yield image, order[start:end].tolist()

    def picture(
        self,
        line: int,
        uri: str,
        split: str | None,
        size: tuple[int, int] | None,
        boxes: Sequence[int],
    ) -> Picture | Problem:
        """Return an image with its boxes, or the problem with one of them."""
        id_of = self._id_of
        objects, crowds = [], 0
        for at in boxes:
            number = self._category[at]
            label = self.names.get(id_of[number]) if number >= 0 else None
            if label is None:
                what = "no usable bbox" if number == _NO_BOX else "a category that is not listed"
                return Problem(line, f"the annotation {self._id[at]} of this image has {what}", uri)
            if self._is_crowd[at]:
                crowds += 1
                continue
            xmin, ymin, xmax, ymax = self._corners[4 * at : 4 * at + 4]
            objects.append(Marked(label, (xmin, ymin, xmax, ymax)))
        message = f"{crowds} boxes around crowds of objects (iscrowd) were dropped"
        notes = [(BOXES_CROWD, message)] if crowds else []
        return Picture(line, uri, split, size, objects, notes=notes)


def _parse(listing: Listing, name: str) -> _Document:
    """Parse a document. Raises: SourceError."""
    found, where = _Document(), f"{listing.root}{name}"
    try:
        with listing.open(name) as file:
            for key, item in top_items(file):
                if key == "images" and isinstance(item, dict):
                    found.images.append({key: item.get(key) for key in _IMAGE_KEYS})
                elif key == "annotations":
                    found.has_annotations = True
                    if isinstance(item, dict):
                        found.add_annotation(item)
                elif key == "categories" and isinstance(item, dict):
                    own, label = _key(item.get("id")), item.get("name")
                    label = "" if label is None else str(label).strip()
                    if found.names.setdefault(own, label) != label:
                        raise ValueError(
                            f"the category {own} is {label!r} and {found.names[own]!r}"
                        )
                    found.groups[own] = str(item.get("supercategory") or "")
    except (ValueError, UnicodeDecodeError) as exc:
        raise SourceError(f"{where}: this is no whole COCO document: {exc}") from exc
    if not found.images or not found.names:
        raise SourceError(
            f"{where}: a COCO document needs images and categories (got {len(found.images):,} "
            f"images and {len(found.names):,} categories)"
        )
    if not found.has_annotations:
        raise SourceError(f"{where}: this COCO document has no annotations, only images")
    if not found.has_boxes:
        raise SourceError(
            f"{where}: no annotation has the image_id of an image; expected a list of annotations, "
            f"each with the id of its image"
        )
    return found


def _classes(
    listing: Listing, names: Sequence[str], documents: Sequence[_Document]
) -> tuple[str, ...]:
    """Return the names of all categories in the order of their ids. Raises: SourceError."""
    all_names: dict[str, str] = {}
    for name, document in zip(names, documents, strict=True):
        for key, label in document.names.items():
            if all_names.setdefault(key, label) != label:
                raise SourceError(
                    f"{listing.root}{name}: the category {key} is {label!r}, but "
                    f"{all_names[key]!r} in {names[0]}; convert the documents separately"
                )
    parent = _parent(documents)
    ordered = sorted(all_names, key=_order)
    return tuple(
        dict.fromkeys(all_names[key] for key in ordered if key != parent and all_names[key])
    )


def _parent(documents: Sequence[_Document]) -> str | None:
    """Return the id of Roboflow's category 0, which only names the project, or None."""
    for key, label in documents[0].names.items():
        others = [groups for own, groups in documents[0].groups.items() if own != key]
        is_unused = not any(key in document.used for document in documents)
        if is_unused and others and all(group == label for group in others):
            return key
    return None


def _folders(document: str) -> Sequence[str]:
    """Return the folders in which the images of a document may be, the likeliest first."""
    folder, name = posixpath.split(document)
    above = posixpath.dirname(folder)
    stem = posixpath.splitext(name)[0]
    stem = stem.removeprefix("instances_").removeprefix("person_keypoints_")
    beside = ("", "images", stem, f"{stem}2017", f"images/{stem}", "data")
    return [
        posixpath.join(place, each) for place in dict.fromkeys((folder, above)) for each in beside
    ]


def _key(value: Any) -> str:
    """Return an id that can be compared: 7, 7.0 and "7" are the same."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _order(key: str) -> tuple[bool, float, str]:
    """Return the sort key of an id: numbers first."""
    number = key.removeprefix("-").isdecimal() and len(key) < _MAX_DIGITS
    return not number, int(key) if number else 0, key


def _size_of(image: Mapping[str, Any]) -> tuple[int, int] | None:
    sides = image.get("width"), image.get("height")
    if not all(map(is_number, sides)):
        return None
    width, height = map(int, sides)  # type: ignore[arg-type]
    return (width, height) if is_size((width, height)) else None


def _corners_of(item: Mapping[str, Any]) -> Corners | None:
    """Return the corners of an annotation, from its bbox or else its polygons."""
    box = item.get("bbox")
    if isinstance(box, list) and len(box) == 4 and _are_numbers(box):
        left, top, width, height = box
        return left, top, left + width, top + height
    shapes = item.get("segmentation")
    if not isinstance(shapes, list):
        return None
    polygons = [shape for shape in shapes if _are_numbers(shape) and len(shape) >= 6]
    if not polygons or len(polygons) < len(shapes):
        return None
    xs = [x for shape in polygons for x in shape[::2]]
    ys = [y for shape in polygons for y in shape[1::2]]
    return min(xs), min(ys), max(xs), max(ys)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(map(is_number, values))
