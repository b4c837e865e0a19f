"""Hugging Face's imagefolder with metadata: a line for each image.

    train/metadata.jsonl  {"file_name": "a.jpg", "label": "dog"}
    train/metadata.jsonl  {"file_name": "a.jpg", "objects":
                           {"bbox": [[10, 20, 30, 40]], "categories": ["dog"]}}

become the picture ``train/a.jpg`` with the label, or with the box (10, 20, 40, 60), of a dog.
Rules: "Create an image dataset" of Hugging Face's datasets; boxes are COCO's, in pixels.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from recordgen import storage
from recordgen.core.dataset.splits import is_ml_use
from recordgen.errors import SourceError
from recordgen.formats import foreign_formats, pictures
from recordgen.formats.format import Evidence
from recordgen.formats.header import SPLIT_COLUMNS, column_name
from recordgen.formats.image_sizes import size_in_file
from recordgen.formats.json_values import json_value, mapping
from recordgen.formats.label_fields import flags_in
from recordgen.formats.listing import Listing
from recordgen.formats.objects import labels_of, objects_in, read_objects
from recordgen.formats.parquet import classes_of, table_rows
from recordgen.formats.split_names import names_split, numbered_split
from recordgen.rejects import RejectCode
from recordgen.subjects.picture import Picture
from recordgen.tables.roles import LABEL_COLUMNS
from recordgen.tasks import ImageClassification, ImageMultiLabel, ObjectDetection

_PARQUET = "metadata.parquet"
NAMES = ("metadata.jsonl", "metadata.csv", _PARQUET)
FILE, _OBJECTS = "file_name", "objects"
_PROBED = 100
# Parts of the names of columns that no task of images reads, but that must not be lost.
_GEOMETRY = ("mask", "bbox", "polygon", "segment", "keypoint", "points", "_file_name")


class HuggingFace(pictures.PictureFormat):
    """An imagefolder with ``metadata.jsonl``, ``metadata.csv`` or ``metadata.parquet``."""

    name = "hugging_face"
    tasks: ClassVar = (ImageClassification.name, ImageMultiLabel.name, ObjectDetection.name)
    has_lines = True
    in_pixels = True

    def detect(self, listing: Listing) -> Evidence | None:
        named = [it for it in listing.candidates(*NAMES) if posixpath.basename(it) in NAMES]
        found = [name for name in named if FILE in _first(listing, name)]
        if not found:
            return None
        folders = Counter(map(posixpath.dirname, found))
        if twice := [name for name in found if folders[posixpath.dirname(name)] > 1]:
            both = " and ".join(twice[:2])
            raise SourceError(f"{listing.root}: {both} are for the same images; pass one")
        first = _first(listing, found[0])
        label = _label_of(f"{listing.root}{found[0]}", first)
        single, several, boxes = self.tasks
        value = first[label]
        has_several = isinstance(value, list) or (isinstance(value, str) and flags_in(value))
        task = boxes if label == _OBJECTS else several if has_several else single
        classes = classes_of(listing, found[0], label)
        return Evidence(f"{found[0]} has {FILE} and {label}", task, found, classes)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        where = f"{listing.root}{document}"
        label = _label_of(where, _first(listing, document))
        names = classes_of(listing, document, label)
        make = partial(_picture, listing, posixpath.dirname(document), label, names)
        used: set[str] = set()
        are_outside, fit_as_corners = False, True
        for item in pictures.examples(_records(listing, document), make):
            used.add(item.uri)
            if isinstance(item, Picture) and item.size:
                is_outside, fit = _box_forms(item)
                are_outside, fit_as_corners = are_outside | is_outside, fit_as_corners & fit
            yield item
        if are_outside and fit_as_corners:
            raise SourceError(f"{where}: boxes fit their images as corners; write width and height")
        others = [name for name in _images_of(listing, document) if name not in used]
        yield from pictures.notes_about(others, "images are not in it, and were skipped")


def _box_forms(picture: Picture) -> tuple[bool, bool]:
    """Return whether boxes end outside of their image, and whether all of them fit as corners.

    The metadata do not say which of the two they are.
    """
    width, height = picture.size or (0, 0)
    is_outside, fit = False, True
    for xmin, ymin, xmax, ymax in (marked.corners for marked in picture.objects):
        is_outside |= xmax > width + 1 or ymax > height + 1
        right, low = xmax - xmin, ymax - ymin  # as they are written
        fit &= xmin < right <= width + 1 and ymin < low <= height + 1
    return is_outside, fit


def _images_of(listing: Listing, document: str) -> Sequence[str]:
    """Return the images below the folder of metadata, except those that other metadata are for."""
    folder = posixpath.join(posixpath.dirname(document), "")
    others = {posixpath.split(name) for name in listing.others}
    places = {posixpath.join(place, "") for place, base in others if base in NAMES} - {folder}
    inner = tuple(place for place in places if place.startswith(folder))
    return [it for it in listing.images if it.startswith(folder) and not it.startswith(inner)]


def _records(listing: Listing, name: str) -> pictures.Numbered:
    """Yield the line and the record of each image, and a problem for each line that is none."""
    if name.endswith(_PARQUET):
        yield from enumerate(table_rows(listing, name), start=1)
        return
    if name.endswith(".csv"):
        yield from pictures.columns_of(listing, name)
        return
    for number, line in listing.lines(name):
        try:
            yield number, mapping(json_value(line), "a line")
        except ValueError as exc:
            yield pictures.Problem(number, str(exc), code=RejectCode.BAD_LINE)


def _first(listing: Listing, name: str) -> Mapping[str, Any]:
    """Return the first record of the metadata, or an empty one. Raises: SourceError."""
    listing.check_link(name)
    records = islice(_records(listing, name), _PROBED)
    return next((item[1] for item in records if not isinstance(item, pictures.Problem)), {})


def _label_of(where: str, first: Mapping[str, Any]) -> str:
    """Return the column of labels or objects. Raises: SourceError: it is unclear which it is."""
    others = [key for key in first if key and key != FILE]
    for key in filter(names_split, others):
        if problem := numbered_split(key, {str(first[key]).lower()}):
            raise SourceError(f"{where}: {problem}")
    if objects_in(first.get(_OBJECTS)) is not None:
        return _OBJECTS
    lost = [key for key in others if any(part in key.lower() for part in _GEOMETRY)]
    labels = [key for key in others if key.strip().lower() in LABEL_COLUMNS]
    if lost or len(labels) != 1:
        row = ", ".join(f"{key}: {value}" for key, value in first.items())
        if form := foreign_formats.of_rows([row]):
            raise form.error(where)
        why = f"{', '.join(lost)} would be lost" if lost else "it is unclear which one has labels"
        got = f"{', '.join(others):.200}" or "nothing"
        remedy = f"pass this file, and name the column: --columns path={FILE},label=LABEL"
        raise SourceError(f"{where}: beside {FILE} are {got}, and {why}; {remedy}")
    return labels[0]


def _split_in(record: Mapping[str, Any]) -> str | None:
    """Return the word for the split in a column that is named like one, if any."""
    said = (value for key, value in record.items() if key and column_name(key) in SPLIT_COLUMNS)
    return next((word for word in said if isinstance(word, str) and is_ml_use(word)), None)


def _picture(
    listing: Listing, folder: str, label: str, names: Sequence[str], line: int, record: Any
) -> Picture:
    """Return the image of a record in a folder. Raises: ValueError: it cannot be used."""
    name = record.get(FILE)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"expected {FILE} and {label} (got {record!r:.80})")
    # The path is exact. An image of this name elsewhere may be of another split.
    image = name.strip()
    if not storage.is_url(image):
        image = posixpath.normpath(posixpath.join(folder, image))
    if image not in listing:
        message = f"there is no image {image}; {FILE} is relative to the folder of this file"
        raise pictures.ExampleError(message, image, RejectCode.MISSING_FILE)
    value, split = record.get(label), _split_in(record)
    with pictures.about(image):
        if label != _OBJECTS:
            return Picture(line, image, split, labels=labels_of(value, names))
        objects = read_objects(objects_in(value), names)
    return Picture(line, image, split, size_in_file(listing, image) if objects else None, objects)
