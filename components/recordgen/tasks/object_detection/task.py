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

Corners may be pixels, of the width and height in their row, or else of the image: see
:mod:`recordgen.tasks.object_detection.annotation`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, ClassVar

from recordgen import features
from recordgen.core.facts import BOXES
from recordgen.core.rows.row import Adjustments
from recordgen.core.task.annotation import (
    Merged,
    RowContent,
    bad_annotation,
    check_label,
    check_uri,
)
from recordgen.core.task.task import PARTS, Task, Texts
from recordgen.messages import listed
from recordgen.options import ConvertOptions
from recordgen.subjects.details import NOTHING
from recordgen.subjects.objects import details_in
from recordgen.subjects.picture import Picture
from recordgen.tables.csv_fields import is_number
from recordgen.tables.roles import BOX_ROLES, LABEL_COLUMNS, SIZE_COLUMNS
from recordgen.tasks.images.task import Described, ImageTask, StoredImage
from recordgen.tasks.lines import add_up, check_spelling, display_name, list_in
from recordgen.tasks.object_detection.annotation import (
    FAR,
    PIXELS,
    UNKNOWN_SIZE,
    Box,
    Boxes,
    BoxUnit,
    ImageSize,
    divided,
    nearly_coincide,
    parse_number,
    shown,
    usable_boxes,
    values_in,
    without_shapes,
    without_size,
)
from recordgen.tasks.object_detection.stored_boxes import (
    box_features,
    in_shares,
    measured,
    stored_boxes,
)

#: Names in ``rows.adjusted`` of ``dataset.json``.
FILES_IN_PIXELS = "files_in_pixels"

# In annotations with outlines or masks.
_HAS_SHAPE = '"details":'

# The end of annotations with an unknown size.
_LACKS_SIZE = '],"size":[0,0]}'

_EXPECTED_BOX = "xmin,ymin,,,xmax,ymax,, or all four corners"
_KEYS = ("xMin", "yMin", "xMax", "yMax")

# Pictures whose objects are measured together.
_PICTURES_AT_ONCE = 128

# Exif's orientations above this one swap width and height.
_UPRIGHT_OR_TURNED_OVER = 4

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

    name: ClassVar[str] = "object_detection"
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
        **SIZE_COLUMNS,
    }
    labelling = PARTS
    details_noun = "boxes"
    json_keys = ("boundingBoxAnnotations",)
    facts = (*ImageTask.facts, BOXES)
    features: ClassVar = features.OBJECT_DETECTION
    pairing = "recordgen.tasks.pairing:boxes"
    trainer = "recordgen.tasks.object_detection.training:ObjectDetector"
    measure = "recordgen.training.measures:BoxAccumulator"

    bad_boxes: str = "clip"
    box_orientation: str = "stored"
    resize: str = "stretch"
    unit: BoxUnit = field(default_factory=BoxUnit, compare=False, repr=False)

    @classmethod
    def of(cls, options: ConvertOptions) -> Task:
        return cls(options.bad_boxes, options.box_orientation, options.resize)

    @property
    def moves_boxes(self) -> bool:
        """Whether stored boxes may differ from the boxes of the row."""
        return self.resize != "stretch"

    def for_file(self, read: Callable[[ObjectDetection], Iterable[object]]) -> ObjectDetection:
        """Return the task with the unit of the first box that fits only one."""
        first = replace(self, unit=BoxUnit())
        next((row for row in read(first) if first.unit.unit), None)
        return replace(self, unit=BoxUnit(first.unit.unit, first.unit.example))

    @classmethod
    def has_header(cls, fields: Sequence[str]) -> bool:
        """Return whether a first line names the columns of a box."""
        names = {field.strip().lower().replace(" ", "_") for field in fields}
        return all(names & cls.columns[role] for role in BOX_ROLES)

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
            remedy = f"expected {_EXPECTED_BOX} after it, or no label if nothing is there"
            raise bad_annotation(f"label {label!r} has no box; {remedy}")
        if not label:
            raise bad_annotation(f"a box needs a label before it (got {','.join(corners)})")
        if len(corners) == 6 and not (corners[2] or corners[3]):
            del corners[2:4]
        if len(corners) not in (4, 8) or len(fields) == 5:
            raise bad_annotation(f"a box must be {_EXPECTED_BOX} (got {len(fields) - 1} fields)")
        numbers = [parse_number(text, "a coordinate") for text in corners]
        xs, ys = numbers[::2], numbers[1::2]
        if size is None:  # AutoML's corners may be in any order
            xs, ys = [min(xs), max(xs)], [min(ys), max(ys)]
        box = Box(label, xs[0], ys[0], xs[1], ys[1])
        if size is None:
            return self._without_size([box], adjusted)
        shares = self.unit.to_shares(box[1:], size)
        usable = usable_boxes([(Box(label, *shares), NOTHING)], self.bad_boxes, adjusted)
        self._note_pixels(adjusted)
        return Boxes.of(usable, size).to_json()

    def _without_size(self, boxes: Sequence[Box], adjusted: Adjustments) -> str | None:
        """Return the annotation of boxes in shares, or in pixels of an image of unknown size."""
        are_pixels = [self.unit.is_pixels(box[1:]) for box in boxes]  # each box is checked
        if any(are_pixels):
            self._note_pixels(adjusted)
            return Boxes(tuple(boxes), UNKNOWN_SIZE).to_json()
        pairs = [(box, NOTHING) for box in boxes]
        return Boxes.of(usable_boxes(pairs, self.bad_boxes, adjusted)).to_json()

    def _note_pixels(self, adjusted: Adjustments) -> None:
        """Note once, not for each box, that a file is in pixels."""
        if self.unit.unit == PIXELS and not self.unit.is_noted:
            self.unit.is_noted = True
            adjusted.add(
                FILES_IN_PIXELS,
                "boxes of this file are in pixels; each was divided by the width and height of its "
                "row, or else of its image",
            )

    def lacks_size(self, annotation: str | None) -> bool:
        """Return whether boxes are in pixels of an image of unknown size."""
        return annotation is not None and annotation.endswith(_LACKS_SIZE)

    def sized(
        self, annotation: str, size: tuple[int, int], orientation: int, adjusted: Adjustments
    ) -> str | None:
        """Return boxes of an image of unknown size in shares of it.

        Args:
            annotation: one for which :meth:`lacks_size` is true.
            size: width and height of the stored picture, in pixels.
            orientation: its Exif orientation, 1 to 8.
            adjusted: collects the changes of boxes.

        Raises: AnnotationError: a box is far outside of its image, or is refused.
        """
        is_turned = self.box_orientation == "upright" and orientation > _UPRIGHT_OR_TURNED_OVER
        whole = ImageSize(*(size[::-1] if is_turned else size))
        boxes = Boxes.from_json(annotation).boxes
        shares = [(Box(box.label, *divided(box[1:], whole)), NOTHING) for box in boxes]
        return Boxes.of(usable_boxes(shares, self.bad_boxes, adjusted), whole).to_json()

    def from_json(self, record: Mapping[str, Any], adjusted: Adjustments) -> str | None:
        [name] = self.json_keys
        boxes = []
        for item in list_in(record, name):
            label = display_name(item, f"each of {name}")
            check_spelling(item, ("displayName", *_KEYS), "a box")
            boxes.append(Box(label, *(parse_number(item.get(key), key) for key in _KEYS)))
        return self._without_size(boxes, adjusted)

    def together(self, items: Iterable[Any]) -> Iterator[Any]:
        items = iter(items)
        while some := list(islice(items, _PICTURES_AT_ONCE)):
            found = iter(measured([item for item in some if isinstance(item, Picture)]))
            for item in some:
                yield item._replace(measured=next(found)) if isinstance(item, Picture) else item

    def from_picture(self, picture: Picture, adjusted: Adjustments) -> RowContent:
        labels = [each.label for each in picture.objects]
        for label in dict.fromkeys(labels):
            if not label:
                box = shown(picture.objects[labels.index(label)].corners)
                raise bad_annotation(f"a box needs a label (got the box {box} without)")
            check_label(label)
        are_inside, corners, details = picture.measured or measured([picture])[0]
        for value in () if are_inside else chain.from_iterable(corners):
            parse_number(value, "a coordinate")
        boxes = (Box(label, *each) for label, each in zip(labels, corners, strict=True))
        pairs = zip(boxes, details, strict=True)
        usable = usable_boxes(pairs, self.bad_boxes, adjusted, are_inside)
        size = None if picture.size is None else ImageSize(*picture.size)
        return RowContent(check_uri(picture.uri), Boxes.of(usable, size).to_json())

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
        return nearly_coincide(self.boxes(one), self.boxes(other))

    def boxes(self, annotation: str) -> Sequence[Box]:
        """Return the boxes of an annotation."""
        return list(map(Box._make, values_in(annotation)))

    def shown(self, annotation: str) -> str:
        """Return boxes by label, ``1 cat at 141,6–472,505``, in pixels if they are known."""
        row = Boxes.from_json(annotation)
        found = []
        for label, some in groupby(row.boxes, attrgetter("label")):
            boxes, name = [*some], label if label.isidentifier() else repr(label)
            found.append(f"{len(boxes)} {name} at {listed(boxes, row.corners)}")
        return listed(found, str, between="; ")

    def details(self, annotation: str) -> Sequence[Any]:
        row = Boxes.from_json(annotation)
        return [*row.pairs()] if row.details else row.boxes

    def annotations_for_checks(self, annotations: Texts) -> Sequence[str | None]:
        """Return the rows' annotations with digests in place of outlines and masks."""
        return [
            without_shapes(text) if text and _HAS_SHAPE in text else text
            for text in (each.as_py() for each in annotations)  # one by one: outlines are long
        ]

    def labels(self, annotation: str) -> Sequence[str]:
        return sorted({label for label, *_ in values_in(annotation)})

    def described(self, annotation: str, stored: StoredImage) -> Described:
        given = Boxes.from_json(annotation)
        found = stored_boxes(given, stored, self.box_orientation, moves_boxes=self.moves_boxes)
        if not found.boxes:
            return Described()
        text = without_size(annotation) if found.boxes is given.boxes else found.to_json()
        return Described(text, found.labels, box_features(found, stored.vocabulary))

    @classmethod
    def from_features(cls, values: Mapping[str, Sequence[Any]]) -> str | None:
        columns = [values.get(name, ()) for name in (features.IMAGE_OBJECT_TEXT, *features.BBOX)]
        rows = zip(*columns, strict=True)
        boxes = [Box(label.decode(), *corners).stored for label, *corners in rows]
        return in_shares(boxes, details_in(values, len(boxes))).to_json()

    @classmethod
    def files(cls, labels: Sequence[str]) -> Mapping[str, str]:
        """Return the label map of TensorFlow's Object Detection API, which counts from 1."""
        items = (
            f"item {{\n  id: {number}\n  name: {json.dumps(label, ensure_ascii=False)}\n}}\n"
            for number, label in enumerate(labels, start=1)
        )
        return {"label_map.pbtxt": "".join(items)}


def _has_label_last(fields: Sequence[str]) -> bool:
    """Return whether fields are four numbers and a word, as Keras RetinaNet writes boxes."""
    *corners, label = fields or [""]
    return len(corners) == 4 and all(map(is_number, corners)) and not is_number(label)
