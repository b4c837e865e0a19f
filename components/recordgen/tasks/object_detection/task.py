"""Object detection: any number of labelled boxes per image: ``[ML_USE],PATH,[LABEL],[BOX]``.

Vertex AI "Prepare image training data for object detection": one box per row; the rows of one image
are merged. A box is eight fields, two opposite corners in any order, or all four::

    TRAIN,gs://bucket/1.jpg,cat,.1,.2,,,.5,.6,,
    TRAIN,gs://bucket/1.jpg,cat,.1,.2,.5,.2,.5,.6,.1,.6
    {"imageGcsUri": "gs://bucket/1.jpg", "boundingBoxAnnotations":
     [{"displayName": "cat", "xMin": 0.1, "yMin": "0.2", "xMax": 0.5, "yMax": 0.6}]}

become ``image/object/bbox/xmin: [0.1]``, …, ``image/object/class/text: [b"cat"]`` and
``image/object/class/label: [0]``; an image without objects has none of these features. Coordinates
are shares of the image's width and height, from its upper left corner. The annotation is
:class:`recordgen.tasks.object_detection.annotation.Boxes`.

Under a header with the columns width and height, corners may be pixels: see
:mod:`recordgen.tasks.object_detection.box_unit`.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from recordgen import features
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.facts import BOXES
from recordgen.core.records.example import FeatureValue
from recordgen.core.records.objects import details_in, features_of
from recordgen.core.rows.details import NOTHING, Details
from recordgen.core.rows.row import Adjustments
from recordgen.core.settings import TaskSettings
from recordgen.core.task.annotation import (
    Merged,
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
)
from recordgen.core.task.annotations import PARTS
from recordgen.core.task.payloads import Texts
from recordgen.core.task.task import Task
from recordgen.errors import PayloadError
from recordgen.quoting import listed
from recordgen.rejects import RejectCode
from recordgen.tables.csv_fields import is_number
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS
from recordgen.tasks.images.image_task import Described, ImageTask, StoredImage
from recordgen.tasks.lines import add_up, display_name
from recordgen.tasks.object_detection.annotation import (
    Box,
    Boxes,
    ImageSize,
    boxes_in,
    labels_in,
    without_shapes,
)
from recordgen.tasks.object_detection.box_geometry import (
    is_cut,
    nearly_coincide,
    seen_through,
    turned,
)
from recordgen.tasks.object_detection.box_unit import FAR, PIXELS, BoxUnit, shown
from recordgen.tasks.object_detection.object_moves import Move, areas_of, as_stored
from recordgen.tasks.spelling import check_spelling

if TYPE_CHECKING:
    from recordgen.core.rows.picture import Picture
    from recordgen.payloads.image import CheckedImage

#: Names in ``rows.adjusted`` of ``dataset.json``.
FILES_IN_PIXELS = "files_in_pixels"
BOXES_CLIPPED = "boxes_clipped"
BOXES_SWAPPED = "boxes_swapped"
BOXES_DROPPED = "boxes_dropped"
BOXES_REPEATED = "boxes_repeated"
BOXES_CUT = "boxes_cut"
BOXES_OUTSIDE = "boxes_outside"

# In annotations with outlines or masks.
_HAS_SHAPE = '"details":'

_EXPECTED_BOX = "xmin,ymin,,,xmax,ymax,, or all four corners"
_KEYS = ("xMin", "yMin", "xMax", "yMax")

# Also matches "10%" and "0,1": no coordinates, but no labels between gaps either.
_BEGINS_NUMBER = re.compile(r"[+-]?([.,]?\d|inf|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class ObjectDetection(ImageTask):
    """Object detection with any number of boxes per image.

    Attributes:
        bad_boxes: treatment of boxes that are outside the image, empty or inverted; see
            :class:`recordgen.options.ConvertOptions`.
        box_orientation: the picture that boxes refer to, stored or upright; see there.
        resize: how images are resized; boxes move if their image is cropped or padded.
        unit: unit of the boxes in the current import file.
    """

    name = "object_detection"
    expected = f"[ML_USE],PATH,[LABEL],[BOX], a box being {_EXPECTED_BOX}"
    # The corners between the two opposite ones have no columns under a header.
    columns: ClassVar = {
        "label": LABEL_COLUMNS,
        "xmin": frozenset({"xmin", "x_min", "left", "x1", "xtl", "topx"}),
        "ymin": frozenset({"ymin", "y_min", "top", "y1", "ytl", "topy"}),
        "x2": frozenset(),
        "y2": frozenset(),
        "xmax": frozenset({"xmax", "x_max", "right", "x2", "xbr", "bottomx"}),
        "ymax": frozenset({"ymax", "y_max", "bottom", "y2", "ybr", "bottomy"}),
        "x4": frozenset(),
        "y4": frozenset(),
        "width": frozenset({"width", "image_width", "img_width"}),
        "height": frozenset({"height", "image_height", "img_height"}),
    }
    labelling = PARTS
    details_noun = "boxes"
    json_keys = ("boundingBoxAnnotations",)
    facts = (*ImageTask.facts, BOXES)
    features: ClassVar = features.OBJECT_DETECTION
    pairing = "recordgen.tasks.object_detection.pairing:boxes"
    trainer = "recordgen.tasks.object_detection.training:ObjectDetector"
    measure = "recordgen.training.average_precision:BoxAccumulator"
    sample = "pipelines.samples.digits:SCATTERED_DIGITS"
    page = "docs/tasks/object_detection.md"

    bad_boxes: str = "clip"
    box_orientation: str = "stored"
    resize: str = "stretch"
    unit: BoxUnit = field(default_factory=BoxUnit, compare=False, repr=False)

    @classmethod
    def of(cls, settings: TaskSettings) -> Task:
        return cls(settings.bad_boxes, settings.box_orientation, settings.resize)

    @property
    def moves_boxes(self) -> bool:
        """Whether stored boxes may differ from the boxes of the row."""
        return self.resize != "stretch"

    def for_file(self) -> ObjectDetection:
        return replace(self, unit=BoxUnit())

    @classmethod
    def has_header(cls, fields: Sequence[str]) -> bool:
        """Return whether a first line names the columns of a box."""
        return all(_columns_named(fields, cls.columns[role]) for role in BOX_ROLES)

    @classmethod
    def has_box(cls, fields: Sequence[str]) -> bool:
        """Return whether the fields after a path can only be a label and a box, right or wrong."""
        corners = list(fields[1:])
        if len(corners) >= 6 and corners[2:4] == ["", ""]:
            return all(map(_BEGINS_NUMBER.match, corners[:2] + corners[4:6]))
        if _has_label_last(fields):
            return True
        if len(corners) not in (4, 8) or not all(map(is_number, corners)):
            return False
        # Labels may all be numbers, but hardly from 0 to 1.
        return not is_number(fields[0]) or all(FAR[0] <= float(text) <= FAR[1] for text in corners)

    def from_fields(self, fields: Sequence[str], adjusted: Adjustments) -> str | None:
        if not fields:
            return None
        if _has_label_last(fields):
            raise bad_annotation(
                f"the box comes before its label (got {','.join(fields)!s:.80}); expected the "
                f"label, then {_EXPECTED_BOX}"
            )
        label, corners, size = check_label(fields[0]), [*fields[1:]], None
        if len(corners) in (9, 10) and not any(corners[2:4] + corners[6:8]):
            width, height = (*corners[8:], "")[:2]
            size = ImageSize.parse(width, height)
            corners = [*corners[:2], *corners[4:6]]
            if not label and not any(corners):
                return None  # an image without objects
        if not any(corners):
            raise bad_annotation(f"label {label!r} has no box; expected {_EXPECTED_BOX} after it")
        if not label:
            raise bad_annotation(f"a box needs a label before it (got {','.join(corners)})")
        if len(corners) == 6 and not (corners[2] or corners[3]):
            del corners[2:4]
        if len(corners) not in (4, 8) or len(fields) == 5:
            raise bad_annotation(f"a box must be {_EXPECTED_BOX} (got {len(fields) - 1} fields)")
        numbers = [_number(text, "a coordinate") for text in corners]
        xs, ys = numbers[::2], numbers[1::2]
        if size is None:  # AutoML's corners may be in any order
            xs, ys = [min(xs), max(xs)], [min(ys), max(ys)]
        shares = self.unit.to_shares((xs[0], ys[0], xs[1], ys[1]), size)
        usable = self._usable([(Box(label, *shares), NOTHING)], adjusted)
        annotation = Boxes.of(usable, size).to_json()
        if self.unit.unit == PIXELS and not self.unit.is_noted:
            self.unit.is_noted = True  # once, not for each box of the file
            adjusted.add(
                FILES_IN_PIXELS,
                "boxes of this file are in pixels; each was divided by the width and height of its "
                "row",
            )
        return annotation

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        [name] = self.json_keys
        found = record.get(name) or []
        if not isinstance(found, list):
            raise bad_annotation(f"{name} must be a list of objects (got {found!r:.80})")
        boxes = []
        for item in found:
            label = display_name(item, f"each of {name}")
            check_spelling(item, ("displayName", *_KEYS), "a box")
            box = Box(label, *(_number(item.get(key), key) for key in _KEYS))
            boxes.append((box, NOTHING))
        return Boxes.of(self._usable(boxes, adjusted)).to_json()

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        size = None if picture.size is None else ImageSize(*picture.size)
        width, height = size or (1, 1)
        boxes = []
        for label, corners, details in picture.objects:
            if not label:
                raise bad_annotation(f"a box needs a label (got the box {shown(corners)} without)")
            xmin, ymin, xmax, ymax = (_number(value, "a coordinate") for value in corners)
            shares = xmin / width, ymin / height, xmax / width, ymax / height
            boxes.append((Box(check_label(label), *shares), details))
        given = [details for _, details in boxes]
        stored = as_stored(given, areas_of(boxes, width * height), (width, height))
        usable = self._usable(zip([box for box, _ in boxes], stored, strict=True), adjusted)
        annotation = Boxes.of(usable, size).to_json()
        return RowContent(check_uri(picture.uri), annotation)

    def _usable(
        self, boxes: Iterable[tuple[Box, Details]], adjusted: Adjustments
    ) -> dict[Box, Details]:
        """Return boxes within the image, and record the changes. Raises: AnnotationError."""
        usable: dict[Box, Details] = {}
        for box, details in boxes:
            _, xmin, ymin, xmax, ymax = box
            is_inside = 0 <= xmin <= xmax <= 1 and 0 <= ymin <= ymax <= 1
            there = box.stored if is_inside else _clipped(box)
            is_empty = there.xmin >= there.xmax or there.ymin >= there.ymax
            if (is_empty or not is_inside) and not self._is_kept(box, there, is_empty, adjusted):
                continue
            if there in usable:
                text = f"the line has the box {_shown(box)} of {box.label!r} twice"
                adjusted.add(BOXES_REPEATED, f"{text}; it was stored once")
                details = usable[there].merged(details)
            usable[there] = details
        return usable

    def _is_kept(self, box: Box, there: Box, is_empty: bool, adjusted: Adjustments) -> bool:
        """Return whether a box is stored that had to be changed. Raises: AnnotationError."""
        is_inverted = box.xmin > box.xmax or box.ymin > box.ymax
        wrong = [
            (is_inverted, "inverted", BOXES_SWAPPED),
            (min(box[1:]) < 0 or max(box[1:]) > 1, "outside 0..1", BOXES_CLIPPED),
            (is_empty, "empty", BOXES_DROPPED),
        ]
        reasons = " and ".join(reason for is_so, reason, _ in wrong if is_so)
        if self.bad_boxes == "reject":
            raise bad_annotation(
                f"the box {_shown(box)} is {reasons}; --bad-boxes clip fixes or drops it"
            )
        text = f"the box {_shown(box)} of {box.label!r} is "
        if is_empty or self.bad_boxes == "drop":
            adjusted.add(BOXES_DROPPED, f"{text}{reasons}; it was dropped")
            return False
        for is_so, reason, kind in wrong:
            if is_so:
                adjusted.add(kind, f"{text}{reason}; it was stored as {_shown(there)}")
        return True

    def merge(self, annotations: Sequence[str | None]) -> Merged:
        rows = list(map(Boxes.from_json, annotations))
        _, duplicates = add_up(row.boxes for row in rows)
        sizes = sorted({row.size for row in rows if row.size is not None})
        if len(sizes) > 1:
            raise bad_annotation(f"one image, several sizes: {listed(sizes, str)}")
        pairs = (pair for row in rows for pair in row.pairs())
        found = Boxes.merged(pairs, sizes[0] if sizes else None)
        return Merged(found.to_json(), duplicates)

    def contradicts(self, annotation: str, stored: str | None) -> bool:
        return not set(self.boxes(annotation)) <= set(Boxes.from_json(stored).boxes)

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return whether each box nearly coincides with one of the other annotation."""
        left = list(self.boxes(other))
        for box in self.boxes(one):
            twin = next((there for there in left if nearly_coincide(box, there)), None)
            if twin is None:
                return False
            left.remove(twin)
        return not left

    def boxes(self, annotation: str) -> Sequence[Box]:
        """Return the boxes of an annotation."""
        return boxes_in(annotation)

    def details(self, annotation: str) -> Sequence[Any]:
        row = Boxes.from_json(annotation)
        return [*row.pairs()] if row.details else row.boxes

    def annotations_for_checks(self, annotations: Texts) -> Sequence[str | None]:
        """Return the rows' annotations with digests in place of outlines and masks."""
        return [
            without_shapes(text) if text and _HAS_SHAPE in text else text
            for text in annotations.to_pylist()
        ]

    def labels(self, annotation: str) -> Sequence[str]:
        return labels_in(annotation)

    def described(self, annotation: str, stored: StoredImage) -> Described:
        given = Boxes.from_json(annotation)
        found = self._stored(given, stored.image, stored.changes)
        if not found.boxes:
            return Described()
        text = annotation if found is given else found.to_json()
        return Described(text, found.labels, box_features(found, stored.vocabulary))

    def _stored(self, row: Boxes, image: CheckedImage, changes: defaultdict[str, int]) -> Boxes:
        """Return the boxes of the stored image. Raises: PayloadError."""
        if row.size is not None:
            self._check_size(row.size, image)
        way = image.orientation if self.box_orientation == "stored" else 1
        if row.size is None and way == 1 and not self.moves_boxes and not row.details:
            return row
        view = image.placed.view if self.moves_boxes and image.placed is not None else None
        move = Move.of(row.size, way, image)
        if way == 1 and view is None and all(map(move.keeps, row.details)):
            return replace(row, size=None)
        boxes, found = [], []
        for box, details in row.pairs():
            upright = turned(box, way)
            there = upright if view is None else seen_through(upright, view)
            if there is None:
                changes[BOXES_OUTSIDE] += 1
                continue
            if view is not None and is_cut(upright, view):
                changes[BOXES_CUT] += 1
            boxes.append(there.stored)
            found.append(move(details, upright))
        return _stored(boxes, found)

    def _check_size(self, size: ImageSize, image: CheckedImage) -> None:
        """Check a row's width and height against its image. Raises: PayloadError."""
        if image.width is None or image.height is None:
            return
        width, height = (image.width, image.height) if image.placed is None else image.placed.size
        upright, lying = ImageSize(width, height), ImageSize(height, width)
        is_on_its_side = image.orientation >= 5
        stored = lying if is_on_its_side else upright
        right, other = upright, stored
        if self.box_orientation == "stored":
            right, other = stored, upright
        if size.is_alike(right):
            return
        remedy = "correct the row, whose box is a share of them"
        if is_on_its_side and size.is_alike(other):
            way = "upright" if self.box_orientation == "stored" else "stored"
            remedy = f"boxes of the {way} picture need --box-orientation {way}"
        raise PayloadError(
            RejectCode.BAD_ANNOTATION.value,
            f"the row says that the image has {size} pixels, but it has {right}; {remedy}",
        )

    def from_features(self, values: Mapping[str, Sequence[Any]]) -> str | None:
        columns = [values.get(name, ()) for name in (features.IMAGE_OBJECT_TEXT, *features.BBOX)]
        rows = zip(*columns, strict=True)
        boxes = [Box(label.decode(), *corners).stored for label, *corners in rows]
        return _stored(boxes, details_in(values, len(boxes))).to_json()

    @classmethod
    def files(cls, labels: Sequence[str]) -> Mapping[str, str]:
        """Return the label map of TensorFlow's Object Detection API, which counts from 1."""
        items = (
            f"item {{\n  id: {number}\n  name: {json.dumps(label, ensure_ascii=False)}\n}}\n"
            for number, label in enumerate(labels, start=1)
        )
        return {"label_map.pbtxt": "".join(items)}


def box_features(row: Boxes, vocabulary: Vocabulary) -> Mapping[str, FeatureValue]:
    """Return the features of the boxes of a stored image."""
    corners = zip(*(box[1:] for box in row.boxes), strict=True)
    return {
        **dict(zip(features.BBOX, map(list, corners), strict=True)),
        features.IMAGE_OBJECT_TEXT: [box.label.encode() for box in row.boxes],
        features.IMAGE_OBJECT_LABEL: [vocabulary.index(box.label) for box in row.boxes],
        **features_of(row.details),
    }


def _stored(boxes: Sequence[Box], details: Sequence[Details]) -> Boxes:
    """Return boxes of a stored image with their details, in shares of it."""
    stored = as_stored(details, [each.area for each in details])
    return Boxes.merged(zip(boxes, stored, strict=True))


def _clipped(box: Box) -> Box:
    """Return a box within the image, with the precision of records. Raises: AnnotationError."""
    one, other = box[1:3], box[3:]
    upright = (*map(min, one, other), *map(max, one, other))
    if min(upright) < FAR[0] or max(upright) > FAR[1]:
        raise bad_annotation(
            f"coordinates must be shares of the image, 0 to 1 (got {_shown(box)}, which may be "
            f"pixels: add the columns width and height of the image, under a header, or divide by "
            f"them)"
        )
    return Box(box.label, *(min(1.0, max(0.0, value)) for value in upright)).stored


def _columns_named(fields: Sequence[str], names: frozenset[str]) -> list[str]:
    return [field for field in fields if field.strip().lower().replace(" ", "_") in names]


def _has_label_last(fields: Sequence[str]) -> bool:
    """Return whether fields are four numbers and a word, as Keras RetinaNet writes boxes."""
    *corners, label = fields or [""]
    return len(corners) == 4 and all(map(is_number, corners)) and not is_number(label)


def _number(value: Any, what: str) -> float:
    """Parse a coordinate, a number or text. Raises: AnnotationError."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise bad_annotation(f"{what} must be a number from 0 to 1 (got {value!r:.40})")


def _shown(box: Box) -> str:
    return shown(box[1:])
