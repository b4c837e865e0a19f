"""``recordgen.diff``: reads both datasets, matches their rows, and returns the differences."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recordgen import storage
from recordgen.core.dataset.manifest import DATASET_FILE, EXAMPLES_FILE, Dataset, read_dataset
from recordgen.core.facts.columns import read_examples
from recordgen.errors import SourceError, UsageError
from recordgen.exports.diff.differences import (
    ChangedRow,
    Compared,
    Differences,
    LabelDrift,
    Leak,
    Listing,
    Move,
    OptionChange,
    VocabularyChange,
)
from recordgen.exports.diff.rows import BY, COLUMNS, Places, Rows, differing, joined, leaks, match
from recordgen.messages.masking import without_secrets

# Fields of dataset.json that are compared in addition to its options.
_COMPARED_FIELDS = ("task", "recordgen_version", "seed", "compression", "label_kind", "source")


def diff(
    old: str | os.PathLike[str], new: str | os.PathLike[str], *, by: str = BY[0]
) -> Differences:
    """Compare two datasets row by row, and find payloads that leaked between them.

    Rows without a uri, such as those of tables, are matched by their payload. Only
    ``dataset.json`` and ``examples.parquet`` are read.

    Args:
        old: an output of ``convert``, its ``dataset.json``, or the uri of a TFX Examples artifact;
            a path or URL.
        new: the same.
        by: what matches rows: the ``uri`` of their payload, or its ``content``, for copies whose
            files have other names.

    Raises:
        UsageError: a path is empty, or ``by`` is another word.
        SourceError: there is no dataset, or it has no ``examples.parquet`` that can be read.
        StorageError: storage failed.
    """
    if by not in BY:
        raise UsageError(f"by must be {' or '.join(BY)} (got {by!r:.80})")
    roots = [_root("old", old), _root("new", new)]
    datasets = [*map(read_dataset, roots)]
    rows = joined(datasets, [*map(_read, roots, datasets)], by)
    return _compare(rows[0], rows[1], [*map(_compared, roots, datasets)])


def _root(name: str, given: str | os.PathLike[str]) -> str:
    path = os.fspath(given)
    if not isinstance(path, str) or not path.strip():
        raise UsageError(f"{name} must be the path or URL of a dataset (got {given!r})")
    root = storage.normal(path)
    is_file = posixpath.basename(root) == DATASET_FILE
    return (posixpath.dirname(root) or ".") if is_file else root


def _read(root: str, dataset: Dataset) -> Any:
    """Return the columns of ``examples.parquet`` that are compared."""
    path = storage.join(root, EXAMPLES_FILE)
    try:
        with storage.open_read(path) as file:
            found = read_examples(file, COLUMNS).select(COLUMNS)
    except FileNotFoundError:
        raise SourceError(
            f"{path}: no such file, but rows are compared by it; `recordgen convert` writes it, so "
            f"convert again (examples that were written from Python cannot be compared)"
        ) from None
    except (OSError, ValueError, KeyError) as exc:
        raise SourceError(f"{path}: cannot be read: {exc}; convert again") from exc
    gaps = [name for name in COLUMNS[1:] if found[name].null_count]
    if gaps or len(found) != dataset.examples:
        raise SourceError(
            f"{path}: does not list the {dataset.examples:,} examples of dataset.json (it has "
            f"{len(found):,} rows, and gaps in {', '.join(gaps) or 'no column'}); convert again"
        )
    return found


def _compared(root: str, dataset: Dataset) -> Compared:
    splits = {name: split.examples for name, split in dataset.splits.items()}
    version, digest = dataset.recordgen_version, dataset.digest
    return Compared(without_secrets(root), dataset.task, version, digest, dataset.examples, splits)


def _compare(old: Rows, new: Rows, sides: Sequence[Compared]) -> Differences:
    pairs, (removed, added) = match(old, new)
    by_kind = differing(old, new, pairs)
    changed = np.flatnonzero(np.any([*by_kind.values()], axis=0))
    by_direction = leaks(old, new)
    directions = [name for name, (_, targets) in by_direction.items() for _ in range(len(targets))]
    leaked = [np.concatenate(side) for side in zip(*by_direction.values(), strict=True)]

    def read_changed(wanted: slice) -> Iterator[ChangedRow]:
        at = changed[wanted]
        kinds = (tuple(k for k in by_kind if by_kind[k][place]) for place in at)
        return map(ChangedRow, kinds, old.refs(pairs[0][at]), new.refs(pairs[1][at]))

    def read_leaks(wanted: slice) -> Iterator[Leak]:
        rows = old.refs(leaked[0][wanted]), new.refs(leaked[1][wanted])
        return map(Leak, directions[wanted], *rows)

    return Differences(
        old=sides[0],
        new=sides[1],
        added=Listing(len(added), lambda wanted: new.refs(added[wanted])),
        removed=Listing(len(removed), lambda wanted: old.refs(removed[wanted])),
        changed=Listing(len(changed), read_changed),
        leaks=Listing(len(directions), read_leaks),
        unchanged=len(pairs[0]) - len(changed),
        kinds={kind: int(found.sum()) for kind, found in by_kind.items()},
        moves=_moves(old, new, [side[by_kind["split"]] for side in pairs]),
        leak_counts={name: len(targets) for name, (_, targets) in by_direction.items()},
        vocabulary=_vocabulary(old.dataset, new.dataset),
        options=tuple(_options(old.dataset, new.dataset)),
        labels=LabelDrift.between(old.dataset.splits, new.dataset.splits),
    )


def _moves(old: Rows, new: Rows, moved: Sequence[Places]) -> tuple[Move, ...]:
    """Return the numbers of moved rows, the largest first."""
    names = old.texts["split"].to_pylist()
    codes = (rows.columns["split"][at].tolist() for rows, at in zip((old, new), moved, strict=True))
    counts = Counter(zip(*codes, strict=True))
    found = [Move(names[before], names[after], count) for (before, after), count in counts.items()]
    return tuple(sorted(found, key=lambda move: (-move.rows, move)))


def _vocabulary(old: Dataset, new: Dataset) -> VocabularyChange | None:
    if "none" in (old.label_kind, new.label_kind):
        return None
    return VocabularyChange.between(old.labels, new.labels)


def _options(old: Dataset, new: Dataset) -> Iterator[OptionChange]:
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
