"""Which rows are kept, and in which split: a bucket of rows is resolved on its own. Pure functions.

A row's place is a hash of (seed, uri). All rows of one uri fall into the same bucket, a range of
that hash, so nothing outside a bucket decides what becomes of its rows:

    rows ─place─▶ bucket ─resolve_bucket─▶ PlannedRows by Group + BucketSummary
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

from recordgen import storage
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.rows import Reject, RejectCode, placing, reject
from recordgen.storage import FileInfo
from recordgen.tasks.task import AnnotationError, Task

_Answer = TypeVar("_Answer")

# The version of a payload that is part of its row.
_IN_THE_ROW = "row"


class PlacedRow(NamedTuple):
    """A row and its place, flat: a million of them are pickled and sorted.

    Attributes:
        order: see :class:`recordgen.rows.Place`.
        draw: see :class:`recordgen.rows.Place`.
        source: see :class:`recordgen.rows.Row`, as all that follow.
    """

    order: int
    draw: int
    source: str
    line: int
    split: str | None
    uri: str
    annotation: str | None


class KnownRow(NamedTuple):
    """An example of the dataset that is appended to.

    Attributes:
        order: see :class:`recordgen.rows.Place`.
        shard: the file that holds it.
        split: its split.
        uri: its payload's address as its row gave it.
        annotation: what it says of the payload; see :class:`recordgen.rows.Row`.
    """

    order: int
    shard: str
    split: str
    uri: str
    annotation: str | None


class PlannedRow(NamedTuple):
    """A row that will become an example unless its payload is refused.

    Attributes:
        order: its position among all rows (64 bit).
        source: the import file that names it.
        line: 1-based line in that file.
        uri: the payload's address as given.
        annotation: see :class:`recordgen.rows.Row`.
        bytes: the payload's size.
        version: changes when the payload does.
        drawn: its split was drawn, not named.
    """

    order: int
    source: str
    line: int
    uri: str
    annotation: str | None
    bytes: int
    version: str
    drawn: bool


class Group(NamedTuple):
    """The planned rows that share shards.

    Attributes:
        split: their split.
        label: the one label of them all, "" if they have none; None: their labels are mixed.
    """

    split: str
    label: str | None


@dataclass(frozen=True)
class BucketSummary:
    """What a bucket's rows came to; the planned ones are counted by group.

    Attributes:
        bucket: its number; buckets are ranges of ``Place.order``, in that order.
        rows: planned rows by group.
        bytes: their payloads' bytes by group.
        labels: planned rows by label; one with several labels counts for each.
        duplicates: rows that say what another row says.
        merged: rows that add something to another row's example.
        dropped: rows without a split, left out on request.
        rejects: rows left out, and why.
        existing: rows whose example is in the dataset that is appended to.
    """

    bucket: int
    rows: Mapping[Group, int]
    bytes: Mapping[Group, int]
    labels: Mapping[str, int]
    duplicates: int
    merged: int
    dropped: int
    rejects: tuple[Reject, ...]
    existing: int = 0


def bucket_of(order: int, buckets: int) -> int:
    """Return the bucket of a place: equal ranges of the 64-bit order."""
    return order * buckets >> 64


class MergedRows(NamedTuple):
    """What the rows of one payload come to.

    Attributes:
        row: stands for them all; None: they are all rejected.
        rejects: those that cannot be used, and why.
        duplicates: those that say nothing new.
        merged: those that add something.
    """

    row: PlacedRow | None
    rejects: Sequence[Reject]
    duplicates: int = 0
    merged: int = 0


def merge_rows(rows: Sequence[PlacedRow], task: Task) -> MergedRows:
    """Merge the rows of one payload.

    The first row (by file, then line) wins; a split that it leaves open is filled from the others,
    and the task says what their annotations come to. Annotations that contradict each other reject
    all rows, a split that differs rejects that row.
    """
    ordered = sorted(rows, key=lambda row: (row.source, row.line))
    named = next((row for row in ordered if row.split is not None), ordered[0])
    conflicts = [
        reject(
            row,
            RejectCode.CONFLICTING_SPLITS,
            f"split {row.split!r} contradicts {named.split!r} of {named.source}:{named.line}, "
            f"which is kept",
        )
        for row in ordered
        if row.split not in (None, named.split)
    ]
    agreeing = [row for row in ordered if row.split in (None, named.split)]
    try:
        task.merge([row.annotation for row in ordered])  # a contradiction spoils them all
        annotation, duplicates = task.merge([row.annotation for row in agreeing])
    except AnnotationError as exc:
        lines = ", ".join(f"{row.source}:{row.line}" for row in ordered[:5])
        message = f"{exc.message} in {lines}; keep one"
        return MergedRows(None, [reject(row, exc.code, message) for row in ordered])
    kept = ordered[0]._replace(split=named.split, annotation=annotation)
    return MergedRows(kept, conflicts, duplicates, len(agreeing) - 1 - duplicates)


def resolve_bucket(
    bucket: int,
    placed: Iterable[PlacedRow],
    *,
    options: ConvertOptions,
    task: Task,
    drop_unnamed: bool,
    infos: Callable[[Sequence[PlacedRow]], Iterable[FileInfo | PayloadError]],
    content_keys: Callable[[Sequence[PlacedRow]], Iterable[bytes | PayloadError]],
    known: Iterable[KnownRow] = (),
    folders: Collection[str] = (),
) -> tuple[dict[Group, list[PlannedRow]], BucketSummary]:
    """Decide for every row of a bucket: planned in a group, duplicate, dropped or rejected.

    Args:
        bucket: its number.
        placed: all rows of the bucket, in any order.
        options: seed, split fractions, split_by, shard_by.
        task: what annotations mean.
        drop_unnamed: leave out rows without a split.
        infos: returns the size and version of each payload in storage, or why it is refused.
        content_keys: returns each payload's sha256; called only for ``split_by=content``.
        known: examples of the dataset that is appended to, of this bucket.
        folders: those of the import files that it was made of.

    Returns:
        Planned rows by group, in their order; and the summary.
    """
    rejects: list[Reject] = []
    distinct, duplicates, merged = _distinct(sorted(placed, key=_order), task, rejects)
    new, existing = _without_known(distinct, known, folders, task, rejects)
    kept = [row for row in new if row.split is not None] if drop_unnamed else new
    found = list(_without_refused(kept, _infos(kept, task, infos), rejects))
    if options.split_by == "content":
        found = list(_draw_by_content(found, options.seed, task, content_keys, rejects))
    by_group: dict[tuple[str, str | None], list[PlannedRow]] = {}
    by_label = options.shard_by == "label"
    choose = options.split_fractions.choose
    for (order, draw, source, line, named, uri, annotation), (size, version) in found:
        key = (named or choose(draw), (annotation or "") if by_label else None)
        row = PlannedRow(order, source, line, uri, annotation, size, version, named is None)
        by_group.setdefault(key, []).append(row)
    groups = {Group(*key): rows for key, rows in by_group.items()}
    planned = chain.from_iterable(groups.values())
    labels = task.count_labels(row.annotation for row in planned if row.annotation is not None)
    summary = BucketSummary(
        bucket,
        {group: len(rows) for group, rows in groups.items()},
        {group: sum(row.bytes for row in rows) for group, rows in groups.items()},
        dict(labels),
        duplicates,
        merged,
        len(new) - len(kept),
        tuple(rejects),
        existing,
    )
    return groups, summary


def _order(row: PlacedRow) -> tuple[int, int, str, int]:
    return row[:4]


def _distinct(
    ordered: Sequence[PlacedRow], task: Task, rejects: list[Reject]
) -> tuple[list[PlacedRow], int, int]:
    """Merge rows of one payload, which are neighbours; return one each, duplicates and merged."""
    distinct: list[PlacedRow] = []
    duplicates = added = start = 0
    for end, row in enumerate(ordered, start=1):
        if end < len(ordered) and ordered[end].order == row.order:
            continue
        if end - start == 1:
            distinct.append(row)
        elif not any(same.uri for same in ordered[start:end]):
            distinct += ordered[
                start:end
            ]  # each an example by itself, also where they say the same
        else:
            for same in _by_example(ordered[start:end], task):
                found = merge_rows(same, task)
                rejects += found.rejects
                duplicates += found.duplicates
                added += found.merged
                if found.row is not None:
                    distinct.append(found.row)
        start = end
    return distinct, duplicates, added


def _by_example(rows: Sequence[PlacedRow], task: Task) -> list[list[PlacedRow]]:
    """Tell rows apart that fall together: one relative uri in two folders is two payloads.

    Rows without a uri are examples of their own, also where they say the same.
    """
    found: dict[tuple[str, str], list[PlacedRow]] = {}
    for row in rows:
        payload = storage.resolve(row.uri, row.source) if row.uri else row.source
        part = task.part(row.annotation) if row.uri else f"{row.line:020d}"
        found.setdefault((payload, part), []).append(row)
    return [found[key] for key in sorted(found)]


def _without_known(
    rows: list[PlacedRow],
    known: Iterable[KnownRow],
    folders: Collection[str],
    task: Task,
    rejects: list[Reject],
) -> tuple[list[PlacedRow], int]:
    """Return the rows without an example yet, and how many others say what theirs says."""
    examples: dict[tuple[str, str], list[KnownRow]] = {}
    for item in known:
        examples.setdefault((item.uri, task.part(item.annotation)), []).append(item)
    if not examples:
        return rows, 0
    new: list[PlacedRow] = []
    existing = 0
    for row in rows:
        found = examples.get((row.uri, task.part(row.annotation)), [])
        if found and storage.is_relative(row.uri):
            if storage.folder_of(row.source) not in folders:
                found = []  # it has the name of an example, and is another file
            elif len(folders) > len(found) > 0 and len(folders) > 1:
                message = (
                    "the path is relative, and the dataset was made from import files in several "
                    f"folders, so it cannot be told which {task.noun} it holds; write absolute "
                    f"paths"
                )
                rejects.append(reject(row, RejectCode.AMBIGUOUS_PATH, message))
                continue
        if not found:
            new.append(row)
        elif (conflict := _contradiction(row, found, task)) is None:
            existing += 1
        else:
            rejects.append(conflict)
    return new, existing


def _contradiction(row: PlacedRow, examples: Sequence[KnownRow], task: Task) -> Reject | None:
    """Return the reject of a row that says something else than each of its examples."""
    first = examples[0]
    said = row.annotation
    same = [
        item for item in examples if said is None or not task.contradicts(said, item.annotation)
    ]
    if not same:
        code, shard = RejectCode.CONFLICTING_LABELS, first.shard
        word = "no label" if first.annotation is None else f"label {task.shown(first.annotation)}"
    elif all(row.split not in (None, item.split) for item in same):
        code, word = RejectCode.CONFLICTING_SPLITS, f"split {same[0].split!r}"
        shard = same[0].shard
    else:
        return None
    return reject(
        row, code, f"it is in {shard} with {word}, which stays; convert anew to change it"
    )


def _infos(
    rows: Sequence[PlacedRow],
    task: Task,
    infos: Callable[[Sequence[PlacedRow]], Iterable[FileInfo | PayloadError]],
) -> Iterator[FileInfo | PayloadError]:
    """Yield each payload's size and version; what stands in a row itself never changes."""
    stored = [task.is_stored(row.uri) for row in rows]
    answers = iter(infos([row for row, there in zip(rows, stored, strict=True) if there]))
    of_size: dict[int, FileInfo] = {}  # many rows, few sizes
    for row, there in zip(rows, stored, strict=True):
        if there:
            yield next(answers)
            continue
        size = task.own_bytes(row.annotation or "")
        yield of_size.get(size) or of_size.setdefault(size, FileInfo(size, _IN_THE_ROW))


def _without_refused(
    items: Iterable[PlacedRow], answers: Iterable[_Answer | PayloadError], rejects: list[Reject]
) -> Iterator[tuple[PlacedRow, _Answer]]:
    """Pair rows with what was asked about them; refusals become rejects."""
    for row, answer in zip(items, answers, strict=True):
        if isinstance(answer, PayloadError):
            rejects.append(Reject(row.source, row.line, row.uri, answer.code, answer.message))
        else:
            yield row, answer


def _draw_by_content(
    found: Sequence[tuple[PlacedRow, FileInfo]],
    seed: int,
    task: Task,
    content_keys: Callable[[Sequence[PlacedRow]], Iterable[bytes | PayloadError]],
    rejects: list[Reject],
) -> Iterator[tuple[PlacedRow, FileInfo]]:
    """Give rows whose split is drawn the lottery ticket of their content."""
    place = placing(seed)
    unnamed = [row for row, _ in found if row.split is None and task.is_stored(row.uri)]
    keys = dict(_without_refused(unnamed, content_keys(unnamed), rejects))
    for row, info in found:
        if row.split is not None or not task.is_stored(row.uri):
            yield row, info
        elif row in keys:
            yield row._replace(draw=place(keys[row]).draw), info
