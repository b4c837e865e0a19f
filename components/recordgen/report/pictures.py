"""A few records of each split as pictures, for the price of a few requests and milliseconds."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from recordgen import features
from recordgen.dataset.manifest import Dataset, Shard, Split
from recordgen.errors import PayloadError, RecordgenError
from recordgen.options import default_threads
from recordgen.ordered import map_in_order
from recordgen.payloads.thumbnail import Thumbnail, to_thumbnail
from recordgen.records.boxes import StoredBox, stored_boxes
from recordgen.records.example import parse_example
from recordgen.records.tfrecord import read_records
from recordgen.report.balance import evenly

SIDE = 128  # pixels

_ALL_PICTURES = 15
_PICTURES_PER_SPLIT = 5

# Bytes read of each split to choose from: one large photo, or many small images.
_SPLIT_BYTES = 2_000_000
_SHARD_RECORDS = 32

_log = logging.getLogger(__name__)


class Label(NamedTuple):
    """One label of a record.

    Attributes:
        number: ``image/class/label``, or ``image/object/class/label``; -1: none.
        text: ``image/class/text``, or ``image/object/class/text``.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One record to be shown.

    Attributes:
        uri: ``image/source_id``.
        labels: all of the image, or those of its boxes, each once, by number.
        boxes: of the objects in it, in the record's order.
        thumbnail: None: the image does not decode, or is too large for one.
    """

    uri: str
    labels: tuple[Label, ...]
    boxes: tuple[StoredBox, ...]
    thumbnail: Thumbnail | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A record that may be shown."""

    uri: str
    labels: tuple[Label, ...]
    boxes: tuple[StoredBox, ...]
    image: bytes


def read_pictures(
    dataset: Dataset, path_of: Callable[[str], str]
) -> Mapping[str, tuple[Picture, ...]]:
    """Return pictures by split: as many labels as possible, and always the same.

    Reading starts at the front of one shard for each label, or of the first and the last one. What
    cannot be read is logged as a warning: a dataset is no worse without a picture.

    Args:
        dataset: names shards and their sizes.
        path_of: says where a shard lies.
    """
    if dataset.features and features.IMAGE_ENCODED not in dataset.features:
        return {}
    splits = dict(islice(dataset.splits.items(), _ALL_PICTURES))
    count = min(_PICTURES_PER_SPLIT, _ALL_PICTURES // max(1, len(splits)))
    try:
        reads = [
            (name, path_of(shard.file), number)
            for name, split in splits.items()
            for shard, number in _reading(split, count)
        ]
        found: dict[str, list[_Candidate]] = defaultdict(list)
        for name, candidates in map_in_order(_read_shard, reads, threads=default_threads()):
            found[name] += candidates
        chosen = {name: _choose(items, count) for name, items in found.items() if items}
        return {
            name: tuple(map_in_order(_picture, items, threads=default_threads()))
            for name, items in chosen.items()
        }
    except (RecordgenError, OSError, ValueError) as exc:
        _log.warning("report.html has no pictures: %s", exc)
        return {}


def _reading(split: Split, count: int) -> Iterator[tuple[Shard, int]]:
    """Yield which shards to read, and how many records from the front of each."""
    shards = [shard for shard in split.shards if shard.examples]
    if not shards:
        return
    by_label = {shard.label: shard for shard in reversed(shards)}
    several = list(by_label.values())[::-1]
    if len(by_label) == 1:
        # At least two: the last one holds what was appended, if anything was.
        several = evenly(shards, max(2, -(-count * len(shards) // split.examples)))
    affordable = max(1, _SPLIT_BYTES * split.examples // max(1, split.bytes))
    opened = evenly(several, min(count, affordable))
    for shard in opened:
        yield shard, min(_SHARD_RECORDS, affordable // len(opened))


def _read_shard(read: tuple[str, str, int]) -> tuple[str, list[_Candidate]]:
    """Return a shard's split, and its first records that hold an image."""
    split, path, number = read
    records = map(parse_example, islice(read_records(path), number))
    return split, [found for found in map(_candidate, records) if found is not None]


def _candidate(record: Mapping[str, Sequence[Any]]) -> _Candidate | None:
    """Return what a record shows; None: it has no image. Records from Python may hold anything."""

    def first(name: str) -> Any:
        return next(iter(record.get(name, ())), None)

    image, uri = first(features.IMAGE_ENCODED), first(features.IMAGE_SOURCE_ID)
    if not isinstance(image, bytes):
        return None
    boxes = _boxes(record)
    labels = {Label(box.number, box.label) for box in boxes} or _labels(record)
    return _Candidate(
        _text(uri) if uri is not None else "",
        tuple(sorted(labels)),
        boxes,
        image,
    )


def _boxes(record: Mapping[str, Sequence[Any]]) -> tuple[StoredBox, ...]:
    try:
        return tuple(stored_boxes(record))
    except ValueError:
        return ()


def _labels(record: Mapping[str, Sequence[Any]]) -> set[Label]:
    texts = record.get(features.IMAGE_CLASS_TEXT, ())
    numbers = record.get(features.IMAGE_CLASS_LABEL, ())
    return {
        Label(number if isinstance(number, int) else features.NO_LABEL, _text(text))
        for text, number in zip_longest(texts, numbers[: len(texts)])
    }


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _choose(candidates: Iterable[_Candidate], count: int) -> list[_Candidate]:
    """Return records with as many labels as possible, sorted by label.

    Each is the first one of those with the label that was chosen the fewest times so far; to have
    none counts as a label.
    """
    left, chosen = list(candidates), list[_Candidate]()
    times: Counter[Label | None] = Counter()
    while left and len(chosen) < count:
        rarest = min(left, key=lambda item: min(times[label] for label in item.labels or (None,)))
        left.remove(rarest)
        chosen.append(rarest)
        times.update(rarest.labels or (None,))
    return sorted(chosen, key=lambda item: (item.labels, item.uri))


def _picture(item: _Candidate) -> Picture:
    try:
        thumbnail = to_thumbnail(item.image, SIDE)
    except (PayloadError, MemoryError):
        thumbnail = None
    return Picture(item.uri, item.labels, item.boxes, thumbnail)
