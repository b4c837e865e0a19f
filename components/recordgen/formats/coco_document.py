"""A parsed COCO document: its images, categories and annotations, with their shapes, in arrays.

"segmentation": [[10, 20, 40, 20, 40, 60]]                           polygons
"segmentation": {"size": [480, 640], "counts": [272, 2, 4, …]}       runs; or COCO's text of them
"keypoints": [25, 22, 2, 0, 0, 0, …]                                 x, y, visibility
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from recordgen.core.limits import IMAGE_KEYPOINTS, KEYPOINTS, MASK_PIXELS, MASK_RUNS
from recordgen.core.records.run_lengths import box_of, runs_of, text_of
from recordgen.core.rows.details import KEYPOINT, NOTHING, Details, Mask
from recordgen.core.rows.picture import (
    Corners,
    Marked,
    Picture,
    are_numbers,
    is_number,
    is_size,
)
from recordgen.core.rows.polygons import NO_POLYGONS, Points, Polygons
from recordgen.errors import SourceError
from recordgen.features import IS_CROWD
from recordgen.formats.json_items import top_items
from recordgen.formats.listing import Listing
from recordgen.formats.pictures import Note, Problem
from recordgen.tasks import ImageClassification, ImageMultiLabel, ImageSegmentation, ObjectDetection


class Image(NamedTuple):
    """The values of an image that are kept, as written: there may be a hundred thousand images."""

    id: Any
    file_name: Any
    width: Any
    height: Any


_NO_CATEGORY = -1  # the number of the category of an object without one
_NO_CORNERS = (math.nan,) * 4
_SHAPES = frozenset({"bbox", "segmentation", "keypoints"})
_CROWD = frozenset({IS_CROWD})
# Numbers of the smallest polygon, a triangle.
_TRIANGLE = 6


@dataclass(eq=False)
class Shapes:
    """The shapes of annotations by index. Each number of a point takes 4 bytes."""

    _points: array[float] = field(default_factory=lambda: array("f"))
    _ends: array[int] = field(default_factory=lambda: array("q", [0]))  # of each polygon
    _polygons: array[int] = field(default_factory=lambda: array("q", [0]))  # up to each annotation
    _masks: dict[int, Mask | str] = field(default_factory=dict)  # or why there is none
    _keypoints: dict[int, array[float]] = field(default_factory=dict)

    def add(self, item: Any) -> None:
        """Add the shapes of the next annotation."""
        at = len(self._polygons) - 1
        shape = item.get("segmentation")
        for points in polygons_in(shape):
            self._points += points
            self._ends.append(self._ends[-1] + len(points))
        self._polygons.append(len(self._ends) - 1)
        try:
            if (mask := mask_in(shape)) is not None:
                self._masks[at] = mask
        except ValueError as exc:
            self._masks[at] = str(exc)
        keypoints = item.get("keypoints")
        if keypoints and are_numbers(keypoints) and any(keypoints):
            self._keypoints[at] = array("f", keypoints)

    @property
    def most_keypoints(self) -> int:
        """The largest number of keypoints of an annotation that does not exceed the limit."""
        counts = (len(numbers) // KEYPOINT for numbers in self._keypoints.values())
        return max((count for count in counts if count <= KEYPOINTS.most), default=0)

    @property
    def keypoints_of(self) -> KeysView[int]:
        """The annotations that have keypoints."""
        return self._keypoints.keys()

    def polygons(self, at: int) -> Polygons:
        """Return the polygons of an annotation."""
        first, last = self._polygons[at], self._polygons[at + 1]
        if first == last:
            return NO_POLYGONS
        ends = self._ends[first : last + 1]
        sizes = tuple((end - start) // 2 for start, end in pairwise(ends))
        return Polygons(sizes, self._points[ends[0] : ends[-1]].tobytes())

    def mask(self, at: int) -> Mask | None:
        """Return the mask of an annotation. Raises: ValueError: it is damaged."""
        found = self._masks.get(at)
        if isinstance(found, str):
            raise ValueError(found)
        return found

    def keypoints(self, at: int, count: int) -> Points:
        """Return ``count`` numbers of keypoints. Raises: ValueError: there are more."""
        found = tuple(self._keypoints.get(at, ()))
        if found:
            KEYPOINTS.check(count // KEYPOINT)
        if len(found) % KEYPOINT or len(found) > count:
            raise ValueError(
                f"keypoints need x, y and visibility of each of {count // KEYPOINT} names (got "
                f"{len(found)} numbers)"
            )
        return found + (0.0,) * (count - len(found)) if found else ()


@dataclass
class CocoDocument:
    """A parsed document. Boxes are in arrays, since there may be millions.

    Attributes:
        names: the name of each category, by its id.
        groups: the supercategory of each category, by its id.
        keypoints: the names of the keypoints of the category that has most of them; numbers if
            no category names any.
        shapes: the outlines, masks and keypoints of annotations.
        has_shapes: an annotation has a key for a shape; otherwise all are labels of whole images.
    """

    images: list[Image] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    keypoints: list[str] = field(default_factory=list)
    has_annotations: bool = False
    has_shapes: bool = False
    _number_of: dict[str, int] = field(default_factory=dict)  # of an image, by its id
    _image: array[int] = field(default_factory=lambda: array("i"))
    _category: array[int] = field(default_factory=lambda: array("i"))
    _id: array[int] = field(default_factory=lambda: array("q"))
    _is_crowd: array[int] = field(default_factory=lambda: array("b"))
    _corners: array[float] = field(default_factory=lambda: array("d"))
    _area: array[float] = field(default_factory=lambda: array("d"))  # NaN if unknown
    shapes: Shapes = field(default_factory=Shapes)
    _categories: dict[str, int] = field(default_factory=dict)

    def add_annotation(self, item: Mapping[str, Any]) -> None:
        """Add an annotation."""
        category = item.get("category_id")
        number = self._categories.setdefault(_key(category), len(self._categories))
        if category is None:
            number = _NO_CATEGORY
        self.has_shapes = self.has_shapes or not _SHAPES.isdisjoint(item)
        key = _key(item.get("image_id"))
        self._image.append(self._number_of.setdefault(key, len(self._number_of)))
        self._category.append(number)
        own = item.get("id")
        self._id.append(own if isinstance(own, int) and abs(own) < 1 << 62 else -1)
        self._is_crowd.append(bool(item.get("iscrowd")))
        self._corners.extend(_corners_of(item) or _NO_CORNERS)
        area = item.get("area")
        self._area.append(math.nan if area is None or not is_number(area) else area)
        self.shapes.add(item)

    @cached_property
    def _id_of(self) -> Sequence[str]:
        return list(self._categories)

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
    def has_boxes(self) -> bool:
        """Whether any annotation is of a listed image."""
        return not self._file_of.keys().isdisjoint(self._number_of)

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks that annotations suit; the first is that of all images."""
        if self.has_shapes:
            return ObjectDetection.name, ImageSegmentation.name
        labelled = set(zip(self._image, self._category, strict=True))
        is_single = len(labelled) == len(set(self._image))
        labels = ImageClassification.name, ImageMultiLabel.name
        return labels if is_single else labels[1:]

    def is_shared(self, image: Image) -> bool:
        """Return whether another image has the id of an image."""
        return self._file_of.get(_key(image.id)) is None

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

    def pictures(self) -> Iterator[tuple[Image, Sequence[int]]]:
        """Yield each image with the indices of its annotations."""
        numbers = np.asarray(self._image)
        order = np.argsort(numbers, kind="stable")
        # One search: each would copy all numbers if its types were not the same.
        ends = np.searchsorted(numbers[order], np.arange(len(self._number_of) + 1)).tolist()
        for image in self.images:
            number = self._number_of.get(_key(image.id))
            mine = slice(0) if number is None else slice(ends[number], ends[number + 1])
            yield image, order[mine].tolist()

    def picture(
        self, line: int, uri: str, size: tuple[int, int] | None, boxes: Sequence[int]
    ) -> Picture | Problem:
        """Return an image with its boxes or labels, or the problem with one of them."""
        id_of = self._id_of
        objects = list[Marked]()
        if not self.shapes.keypoints_of.isdisjoint(boxes):
            try:
                IMAGE_KEYPOINTS.check(len(boxes) * len(self.keypoints))
            except ValueError as exc:
                return Problem(line, str(exc), uri)
        for at in boxes:
            number = self._category[at]
            label = self.names.get(id_of[number]) if number >= 0 else None
            xmin, ymin, xmax, ymax = self._corners[4 * at : 4 * at + 4]
            is_lost = self.has_shapes and math.isnan(xmin)
            if label is None or is_lost:
                what = "no usable bbox" if is_lost else "a category that is not listed"
                return Problem(line, f"the annotation {self._id[at]} of this image has {what}", uri)
            try:
                details = self._details(at)
            except ValueError as exc:
                return Problem(line, f"the annotation {self._id[at]} of this image: {exc}", uri)
            objects.append(Marked(label, (xmin, ymin, xmax, ymax), details))
        if not self.has_shapes:
            return Picture(line, uri, size=size, labels=[each.label for each in objects])
        return Picture(line, uri, size=size, objects=objects)

    def _details(self, at: int) -> Details:
        """Return what is known of an object. Raises: ValueError: its segmentation is damaged."""
        area = self._area[at]
        return Details(
            _CROWD if self._is_crowd[at] else NOTHING.flags,
            None if math.isnan(area) else area,
            self.shapes.polygons(at),
            self.shapes.mask(at),
            self.shapes.keypoints(at, KEYPOINT * len(self.keypoints)),
        )


def parse_document(listing: Listing, name: str) -> CocoDocument:
    """Parse a document. Raises: SourceError."""
    found, where = CocoDocument(), f"{listing.root}{name}"
    try:
        with listing.open(name) as file:
            for key, item in top_items(file):
                if key == "images" and isinstance(item, dict):
                    file_name = item.get("file_name") or _name_in(item.get("coco_url"))
                    size = item.get("width"), item.get("height")
                    found.images.append(Image(item.get("id"), file_name, *size))
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
                    points = item.get("keypoints")
                    if isinstance(points, list) and len(points) > len(found.keypoints):
                        found.keypoints = list(map(str, points))
    except (ValueError, UnicodeDecodeError) as exc:
        raise SourceError(f"{where}: this is no whole COCO document: {exc}") from exc
    if not found.images or not found.names:
        raise SourceError(
            f"{where}: a COCO document needs images and categories (got {len(found.images):,} "
            f"images and {len(found.names):,} categories)"
        )
    if not found.has_annotations:
        raise SourceError(f"{where}: this COCO document has only images; pass one with annotations")
    found.keypoints = found.keypoints or list(map(str, range(found.shapes.most_keypoints)))
    if not found.has_boxes:
        raise SourceError(
            f"{where}: no annotation has the image_id of an image; expected a list of annotations, "
            f"each with the id of its image"
        )
    return found


def _name_in(url: Any) -> str | None:
    """Return the path of an image as COCO's folders have it, from its address.

    ``http://images.cocodataset.org/train2017/000000000009.jpg`` → ``train2017/000000000009.jpg``
    """
    return "/".join(url.split("/")[-2:]) if isinstance(url, str) else None


def _key(value: Any) -> str:
    """Return an id that can be compared: 7, 7.0 and "7" are the same."""
    found = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return sys.intern(found)  # in memory once, though several dictionaries have it


def _corners_of(item: Mapping[str, Any]) -> Corners | None:
    """Return the corners of an annotation, from its bbox or else its segmentation."""
    box = item.get("bbox")
    if are_numbers(box) and len(box) == 4:
        left, top, width, height = box
        return left, top, left + width, top + height
    shape = item.get("segmentation")
    if polygons := polygons_in(shape):
        xs = [x for points in polygons for x in points[::2]]
        ys = [y for points in polygons for y in points[1::2]]
        return min(xs), min(ys), max(xs), max(ys)
    try:
        mask = mask_in(shape)
        return None if mask is None else box_of(runs_of(mask.counts), mask.height)
    except ValueError:
        return None


def polygons_in(shape: Any) -> Sequence[array[float]]:
    """Return the polygons of a segmentation; none if it is something else, or one is damaged."""
    if not isinstance(shape, list):
        return ()
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


def mask_in(shape: Any) -> Mask | None:
    """Return the mask of a segmentation; None if it has polygons or nothing.

    Raises: ValueError: the runs do not fill the picture, or exceed a limit.
    """
    if not isinstance(shape, dict):
        return None
    size, counts = shape.get("size"), shape.get("counts")
    if not (are_numbers(size) and len(size) == 2):
        raise ValueError(f"the size of a mask must be its height and width (got {size!r:.40})")
    height, width = map(int, size)
    if not is_size((width, height)):
        raise ValueError(f"the size of a mask must be its height and width (got {size!r:.40})")
    MASK_PIXELS.check(height * width)
    if isinstance(counts, list) and all(isinstance(count, int) for count in counts):
        runs = counts
    elif isinstance(counts, str):
        runs = runs_of(counts)
    else:
        raise ValueError(f"the counts of a mask must be runs (got {counts!r:.40})")
    MASK_RUNS.check(len(runs))
    if sum(runs) != height * width or min(runs, default=0) < 0:
        raise ValueError(f"the runs have {sum(runs):,} pixels, but their picture {height}×{width}")
    return Mask(text_of(runs), height, width)
