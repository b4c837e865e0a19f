"""``recordgen.diff``: join the ``examples.parquet`` of two datasets; no record is read.

OLD  a.jpg  cat  train  9f86…    NEW  a.jpg  dog  test  9f86…   →  changed: label, split
OLD  b.jpg  cat  train  03ac…    NEW  c.jpg  cat  test  03ac…   →  removed, added, and a leak

All rows of both are columns of numbers. Texts are indices into dictionaries that both datasets
share; payloads are the first 64 bits of their digests. Two different payloads have the same number
with a probability of n²/2⁶⁵: 10⁻⁷ for two million rows.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen import features, storage
from recordgen.core.dataset.manifest import EXAMPLES_FILE, Dataset
from recordgen.core.dataset.splits import TRAIN, split_named
from recordgen.core.records.example import parse_record
from recordgen.core.records.numbers import as_float32
from recordgen.core.rows.columns import mixed
from recordgen.core.task.annotation import is_image, stored_features
from recordgen.core.task.task import ONE
from recordgen.errors import SourceError, UsageError
from recordgen.exports.diff.differences import (
    ChangedRow,
    Compared,
    Differences,
    Leak,
    Listing,
    Move,
    OptionChange,
    RowRef,
    VocabularyChange,
)
from recordgen.exports.export import Output, annotating_task
from recordgen.messages.masking import without_secrets
from recordgen.subjects.details import Polygons
from recordgen.tables.columns import table_of
from recordgen.tasks import Task
from recordgen.tasks.object_detection.annotation import with_outlines

#: Indices of rows of one dataset; pairs of indices of OLD and NEW.
Places: TypeAlias = "npt.NDArray[np.intp]"
Pairs: TypeAlias = tuple[Places, Places]

_TEXTS = ("annotation", "uri", "split", "shard", "source")
_NUMBERS = ("record", "line", "content")

#: The columns of ``examples.parquet`` that are compared; only annotations may be null.
COLUMNS = (*_TEXTS, *_NUMBERS)

#: What matches rows, the default first.
BY = ("uri", "content")

# Rows with the same key are matched in three passes: equal rows, rows that differ only in label or
# split, and the others in their order. So among several rows with the same key, only rows that did
# change count as changed.
_PASSES = (("key", "content", "annotation", "split"), ("key", "content", "details"), ("key",))

# The most that a copy changes of a share or of a number in pixels, by rounding.
_ROUNDED = 1e-5

# Rows that are Python objects at a time.
_ROWS_AT_ONCE = 8192

_ODD = np.uint64(0x9E3779B97F4A7C15)

# Fields of dataset.json that are compared in addition to its options.
_COMPARED_FIELDS = ("task", "recordgen_version", "seed", "compression", "label_kind", "source")


def diff(
    old: str | os.PathLike[str], new: str | os.PathLike[str], *, by: str = BY[0]
) -> Differences:
    """Compare two datasets row by row, and find payloads that leaked between them.

    Rows without a uri, such as those of tables, are matched by their payload. Only
    ``dataset.json`` and ``examples.parquet`` are read; by content, shards with masks or outlines,
    too.

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
    for name, given in (("old", old), ("new", new)):
        path = os.fspath(given)
        if not isinstance(path, str) or not path.strip():
            raise UsageError(f"{name} must be the path or URL of a dataset (got {given!r})")
    sides = [*map(Output.open, (old, new))]
    tables = [*map(_read, sides)]
    if by != BY[0]:
        tables = [*map(_without_names, tables, sides)]
    rows = joined([side.dataset for side in sides], tables, by)
    return _compare(rows[0], rows[1], [*map(_compared, sides)], is_copy=by != BY[0])


def _read(output: Output) -> Any:
    """Return the columns of ``examples.parquet`` that are compared."""
    path, count = output.path_of(EXAMPLES_FILE), output.dataset.examples
    if not (parts := [*output.example_parts(COLUMNS)]):
        raise SourceError(
            f"{path}: no such file, but rows are compared by it; `recordgen convert` writes it, so "
            f"convert again (examples that were written from Python cannot be compared)"
        )
    found = pa.concat_tables(parts)
    gaps = [name for name in found.column_names if name != COLUMNS[0] and found[name].null_count]
    gaps += {*COLUMNS} - {*found.column_names}
    if gaps or len(found) != count:
        raise SourceError(
            f"{path}: does not list the {count:,} examples of dataset.json (it has "
            f"{len(found):,} rows, and gaps in {', '.join(gaps) or 'no column'}); convert again"
        )
    return found.select(COLUMNS)


def _without_names(table: Any, output: Output) -> Any:
    """Return rows that name no files: their content is the address of a video, or a mask's digest.

    Rows of boxes have outlines. Raises: RecordError: a shard with masks or outlines is damaged.
    """
    dataset = output.dataset
    if dataset.folder:
        base = storage.join(dataset.folder, "")
        addresses = [storage.address(uri, base) for uri in table["uri"].to_pylist()]
        numbers = [int.from_bytes(_digest(it.encode())[:8], "little") for it in addresses]
        table = table.set_column(
            COLUMNS.index("content"), "content", pa.array(numbers, pa.uint64())
        )
    if features.IMAGE_OBJECT_POLYGON_X in dataset.objects:
        return _with_outlines(table, output)
    task, stored = annotating_task(dataset), stored_features(dataset)
    if task is None or sum(map(is_image, stored)) < 2:
        return table
    masks = {}
    if features.IMAGE_MASK_ENCODED in stored:
        for shard in dataset.shards:
            for at, record in enumerate(output.records(shard.file)):
                found = parse_record(record, shard.file).get(features.IMAGE_MASK_ENCODED, ())
                masks[shard.file, at] = "".join(_digest(mask).hex() for mask in found)
    columns = (table[name].to_pylist() for name in ("uri", "annotation", "shard", "record"))
    texts = []
    for uri, text, *place in zip(*columns, strict=True):
        [names] = task.stored_uris([uri], [text])
        texts.append(task.with_uris(text, dict.fromkeys(names, masks.get((*place,), ""))))
    return _with_annotations(table, texts)


def _with_outlines(table: Any, output: Output) -> Any:
    """Return rows of boxes with outlines in place of their digests, which rounding changes."""
    places = zip(table["shard"].to_pylist(), table["record"].to_pylist(), strict=True)
    texts = dict(zip(places, table["annotation"].to_pylist(), strict=True))
    for shard in output.dataset.shards:
        for at, record in enumerate(output.records(shard.file)):
            if text := texts.get((shard.file, at)):
                texts[shard.file, at] = with_outlines(text, parse_record(record, shard.file))
    return _with_annotations(table, [*texts.values()])


def _with_annotations(table: Any, texts: Sequence[str | None]) -> Any:
    column = pa.array(texts, pa.large_string())
    return table.set_column(COLUMNS.index("annotation"), "annotation", column)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _compared(output: Output) -> Compared:
    dataset, root = output.dataset, without_secrets(output.root) or "."
    splits = {name: split.examples for name, split in dataset.splits.items()}
    version, digest = dataset.recordgen_version, dataset.digest
    return Compared(root, dataset.task, version, digest, dataset.examples, splits)


def _compare(old: Rows, new: Rows, sides: Sequence[Compared], *, is_copy: bool) -> Differences:
    pairs, (removed, added) = match(old, new)
    by_kind = differing(old, new, pairs, is_copy=is_copy)
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
        vocabulary=VocabularyChange.between(old.dataset.labels, new.dataset.labels),
        options=tuple(_options(old.dataset, new.dataset)),
    )


def _moves(old: Rows, new: Rows, moved: Sequence[Places]) -> tuple[Move, ...]:
    """Return the numbers of moved rows, the largest first."""
    names = old.texts["split"].to_pylist()
    codes = (rows.columns["split"][at].tolist() for rows, at in zip((old, new), moved, strict=True))
    counts = Counter(zip(*codes, strict=True))
    found = [Move(names[before], names[after], count) for (before, after), count in counts.items()]
    return tuple(sorted(found, key=lambda move: (-move.rows, move)))


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


@dataclass(frozen=True)
class Rows:
    """All rows of a dataset.

    Attributes:
        dataset: its ``dataset.json``.
        columns: numbers [n] by name; for texts, their indices in ``texts``, -1 for null.
        texts: the different texts of both datasets, by name of the column.
    """

    dataset: Dataset
    columns: Mapping[str, npt.NDArray[Any]]
    texts: Mapping[str, Any]

    @cached_property
    def task(self) -> Task | None:
        """The task that reads annotations; None if an annotation is itself the label."""
        return annotating_task(self.dataset)

    @cached_property
    def has_number_target(self) -> bool:
        """Whether the label of a row is a number with fractions."""
        table = table_of(self.dataset) if self.task is None else None
        target = self.dataset.features.get(table.target or "") if table else None
        return target is not None and target.dtype == "float32"

    def __len__(self) -> int:
        return len(self.columns["key"])

    def labels(self, annotation: str | None) -> tuple[str, ...]:
        """Return the labels of a row, each once, sorted."""
        if annotation is None:
            return ()
        return tuple(sorted({*self.task.labels(annotation)})) if self.task else (annotation,)

    def number(self, annotation: str | None) -> float | None:
        """Return the number to predict, as records have it."""
        return None if annotation is None else as_float32(float(annotation))

    def details(self, annotation: str | None) -> Sequence[Any]:
        """Return what an annotation says besides labels, such as boxes."""
        return () if annotation is None or self.task is None else self.task.details(annotation)

    def said(self, read: Callable[[str | None], Any], places: Places) -> npt.NDArray[np.int64]:
        """Return a hash of what ``read`` finds in the annotation of each row."""
        codes, back = np.unique(self.columns["annotation"][places], return_inverse=True)
        hashes = (
            hash(repr(read(text)))
            for block in _blocks(codes)
            for text in self.texts_at("annotation", block)
        )
        return np.fromiter(hashes, np.int64, len(codes))[back]

    @property
    def is_train(self) -> npt.NDArray[np.bool_]:
        """Whether each row is in ``train``."""
        names = self.texts["split"].to_pylist()
        return np.array([split_named(name) == TRAIN for name in names])[self.columns["split"]]

    def refs(self, places: Places) -> Iterator[RowRef]:
        """Yield rows for display."""
        has_objects = self.task is not None and self.task.labelling not in (None, ONE)
        for block in _blocks(places):
            texts = (self.texts_at(name, self.columns[name][block]) for name in _TEXTS)
            numbers = (self.columns[name][block].tolist() for name in ("record", "line"))
            rows = zip(*texts, *numbers, strict=True)
            for annotation, uri, split, file, source, record, line in rows:
                objects = len(self.details(annotation)) if has_objects else 0
                labels = self.labels(annotation)
                yield RowRef(uri, split, labels, objects, file, record, source, line)

    def texts_at(self, name: str, codes: npt.NDArray[Any]) -> list[Any]:
        """Return the texts with these indices, None for -1."""
        return self.texts[name].take(pa.array(codes, mask=codes < 0)).to_pylist()


def _blocks(items: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    starts = range(0, len(items), _ROWS_AT_ONCE)
    return (items[start : start + _ROWS_AT_ONCE] for start in starts)


def joined(datasets: Sequence[Dataset], tables: list[Any], by: str) -> list[Rows]:
    """Return the rows of two datasets, given their tables with :data:`COLUMNS`.

    ``by`` is one of :data:`BY`.

    The list is emptied, so that the memory of a column is free when its numbers are known.
    """
    cut = len(tables[0])
    both = pa.concat_tables(tables).unify_dictionaries()
    left = {name: both[name] for name in COLUMNS}
    tables.clear()
    del both
    columns: dict[str, npt.NDArray[Any]] = {}
    texts = {}
    for name in _TEXTS:
        column = left.pop(name)
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.large_string()).dictionary_encode()
        column = column.combine_chunks()
        columns[name] = column.indices.fill_null(-1).to_numpy()
        texts[name] = column.dictionary
    for name in _NUMBERS:
        columns[name] = left.pop(name).to_numpy()
    columns["key"] = columns["content"]
    if by == BY[0]:
        has_uri = columns["uri"] != texts["uri"].index("").as_py()
        by_uri = mixed(columns["uri"].astype(np.uint64))
        columns["key"] = np.where(has_uri, by_uri, columns["content"])
    return [
        Rows(dataset, {name: values[half] for name, values in columns.items()}, texts)
        for dataset, half in zip(datasets, (slice(cut), slice(cut, None)), strict=True)
    ]


def match(old: Rows, new: Rows) -> tuple[Pairs, Pairs]:
    """Match rows by key; rows with equal keys one to one.

    Returns:
        The pairs of matched rows, by their order in NEW; and the other rows of OLD and of NEW.
    """
    left = [np.arange(len(old)), np.arange(len(new))]
    pairs = []
    for columns in _PASSES:
        first, second = map(_distinct, map(_hashed, (old, new), [columns] * 2, left))
        _, *found = np.intersect1d(first, second, assume_unique=True, return_indices=True)
        pairs.append([places[at] for places, at in zip(left, found, strict=True)])
        left = [np.delete(places, at) for places, at in zip(left, found, strict=True)]
    matched = np.concatenate(pairs, axis=1)
    matched = matched[:, np.argsort(matched[1])]
    return (matched[0], matched[1]), (left[0], left[1])


def _hashed(rows: Rows, columns: Sequence[str], places: Places) -> npt.NDArray[np.uint64]:
    """Return one hash for each row of several columns."""
    hashes = np.zeros(len(places), np.uint64)
    for name in columns:
        is_read = name == "details"
        values = rows.said(rows.details, places) if is_read else rows.columns[name][places]
        hashes = mixed(hashes + _ODD + values.astype(np.uint64))
    return hashes


def _distinct(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Replace repeats of a value, the second, third and so on, by distinct values.

    Two arrays that contain a value n and m times share min(n, m) of its results.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    rank = np.empty(len(values), np.uint64)
    rank[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)
    return np.where(rank == 0, values, mixed(values + rank * _ODD))


def differing(
    old: Rows, new: Rows, pairs: Pairs, *, is_copy: bool
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return whether each pair differs, by kind of difference; a copy may round its numbers."""
    differs = {
        name: old.columns[name][pairs[0]] != new.columns[name][pairs[1]]
        for name in ("annotation", "content", "split")
    }

    def say_other(read: Callable[[Rows, str | None], Any], at: Places) -> npt.NDArray[np.bool_]:
        before, after = old.said(partial(read, old), pairs[0][at]), pairs[1][at]
        return before != new.said(partial(read, new), after)

    other = np.flatnonzero(differs["annotation"])
    has_label, details = np.zeros((2, len(differs["split"])), bool)
    are_numbers = old.has_number_target and new.has_number_target
    has_label[other] = say_other(Rows.number if are_numbers else Rows.labels, other)
    details[other] = say_other(Rows.details, other)
    for block in _blocks(np.flatnonzero(details)) if is_copy else ():
        sides = zip((old, new), (at[block] for at in pairs), strict=True)
        texts = (rows.texts_at("annotation", rows.columns["annotation"][at]) for rows, at in sides)
        both = zip(*texts, strict=True)
        details[block] = [not _is_near(old.details(a), new.details(b)) for a, b in both]
    has_columns = new.task is not None and new.task.details_noun == "features"
    return {
        "label": has_label,
        "annotation": details & (not has_columns),
        "bytes": differs["content"],
        "features": details & has_columns,
        "split": differs["split"],
    }


def _is_near(one: Any, other: Any) -> bool:
    """Return whether two details are the same but for the rounding of numbers."""
    if isinstance(one, list | tuple | Polygons) and isinstance(other, list | tuple | Polygons):
        return len(one) == len(other) and all(map(_is_near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ROUNDED, abs_tol=_ROUNDED)
    return bool(one == other)


def leaks(old: Rows, new: Rows) -> dict[str, Pairs]:
    """Return the rows of NEW whose payload leaked, under any name, in their order.

    Returns:
        ``train_to_evaluation``: rows of OLD's train, and rows of NEW outside of train with the same
        payload; ``evaluation_to_train``: the opposite.
    """
    old_train, new_train = old.is_train, new.is_train
    return {
        "train_to_evaluation": _shared(old, old_train, new, ~new_train),
        "evaluation_to_train": _shared(old, ~old_train, new, new_train),
    }


def _shared(
    old: Rows, from_old: npt.NDArray[np.bool_], new: Rows, from_new: npt.NDArray[np.bool_]
) -> Pairs:
    sources, targets = np.flatnonzero(from_old), np.flatnonzero(from_new)
    payloads = pa.array(old.columns["content"][sources])
    first = pc.index_in(pa.array(new.columns["content"][targets]), value_set=payloads)
    return sources[first.drop_null().to_numpy()], targets[np.asarray(first.is_valid())]
