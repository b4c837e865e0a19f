"""Decisions that need all rows together: copies, near-duplicates, and the shares of each class.

Buckets are resolved one by one. If an option needs all rows, each bucket writes its settled rows to
a file and passes on a few facts about each row. One step decides, and then each bucket is planned:

    settled rows ─facts_of─▶ facts ─decide─▶ decisions ─plan_bucket─▶ planned rows

Rows have the same order in all of these. Pure functions.

Images are nearly the same by the rule of the checks NEAR_LEAK and NEAR_DUPLICATE, or if their files
have the same bytes. If a is like b, and b is like c, all three are one group. The group gets the
split of its member with the smallest sha256, so that neither the order of rows nor the runner
matters.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import storage
from recordgen.core.conversion import Splits
from recordgen.core.dataset.splits import EVAL, MOVE_BITS
from recordgen.core.rows.columns import Columns, rows_of, shares_of, values_of
from recordgen.core.rows.row import PlacedRow, is_content_uri, placing, row_name
from recordgen.core.task.annotation import AnnotationError
from recordgen.core.task.task import ADDING, Annotations, Declaration, Task, first_labels
from recordgen.errors import DataError
from recordgen.rejects import Reject, RejectCode, place_of, reject

#: Columns that are needed to compare an image with others.
LOOKS = ("perceptual_hash", "signature", "contrast")

#: Columns of pictures → for each one the number of the first that it is like, int [n].
Alike: TypeAlias = "Callable[[Columns], npt.NDArray[np.signedinteger[Any]]]"


def by_content(
    facts: Columns, *order: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the rows with known content, sorted by it, and which are the first of equal ones.

    Keys in ``order`` order rows of equal content; the last matters most.
    """
    content = facts["content"].combine_chunks()
    known = np.flatnonzero(np.asarray(pc.is_valid(content)))
    digests = np.frombuffer(b"".join(content.drop_null().to_pylist()), ">u8").reshape(-1, 2)
    keys = (*(key[known] for key in order), digests[:, 1], digests[:, 0])
    ordered = np.lexsort(keys)
    digests = digests[ordered]
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = (digests[1:] != digests[:-1]).any(axis=1)
    return known[ordered], is_first


def shared_hashes(facts: Columns, alike: Alike) -> npt.NDArray[np.uint64]:
    """Return the split hash of each row, equal within a group: uint64 [n].

    Rows without ``content`` keep their own.
    """
    hashes: npt.NDArray[np.uint64] = facts["split_hash"].to_numpy().copy()
    rows, is_first = by_content(facts)
    # One row per content, sorted by digest, so that the first of a group has the smallest digest.
    firsts = rows[is_first]
    leaders = np.arange(len(firsts))
    seen = np.flatnonzero(np.asarray(facts["perceptual_hash"].is_valid())[firsts])
    leaders[seen] = seen[alike(facts.select(LOOKS).take(firsts[seen]))]
    hashes[rows] = hashes[firsts[leaders[np.cumsum(is_first) - 1]]]
    return hashes


_COPIES_SHOWN = 5

_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.uint64]


def facts_of(rows: Columns, task: Task, splits: Splits) -> Columns:
    """Return the facts about each settled row of a bucket that :func:`decide` needs."""
    facts = {name: rows[name] for name in ("split", "split_hash")}
    if splits.stratifies:
        facts["label"] = first_labels(rows["annotation"], task).dictionary_encode()
    if splits.finds_copies or splits.by_looks:
        # 16 bytes of a sha256 distinguish payloads as well as the 16 bytes of sort key and split
        # hash distinguish rows.
        digests = (digest and digest[:16] for digest in rows["content"].to_pylist())
        facts["content"] = pa.array(digests, pa.binary())
    if splits.by_looks:
        facts |= {name: rows[name] for name in LOOKS}
    if splits.finds_copies:
        names = ("source", "line", *(["uri"] if splits.duplicates == "fail" else []))
        facts |= {name: rows[name] for name in names}
        facts["has_label"] = pc.is_valid(rows["annotation"])
        named = zip(*(values_of(rows[name]) for name in ("uri", "source", "line")), strict=True)
        facts["payload"] = pa.array([_payload(*row) for row in named], pa.uint64())
    return pa.table(facts)


def _payload(uri: str, source: str, line: int) -> int:
    """Return a hash of the file that a row names, and of the uri by which the row names it.

    A text in a row is a payload of its own, even if other rows have an equal one.
    """
    place = f"{source}:{line}" if is_content_uri(uri) else storage.resolve(uri, source)
    path = f"{uri}\n{place}".encode()
    return int.from_bytes(hashlib.blake2b(path, digest_size=8).digest(), "big")


def decide(
    facts: Mapping[int, Columns], splits: Splits, alike: Alike
) -> Iterator[tuple[int, Columns]]:
    """Decide about all rows; ``alike`` tells which pictures are nearly the same.

    Yields:
        Each bucket and its decisions as columns: ``kept`` is false for a copy of another row; with
        ``group_by=near`` also ``split_hash``, which decides the split; with ``stratify`` also
        ``split``, ``assigned`` (the row does not name its split) and ``moved`` (``eval_from`` moved
        the row).

    Raises: DataError: there are copies, and ``duplicates=fail`` forbids them.
    """
    order = sorted(facts)
    together = pa.concat_tables([facts[bucket] for bucket in order]).unify_dictionaries()
    together = together.combine_chunks()
    kept = np.ones(len(together), np.bool_)
    if splits.finds_copies:
        first = _first_of_copies(together)
        kept = first == np.arange(len(first))
        if splits.duplicates == "fail" and not kept.all():
            raise _copies_found(together, first)
    decided = {"kept": pa.array(kept)}
    if splits.by_looks:
        decided["split_hash"] = pa.array(shared_hashes(together, alike))
    if splits.stratifies:
        decided |= _stratified(together, kept, splits)
    table = pa.table(decided)
    start = 0
    for bucket in order:
        size = len(facts[bucket])
        yield bucket, table.slice(start, size)
        start += size


# --- copies -----------------------------------------------------------------------------------


def _first_of_copies(facts: Columns) -> npt.NDArray[np.intp]:
    """Return for each row the row that represents it: itself, or the first of its copies.

    Rows that name a split come first, then rows with an annotation, then by import file and line.
    Rows that name the same file by the same uri are not copies of each other.
    """
    first = np.arange(len(facts))
    sources = facts["source"].combine_chunks()
    rank = np.argsort(np.argsort(sources.dictionary.to_pylist()))
    rows, is_first = by_content(
        facts,
        facts["line"].to_numpy(),
        rank[sources.indices.to_numpy()],
        ~np.asarray(facts["has_label"]),
        np.asarray(pc.is_null(facts["split"])),
    )
    heads = rows[is_first][np.cumsum(is_first) - 1]
    payloads = facts["payload"].to_numpy()
    is_copy = payloads[rows] != payloads[heads]
    first[rows[is_copy]] = heads[is_copy]
    return first


def _copies_found(facts: Columns, first: npt.NDArray[np.intp]) -> DataError:
    """Return the error that names the first copies, by import file and line."""
    where = list(zip(*(values_of(facts[name]) for name in ("source", "line", "uri")), strict=True))
    pairs = sorted(
        (where[row], where[head]) for row, head in enumerate(first.tolist()) if row != head
    )
    shown = "".join(
        f"\n  {place_of(*row)} is a copy of {place_of(*head)}"
        for row, head in pairs[:_COPIES_SHOWN]
    )
    more = len(pairs) - _COPIES_SHOWN
    return DataError(
        f"duplicates=fail: {len(pairs):,} rows name a file with the same bytes as another row's; "
        f"remove them, or drop them with duplicates=drop:{shown}"
        + (f"\n  and {more:,} more" if more > 0 else "")
    )


# --- shares of classes ------------------------------------------------------------------------


def _stratified(facts: Columns, kept: _Mask, splits: Splits) -> Mapping[str, Any]:
    """Return the split of each row, whether it was assigned, and whether ``eval_from`` moved it.

    The rows of a class are ordered by their hash and cut into the requested shares, so each split's
    share of a class is within one example of the requested one.
    """
    fractions, share = splits.fractions, splits.share
    is_named = pc.is_valid(facts["split"]).combine_chunks()
    hashes = facts["split_hash"].to_numpy()
    labels = facts["label"].combine_chunks()
    place = placing(splits.seed)
    roundings = [place(f"class {label}") for label in labels.dictionary.to_pylist()]
    codes = _one_per_name(labels.indices.to_numpy(), labels.dictionary.to_pylist(), hashes)

    *ends, total = accumulate(fractions.weights)
    is_open = kept & ~np.asarray(is_named)
    at = np.zeros(len(facts), np.intp)
    at[is_open] = _shares_by_class(
        codes[is_open],
        hashes[is_open],
        lambda code, count: [
            (count * end << 64) // total + roundings[code].sort_key >> 64 for end in ends
        ],
    )
    names = pa.array(fractions.names)
    found = pc.coalesce(facts["split"].combine_chunks(), names.take(pa.array(at)))
    moves = np.zeros(len(facts), np.bool_)
    if share is not None:
        may_move = kept & np.asarray(pc.equal(found, share.split))
        # Order by the lower bits first: they are independent of the bits that assigned the split.
        turned = (hashes << np.uint64(32)) | (hashes >> np.uint64(32))
        moves[may_move] = (
            _shares_by_class(
                codes[may_move],
                turned[may_move],
                lambda code, count: [
                    (count * share.end << 64) // (MOVE_BITS + 1) + roundings[code].split_hash >> 64
                ],
            )
            == 0
        )
        found = pc.if_else(pa.array(moves), EVAL, found)
    moved = pa.array(moves)
    return {"split": found, "assigned": pc.or_(pc.invert(is_named), moved), "moved": moved}


def _one_per_name(
    codes: npt.NDArray[Any], labels: Sequence[str], hashes: _Numbers
) -> npt.NDArray[Any]:
    """Return one class for all rows with the same name, which must share a split.

    In a table, several rows may be about one image and have several labels; they get the class of
    the label that sorts first.
    """
    by_text = np.argsort(np.array(labels, object))
    rank = np.argsort(by_text)
    _, names = np.unique(hashes, return_inverse=True)
    first = np.full(len(hashes), len(labels), np.intp)
    np.minimum.at(first, names, rank[codes])
    return by_text[first[names]]


def _shares_by_class(
    codes: npt.NDArray[Any], hashes: _Numbers, ends_of: Callable[[int, int], Sequence[int]]
) -> npt.NDArray[np.intp]:
    """Return the share of its class that each row falls into, int [n].

    Rows of a class are ordered by ``hashes``; rows with equal hashes stay together. ``ends_of``
    returns the end of each share except the last, in rows, for a class and its number of rows.
    """
    shares = np.zeros(len(codes), np.intp)
    order = np.lexsort((hashes, codes))
    codes, hashes = codes[order], hashes[order]
    found, starts, counts = np.unique(codes, return_index=True, return_counts=True)
    for code, start, count in zip(found.tolist(), starts.tolist(), counts.tolist(), strict=True):
        some = hashes[start : start + count]
        place = np.searchsorted(some, some)  # equal hashes count as the first of them
        ends = np.array(ends_of(code, count))
        shares[order[start : start + count]] = np.searchsorted(ends, place, side="right")
    return shares


# Characters of the reason that a message quotes.
_REASON_SHOWN = 200


def lost_by_bucket(
    rejects: Iterable[Reject], task: Task, seed: int, buckets: int
) -> dict[int, list[Reject]]:
    """Return the rejects that leave their payload incomplete, by the bucket of its other rows.

    Their uris are as rows have them.
    """
    found: dict[int, list[Reject]] = defaultdict(list)
    if task.labelling not in ADDING:
        return found
    place = placing(seed)
    for item in rejects:
        try:
            uri = item.uri if is_content_uri(item.uri) else task.check_uri(item.uri)
        except AnnotationError:
            continue  # no row has such a uri
        if uri:
            key = np.array([place(row_name(uri, None)).sort_key], np.uint64)
            [bucket] = shares_of(key, [1] * buckets).tolist()
            found[bucket].append(item._replace(uri=uri))
    return found


def with_doubt(item: Reject, task: Annotations) -> Reject:
    """Return a reject that says so if nobody can tell which example lacks its row."""
    if item.uri or task.labelling not in ADDING:
        return item
    return item._replace(
        message=f"{item.message}; the {task.noun} of this row is unknown, and if other rows name "
        f"it, its example is incomplete: correct this row"
    )


def without_incomplete(
    rows: Columns, lost: Sequence[Reject], task: Declaration
) -> tuple[Columns, list[Reject]]:
    """Return the rows of a bucket whose payload is complete, and a reject for each other row."""
    first: dict[str, Reject] = {}
    for item in sorted(lost):  # the same relative uri in two folders names two payloads
        first.setdefault(storage.resolve(item.uri, item.source), item)
    is_near = pc.is_in(rows["uri"], value_set=pa.array({item.uri for item in lost}))
    rejects: list[Reject] = []
    is_lost = np.asarray(is_near).copy()
    for at, row in zip(
        np.flatnonzero(is_lost), rows_of(PlacedRow, rows.filter(is_near)), strict=True
    ):
        cause = first.get(storage.resolve(row.uri, row.source))
        if cause is None:
            is_lost[at] = False
            continue
        message = (
            f"the {task.noun} would be incomplete without its row "
            f"{place_of(cause.source, cause.line, cause.uri)}, which was rejected ({cause.code}: "
            f"{cause.message:.{_REASON_SHOWN}}); correct that row, or delete all rows of the "
            f"{task.noun}"
        )
        rejects.append(reject(row, RejectCode.INCOMPLETE, message))
    return rows.filter(pa.array(~is_lost)), rejects
