"""The records that a page shows: some of each split, and the records with findings, by code.

Reading is bounded, so that a page of a million examples costs no more than one of a thousand.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from recordgen.tasks.suiting import remedies_of

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
        fronts = list(_places_in_front(dataset))
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
    if dataset.features or dataset.task not in TASKS:
        return any(name.endswith("/encoded") for name in dataset.features)
    return features.IMAGE_ENCODED in TASKS[dataset.task].features


def _places_in_front(dataset: Dataset) -> Iterator[Place]:
    """Yield the places from which the shown examples are chosen."""
    # Examples of an image and its labels have no values to count.
    is_plain = not dataset.features and _has_images(dataset)
    for name, split in islice(dataset.splits.items(), _ALL_SHOWN):
        yield from _in_split(name, split, is_plain)


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


@dataclass(frozen=True, slots=True)
class Side:
    """One example of a finding; ``split`` is empty if unknown, ``view`` None if it was not read."""

    source: str
    line: int
    split: str
    view: RecordView | None

    @property
    def labels(self) -> Sequence[Label]:
        """The labels of the example; empty if it was not read."""
        return self.view.labels if self.view is not None else ()


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

    @property
    def splits(self) -> Sequence[str]:
        """The splits of its examples, each once."""
        return list(dict.fromkeys(side.split for side in self.sides if side.split))

    @property
    def labels(self) -> Sequence[str]:
        """The labels of its examples, each once."""
        return list(dict.fromkeys(label.text for side in self.sides for label in side.labels))


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
