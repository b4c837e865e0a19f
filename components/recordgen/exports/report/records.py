"""A record as a page shows it: a picture with boxes, a text with entities, a row of a table.

A text with an entity becomes ``(Piece("Anna in "), Piece("Oslo", "city"))``.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from recordgen import features
from recordgen.core.dataset.manifest import Dataset
from recordgen.errors import PayloadError
from recordgen.messages.masking import without_secrets
from recordgen.payloads.drawing import Thumbnail, draw_mask, label_colour, to_thumbnail
from recordgen.payloads.header import stored_image
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.masks import background_of
from recordgen.subjects.objects import StoredBox, stored_boxes

SIDE = 128  # pixels of a thumbnail

#: Features by name, as :func:`recordgen.core.records.example.parse_example` returns them.
Record = Mapping[str, Sequence[Any]]

_TEXT_SHOWN = 280  # characters
_CELLS_SHOWN = 12

# Features of label texts and numbers; the first pair that a record has is used.
_LABELS = (
    (features.IMAGE_CLASS_TEXT, features.IMAGE_CLASS_LABEL),
    (features.CLASS_TEXT, features.CLASS_LABEL),
    (features.VIDEO_CLASS_TEXT, features.VIDEO_CLASS_LABEL),
    (features.ENTITY_TEXT, features.ENTITY_LABEL),
    (features.IMAGE_MASK_TEXT, features.IMAGE_MASK_LABEL),
)
_SOURCE_IDS = (features.IMAGE_SOURCE_ID, features.TEXT_SOURCE_ID, features.VIDEO_SOURCE_ID)

# The source id of a text that is in its row: meaningless to a reader.
_DIGEST = re.compile(r"[0-9a-f]{64}")

# More points of a polygon would not be seen in the small picture.
_POINTS_DRAWN = 60

# Half of a cross at a keypoint, as a share of the picture.
_CROSS = 0.015

# More boxes would only cover the small picture.
_BOXES_DRAWN = 100


class Label(NamedTuple):
    """One label of a record.

    Attributes:
        number: ``image/class/label``, or ``image/object/class/label``; -1: none.
        text: ``image/class/text``, or ``image/object/class/text``.
    """

    number: int
    text: str


class Piece(NamedTuple):
    """A piece of a text.

    Attributes:
        label: the label of the entity; empty if it is not an entity.
    """

    text: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class RecordView:
    """One record as the page shows it.

    Attributes:
        uri: its source id; empty if it has none.
        labels: labels of the example or of its boxes, each once, by number.
        boxes: boxes of the objects in its image, in the record's order.
        has_image: whether the record holds an image.
        thumbnail: None if there is no image, or it does not decode, or it is too large.
        text: the beginning of the text; empty if the record has none.
        is_cut: whether the text is longer than ``text``.
        cells: values of the first other features by name.
    """

    uri: str = ""
    labels: tuple[Label, ...] = ()
    boxes: tuple[StoredBox, ...] = ()
    has_image: bool = False
    thumbnail: Thumbnail | None = None
    text: tuple[Piece, ...] = ()
    is_cut: bool = False
    cells: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_row(self) -> bool:
        """Whether it is best shown as a row of a table."""
        return bool(self.cells) and not self.has_image and not self.text

    @property
    def is_labelled(self) -> bool:
        """Whether its cells contain its labels."""
        return {label.text for label in self.labels} <= {*self.cells.values()}


def record_view(record: Record, dataset: Dataset) -> RecordView:
    """Return a record as a page shows it. Records from Python may hold anything."""
    image = image_of(record)
    thumbnail = None
    if image is not None:
        with suppress(PayloadError, MemoryError):
            thumbnail = _with_mask(to_thumbnail(image, SIDE), record)
    uri = as_text(next((value for name in _SOURCE_IDS for value in record.get(name, ())), b""))
    text = next(iter(record.get(features.TEXT, ())), None)
    pieces, is_cut = _pieces(record, text) if isinstance(text, bytes) else ((), False)
    return RecordView(
        "" if _DIGEST.fullmatch(uri) else without_secrets(uri),
        labels_of(record, dataset),
        _boxes(record),
        image is not None,
        thumbnail,
        pieces,
        is_cut,
        dict(_cells(record, dataset)),
    )


def _with_mask(thumbnail: Thumbnail, record: Record) -> Thumbnail:
    mask = stored_image(record, features.IMAGE_MASK_ENCODED)
    if mask is not None:
        with suppress(PayloadError, MemoryError):
            drawn = draw_mask(thumbnail.data, mask[0], background_of(record))
            return thumbnail._replace(**drawn._asdict())
    return thumbnail


def image_of(record: Record) -> bytes | None:
    """Return the first image of a record as a file: ``image/encoded``, or an image column."""
    names = sorted(name for name in record if name.endswith("/encoded"))
    found = (stored_image(record, name) for name in (features.IMAGE_ENCODED, *names))
    return next((image[0] for image in found if image is not None), None)


def labels_of(record: Record, dataset: Dataset) -> tuple[Label, ...]:
    """Return the labels of a record, each once, by number."""
    boxed = {Label(box.number, box.label) for box in _boxes(record)}
    if boxed:
        return tuple(sorted(boxed))
    for text, number in (*_LABELS, _column_of_labels(dataset)):
        if record.get(text):
            return tuple(sorted(_labels(record[text], record.get(number, ()))))
    return ()


def _column_of_labels(dataset: Dataset) -> tuple[str, str]:
    """Return the text and number features of a table's labels; empty if there are none."""
    if dataset.options.get("table"):
        target = json.loads(dataset.options["table"]).get("target")
        return (target or "") if dataset.labels else "", ""
    text = (name for name in dataset.features if name.endswith("/text"))
    name = next((n for n in text if f"{n[: -len('/text')]}/label" in dataset.features), "")
    return name, f"{name[: -len('/text')]}/label"


def _labels(texts: Sequence[Any], numbers: Sequence[Any]) -> set[Label]:
    return {
        Label(number if isinstance(number, int) else features.NO_LABEL, as_text(text))
        for text, number in zip_longest(texts, numbers[: len(texts)])
    }


def _boxes(record: Record) -> tuple[StoredBox, ...]:
    try:
        return tuple(stored_boxes(record)) if features.BBOX[0] in record else ()
    except ValueError:
        return ()


def _pieces(record: Record, data: bytes) -> tuple[tuple[Piece, ...], bool]:
    """Return the beginning of a text with its entities, and whether it was cut."""
    whole = as_text(data)
    text = whole[:_TEXT_SHOWN]
    names = (features.ENTITY_START, features.ENTITY_END, features.ENTITY_TEXT)
    found, end = list[Piece](), 0
    for start, stop, label in zip(*(record.get(name, ()) for name in names), strict=False):
        if not (isinstance(start, int) and isinstance(stop, int) and end <= start < stop):
            break
        if start >= len(text):
            break
        found += [Piece(text[end:start]), Piece(text[start:stop], as_text(label))]
        end = stop
    found.append(Piece(text[end:]))
    return tuple(piece for piece in found if piece.text), len(whole) > len(text)


def _cells(record: Record, dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yield the features of a record that are not images, labels, texts or source ids."""
    ordered = dict.fromkeys((*dataset.features, *sorted(record, reverse=True)))
    names = [name for name in ordered if name in record and is_own_value(name)]
    for name in names[:_CELLS_SHOWN]:
        values = record[name]
        shown = ", ".join(map(as_text, values[:5])) + (", …" if len(values) > 5 else "")
        yield name.removeprefix("video/"), shown or "none"


def is_own_value(name: str) -> bool:
    """Return whether a feature is shown as a plain value: a column, or a segment of a video.

    Images, labels, entities and texts have their own displays.
    """
    if name in (features.VIDEO_SEGMENT_START, features.VIDEO_SEGMENT_END):
        return True
    return "/" not in name and name not in (features.TEXT, features.TEXT_SOURCE_ID, features.TOKENS)


def as_text(value: Any) -> str:
    """Return a value of a record as a page shows it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Outline:
    """The boxes of one label, with their polygons and keypoints.

    Attributes:
        colour: colour of the lines, as ``#rrggbb``.
        path: the lines as SVG path data, in shares of the image's width and height; empty if none
            is drawn.
    """

    text: str
    count: int
    colour: str
    path: str


def _shapes(box: StoredBox) -> str:
    """Return the polygons of a box and a cross for each keypoint as SVG path data."""
    path = ""
    for points in box.details.polygons:
        pairs = [f"{x:.3g} {y:.3g}" for x, y in zip(points[::2], points[1::2], strict=True)]
        path += f"M{'L'.join(pairs[:: 1 + len(pairs) // _POINTS_DRAWN])}z"
    numbers = box.details.keypoints
    for x, y, shown in zip(*(numbers[at::KEYPOINT] for at in range(KEYPOINT)), strict=True):
        if shown:
            path += f"M{x - _CROSS:.3g} {y:.3g}h{2 * _CROSS}M{x:.3g} {y - _CROSS:.3g}v{2 * _CROSS}"
    return path


def outlines(boxes: Sequence[StoredBox]) -> list[Outline]:
    """Return the boxes of an image by label, in the order of their numbers.

    A box of "cat", 0, from (0.1, 0.2) to (0.5, 0.5) →
    ``Outline("cat", 1, "#ff2626", "M0.1 0.2H0.5V0.5H0.1z")``
    """
    counts: dict[tuple[int, str], int] = defaultdict(int)
    paths: dict[tuple[int, str], str] = defaultdict(str)
    for place, box in enumerate(boxes):
        label = (box.number, box.label)
        counts[label] += 1
        if place < _BOXES_DRAWN:
            left, top, right, bottom = (f"{value:.3g}" for value in box[2:6])
            paths[label] += f"M{left} {top}H{right}V{bottom}H{left}z{_shapes(box)}"
    return [
        Outline(text, count, "#" + bytes(label_colour(number)).hex(), paths[number, text])
        for (number, text), count in sorted(counts.items())
    ]
