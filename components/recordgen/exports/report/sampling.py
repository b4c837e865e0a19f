"""The records that a page shows: some of each split, and the records with findings.

Reading is bounded, so that a page of a million examples costs no more than one of a thousand.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from recordgen import features, storage
from recordgen.core.dataset.counts import Shard, Split
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.ordered import default_threads, map_in_order
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.errors import RecordgenError
from recordgen.exports.report.records import (
    Label,
    Record,
    RecordView,
    image_of,
    labels_of,
    record_view,
)
from recordgen.tasks import TASKS

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
