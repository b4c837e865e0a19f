"""A record as a page shows it: a picture with boxes, a text with entities, a row of a table.

A text with an entity becomes ``(Piece("Anna in "), Piece("Oslo", "city"))``.

Reading is bounded, so that a page of a million examples costs no more than one of a thousand.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice, zip_longest
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import features, storage
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.ordered import default_threads, map_in_order
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.task.annotation import is_image, stored_features
from recordgen.errors import PayloadError, RecordgenError
from recordgen.messages.masking import without_secrets
from recordgen.payloads.drawing import Thumbnail, draw_mask, label_colour, to_thumbnail
from recordgen.payloads.header import stored_image
from recordgen.subjects.details import KEYPOINT
from recordgen.subjects.masks import background_of
from recordgen.subjects.objects import StoredBox, stored_boxes
from recordgen.tasks.suiting import remedies_of

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
    uri = as_text(
        next((value for name in features.SOURCE_IDS for value in record.get(name, ())), b"")
    )
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
    found = {Label(box.number, box.label) for box in _boxes(record)}
    known = (*_LABELS, _column_of_labels(dataset)) if not found else ()
    text, number = next((names for names in known if record.get(names[0])), ("", ""))
    texts = record.get(text, ())
    for value, each in zip_longest(texts, record.get(number, ())[: len(texts)]):
        found.add(Label(each if isinstance(each, int) else features.NO_LABEL, as_text(value)))
    return tuple(sorted(found))


def _column_of_labels(dataset: Dataset) -> tuple[str, str]:
    """Return the text and number features of a table's labels; empty if there are none."""
    if dataset.options.get("table"):
        target = json.loads(dataset.options["table"]).get("target")
        return (target or "") if dataset.labels else "", ""
    text = (name for name in dataset.features if name.endswith("/text"))
    name = next((n for n in text if f"{n[: -len('/text')]}/label" in dataset.features), "")
    return name, f"{name[: -len('/text')]}/label"


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


# --- the records that are shown: some of each split, and those with findings ----------------------

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

# Limits of the records read for findings, and of the bytes of their pictures on the page.
_RECORDS_SHOWN = 240
_PICTURE_BYTES = 2_000_000

#: An import file and a line.
Line = tuple[str, int]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Place(NamedTuple):
    """The place of a record: its split, its shard and its index in the shard."""

    split: str
    shard: str
    record: int


class ShownRecords(NamedTuple):
    """The records that a page shows.

    Attributes:
        examples: by split.
        sample: the first records of some shards by split; records are in the order of a hash, so
            this is a random sample.
        at: the requested records that were cheap enough to read.
    """

    examples: Mapping[str, Sequence[RecordView]] = {}
    sample: Mapping[str, Sequence[Record]] = {}
    at: Mapping[Place, RecordView] = {}


def read_shown(
    dataset: Dataset, path_of: Callable[[str], str], places: Sequence[Place] = ()
) -> ShownRecords:
    """Read the records that a page shows: deterministic, with as many labels as possible.

    Reading starts at the front of one shard for each label, or of evenly spaced shards. If reading
    fails, a warning is logged: a missing picture must not fail a run. ``places`` are of records to
    show, the most important first.
    """
    try:
        # Examples of an image and its labels have no values to count.
        is_plain = not dataset.features and _has_images(dataset)
        splits = islice(dataset.splits.items(), _ALL_SHOWN)
        fronts = [place for name, it in splits for place in _in_split(name, it, is_plain)]
        near = list(_affordable(dataset, path_of, places))
        records = _read(path_of, [*fronts, *near])
        # A shard may have fewer records.
        by_split = groupby(filter(records.__contains__, fronts), attrgetter("split"))
        sample = {name: [records[place] for place in found] for name, found in by_split}
        chosen = {name: _choose(items, dataset) for name, items in sample.items()}
        at = {place: records[place] for place in near if place in records}
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
    return any(map(is_image, stored_features(dataset)))


def _in_split(name: str, split: Split, is_plain: bool) -> Iterator[Place]:
    """Yield the first places of some shards."""
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
        for index in range(min(most, affordable // len(opened))):
            yield Place(name, shard.file, index)


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


def _affordable(
    dataset: Dataset, path_of: Callable[[str], str], places: Iterable[Place]
) -> Iterator[Place]:
    """Yield places except those whose records are costly to read."""
    shards = {shard.file: shard for split in dataset.splits.values() for shard in split.shards}
    reached: dict[str, int] = defaultdict(lambda: -1)
    skipped, far_bytes = 0, 0
    for place in places:
        shard, path = shards.get(place.shard), path_of(place.shard)
        if shard is None:
            continue
        further = max(0, place.record - reached[place.shard])
        if storage.is_local(path) and not path.endswith(".gz"):
            if skipped + further > _SKIPPED:
                continue
            skipped += further
        else:
            size = further * shard.bytes // shard.examples
            if far_bytes + size > _FAR_BYTES:
                continue
            far_bytes += size
        reached[place.shard] = max(reached[place.shard], place.record)
        yield place


def _read(path_of: Callable[[str], str], places: Iterable[Place]) -> Mapping[Place, Record]:
    """Return the records at places; each shard is opened once."""
    by_shard: dict[str, dict[int, Place]] = defaultdict(dict)
    for place in places:
        by_shard[place.shard][place.record] = place

    reads = [(path_of(file), wanted) for file, wanted in by_shard.items()]
    return dict(chain.from_iterable(map_in_order(_read_file, reads, threads=default_threads())))


def _read_file(read: tuple[str, Mapping[int, Place]]) -> list[tuple[Place, Record]]:
    path, wanted = read
    return [(wanted[at], parse_example(data)) for at, data in RECORDS.read_chosen(path, wanted)]


class Side(NamedTuple):
    """One example of a finding; ``split`` is empty if unknown, ``view`` None if it was not read."""

    source: str
    line: int
    split: str
    view: RecordView | None


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """One finding with one or two examples, or none if it concerns the whole dataset."""

    finding: LintFinding
    sides: Sequence[Side]

    @property
    def message(self) -> str:
        """The finding's message, with the name of the other import file instead of its path."""
        source = self.finding.other_source
        return self.finding.message.replace(source, source.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """The first findings of one code, and the number of all.

    ``remedy`` is empty if only the documentation has it.
    """

    code: str
    level: str
    count: int
    remedy: str
    items: Sequence[ShownFinding]


def wanted_lines(findings: Sequence[LintFinding]) -> Sequence[Line]:
    """Return the lines whose records are read, taking one finding of each code in turn."""
    return list(dict.fromkeys(_lines_by_turns(findings)))[:_RECORDS_SHOWN]


def places_in(facts: Any, wanted: Sequence[Line]) -> Mapping[Line, Place]:
    """Return the places of the examples of lines, of a table of some examples.

    A line may name several examples: the first one counts.
    """
    is_near = np.isin(facts["line"].to_numpy(), [line for _, line in wanted])
    sources = pa.array({source for source, _ in wanted}, pa.string())
    is_near &= pc.is_in(facts["source"].cast(pa.string()), value_set=sources).to_numpy()
    near = facts.select(["source", "line", *Place._fields]).filter(pa.array(is_near)).to_pydict()
    rows = reversed(list(zip(*near.values(), strict=True)))
    found = {(source, line): Place(*place) for source, line, *place in rows}
    return {line: found[line] for line in wanted if line in found}


def _lines_by_turns(findings: Sequence[LintFinding]) -> Iterator[Line]:
    by_code = [list(items) for _, items in groupby(findings, attrgetter("code"))]
    for turn in zip_longest(*by_code):
        for item in turn:
            if item is not None and item.source:
                yield item.source, item.line
                if item.other_source:
                    yield item.other_source, item.other_line


def groups_of(
    findings: Iterable[LintFinding],
    dataset: Dataset,
    places: Mapping[Line, Place],
    at: Mapping[Place, RecordView],
) -> Sequence[CodeGroup]:
    """Return findings by code, with their examples."""
    left = _PICTURE_BYTES

    def side(source: str, line: int, split: str) -> Side:
        nonlocal left
        place = places.get((source, line))
        if place is None:
            return Side(source, line, split, None)
        found = at.get(place)
        if found is not None and found.thumbnail is not None:
            left -= len(found.thumbnail.data) * 4 // 3
            found = found if left >= 0 else replace(found, thumbnail=None)
        return Side(source, line, place.split, found)

    def shown(item: LintFinding) -> ShownFinding:
        sides = []
        if item.source:
            sides.append(side(item.source, item.line, item.split))
        if item.other_source:
            sides.append(side(item.other_source, item.other_line, ""))
        return ShownFinding(item, sides)

    groups = []
    for code, items in groupby(findings, attrgetter("code")):
        found = [shown(item) for item in items]
        remedy = remedies_of(code, dataset)
        level, count = found[0].finding.level, dataset.lint.get(code, len(found))
        groups.append(CodeGroup(code, level, count, remedy, found))
    return groups


def evenly(items: Sequence[_T], count: int) -> list[_T]:
    """Return up to ``count`` evenly spaced items, including the first and the last.

    ``evenly("abcde", 3)`` → ``["a", "c", "e"]``; a count of 1 gives the first item.
    """
    if len(items) <= count:
        return list(items)
    step = (len(items) - 1) / max(1, count - 1)
    return [items[round(place * step)] for place in range(count)]
