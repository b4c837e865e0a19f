"""A few records of each split as pictures, for the price of a few requests and milliseconds."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from recordgen import features
from recordgen.dataset import Dataset, Shard, Split
from recordgen.errors import PayloadError, RecordgenError
from recordgen.example import parse_example
from recordgen.payloads.thumbnail import Thumbnail, to_thumbnail
from recordgen.report.sampling import evenly
from recordgen.shards import default_threads
from recordgen.tfrecord import read_records

SIDE = 128  # pixels

_ALL_PICTURES = 15
_PICTURES_PER_SPLIT = 5

# Of a split, about this much is read to choose from: one large photo, or many small images.
_SPLIT_BYTES = 2_000_000
_SHARD_RECORDS = 32

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Picture:
    """One record to be shown.

    Attributes:
        uri: ``image/source_id``.
        label: ``image/class/text``; None: it has no label.
        number: ``image/class/label``; -1: none.
        thumbnail: None: the image does not decode, or is too large for one.
    """

    uri: str
    label: str | None
    number: int
    thumbnail: Thumbnail | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A record that may be shown."""

    uri: str
    label: str | None
    number: int
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
        with ThreadPoolExecutor(default_threads()) as pool:
            reads = [
                (name, pool.submit(_read_shard, path_of(shard.file), number))
                for name, split in splits.items()
                for shard, number in _reading(split, count)
            ]
            found: dict[str, list[_Candidate]] = defaultdict(list)
            for name, read in reads:
                found[name] += read.result()
            chosen = {name: _choose(items, count) for name, items in found.items() if items}
            return {name: tuple(pool.map(_picture, items)) for name, items in chosen.items()}
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


def _read_shard(path: str, number: int) -> list[_Candidate]:
    """Return the first records of a shard that hold an image."""
    records = map(parse_example, islice(read_records(path), number))
    return [found for found in map(_candidate, records) if found is not None]


def _candidate(record: Mapping[str, Sequence[Any]]) -> _Candidate | None:
    """Return what a record shows; None: it has no image. Records from Python may hold anything."""

    def first(name: str) -> Any:
        return next(iter(record.get(name, ())), None)

    image, number = first(features.IMAGE_ENCODED), first(features.IMAGE_CLASS_LABEL)
    if not isinstance(image, bytes):
        return None
    label, uri = first(features.IMAGE_CLASS_TEXT), first(features.IMAGE_SOURCE_ID)
    return _Candidate(
        _text(uri) if uri is not None else "",
        _text(label) if label is not None else None,
        number if isinstance(number, int) else features.NO_LABEL,
        image,
    )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _choose(candidates: Iterable[_Candidate], count: int) -> list[_Candidate]:
    """Return the first record of each label, then the second ones, …, sorted by label."""
    by_label: dict[str | None, list[_Candidate]] = defaultdict(list)
    for item in candidates:
        by_label[item.label].append(item)
    rounds = zip_longest(*by_label.values())
    chosen = islice((item for turn in rounds for item in turn if item is not None), count)
    return sorted(chosen, key=lambda item: (item.number, item.label or "", item.uri))


def _picture(item: _Candidate) -> Picture:
    try:
        thumbnail = to_thumbnail(item.image, SIDE)
    except (PayloadError, MemoryError):
        thumbnail = None
    return Picture(item.uri, item.label, item.number, thumbnail)
