"""``recordgen.diff``: reads both datasets, matches their rows, and returns the differences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recordgen.comparing import matching
from recordgen.comparing.differences import (
    ChangedRow,
    Compared,
    Differences,
    Leak,
    Listing,
    Move,
    OptionChange,
    VocabularyChange,
)
from recordgen.comparing.drift import label_drift, size_drift
from recordgen.comparing.fingerprints import Layout
from recordgen.comparing.rows import Places, RowRef, Rows, read_rows
from recordgen.comparing.sides import Side, find_side
from recordgen.dataset.manifest import Dataset
from recordgen.errors import UsageError
from recordgen.masking import without_secrets

# Fields of dataset.json that are compared in addition to its options.
_COMPARED_FIELDS = ("task", "recordgen_version", "seed", "compression", "label_kind", "source")


def diff(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Differences:
    """Compare two datasets row by row, and find payloads that leaked between them.

    Rows are matched by the uri of their payload; rows of tables, which have none, by all columns
    except the target. All records of both datasets are streamed once. Each takes about 100 bytes of
    memory plus its uri.

    Args:
        old: an output folder, its ``dataset.json``, or the uri of a TFX Examples artifact; a path
            or URL.
        new: the same.

    Raises:
        UsageError: a path is empty.
        SourceError: there is no dataset, or one of its files is missing.
        RecordError: a shard is damaged, or does not hold ``tf.train.Example`` records.
        StorageError: storage failed.
    """
    first, second = (find_side(_path(name, given)) for name, given in (("old", old), ("new", new)))
    return _compare(first, read_rows(first), second, read_rows(second))


def _path(name: str, given: str | os.PathLike[str]) -> str:
    path = os.fspath(given)
    if not isinstance(path, str) or not path.strip():
        raise UsageError(f"{name} must be the path or URL of a dataset (got {given!r})")
    return path


def _compare(first: Side, old: Rows, second: Side, new: Rows) -> Differences:
    matches = matching.match(old, new)
    by_kind = matching.differing(old, new, matches)
    changed = np.flatnonzero(np.any([*by_kind.values()], axis=0))
    leaks = matching.leaks(old, new)
    has_classes = all(Layout.of(side.dataset).has_classes for side in (first, second))

    def read_changed(wanted: slice) -> Iterator[ChangedRow]:
        places = changed[wanted]
        befores, afters = old.refs(matches.old[places]), new.refs(matches.new[places])
        for place, before, after in zip(places.tolist(), befores, afters, strict=True):
            yield ChangedRow(tuple(k for k in by_kind if by_kind[k][place]), before, after)

    directions = [name for name, (_, targets) in leaks.items() for _ in range(len(targets))]
    leaked_old, leaked_new = map(np.concatenate, zip(*leaks.values(), strict=True))

    def read_leaks(wanted: slice) -> Iterator[Leak]:
        rows = old.refs(leaked_old[wanted]), new.refs(leaked_new[wanted])
        return map(Leak, directions[wanted], *rows)

    sizes = size_drift(old, new)
    labels = label_drift(old, new) if has_classes else []
    return Differences(
        old=_compared(first, old),
        new=_compared(second, new),
        added=_listing(new, matches.added),
        removed=_listing(old, matches.removed),
        changed=Listing(len(changed), read_changed),
        leaks=Listing(len(directions), read_leaks),
        unchanged=len(matches.new) - len(changed),
        kinds={kind: int(found.sum()) for kind, found in by_kind.items()},
        moves=_moves(old, new, matches, by_kind["split"]),
        leak_counts={name: len(targets) for name, (_, targets) in leaks.items()},
        vocabulary=_vocabulary(first.dataset, second.dataset),
        options=tuple(_options(first.dataset, second.dataset)),
        labels=tuple(labels) if any(item.counts for item in labels) else (),
        sizes=tuple(sizes) if any(s.old.width or s.new.width for s in sizes) else (),
    )


def _listing(rows: Rows, places: Places) -> Listing[RowRef]:
    return Listing(len(places), lambda wanted: rows.refs(places[wanted]))


def _compared(side: Side, rows: Rows) -> Compared:
    path = without_secrets(side.root)
    counts = np.bincount(rows.numbers["split"], minlength=len(rows.splits)).tolist()
    splits = {name: count for name, count in zip(rows.splits, counts, strict=True) if count}
    if (dataset := side.dataset) is None:
        return Compared(path, None, None, None, splits)
    return Compared(path, dataset.task, dataset.recordgen_version, dataset.digest, splits)


def _moves(old: Rows, new: Rows, matches: matching.Matches, has_moved: Any) -> tuple[Move, ...]:
    before = old.numbers["split"][matches.old[has_moved]]
    after = new.numbers["split"][matches.new[has_moved]]
    pairs, counts = np.unique(np.stack([before, after], axis=1), axis=0, return_counts=True)
    found = [
        Move(old.splits[first], new.splits[second], count)
        for (first, second), count in zip(pairs.tolist(), counts.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda move: (-move.rows, move)))


def _vocabulary(old: Dataset | None, new: Dataset | None) -> VocabularyChange | None:
    if old is None or new is None or "none" in (old.label_kind, new.label_kind):
        return None
    return VocabularyChange.between(old.labels, new.labels)


def _options(old: Dataset | None, new: Dataset | None) -> Iterator[OptionChange]:
    """Yield differences of two ``dataset.json``; nothing if either is missing."""
    if old is None or new is None:
        return
    sides: list[Mapping[str, Any]] = [
        {
            **{name: getattr(dataset, name) for name in _COMPARED_FIELDS},
            **dataset.options,
            **{f"feature {name}": str(spec) for name, spec in dataset.features.items()},
        }
        for dataset in (old, new)
    ]
    for name in {**sides[0], **sides[1]}:
        before, after = (side.get(name) for side in sides)
        if before != after:
            yield OptionChange(name, before, after)
