"""COCO: one JSON document with all images, boxes and categories of a split.

    {"images": [{"id": 7, "file_name": "a.jpg", "width": 640, "height": 480}],
     "annotations": [{"image_id": 7, "category_id": 18, "bbox": [10, 20, 30, 40]}],
     "categories": [{"id": 18, "name": "dog"}]}

becomes the picture ``a.jpg`` with the box (10, 20, 40, 60) of a dog, in pixels. If no annotation
has a ``bbox``, ``segmentation`` or ``keypoints``, categories are the labels of whole images. Rules:
"COCO data format" (cocodataset.org); the number of a class is its position among the categories in
the order of their ids, as Detectron2, torchvision and Ultralytics number them.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from recordgen import storage
from recordgen.core.limits import KEYPOINTS
from recordgen.errors import NotUnderstoodError, SourceError
from recordgen.formats import pictures
from recordgen.formats.coco_document import CocoDocument, Image, parse_document
from recordgen.formats.field_kinds import words_by_kind
from recordgen.formats.format import Evidence, Rows
from recordgen.formats.json_values import key_paths
from recordgen.formats.listing import Listing
from recordgen.formats.objects import TASKS_OF_IMAGES
from recordgen.subjects.picture import Picture

if TYPE_CHECKING:
    from recordgen.core.rows.row import Adjustments
    from recordgen.core.task.task import Task
    from recordgen.formats.header import Given
    from recordgen.formats.import_file import ImportFile

_SINGLE, _SEVERAL, _BOXES, _MASKS = TASKS_OF_IMAGES

# Each COCO document begins with one of these keys.
_WORDS = (b'"images"', b'"annotations"', b'"categories"', b'"image_id"', b'"licenses"')

_MAX_DIGITS = 300


class Coco(pictures.PictureFormat):
    """COCO's ``instances_….json`` or Roboflow's ``_annotations.coco.json``."""

    name = "coco"
    tasks: ClassVar = (_BOXES, _MASKS, _SINGLE, _SEVERAL)
    in_pixels = True
    has_sizes = True

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
        documents = [listing.parsed(name, parse_document) for name in found]
        _check_kinds(listing, found, [document.has_shapes for document in documents])
        classes = _classes(listing, found, documents)
        reason = f"{found[0]} has {len(documents[0].images):,} images and {len(classes)} categories"
        names = max((document.keypoints for document in documents), key=len)
        known = pictures.keypoints(names) if 0 < len(names) <= KEYPOINTS.most else None
        task = max((document.tasks[0] for document in documents), key=self.tasks.index)
        return Evidence(reason, task, found, classes, keypoints=known)

    def rows(self, file: ImportFile, task: Task, adjusted: Adjustments, given: Given) -> Rows:
        listing = file.around
        tasks = listing.parsed(listing.only, parse_document).tasks
        if task.name not in tasks:
            what = f"its annotations are those of {' or '.join(tasks)}, not of {task.name}"
            raise NotUnderstoodError(f"{file.path}: {what}", options={"task": tasks[0]})
        return super().rows(file, task, adjusted, given)

    def read(self, listing: Listing, document: str) -> pictures.Pictures:
        parsed: CocoDocument = listing.parsed(document, parse_document)
        yield from parsed.notes()
        paths = (it.file_name for it in parsed.images if isinstance(it.file_name, str))
        if not listing.images and not all(map(storage.is_url, paths)):
            what = "there are no images below its folder; pass a folder that holds both"
            raise SourceError(f"{listing.root}{document}: {what}")
        make = partial(_picture, listing, parsed, _folders(document))
        seen: Counter[str] = Counter()
        for item in pictures.examples(enumerate(parsed.images, start=1), make):
            seen[item.uri] += isinstance(item, Picture)
            yield item
        if twice := sum(count > 1 for count in seen.values()):
            yield pictures.Note(0, f"{twice:,} images are listed again; their boxes were merged")
        is_alone = not any(name != document for name in listing.at("").candidates(".json"))
        others = [name for name in listing.images if name not in seen] if is_alone else []
        yield from pictures.notes_about(others, "images are not in it, and were skipped")
        listing.forget(document)


def _picture(
    listing: Listing, parsed: CocoDocument, folders: Sequence[str], line: int, image: Image
) -> Picture:
    """Return an image with its annotations. Raises: ValueError: it cannot be used."""
    name, boxes = image.file_name, parsed.annotations(image.id)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the image {image.id!r:.40} has no file_name or coco_url")
    if boxes and parsed.is_shared(image):
        what = f"the image {name} has no id of its own (got {image.id!r:.40})"
        raise pictures.ExampleError(f"{what}, so its boxes are unknown", name)
    if not storage.is_url(name):
        name = pictures.image_named(listing, name, *folders)
    return parsed.picture(line, name, image, boxes)


def _check_kinds(listing: Listing, names: Sequence[str], has_shapes: Sequence[bool]) -> None:
    """Check that all documents have boxes, or all labels of whole images.

    Raises: NotUnderstoodError: it names the documents of the first kind, by a pattern if it can.
    """
    if len({*has_shapes}) == 1:
        return
    kinds = dict(zip(names, has_shapes, strict=True))
    begin, mark, _ = names[0].rpartition("_")  # instances_train.json, instances_val.json
    pattern = f"{begin}_*.json"
    others = [name for name, each in kinds.items() if each != has_shapes[0]]
    if not mark or any(fnmatchcase(name, pattern) for name in others):
        pattern = names[0]
    what = "some COCO documents have boxes, others only labels of whole images"
    reason = f"{listing.root}: {what}; pass those of one kind, from {', '.join(names)}"
    advice = {"image_root": listing.root}
    raise NotUnderstoodError(reason, options=advice, source=f"{listing.root}{pattern}")


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
    others = ["results of a model"] if {"image_id", "category_id", "score"} <= keys else []
    unread, base = words_by_kind()["unread_documents_of_coco"], posixpath.basename(name)
    others += [what for said, what in unread.items() if said in keys or base.startswith(said)]
    if others:
        what = f"this COCO document holds {others[0]}, which no task reads"
        raise SourceError(f"{listing.root}{name}: {what}; pass that of instances, with boxes")
    is_named = "coco" in name.lower() or name.lower().startswith("instances_")
    return has_images or has_boxes or (is_named and {"info", "licenses"} <= keys)


def _classes(
    listing: Listing, names: Sequence[str], documents: Sequence[CocoDocument]
) -> tuple[str, ...]:
    """Return the names of all categories in the order of their ids. Raises: SourceError."""
    labels: dict[str, str] = {}
    for name, document in zip(names, documents, strict=True):
        for key, label in document.names.items():
            if labels.setdefault(key, label) != label:
                what = f"the category {key} is {label!r}, but {labels[key]!r} in {names[0]}"
                raise SourceError(f"{listing.root}{name}: {what}; convert them separately")
    parent = _parent(documents)
    ordered = sorted(labels, key=order_of_ids)
    return tuple(dict.fromkeys(labels[key] for key in ordered if key != parent and labels[key]))


def _parent(documents: Sequence[CocoDocument]) -> str | None:
    """Return the id of Roboflow's category 0, which only names the project, or None."""
    groups = documents[0].groups
    used = frozenset[str]().union(*(document.used for document in documents))
    count = Counter(groups.values())
    for key, label in documents[0].names.items():
        others = count[label] - (groups[key] == label)
        if key not in used and others == len(groups) - 1 > 0:
            return key
    return None


def _folders(document: str) -> Sequence[str]:
    """Return the folders in which the images of a document may be, the likeliest first."""
    stem = posixpath.splitext(posixpath.basename(document))[0]
    stem = stem.removeprefix("instances_").removeprefix("person_keypoints_")
    beside = stem, f"{stem}2017", f"images/{stem}"
    return pictures.places_of(document, "", "images", *beside, "data")


def order_of_ids(key: str) -> tuple[bool, float, str]:
    """Return the sort key of an id: numbers first."""
    number = key.removeprefix("-").isdecimal() and len(key) < _MAX_DIGITS
    return not number, int(key) if number else 0, key
