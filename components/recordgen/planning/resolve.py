"""Which rows are kept, and in which split: a bucket of rows is resolved on its own. Pure functions.

A row's place is a hash of (seed, uri). All rows of one uri fall into the same bucket, a range of
that hash, so nothing outside a bucket decides what becomes of its rows:

    rows ─place─▶ bucket ─resolve_bucket─▶ PlannedRows by Group + BucketSummary
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from recordgen import storage
from recordgen.dataset.splits import EVAL, EvalFrom
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.rejects import Reject, RejectCode, reject
from recordgen.rows.placing import placing
from recordgen.rows.planned import BucketSummary, Group, KnownRow, PlacedRow, PlannedRow, _of
from recordgen.rows.row import content_digest, is_content_uri
from recordgen.storage import FileInfo
from recordgen.tasks.task import AnnotationError, Task

_Answer = TypeVar("_Answer")

# The version of a payload that is part of its row.
_IN_THE_ROW = "row"


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
    ordered = sorted(rows, key=_line)
    named, agreeing, conflicts = _one_split(ordered)
    try:
        task.merge([row.annotation for row in ordered])  # a contradiction spoils them all
        annotation, duplicates = task.merge([row.annotation for row in agreeing])
    except AnnotationError as exc:
        lines = ", ".join(f"{row.source}:{row.line}" for row in ordered[:5])
        message = f"{exc.message} in {lines}; keep one"
        return MergedRows(None, [reject(row, exc.code, message) for row in ordered])
    kept = ordered[0]._replace(split=named.split, annotation=annotation)
    return MergedRows(kept, conflicts, duplicates, len(agreeing) - 1 - duplicates)


def _one_split(
    ordered: Sequence[PlacedRow],
) -> tuple[PlacedRow, list[PlacedRow], list[Reject]]:
    """Tell rows that agree about a split from others: the first row that names one wins.

    Returns:
        That row, or the first of all; those that agree or name none; those that do not.
    """
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
    return named, [row for row in ordered if row.split in (None, named.split)], conflicts


def _line(row: PlacedRow) -> tuple[str, int]:
    return row.source, row.line


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
        options: seed, split fractions, eval_from, split_by, shard_by.
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
    there = list(known)
    share = options.eval_share
    ordered = sorted(placed, key=_order)
    beside: dict[tuple[str, int], bool] = {}
    if there:
        ordered = _beside_known_parts(ordered, there, folders, task, share, rejects, beside)
    distinct, duplicates, merged = _distinct(ordered, task, rejects)
    new, existing = _without_known(distinct, there, folders, task, share, rejects)
    kept = [row for row in new if row.split is not None] if drop_unnamed else new
    # Each row of an image names one file: what holds for all tasks would cost a quarter more.
    answers = infos(kept) if task.kind == "image" else _infos(kept, task, infos)
    found = list(_without_refused(kept, answers, rejects))
    if options.split_by == "content":
        found = list(_draw_by_content(found, options.seed, task, share, content_keys, rejects))
    moved = 0
    by_group: dict[tuple[str, str | None], list[PlannedRow]] = {}
    by_label = options.shard_by == "label"
    choose = options.split_fractions.choose
    for (order, draw, source, line, named, uri, annotation), (size, version) in found:
        split, is_drawn = named or choose(draw), named is None
        if share is not None or beside:
            if (source, line) in beside:
                is_drawn = beside[source, line]
                moved += share is not None and split == EVAL
            elif share is not None and share.moves(split, draw):
                split, is_drawn = EVAL, True
                moved += 1
        key = (split, _one_label(annotation, task) if by_label else None)
        row = PlannedRow(order, source, line, uri, annotation, size, version, is_drawn)
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
        moved,
    )
    return groups, summary


def _one_label(annotation: str | None, task: Task) -> str:
    """Return the label of an example that has one or none, which is ""."""
    return next(iter(task.labels(annotation)), "") if annotation is not None else ""


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
            # Each is an example by itself, also where they say the same.
            distinct += ordered[start:end]
        else:
            for same in _by_example(_whole_payloads(ordered[start:end], task, rejects), task):
                found = merge_rows(same, task)
                rejects += found.rejects
                duplicates += found.duplicates
                added += found.merged
                if found.row is not None:
                    distinct.append(found.row)
        start = end
    return distinct, duplicates, added


def _whole_payloads(
    rows: Sequence[PlacedRow], task: Task, rejects: list[Reject]
) -> list[PlacedRow]:
    """Give the parts of a payload one split, so that it never straddles two."""
    payloads: dict[str, list[PlacedRow]] = {}
    for row in rows:
        payloads.setdefault(_payload(row, task) if row.uri else "", []).append(row)
    kept: list[PlacedRow] = []
    for payload, same in payloads.items():
        if not payload or len({task.part(row.annotation) for row in same}) == 1:
            kept += same
            continue
        named, agreeing, conflicts = _one_split(sorted(same, key=_line))
        rejects += conflicts
        kept += [row._replace(split=named.split) for row in agreeing]
    return kept


def _payload(row: PlacedRow, task: Task) -> str:
    """Return what tells the payload of a row from others: where it lies."""
    return row.uri if task.by_address else storage.resolve(row.uri, row.source)


def _by_example(rows: Sequence[PlacedRow], task: Task) -> list[list[PlacedRow]]:
    """Tell rows apart that fall together: one relative uri in two folders is two payloads.

    Rows without a uri are examples of their own, also where they say the same.
    """
    found: dict[tuple[str, str], list[PlacedRow]] = {}
    for row in rows:
        payload = _payload(row, task) if row.uri else row.source
        part = task.part(row.annotation) if row.uri else f"{row.line:020d}"
        found.setdefault((payload, part), []).append(row)
    return [found[key] for key in sorted(found)]


def _beside_known_parts(
    rows: Sequence[PlacedRow],
    known: Iterable[KnownRow],
    folders: Collection[str],
    task: Task,
    share: EvalFrom | None,
    rejects: list[Reject],
    beside: dict[tuple[str, int], bool],
) -> list[PlacedRow]:
    """Give rows the split in which other parts of their payload are already.

    Args:
        rows: all rows of a bucket.
        known: its examples.
        folders: those of the import files that they were made of.
        task: what annotations mean.
        share: moves rows to ``eval``.
        rejects: gets the rows that name another split.
        beside: gets the file and line of each such row, and whether its split was assigned.
    """
    parts: dict[str, dict[str, KnownRow]] = {}
    for item in known:
        parts.setdefault(item.uri, {}).setdefault(task.part(item.annotation), item)
    kept: list[PlacedRow] = []
    for row in rows:
        there = parts.get(row.uri, {}) if row.uri else {}
        is_another = _is_elsewhere(row, folders, task)
        first = next(iter(there.values()), None)
        if is_another or first is None:
            kept.append(row)
            continue
        is_whole = len({*there, task.part(row.annotation)}) == 1
        if is_whole and (row.split is None or not _agrees(row.split, first.split, share)):
            kept.append(row)  # its example is there, or it contradicts that
            continue
        if _agrees(row.split, first.split, share):
            beside[row.source, row.line] = row.split != first.split
            kept.append(row._replace(split=first.split))
        else:
            message = (
                f"split {row.split!r} contradicts {first.split!r} of what {first.shard} holds of "
                f"it, which stays"
            )
            rejects.append(reject(row, RejectCode.CONFLICTING_SPLITS, message))
    return kept


def _without_known(
    rows: list[PlacedRow],
    known: Iterable[KnownRow],
    folders: Collection[str],
    task: Task,
    share: EvalFrom | None,
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
        if found and storage.is_relative(row.uri) and not task.by_address:
            if _is_elsewhere(row, folders, task):
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
        elif (conflict := _contradiction(row, found, task, share)) is None:
            existing += 1
        else:
            rejects.append(conflict)
    return new, existing


def _is_elsewhere(row: PlacedRow, folders: Collection[str], task: Task) -> bool:
    """Say whether a row has the relative uri of an example, and starts at another folder."""
    return (
        storage.is_relative(row.uri)
        and not task.by_address
        and storage.folder_of(row.source) not in folders
    )


def _agrees(named: str | None, stored: str, share: EvalFrom | None) -> bool:
    """Say whether an example in the split ``stored`` may be of a row that names ``named``."""
    return named in (None, stored) or (share is not None and (named, stored) == (share.split, EVAL))


def _contradiction(
    row: PlacedRow, examples: Sequence[KnownRow], task: Task, share: EvalFrom | None
) -> Reject | None:
    """Return the reject of a row that says something else than each of its examples."""
    first = examples[0]
    said = row.annotation
    same = [
        item for item in examples if said is None or not task.contradicts(said, item.annotation)
    ]
    if not same:
        code, shard = RejectCode.CONFLICTING_LABELS, first.shard
        stored = first.annotation
        has_label = stored is not None and len(task.labels(stored)) > 0
        word = f"label {task.shown(stored)}" if stored is not None and has_label else "no label"
    elif not any(_agrees(row.split, item.split, share) for item in same):
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
    """Yield the size and version of each row's payloads; what stands in a row never changes."""
    uris = [task.uris(row) for row in rows]
    asked = [_of(row, uri) for row, mine in zip(rows, uris, strict=True) for uri in mine]
    answers = iter(infos(asked))
    of_size: dict[int, FileInfo] = {}  # many rows, few sizes
    for row, mine in zip(rows, uris, strict=True):
        if len(mine) == 1:
            yield next(answers)
        elif mine:
            yield _together(mine, list(islice(answers, len(mine))))
        else:
            size = task.own_bytes(row)
            yield of_size.get(size) or of_size.setdefault(size, FileInfo(size, _IN_THE_ROW))


def _together(
    uris: Sequence[str], found: Sequence[FileInfo | PayloadError]
) -> FileInfo | PayloadError:
    """Return what several payloads of a row come to."""
    parts = []
    for uri, info in zip(uris, found, strict=True):
        if isinstance(info, PayloadError):
            shown = uri if uri in info.message else f"{uri}: "
            return PayloadError(info.code, f"{'' if shown == uri else shown}{info.message}")
        parts.append(info)
    return FileInfo(sum(info.size for info in parts), json.dumps(parts))


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
    share: EvalFrom | None,
    content_keys: Callable[[Sequence[PlacedRow]], Iterable[bytes | PayloadError]],
    rejects: list[Reject],
) -> Iterator[tuple[PlacedRow, FileInfo]]:
    """Replace the draw of rows by that of their content, where a draw decides about their split."""
    place = placing(seed)
    undecided = (None,) if share is None else (None, share.split)
    asked = [row for row, _ in found if row.split in undecided and task.is_stored(row.uri)]
    keys = dict(_without_refused(asked, content_keys(asked), rejects))
    for row, info in found:
        if row.split in undecided and is_content_uri(row.uri):
            yield row._replace(draw=place(content_digest(row.uri)).draw), info
        elif row.split not in undecided or not task.is_stored(row.uri):
            yield row, info
        elif row in keys:
            yield row._replace(draw=place(keys[row]).draw), info
