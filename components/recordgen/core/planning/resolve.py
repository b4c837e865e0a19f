"""Resolve the rows of a bucket: which rows are kept, and in which split. Pure functions.

A row's sort key is a hash of (seed, uri), and a bucket is a range of sort keys. All rows of one uri
are in the same bucket, so each bucket is resolved on its own, unless options need all rows
(:mod:`recordgen.core.planning.decide`):

    rows ─placed─▶ bucket ─settle_bucket─▶ Settled ─plan_bucket─▶ rows by Group, BucketSummary

A row with a unique sort key does not depend on other rows: such rows are planned by columns. Rows
that share a sort key, such as duplicates, parts and contradictions, are examined one by one.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from itertools import chain, compress, groupby, islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import storage
from recordgen.core.conversion import PayloadStore, Splits
from recordgen.core.dataset.counts import RowCounts
from recordgen.core.dataset.splits import EVAL, MOVE_BITS, EvalFrom, SplitFractions
from recordgen.core.facts.columns import ExampleNote, FactsBuilder
from recordgen.core.planning.decide import LOOKS, without_incomplete
from recordgen.core.planning.plan import BucketSummary, Settled
from recordgen.core.rows.columns import (
    Columns,
    columns_of,
    grouped,
    in_order,
    rows_of,
    shares_of,
    values_of,
)
from recordgen.core.rows.row import (
    Group,
    KnownRow,
    PlacedRow,
    PlannedRow,
    content_digest,
    is_content_uri,
    placing,
    requested_uris,
    with_uri,
)
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import ADDING, Payloads, Sizes, Task, count_labels, first_labels
from recordgen.errors import PayloadError
from recordgen.rejects import OddLine, Reject, RejectCode, place_of, reject
from recordgen.storage import FileInfo

_Answer = TypeVar("_Answer")

# The version of a payload that is part of its row, and so never changes.
_IN_THE_ROW = "row"

#: The code of an example whose rows name several splits.
MIXED_SPLITS = "MIXED_SPLITS"

# Rows that a message names.
_ROWS_SHOWN = 5


def settle_bucket(
    placed: Columns,
    *,
    splits: Splits,
    task: Task,
    drop_unnamed: bool,
    store: PayloadStore,
    known: Sequence[KnownRow] = (),
    lost: Sequence[Reject] = (),
) -> Settled:
    """Decide which rows of a bucket are examples, unless their payload is refused later.

    Contents of payloads are read only if ``splits`` need them. ``known`` are the bucket's examples
    in the dataset that is appended to.
    """
    rows = in_order(placed)
    incomplete: list[Reject] = []
    if lost:
        rows, incomplete = without_incomplete(rows, lost, task)
    settled = _settle(rows, task, known, splits.share)
    settled.rejects += incomplete
    rows = settled.rows
    if drop_unnamed:
        rows = rows.filter(pc.is_valid(rows["split"]))
        settled.counts["dropped"] = len(settled.rows) - len(rows)
    rows = _sized(rows, task, store, settled.rejects)
    if splits.by_content or splits.finds_copies:
        rows = _with_content(rows, splits, task, store, settled.rejects)
    if splits.by_content:
        rows = _placed_by_content(rows, splits.seed)
    return replace(settled, rows=rows)


def plan_bucket(
    settled: Settled,
    *,
    splits: Splits,
    task: Task,
    by_label: bool,
    decided: Columns | None = None,
) -> tuple[dict[Group, Columns], BucketSummary]:
    """Return the planned rows of a bucket by group, in order, and their summary.

    Rows of one split are a group, or of one split and label. ``decided`` has what
    :func:`recordgen.core.planning.decide.decide` says, if options need all rows.
    """
    rows = settled.rows
    if decided is not None:
        if splits.by_looks:
            rows = _with_split_hashes(rows, decided["split_hash"])
        rows, decided = rows.filter(decided["kept"]), decided.filter(decided["kept"])
    if decided is None or not splits.stratifies:
        names, assigned, moved = _in_splits(rows, splits.fractions, splits.share)
    else:
        names, assigned = decided["split"].combine_chunks(), decided["assigned"]
        moved = pc.sum(decided["moved"], min_count=0).as_py()
    planned = rows.append_column("assigned", assigned).select(PlannedRow._fields)
    groups = dict(_groups(planned, names, task if by_label else None))
    copies = Counter(duplicates=len(settled.rows) - len(rows))
    counts: dict[str, Any] = settled.counts + copies
    rejected = Counter(item.code for item in settled.rejects)
    summary = BucketSummary(
        {group: len(columns) for group, columns in groups.items()},
        {group: pc.sum(columns["bytes"]).as_py() for group, columns in groups.items()},
        count_labels(planned["annotation"], task),
        RowCounts(**counts, rejected=rejected),
        tuple(settled.rejects),
        moved,
        not pc.any(assigned).as_py(),
    )
    return groups, summary


class SplitOrigin(IntEnum):
    """What gives a row its split."""

    #: The row, or a hash if it names none.
    OWN = 0
    #: A known part of its payload.
    PART = 1
    #: A known part of its payload, whose split the row names, too.
    NAMED_PART = 2


def _settle(
    ordered: Columns,
    task: Task,
    known: Sequence[KnownRow],
    share: EvalFrom | None,
) -> Settled:
    """Settle the rows; only rows that share a sort key or a known uri are examined one by one."""
    shared = _share_key(ordered, known)
    alone = _with_origins(ordered, np.full(len(ordered), SplitOrigin.OWN, np.int8))
    if not shared.any():
        return Settled(alone)
    found = Settled(alone.filter(pa.array(~shared)))
    settling = _Settling(task, known, share, found)
    rows, origins = settling.settle(list(rows_of(PlacedRow, ordered.filter(pa.array(shared)))))
    settled = _with_origins(columns_of(PlacedRow, rows), np.array(origins, np.int8))
    both = pa.concat_tables([found.rows, settled]).unify_dictionaries().combine_chunks()
    # Sort by key; rows that share a key keep the order in which they were settled.
    found.rows = both.take(pa.array(np.argsort(both["sort_key"].to_numpy(), kind="stable")))
    return found


def _with_origins(columns: Columns, origins: npt.NDArray[np.int8]) -> Columns:
    return columns.append_column("origin", pa.array(origins))


def _share_key(ordered: Columns, known: Sequence[KnownRow]) -> npt.NDArray[np.bool_]:
    """Return for each row whether it shares its sort key with a row or its uri with ``known``.

    Rows without a uri are separate examples even if they are equal. Shape: bool [n].
    """
    keys = ordered["sort_key"].to_numpy()
    if not len(keys):
        return np.zeros(0, np.bool_)
    is_first = np.concatenate(([True], keys[1:] != keys[:-1]))
    starts = np.flatnonzero(is_first)
    sizes = np.diff([*starts, len(keys)])
    has_uri = np.asarray(pc.greater(pc.binary_length(ordered["uri"]), 0))
    shared = np.repeat((sizes > 1) & np.logical_or.reduceat(has_uri, starts), sizes)
    if not known:
        return shared
    uris = pa.array([row.uri for row in known])
    is_known = np.asarray(pc.is_in(ordered["uri"], value_set=uris))
    return np.logical_or(shared, is_known)


def _sized(rows: Columns, task: Payloads, store: PayloadStore, rejects: list[Reject]) -> Columns:
    """Return the rows whose payloads are not refused, with their ``bytes`` and ``version``."""
    uris, annotations = rows["uri"].combine_chunks(), rows["annotation"].combine_chunks()
    sizes = task.own_sizes(uris, annotations)
    if not task.names_payloads:
        return _with_sizes(rows, sizes, [_IN_THE_ROW] * len(rows))
    wanted = task.stored_uris(values_of(uris), values_of(annotations))
    if rows["addresses"].null_count < len(rows):
        wanted = list(map(requested_uris, wanted, values_of(rows["addresses"])))
    counts = list(map(len, wanted))
    sources = np.repeat(np.array(values_of(rows["source"]), object), counts).tolist()
    found: Iterable[FileInfo | PayloadError]
    found = store.infos(list(chain.from_iterable(wanted)), sources)
    if set(counts) != {1}:
        found = _by_row(wanted, values_of(sizes), iter(found))
    rows, kept = _without_refused(rows, found, rejects)
    sizes = pa.array([info.size for info in kept], pa.int64())
    return _with_sizes(rows, sizes, [info.version for info in kept])


def _by_row(
    wanted: Sequence[Sequence[str]],
    sizes: Sequence[int],
    answers: Iterator[FileInfo | PayloadError],
) -> Iterator[FileInfo | PayloadError]:
    """Yield one answer for each row, given the answers for all payloads."""
    for uris, size in zip(wanted, sizes, strict=True):
        if len(uris) == 1:
            yield next(answers)
        elif uris:
            yield _together(uris, list(islice(answers, len(uris))))
        else:
            yield FileInfo(size, _IN_THE_ROW)


def _with_sizes(rows: Columns, sizes: Sizes, versions: Sequence[str]) -> Columns:
    rows = rows.append_column("bytes", sizes)
    return rows.append_column("version", pa.array(versions, pa.string()))


def _in_splits(
    rows: Columns, fractions: SplitFractions, share: EvalFrom | None
) -> tuple[Any, Any, int]:
    """Return the split of each row, whether it was assigned, and how many moved to ``eval``."""
    hashes = rows["split_hash"].to_numpy()
    chosen = pa.array(fractions.names, pa.string()).take(
        pa.array(shares_of(hashes, fractions.weights))
    )
    splits = pc.coalesce(rows["split"].combine_chunks(), chosen)
    origins = rows["origin"].combine_chunks()
    is_own = pc.equal(origins, SplitOrigin.OWN)
    is_named = pc.is_valid(rows["split"]).combine_chunks()
    assigned = pc.or_(pc.invert(is_named), pc.equal(origins, SplitOrigin.PART))
    moved = 0
    if share is not None:
        is_low = pa.array((hashes & np.uint64(MOVE_BITS)) < share.end)
        moves = pc.and_(pc.and_(pc.equal(splits, share.split), is_low), is_own)
        there = pc.and_(pc.invert(is_own), pc.equal(splits, EVAL))
        splits = pc.if_else(moves, EVAL, splits)
        assigned = pc.or_(assigned, moves)
        moved = pc.sum(pc.or_(moves, there), min_count=0).as_py()
    return splits, assigned, moved


def _groups(
    planned: Columns, splits: Any, by_label: Task | None
) -> Iterator[tuple[Group, Columns]]:
    """Yield the rows by split, and by their label if ``by_label`` is the task of the rows."""
    names = splits.dictionary_encode()
    numbers = names.indices.to_numpy()
    labels: list[str | None] = [None]
    if by_label is not None:
        codes = first_labels(planned["annotation"], by_label).dictionary_encode()
        labels = codes.dictionary.to_pylist()
        numbers = numbers * len(labels) + codes.indices.to_numpy()
    for number, columns in grouped(planned, numbers):
        split, label = divmod(number, len(labels))
        yield Group(names.dictionary[split].as_py(), labels[label]), columns


@dataclass
class _Settling:
    """Settles rows one by one, and adds the rejects and counts to ``found``."""

    task: Task
    known: Sequence[KnownRow]  # examples of the dataset that is appended to
    share: EvalFrom | None
    found: Settled  # receives rejects and counts
    address: Callable[[str], str] = field(default_factory=lambda: cache(storage.real))

    def settle(
        self, ordered: Sequence[PlacedRow]
    ) -> tuple[Sequence[PlacedRow], Sequence[SplitOrigin]]:
        """Return the rows that are examples, and the origin of each one's split.

        ``ordered`` is sorted by sort key.
        """
        origins: dict[tuple[str, int], SplitOrigin] = {}
        if self.known:
            ordered = self._with_known_parts(ordered, origins)
        rows: list[PlacedRow] = []
        for _, neighbours in groupby(ordered, key=lambda row: row.sort_key):
            rows += self._distinct(list(neighbours))
        if self.known:
            rows = self._without_known(rows)
        return rows, [origins.get(_line(row), SplitOrigin.OWN) for row in rows]

    def _reject(self, row: PlacedRow, code: RejectCode, message: str) -> None:
        self.found.rejects.append(reject(row, code, message))

    def _distinct(self, neighbours: Sequence[PlacedRow]) -> Iterator[PlacedRow]:
        """Yield one row for each part of each payload, and every row without a uri."""
        payloads: dict[str, list[PlacedRow]] = defaultdict(list)
        for row in sorted(neighbours, key=_line):
            if row.uri:
                payloads[self._payload(row)].append(row)
            else:
                yield row
        for rows in chain.from_iterable(_apart(rows) for _, rows in sorted(payloads.items())):
            if len(set(map(self._part, rows))) > 1:
                # All parts of a payload get one split, which the first line with a split names.
                named, agreeing, others = _by_split(rows)
                self._reject_others(others, named)
                split_hash = rows[0].split_hash
                rows = [row._replace(split=named.split, split_hash=split_hash) for row in agreeing]
            for _, same in groupby(sorted(rows, key=self._part), key=self._part):
                yield from self._merged(list(same))

    def _merged(self, ordered: Sequence[PlacedRow]) -> Sequence[PlacedRow]:
        """Return the rows of one payload merged into one row, or none if all are rejected.

        The first row (by file, then line) wins. If it names no split, it gets the split of another
        row, and the task merges the annotations. Contradictory annotations reject all rows. A
        different split rejects only its row, or is a finding if the example needs all rows.
        Equal rows that contain their text are not merged: each stays an example; see also
        :func:`_apart`.
        """
        if len(ordered) == 1:
            return ordered
        named, agreeing, others = _by_split(ordered)
        needs_all = self.task.labelling in ADDING
        try:
            merged = self.task.merge([row.annotation for row in ordered])  # it may reject all rows
            if others and not needs_all:
                merged = self.task.merge([row.annotation for row in agreeing])
        except AnnotationError as exc:
            lines = ", ".join(map(_place, ordered[:_ROWS_SHOWN]))
            for row in ordered:
                self._reject(row, exc.code, f"{exc.message} in {lines}; keep one")
            return []
        if others and needs_all:
            self.found.odd_lines.append(self._several_splits(ordered, named, others))
            agreeing = ordered
        else:
            self._reject_others(others, named)
        if is_content_uri(ordered[0].uri) and len({row.annotation for row in agreeing}) == 1:
            # Equal texts in rows are examples of their own; `duplicates` decides about copies.
            return [row._replace(split=named.split) for row in agreeing]
        duplicates = merged.duplicates
        self.found.counts.update(duplicates=duplicates, merged=len(agreeing) - 1 - duplicates)
        return [ordered[0]._replace(split=named.split, annotation=merged.annotation)]

    def _several_splits(
        self, rows: Sequence[PlacedRow], named: PlacedRow, others: Sequence[PlacedRow]
    ) -> OddLine:
        """Return the finding about an example with ``others`` that name another split."""
        shown = ", ".join(f"{row.split!r} in {_place(row)}" for row in others[:_ROWS_SHOWN])
        message = (
            f"rows of one {self.task.noun} name several splits: {named.split!r} in "
            f"{_place(named)}, {shown}{', …' if len(others) > _ROWS_SHOWN else ''}; all "
            f"{len(rows):,} rows are in {named.split!r}, the first one"
        )
        return OddLine(named.source, named.line, named.uri, MIXED_SPLITS, message)

    def _reject_others(self, others: Iterable[PlacedRow], named: PlacedRow) -> None:
        """Reject the rows that name another split than ``named`` does."""
        for row in others:
            message = (
                f"split {row.split!r} contradicts {named.split!r} of {_place(named)}, which is kept"
            )
            self._reject(row, RejectCode.CONFLICTING_SPLITS, message)

    def _with_known_parts(
        self, rows: Iterable[PlacedRow], origins: dict[tuple[str, int], SplitOrigin]
    ) -> list[PlacedRow]:
        """Give rows the split of the known parts of their payload.

        ``origins`` receives the file and line of each such row. Rows that name another split are
        rejected.
        """
        known: dict[tuple[str, str], list[KnownRow]] = defaultdict(list)
        for item in self.known:
            known[item.uri, self._payload(item)].append(item)
        kept: list[PlacedRow] = []
        for row in rows:
            items = self._comparable(row, known.get((row.uri, self._payload(row)), ()))
            there = {self._part(item) for item in items}
            first = next(iter(items), None)
            if first is None:
                kept.append(row)
                continue
            agrees = self._agrees(row.split, first.split)
            is_whole = self._part(row) in there and (len(there) == 1 or is_content_uri(row.uri))
            if is_whole and (row.split is None or not agrees):
                kept.append(row)  # it is known already, or contradicts a known row
            elif agrees:
                is_named = row.split == first.split
                origins[_line(row)] = SplitOrigin.NAMED_PART if is_named else SplitOrigin.PART
                kept.append(row._replace(split=first.split))
            else:
                message = (
                    f"split {row.split!r} contradicts {first.split!r} of its other parts in "
                    f"{first.shard}, and append never changes an example"
                )
                self._reject(row, RejectCode.CONFLICTING_SPLITS, message)
        return kept

    def _without_known(self, rows: Iterable[PlacedRow]) -> list[PlacedRow]:
        """Return the rows that are not known yet; count the known ones, reject contradictions."""
        examples: dict[tuple[str, str, str], list[KnownRow]] = defaultdict(list)
        for item in self.known:
            examples[item.uri, self._payload(item), self._part(item)].append(item)
        new: list[PlacedRow] = []
        for row in rows:
            same = examples.get((row.uri, self._payload(row), self._part(row)), ())
            there = self._comparable(row, same)
            if not there:
                new.append(row)
            elif (contradiction := self._contradiction(row, there)) is not None:
                self._reject(row, *contradiction)
            else:
                self.found.counts["existing"] += 1
        return new

    def _comparable(self, row: PlacedRow, known: Sequence[KnownRow]) -> Sequence[KnownRow]:
        """Return the examples that a row may repeat or contradict, see :func:`_apart`."""
        if not is_content_uri(row.uri):
            return known
        return [item for item in known if self._agrees(row.split, item.split)]

    def _payload(self, row: PlacedRow | KnownRow) -> str:
        """Return what a row names: the same relative uri in two folders names two payloads."""
        if self.task.by_address:
            return row.uri
        return storage.resolve(row.uri, self.address(row.source))

    def _part(self, row: PlacedRow | KnownRow) -> str:
        return self.task.part(row.uri, row.annotation)

    def _agrees(self, named: str | None, stored: str) -> bool:
        """Return whether a row that names a split may have its example in the split ``stored``."""
        has_moved = self.share is not None and (named, stored) == (self.share.split, EVAL)
        return named in (None, stored) or has_moved

    def _contradiction(
        self, row: PlacedRow, examples: Sequence[KnownRow]
    ) -> tuple[RejectCode, str] | None:
        """Return the reject code and message of a row that contradicts all its known examples."""
        own, first = row.annotation, examples[0]
        same = [
            item
            for item in examples
            if own is None or not self.task.contradicts(own, item.annotation)
        ]
        if not same:
            code, stored = RejectCode.CONFLICTING_LABELS, first.annotation
            found = "no label"
            if stored is not None and self.task.labels(stored):
                found = f"label {self.task.shown(stored)}"
        elif not any(self._agrees(row.split, item.split) for item in same):
            code, first = RejectCode.CONFLICTING_SPLITS, same[0]
            found = f"split {first.split!r}"
        else:
            return None
        message = f"{first.shard} already has it with {found}, and append never changes an example"
        return code, f"{message}; convert all rows again"


def _line(row: PlacedRow) -> tuple[str, int]:
    return row.source, row.line


def _place(row: PlacedRow) -> str:
    return place_of(row.source, row.line, row.uri)


def _apart(ordered: Sequence[PlacedRow]) -> Iterable[Sequence[PlacedRow]]:
    """Return the rows of one payload; those that contain their text, by their split.

    Equal texts in two splits are examples of both, which the check LEAK finds. Rows that name no
    split go with the first row that does.
    """
    if not is_content_uri(ordered[0].uri):
        return [ordered]
    first = _by_split(ordered)[0].split
    rows: dict[str | None, list[PlacedRow]] = defaultdict(list)
    for row in ordered:
        rows[row.split or first].append(row)
    return rows.values()


def _by_split(
    ordered: Sequence[PlacedRow],
) -> tuple[PlacedRow, Sequence[PlacedRow], Sequence[PlacedRow]]:
    """Return the first row that names a split, or else the first; the rows that agree; others."""
    named = next((row for row in ordered if row.split is not None), ordered[0])
    agreeing = [row for row in ordered if row.split in (None, named.split)]
    return named, agreeing, [row for row in ordered if row.split not in (None, named.split)]


def _together(
    uris: Sequence[str], found: Sequence[FileInfo | PayloadError]
) -> FileInfo | PayloadError:
    """Return the total size and the versions of several payloads, or the first error."""
    parts = []
    for uri, info in zip(uris, found, strict=True):
        if isinstance(info, PayloadError):
            message = info.message if uri in info.message else f"{uri}: {info.message}"
            return PayloadError(info.code, message)
        parts.append(info)
    return FileInfo(sum(info.size for info in parts), json.dumps(parts))


def _without_refused(
    rows: Columns, answers: Iterable[_Answer | PayloadError], rejects: list[Reject]
) -> tuple[Columns, list[_Answer]]:
    """Return the rows whose answers are no errors, and these answers; errors become rejects."""
    found = list(answers)
    kept = [answer for answer in found if not isinstance(answer, PayloadError)]
    if len(kept) == len(found):
        return rows, kept
    refused = pa.array([isinstance(answer, PayloadError) for answer in found])
    errors = (answer for answer in found if isinstance(answer, PayloadError))
    for row, error in zip(rows_of(PlacedRow, rows.filter(refused)), errors, strict=True):
        rejects.append(Reject(row.source, row.line, row.uri, error.code, error.message))
    return rows.filter(pc.invert(refused)), kept


def _with_content(
    rows: Columns, splits: Splits, task: Payloads, store: PayloadStore, rejects: list[Reject]
) -> Columns:
    """Add the column ``content``, the sha256 of each payload, and what ``splits`` compare.

    ``content`` is known for texts and for payloads in files. Files are read only if copies are to
    be found, or if their content may decide the split. Rows whose payload cannot be read become
    ``rejects``.
    """
    undecided = (None, splits.share and splits.share.split)
    items = list(rows_of(PlacedRow, rows))
    stored = task.stored_uris([row.uri for row in items], [row.annotation for row in items])
    is_read = [
        bool(row.uri and uris) and (splits.finds_copies or row.split in undecided)
        for row, uris in zip(items, stored, strict=True)
    ]
    in_files = [
        with_uri(row, requested_uris([row.uri], row.addresses)[0])
        for row in compress(items, is_read)
    ]
    answers = iter(store.contents(in_files))
    looks = FactsBuilder()
    found: list[bytes | PayloadError | None] = []
    for row, is_in_file in zip(items, is_read, strict=True):
        digest, picture = content_digest(row.uri) if is_content_uri(row.uri) else None, None
        if is_in_file:
            answer = next(answers)
            if isinstance(answer, PayloadError):
                found.append(answer)
                continue
            digest, picture = answer
        found.append(digest)
        if splits.by_looks:
            looks.add(ExampleNote(0, seen=picture))
    rows, kept = _without_refused(rows, found, rejects)
    rows = rows.append_column("content", pa.array(kept, pa.binary()))
    if splits.by_looks:
        measures = looks.columns()
        for name in LOOKS:
            rows = rows.append_column(name, measures[name])
    return rows


def _placed_by_content(rows: Columns, seed: int) -> Columns:
    """Replace the split hash of rows with the hash of their content, if it is known."""
    place = placing(seed)
    known = pa.array(
        [content and place(content).split_hash for content in rows["content"].to_pylist()],
        pa.uint64(),
    )
    return _with_split_hashes(rows, pc.coalesce(known, rows["split_hash"]))


def _with_split_hashes(rows: Columns, hashes: Any) -> Columns:
    return rows.set_column(rows.schema.get_field_index("split_hash"), "split_hash", hashes)
