"""The records that a page shows: some of each split, and the records with findings.

A record is a picture with boxes, a text with entities, or a row of a table. A text with an entity
becomes ``(Piece("Anna in "), Piece("Oslo", "city"))``. Reading is bounded, so that a page of a
million examples costs no more than one of a thousand.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any, NamedTuple, TypeVar

from recordgen import features, storage
from recordgen.core.dataset.counts import Shard, Split
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.ordered import default_threads, map_in_order
from recordgen.core.records import RECORDS
from recordgen.core.records.boxes import StoredBox, stored_boxes
from recordgen.core.records.class_masks import background_of
from recordgen.core.records.example import parse_example
from recordgen.errors import PayloadError, RecordgenError
from recordgen.messages.masking import without_secrets
from recordgen.payloads.drawing import draw_mask
from recordgen.payloads.stored import stored_image
from recordgen.payloads.thumbnail import Thumbnail, to_thumbnail
from recordgen.tasks import TASKS

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

_ALL_SHOWN = 15
_SHOWN_PER_SPLIT = 5

# Bytes read per split: one large photo, or many small records.
_SPLIT_BYTES = 2_000_000

# Images read per shard, to choose from; other records read per split, also to count their values.
_IMAGES_PER_SHARD = 32
_RECORDS_PER_SPLIT = 1000

# Limits for records with findings: records skipped to reach them in local files, and bytes read of
# remote or compressed files.
_SKIPPED = 300_000
_FAR_BYTES = 32_000_000

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


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
            thumbnail = to_thumbnail(image, SIDE)
        if thumbnail is not None:
            thumbnail = _with_mask(thumbnail, record)
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
    if mask is None:
        return thumbnail
    with suppress(PayloadError, MemoryError):
        drawn = draw_mask(thumbnail.data, mask[0], background_of(record))
        return thumbnail._replace(data=drawn.data, format=drawn.format)
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
        return tuple(stored_boxes(record))
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


class Place(NamedTuple):
    """The place of a record: its split, its shard and its index in the shard."""

    split: str
    shard: str
    record: int


@dataclass(frozen=True, slots=True)
class ShownRecords:
    """The records that a page shows.

    Attributes:
        examples: by split.
        sample: the first records of some shards by split; records are in the order of a hash, so
            this is a random sample.
        at: the requested records that were cheap enough to read.
    """

    examples: Mapping[str, Sequence[RecordView]] = field(default_factory=dict)
    sample: Mapping[str, Sequence[Record]] = field(default_factory=dict)
    at: Mapping[Place, RecordView] = field(default_factory=dict)


def read_shown(
    dataset: Dataset, path_of: Callable[[str], str], places: Sequence[Place] = ()
) -> ShownRecords:
    """Read the records that a page shows: deterministic, with as many labels as possible.

    Reading starts at the front of one shard for each label, or of evenly spaced shards. If reading
    fails, a warning is logged: a missing picture must not fail a run. ``places`` are of records to
    show, the most important first.
    """
    try:
        sample = _read_sample(dataset, path_of)
        chosen = {name: _choose(items, dataset) for name, items in sample.items()}
        at = dict(_read_places(dataset, path_of, places))
        wanted = [*(item for items in chosen.values() for item in items), *at.values()]
        shown = list(
            map_in_order(lambda item: record_view(item, dataset), wanted, threads=default_threads())
        )
    except (AttributeError, LookupError, OSError, RecordgenError, TypeError, ValueError) as exc:
        _log.warning("report.html has no pictures: %s", exc)
        return ShownRecords()
    found = iter(shown)
    return ShownRecords(
        {
            name: sorted(islice(found, len(items)), key=lambda item: (item.labels, item.uri))
            for name, items in chosen.items()
        },
        sample,
        dict(zip(at, found, strict=True)),
    )


def _has_images(dataset: Dataset) -> bool:
    if dataset.features or dataset.task not in TASKS:
        return any(name.endswith("/encoded") for name in dataset.features)
    return features.IMAGE_ENCODED in TASKS[dataset.task].features


def _read_sample(dataset: Dataset, path_of: Callable[[str], str]) -> Mapping[str, Sequence[Record]]:
    splits = dict(islice(dataset.splits.items(), _ALL_SHOWN))
    # Examples of an image and its labels have no values to count.
    is_plain = not dataset.features and _has_images(dataset)
    reads = [
        (name, path_of(shard.file), number)
        for name, split in splits.items()
        for shard, number in _reading(split, is_plain)
    ]
    found: dict[str, list[Record]] = defaultdict(list)
    for name, records in map_in_order(_read_front, reads, threads=default_threads()):
        found[name] += records
    return found


def _reading(split: Split, is_plain: bool) -> Iterator[tuple[Shard, int]]:
    """Yield the shards to read and the number of records from the front of each."""
    shards = [shard for shard in split.shards if shard.examples]
    if not shards:
        return
    by_label = {shard.label: shard for shard in reversed(shards)}
    several = list(by_label.values())[::-1]
    if len(by_label) == 1:
        # At least two: the last shard holds appended examples, if there are any.
        several = evenly(shards, max(2, -(-_SHOWN_PER_SPLIT * len(shards) // split.examples)))
    affordable = max(1, _SPLIT_BYTES * split.examples // max(1, split.bytes))
    opened = evenly(several, min(_SHOWN_PER_SPLIT, affordable))
    most = _IMAGES_PER_SHARD if is_plain else max(1, _RECORDS_PER_SPLIT // len(opened))
    for shard in opened:
        yield shard, min(most, affordable // len(opened))


def _read_front(read: tuple[str, str, int]) -> tuple[str, list[Record]]:
    split, path, number = read
    return split, list(map(parse_example, islice(RECORDS.read(path), number)))


def _choose(records: Iterable[Record], dataset: Dataset) -> list[Record]:
    """Return records with as many labels as possible.

    Each step takes the first record with the label that was chosen least often so far; having no
    label counts as a label.
    """
    count = min(_SHOWN_PER_SPLIT, _ALL_SHOWN // max(1, len(dataset.splits)))
    if _has_images(dataset):
        records = (record for record in records if image_of(record) is not None)
    left = [(record, labels_of(record, dataset) or (None,)) for record in records]
    chosen: list[tuple[Record, Sequence[Label | None]]] = []
    times: Counter[Label | None] = Counter()
    while left and len(chosen) < count:
        at = min(range(len(left)), key=lambda at: min(times[label] for label in left[at][1]))
        chosen.append(left.pop(at))
        times.update(chosen[-1][1])
    return [record for record, _ in chosen]


def _read_places(
    dataset: Dataset, path_of: Callable[[str], str], places: Iterable[Place]
) -> Iterator[tuple[Place, Record]]:
    """Yield the records at the given places, except those that are costly to read."""
    shards = {shard.file: shard for split in dataset.splits.values() for shard in split.shards}
    by_shard: dict[str, dict[int, Place]] = defaultdict(dict)
    skipped, far_bytes = 0, 0
    for place in places:
        shard, path = shards.get(place.shard), path_of(place.shard)
        if shard is None:
            continue
        reach = max(by_shard[place.shard], default=-1)
        further = max(0, place.record - reach)
        if storage.is_local(path) and not path.endswith(".gz"):
            if skipped + further > _SKIPPED:
                continue
            skipped += further
        else:
            size = further * shard.bytes // shard.examples
            if far_bytes + size > _FAR_BYTES:
                continue
            far_bytes += size
        by_shard[place.shard][place.record] = place
    for file, wanted in by_shard.items():
        for index, data in RECORDS.read_chosen(path_of(file), wanted):
            yield wanted[index], parse_example(data)


def evenly(items: Sequence[_T], count: int) -> list[_T]:
    """Return up to ``count`` evenly spaced items, including the first and the last.

    ``evenly("abcde", 3)`` → ``["a", "c", "e"]``; a count of 1 gives the first item.
    """
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[0]]
    last = len(items) - 1
    return [items[round(place * last / (count - 1))] for place in range(count)]
