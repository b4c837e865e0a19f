"""Which rows are kept, and in which split: a bucket of rows is resolved on its own. Pure functions.

A row's place is a hash of (seed, uri). All rows of one uri fall into the same bucket, a range of
that hash, so nothing outside a bucket decides what becomes of its rows, unless options ask for it
(:mod:`recordgen.planning.decide`):

    rows ─placed─▶ bucket ─settle_bucket─▶ Settled ─plan_bucket─▶ rows by Group, BucketSummary

A row that has its place for itself depends on no other one: such rows are planned by columns. Those
that share a place, duplicates, parts and contradictions among them, are looked at one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import storage
from recordgen.dataset.splits import EVAL, SECOND_DRAW, EvalFrom, SplitFractions
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.planning.near import SeenImages
from recordgen.rejects import Reject, RejectCode, reject
from recordgen.rows.columns import (
    Columns,
    columns_of,
    grouped,
    in_order,
    rows_of,
    shares_of,
    values_of,
)
from recordgen.rows.placing import placing
from recordgen.rows.planned import (
    BucketSummary,
    Group,
    KnownRow,
    PlacedRow,
    requested_uris,
    with_uri,
)
from recordgen.rows.row import content_digest, is_content_uri
from recordgen.storage import FileInfo
from recordgen.tasks.task import AnnotationError, Sizes, Task

if TYPE_CHECKING:
    from recordgen.payloads.fetching import Content

_Answer = TypeVar("_Answer")

#: rows → what is in the payload of each, or why it is refused
AskContents: TypeAlias = Callable[[Sequence[PlacedRow]], Iterable["Content | PayloadError"]]

#: (uris, import files) → the size and version of each payload, or why it is refused
AskInfos: TypeAlias = Callable[[Sequence[str], Sequence[str]], Iterable["FileInfo | PayloadError"]]

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


def settle_bucket(
    placed: Columns,
    *,
    options: ConvertOptions,
    task: Task,
    drop_unnamed: bool,
    infos: AskInfos,
    contents: AskContents,
    known: Sequence[KnownRow] = (),
    folders: Collection[str] = (),
) -> Settled:
    """Decide which rows of a bucket are examples, unless their payload is refused later.

    Args:
        placed: all rows of the bucket, in any order (columns of PlacedRow).
        options: seed, split fractions, eval_from, split_by, shard_by.
        task: what annotations mean.
        drop_unnamed: leave out rows without a split.
        infos: returns the size and version of payloads in storage, or why one is refused; it gets
            their uris, and the import file that names each.
        contents: returns what is in each payload, or why it is refused; called only if
            ``split_by`` or ``duplicates`` ask for it.
        known: examples of the dataset that is appended to, of this bucket.
        folders: those of the import files that it was made of.
    """
    share = options.eval_share
    settled = _settled(in_order(placed), task, known, folders, share)
    rejects = settled.rejects
    rows = settled.rows.filter(pc.is_valid(settled.rows["split"])) if drop_unnamed else settled.rows
    settled.dropped = len(settled.rows) - len(rows)
    rows = _sized(rows, task, infos, rejects)
    if options.splits_by_content or options.finds_copies:
        undecided = (None,) if share is None else (None, share.split)
        asked = None if options.finds_copies else undecided
        looks = SeenImages() if options.finds_alike else None
        rows = _with_content(rows, asked, task, contents, rejects, looks)
    if options.splits_by_content:
        rows = _placed_by_content(rows, options.seed)
    return replace(settled, rows=rows)


def plan_bucket(
    bucket: int,
    settled: Settled,
    *,
    options: ConvertOptions,
    task: Task,
    decided: Columns | None = None,
) -> tuple[dict[Group, Columns], BucketSummary]:
    """Plan the settled rows of a bucket.

    Args:
        bucket: its number.
        settled: its rows.
        options: split fractions, eval_from, shard_by.
        task: what annotations mean.
        decided: what all rows together decided about them, see :mod:`recordgen.planning.decide`;
            None: each decides about itself.

    Returns:
        Planned rows by group, in their order (columns of PlannedRow); and the summary.
    """
    rows, copies = settled.rows, 0
    if decided is None:
        found = _in_splits(rows, options.split_fractions, options.eval_share)
    else:
        kept = decided["kept"]
        if options.finds_alike:
            at = rows.schema.get_field_index("split_hash")
            rows = rows.set_column(at, "split_hash", decided["split_hash"])
        rows, decided = rows.filter(kept), decided.filter(kept)
        copies = len(kept) - len(rows)
        if options.stratify == "none":
            found = _in_splits(rows, options.split_fractions, options.eval_share)
        else:
            moved = pc.sum(decided["moved"]).as_py() or 0
            found = decided["split"].combine_chunks(), decided["assigned"], moved
    splits, assigned, moved = found
    planned = pa.table(
        {
            **{name: rows[name] for name in ("sort_key", "source", "line", "uri", "annotation")},
            **{"bytes": rows["bytes"], "version": rows["version"], "assigned": assigned},
            "addresses": rows["addresses"],
        }
    )
    by_label = task if options.shard_by == "label" else None
    groups = dict(_groups(planned, splits, by_label))
    summary = BucketSummary(
        bucket,
        {group: len(columns) for group, columns in groups.items()},
        {group: pc.sum(columns["bytes"]).as_py() for group, columns in groups.items()},
        task.count_labels(planned["annotation"].combine_chunks()),
        settled.duplicates + copies,
        settled.merged,
        settled.dropped,
        tuple(settled.rejects),
        settled.existing,
        moved,
    )
    return groups, summary


@dataclass
class Settled:
    """Rows of which each is an example, unless its payload is refused.

    Attributes:
        rows: columns of PlacedRow, and ``assigned``: whether the split is one that another part of
            the payload has already, and the row did not name; null: nothing is decided. Then
            ``bytes`` and ``version`` of the payload and, where it was read, ``content``.
        rejects: rows that contradict others.
        duplicates: see :class:`BucketSummary`, as all that follow.
    """

    rows: Columns
    rejects: list[Reject] = field(default_factory=list)
    duplicates: int = 0
    merged: int = 0
    existing: int = 0
    dropped: int = 0


def _settled(
    ordered: Columns,
    task: Task,
    known: Sequence[KnownRow],
    folders: Collection[str],
    share: EvalFrom | None,
) -> Settled:
    """Look at the rows that share their place with another one, or their uri with an example."""
    shared = _shares_place(ordered, known)
    alone = _with_assigned(ordered, [None] * len(ordered))
    if not shared.any():
        return Settled(alone)
    found = Settled(alone.filter(pa.array(~shared)))
    rows = list(rows_of(PlacedRow, ordered.filter(pa.array(shared))))
    beside: dict[tuple[str, int], bool] = {}
    if known:
        rows = _beside_known_parts(rows, known, folders, task, share, found.rejects, beside)
    rows, found.duplicates, found.merged = _distinct(rows, task, found.rejects)
    rows, found.existing = _without_known(rows, known, folders, task, share, found.rejects)
    decided = [beside.get((row.source, row.line)) for row in rows]
    settled = _with_assigned(columns_of(PlacedRow, rows), decided)
    both = pa.concat_tables([found.rows, settled]).unify_dictionaries().combine_chunks()
    # Rows that share a place stand among the settled ones, in the order in which they were left.
    found.rows = both.take(pa.array(np.argsort(both["sort_key"].to_numpy(), kind="stable")))
    return found


def _with_assigned(columns: Columns, assigned: Sequence[bool | None]) -> Columns:
    return columns.append_column("assigned", pa.array(assigned, pa.bool_()))


def _shares_place(ordered: Columns, known: Sequence[KnownRow]) -> npt.NDArray[np.bool_]:
    """Say of each row whether another one has its place, or an example its uri (bool [n]).

    Rows without a uri are examples of their own, also where they say the same.
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
    uris = pa.array([row.uri for row in known], pa.string())
    is_known = np.asarray(pc.is_in(ordered["uri"], value_set=uris), np.bool_)
    return np.logical_or(shared, is_known)


def _sized(rows: Columns, task: Task, infos: AskInfos, rejects: list[Reject]) -> Columns:
    """Return the rows whose payloads are not refused, with ``bytes`` and ``version`` of these.

    What stands in a row never changes.
    """
    uris, annotations = rows["uri"].combine_chunks(), rows["annotation"].combine_chunks()
    sizes = task.own_sizes(uris, annotations)
    if not task.names_payloads:
        return _with_sizes(rows, sizes, [_IN_THE_ROW] * len(rows))
    wanted = task.stored_uris(values_of(uris), values_of(annotations))
    if rows["addresses"].null_count < len(rows):
        wanted = list(map(requested_uris, wanted, values_of(rows["addresses"])))
    counts = list(map(len, wanted))
    sources = np.repeat(np.array(values_of(rows["source"]), object), counts).tolist()
    answers = infos(list(chain.from_iterable(wanted)), sources)
    found: Iterable[FileInfo | PayloadError] = answers
    if counts.count(1) < len(counts):
        found = _by_row(wanted, values_of(sizes), iter(answers))
    rows, kept = _without_refused(rows, found, rejects)
    sizes = pa.array([info.size for info in kept], pa.int64())
    return _with_sizes(rows, sizes, [info.version for info in kept])


def _by_row(
    wanted: Sequence[Sequence[str]],
    sizes: Sequence[int],
    answers: Iterator[FileInfo | PayloadError],
) -> Iterator[FileInfo | PayloadError]:
    """Yield what each row's payloads come to, given what was said of each."""
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
    beside = rows["assigned"].combine_chunks()
    assigned = pc.coalesce(beside, pc.is_null(rows["split"]).combine_chunks())
    moved = 0
    if share is not None:
        is_low = pa.array((hashes & np.uint64(SECOND_DRAW)) < share.end)
        moves = pc.and_(pc.and_(pc.equal(splits, share.split), is_low), pc.is_null(beside))
        there = pc.and_(pc.is_valid(beside), pc.equal(splits, EVAL))
        splits = pc.if_else(moves, EVAL, splits)
        assigned = pc.or_(assigned, moves)
        moved = pc.sum(pc.or_(moves, there)).as_py() or 0
    return splits, assigned, moved


def _groups(
    planned: Columns, splits: Any, by_label: Task | None
) -> Iterator[tuple[Group, Columns]]:
    """Yield the rows by split and, if a task says what it is, by their one label."""
    names = splits.dictionary_encode()
    numbers = names.indices.to_numpy()
    labels: list[str | None] = [None]
    if by_label is not None:
        said = pc.fill_null(by_label.one_labels(planned["annotation"].combine_chunks()), "")
        codes = said.dictionary_encode()
        labels = codes.dictionary.to_pylist()
        numbers = numbers * len(labels) + codes.indices.to_numpy()
    for number, columns in grouped(planned, numbers):
        split, label = divmod(number, len(labels))
        yield Group(names.dictionary[split].as_py(), labels[label]), columns


def _distinct(
    ordered: Sequence[PlacedRow], task: Task, rejects: list[Reject]
) -> tuple[list[PlacedRow], int, int]:
    """Merge rows of one payload, which are neighbours; return one each, duplicates and merged."""
    distinct: list[PlacedRow] = []
    duplicates = added = start = 0
    for end, row in enumerate(ordered, start=1):
        if end < len(ordered) and ordered[end].sort_key == row.sort_key:
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
        # The first line's group decides, too.
        first = min(same, key=_line)
        kept += [row._replace(split=named.split, split_hash=first.split_hash) for row in agreeing]
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

    ``beside`` gets the file and line of each such row, and whether its split was assigned;
    ``rejects`` gets the rows that name another split.
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
    rows: Columns, answers: Iterable[_Answer | PayloadError], rejects: list[Reject]
) -> tuple[Columns, list[_Answer]]:
    """Return the rows that no answer refuses, and their answers; refusals become rejects."""
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
    rows: Columns,
    undecided: Collection[str | None] | None,
    task: Task,
    contents: AskContents,
    rejects: list[Reject],
    looks: SeenImages | None,
) -> Columns:
    """Return the rows with ``content``, the sha256 of their payload, where that is a file or text.

    Only rows that name one of the splits ``undecided`` are asked about; None: all are. ``rejects``
    gets the rows whose payload cannot be read; the columns of ``looks`` stand beside ``content``.
    """
    items = list(rows_of(PlacedRow, rows))
    is_asked = [undecided is None or row.split in undecided for row in items]
    in_files = [
        with_uri(row, requested_uris([row.uri], row.addresses)[0])
        for row, asked in zip(items, is_asked, strict=True)
        if asked and task.is_stored(row.uri)
    ]
    answers = iter(contents(in_files))
    found: list[bytes | PayloadError | None] = []
    for row, asked in zip(items, is_asked, strict=True):
        digest: bytes | None = None
        picture = None
        if asked and is_content_uri(row.uri):
            digest = content_digest(row.uri)
        elif asked and task.is_stored(row.uri):
            answer = next(answers)
            if isinstance(answer, PayloadError):
                found.append(answer)
                continue
            digest, picture = answer
        found.append(digest)
        if looks is not None:
            looks.add(picture)
    rows, kept = _without_refused(rows, found, rejects)
    rows = rows.append_column("content", pa.array(kept, pa.binary()))
    for name, column in (looks.columns() if looks is not None else {}).items():
        rows = rows.append_column(name, column)
    return rows


def _placed_by_content(rows: Columns, seed: int) -> Columns:
    """Replace the split hash of rows by their content's, where it is known."""
    place = placing(seed)
    hashes = [
        own if content is None else place(content).split_hash
        for own, content in zip(
            values_of(rows["split_hash"]), rows["content"].to_pylist(), strict=True
        )
    ]
    at = rows.schema.get_field_index("split_hash")
    return rows.set_column(at, "split_hash", pa.array(hashes, pa.uint64()))
