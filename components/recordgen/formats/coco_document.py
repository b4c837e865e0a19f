"""A parsed COCO document: its images, categories, and annotations with their shapes.

"segmentation": [[10, 20, 40, 20, 40, 60]]                           polygons
"segmentation": {"size": [480, 640], "counts": [272, 2, 4, …]}       runs; or COCO's text of them
"keypoints": [25, 22, 2, 0, 0, 0, …]                                 x, y, visibility
"""

from __future__ import annotations

import marshal
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from recordgen.core.limits import IMAGE_KEYPOINTS, KEYPOINTS, MASK_PIXELS, MASK_RUNS
from recordgen.features import IS_CROWD
from recordgen.formats.json_values import top_items
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import ExampleError, Note, notes_about_twins, size_of
from recordgen.storage.local import Spool
from recordgen.subjects.details import KEYPOINT, NOTHING, Details, Mask, Points, Polygons
from recordgen.subjects.masks import box_of, runs_of, text_of
from recordgen.subjects.picture import Corners, Marked, Picture, are_numbers, is_number, is_size
from recordgen.tasks import ImageClassification, ImageMultiLabel, ImageSegmentation, ObjectDetection

_SHAPES = frozenset({"bbox", "segmentation", "keypoints"})
# The version of a dataset, in copies that Recordgen writes.
_DIGEST = re.compile("[0-9a-f]{64}")
_CROWD = frozenset({IS_CROWD})
_FLOAT_BYTES = array("f").itemsize
_NO_CORNERS = (math.nan,) * 4
# Numbers of the smallest polygon, a triangle.
_TRIANGLE = 6


class Image(NamedTuple):
    """The values of an image that are kept, as written: there may be a hundred thousand images."""

    id: Any
    file_name: Any
    width: Any
    height: Any


class Annotation(NamedTuple):
    """An annotation of an image. Its numbers take 4 bytes each, except for those of its box.

    Attributes:
        category: the id of its category; None if it has none.
        id: its own id; -1 if that is no whole number.
        corners: its box in pixels; None if it has none that is usable.
        area: in pixels; None if it is unknown.
        sizes: the points of each of its polygons.
        points: the coordinates of all polygons.
        mask: runs, height and width of its mask; or why that is damaged.
        keypoints: x, y and visibility of each.
    """

    category: str | None
    id: int
    is_crowd: bool
    corners: Corners | None
    area: float | None
    sizes: tuple[int, ...]
    points: bytes
    mask: tuple[str, int, int] | str | None
    keypoints: bytes

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Annotation:
        """Return an item of a document."""
        category, own = item.get("category_id"), item.get("id")
        area: Any = item.get("area")
        shape, keypoints = item.get("segmentation"), item.get("keypoints")
        polygons: Sequence[array[float]] = polygons_in(shape) if isinstance(shape, list) else ()
        mask: Mask | str | None = None
        if isinstance(shape, dict):
            try:
                mask = mask_in(shape)
            except ValueError as exc:
                mask = str(exc)
        if not (are_numbers(keypoints) and any(keypoints)):
            keypoints = []
        return cls(
            None if category is None else _key(category),
            own if isinstance(own, int) and abs(own) < 1 << 62 else -1,
            bool(item.get("iscrowd")),
            _corners_of(item.get("bbox"), polygons, mask),
            float(area) if is_number(area) else None,
            tuple([len(points) // 2 for points in polygons]),
            b"".join(polygons),
            (mask.counts, mask.height, mask.width) if isinstance(mask, Mask) else mask,
            array("f", keypoints).tobytes() if keypoints else b"",
        )

    def __str__(self) -> str:
        return f"the annotation {self.id} of this image"

    def details(self, count: int) -> Details:
        """Return what is known of the object, with the numbers of ``count`` keypoints.

        Raises: ValueError: its mask is damaged, or it has other keypoints.
        """
        if isinstance(self.mask, str):
            raise ValueError(self.mask)
        return Details(
            _CROWD if self.is_crowd else NOTHING.flags,
            self.area,
            Polygons(self.sizes, self.points),
            None if self.mask is None else Mask(*self.mask),
            self._keypoints(count) if self.keypoints else (),
        )

    def _keypoints(self, count: int) -> Points:
        found = tuple(array("f", self.keypoints))
        KEYPOINTS.check(count)
        missing = KEYPOINT * count - len(found)
        if len(found) % KEYPOINT or missing < 0:
            raise ValueError(f"expected {count} keypoints of 3 numbers (got {len(found)} numbers)")
        return found + (0.0,) * missing


@dataclass
class CocoDocument:
    """A parsed document. Annotations are packed, since there may be millions.

    Attributes:
        names: the name of each category, by its id.
        groups: the supercategory of each category, by its id.
        keypoints: the names of the keypoints of the category that has most of them; numbers if
            no category names any.
        used: the ids of the categories that annotations have.
        has_shapes: an annotation has a key for a shape, or a list; otherwise all are labels of
            whole images.
        is_copy: Recordgen wrote it, so that no image of a split may have objects.
    """

    images: list[Image] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    keypoints: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    has_shapes: bool = False
    is_copy: bool = False
    _most_keypoints: int = 0
    # The packed annotations; the number of the last one of each image, by its id; and the number
    # of the one before of the same image, or -1.
    _packed: Spool = field(default_factory=Spool)
    _last: dict[str, int] = field(default_factory=dict)
    _before: array[int] = field(default_factory=partial(array, "l"))

    def add(self, key: str, item: Any) -> None:
        """Add a value of the document, or an item of a list. Raises: ValueError."""
        if not isinstance(item, dict):
            return
        if key == "images":
            url = item.get("coco_url")  # as COCO's folders have it: train2017/000000000009.jpg
            path = "/".join(url.split("/")[-2:]) if isinstance(url, str) else None
            size = item.get("width"), item.get("height")
            self.images.append(Image(item.get("id"), item.get("file_name") or path, *size))
        elif key == "annotations":
            self._add_annotation(item)
        elif key == "categories":
            self._add_category(item)
        elif key == "info" and _DIGEST.fullmatch(str(item.get("version"))):
            self.is_copy = self.has_shapes = True

    def _add_annotation(self, item: Mapping[str, Any]) -> None:
        found = Annotation.of(item)
        self.used.add(str(found.category))
        if not self.has_shapes:  # or one of other tools
            is_shape = any(isinstance(value, list) and value for value in item.values())
            self.has_shapes = is_shape or not _SHAPES.isdisjoint(item)
        count = len(found.keypoints) // (_FLOAT_BYTES * KEYPOINT)
        if self._most_keypoints < count <= KEYPOINTS.most:
            self._most_keypoints = count
        key = _key(item.get("image_id"))
        self._before.append(self._last.get(key, -1))
        self._last[key] = self._packed.add(marshal.dumps(tuple(found)))

    def _add_category(self, item: Mapping[str, Any]) -> None:
        own, label = _key(item.get("id")), item.get("name")
        label = "" if label is None else str(label).strip()
        if self.names.setdefault(own, label) != label:
            raise ValueError(f"the category {own} is {label!r} and {self.names[own]!r}")
        self.groups[own] = str(item.get("supercategory") or "")
        points = item.get("keypoints")
        if isinstance(points, list) and len(points) > len(self.keypoints):
            self.keypoints = list(map(str, points))

    def check(self) -> None:
        """Check that annotations are of images. Raises: ValueError."""
        if not self.images or not self.names:
            got = f"{len(self.images):,} images and {len(self.names):,} categories"
            raise ValueError(f"it needs images and categories (got {got})")
        if not self.is_copy and self._file_of.keys().isdisjoint(self._last):
            what = "it has no annotations with the image_id of one of its images"
            raise ValueError(f"{what}; pass a document with annotations")
        self.keypoints = self.keypoints or list(map(str, range(self._most_keypoints)))

    @cached_property
    def _file_of(self) -> Mapping[str, Any]:
        """The name of the image with each id; None if several images have it."""
        found: dict[str, Any] = {}
        for image in self.images:
            if (own := image.id) is not None:
                name = image.file_name
                if found.setdefault(_key(own), name) != name:
                    found[_key(own)] = None
        return found

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks that annotations suit; the first is that of all images."""
        if self.has_shapes:
            return ObjectDetection.name, ImageSegmentation.name
        labels = ImageClassification.name, ImageMultiLabel.name
        found = ({it.category for it in self.annotations(key)} for key in self._last)
        return labels if all(len(categories) == 1 for categories in found) else labels[1:]

    def is_shared(self, image: Image) -> bool:
        """Return whether another image has the id of an image."""
        return self._file_of.get(_key(image.id)) is None

    def notes(self) -> Iterator[Note]:
        """Yield what is odd about the whole document."""
        strangers = self._last.keys() - self._file_of.keys()
        if lost := sum(1 for key in strangers for _ in self._numbers(key)):
            yield Note(0, f"{lost:,} annotations of images that are not listed were skipped")
        yield from notes_about_twins([*self.names.values()])

    def annotations(self, image_id: Any) -> Sequence[Annotation]:
        """Return the annotations of the image with an id."""
        packed = map(self._packed.__getitem__, self._numbers(_key(image_id)))
        return [Annotation._make(marshal.loads(each)) for each in packed][::-1]

    def _numbers(self, key: str) -> Iterator[int]:
        """Yield the numbers of the packed annotations of an image, the last one first."""
        number = self._last.get(key, -1)
        while number >= 0:
            yield number
            number = self._before[number]

    def picture(self, line: int, uri: str, image: Image, found: Sequence[Annotation]) -> Picture:
        """Return an image with its boxes or labels. Raises: ExampleError: one is damaged."""
        try:
            if any(annotation.keypoints for annotation in found):
                IMAGE_KEYPOINTS.check(len(found) * len(self.keypoints))
            objects = list(map(self._marked, found))
        except ValueError as exc:
            raise ExampleError(str(exc), uri) from exc
        size = size_of(image.width, image.height)
        if not self.has_shapes:
            return Picture(line, uri, size=size, labels=[each.label for each in objects])
        return Picture(line, uri, size=size, objects=objects)

    def _marked(self, annotation: Annotation) -> Marked:
        """Return an object. Raises: ValueError: it has no class, no box or damaged shapes."""
        label = self.names.get(annotation.category) if annotation.category is not None else None
        if annotation.corners is None and self.has_shapes:
            raise ValueError(f"{annotation} has no usable bbox")
        if label is None:
            raise ValueError(f"{annotation} has a category that is not listed")
        try:
            details = annotation.details(len(self.keypoints))
        except ValueError as exc:
            raise ValueError(f"{annotation}: {exc}") from exc
        return Marked(label, annotation.corners or _NO_CORNERS, details)


def parse_document(listing: Listing, name: str) -> CocoDocument:
    """Parse a document. Raises: SourceError."""
    found = CocoDocument()
    with listing.whole(name, "COCO document") as file:
        for key, item in top_items(file):
            found.add(key, item)
        found.check()
    return found


def _key(value: Any) -> str:
    """Return an id that can be compared: 7, 7.0 and "7" are the same."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _corners_of(
    box: Any, polygons: Sequence[array[float]], mask: Mask | str | None
) -> Corners | None:
    """Return the corners of a box, or else those of its polygons or its mask."""
    if are_numbers(box) and len(box) == 4:
        left, top, width, height = box
        return left, top, left + width, top + height
    if polygons:
        xs = [x for points in polygons for x in points[::2]]
        ys = [y for points in polygons for y in points[1::2]]
        return min(xs), min(ys), max(xs), max(ys)
    return box_of(runs_of(mask.counts), mask.height) if isinstance(mask, Mask) else None


def polygons_in(shape: Sequence[Any]) -> Sequence[array[float]]:
    """Return the polygons of a segmentation; none if one of them is damaged."""
    found = []
    for each in shape:
        try:
            points = array("f", each if isinstance(each, list) else ())
        except (TypeError, OverflowError):
            return ()
        # Numbers that are none, or too large, have no finite sum.
        if len(points) < _TRIANGLE or not math.isfinite(sum(points)):
            return ()
        found.append(points[:-1] if len(points) % 2 else points)
    return found


def mask_in(shape: Mapping[str, Any]) -> Mask:
    """Return the mask of a segmentation.

    Raises: ValueError: the runs do not fill the picture, or exceed a limit.
    """
    size, counts = shape.get("size"), shape.get("counts")
    if not (are_numbers(size) and len(size) == 2 and is_size((int(size[0]), int(size[1])))):
        raise ValueError(f"the size of a mask must be its height and width (got {size!r:.40})")
    height, width = map(int, size)
    MASK_PIXELS.check(height * width)
    runs = runs_of(counts) if isinstance(counts, str) else counts
    if not (isinstance(runs, list) and all(isinstance(count, int) for count in runs)):
        raise ValueError(f"the counts of a mask must be runs (got {counts!r:.40})")
    MASK_RUNS.check(len(runs))
    if sum(runs) != height * width or min(runs, default=0) < 0:
        raise ValueError(f"the runs have {sum(runs):,} pixels, but their picture {height}×{width}")
    return Mask(text_of(runs), height, width)
