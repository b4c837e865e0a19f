"""The result of :func:`recordgen.diff`: counts, rows that are made on demand, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, NamedTuple, TypeVar, overload

from recordgen.comparing.drift import LabelDrift, SizeDrift
from recordgen.comparing.rows import RowRef
from recordgen.shown import Shown

_Item = TypeVar("_Item")


class ChangedRow(NamedTuple):
    """A row of both datasets that differs.

    Attributes:
        kinds: kinds of its differences, names in :data:`recordgen.comparing.matching.KINDS`.
        old: the row in OLD.
        new: the row in NEW.
    """

    kinds: tuple[str, ...]
    old: RowRef
    new: RowRef


class Leak(NamedTuple):
    """A payload that is used both to train and to evaluate models.

    Attributes:
        direction: ``train_to_evaluation`` if it is in OLD's train and in NEW's eval, test or
            another split; ``evaluation_to_train`` for the opposite.
        old: a row of OLD with the payload.
        new: the row of NEW with the payload.
    """

    direction: str
    old: RowRef
    new: RowRef


class Listing(Sequence[_Item], Generic[_Item]):
    """A sequence whose items are made on demand."""

    def __init__(self, count: int, read: Callable[[slice], Iterator[_Item]]) -> None:
        """Make a sequence.

        Args:
            count: number of its items.
            read: yields the items of a slice.
        """
        self._count = count
        self._read = read

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_Item]:
        return self._read(slice(None))

    @overload
    def __getitem__(self, place: int) -> _Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[_Item]: ...
    def __getitem__(self, place: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(place, slice):
            return list(self._read(place))
        at = range(self._count)[place]
        return next(self._read(slice(at, at + 1)))

    def __repr__(self) -> str:
        return f"<{self._count} rows>"


class Move(NamedTuple):
    """The number of rows that moved from one split to another."""

    old: str
    new: str
    rows: int


class OptionChange(NamedTuple):
    """An option, a version or a feature's type that differs; None if it is missing."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class VocabularyChange:
    """Changes of labels and their numbers.

    Attributes:
        added: labels that only NEW has.
        removed: labels that only OLD has.
        renumbered: the numbers in OLD and in NEW of labels whose number changed.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    renumbered: Mapping[str, tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.renumbered)

    @classmethod
    def between(cls, old: Sequence[str], new: Sequence[str]) -> VocabularyChange:
        """Compare two vocabularies; a label's number is its index."""
        numbers, new_numbers = ({name: n for n, name in enumerate(names)} for names in (old, new))
        return cls(
            tuple(name for name in new if name not in numbers),
            tuple(name for name in old if name not in new_numbers),
            {
                name: (number, new_numbers[name])
                for name, number in numbers.items()
                if new_numbers.get(name, number) != number
            },
        )


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the two datasets.

    Attributes:
        path: its folder or URL.
        task: see :class:`recordgen.Dataset`; None without ``dataset.json``.
        recordgen_version: the version that wrote it; None if unknown.
        digest: its digest; None if unknown.
        splits: number of examples by split.
    """

    path: str
    task: str | None
    recordgen_version: str | None
    digest: str | None
    splits: Mapping[str, int]

    @property
    def examples(self) -> int:
        """Number of examples in all splits."""
        return sum(self.splits.values())


@dataclass(frozen=True, kw_only=True, repr=False)
class Differences(Shown):
    """The differences of two datasets.

    ``old.examples == unchanged + len(changed) + len(removed)``, and
    ``new.examples == unchanged + len(changed) + len(added)``.

    Attributes:
        old: the first dataset.
        new: the second dataset.
        added: rows that only ``new`` has.
        removed: rows that only ``old`` has.
        changed: rows of both that differ in anything, including their split.
        leaks: rows of ``new`` in train whose payload ``old`` has outside of train, and vice versa.
        unchanged: number of rows of both that do not differ.
        kinds: number of ``changed`` rows per kind of difference: ``label``, ``annotation`` (boxes,
            entities or a segment), ``bytes``, ``features`` (all others) and ``split``.
        moves: number of rows that moved between splits, the largest first.
        leak_counts: leaks by direction.
        vocabulary: changes of labels and their numbers; None if one of the datasets has no labels.
        options: options, versions and types of features that differ.
        labels: distance of the labels in each split; empty without labels.
        sizes: distance of the sizes of images or texts; empty without sizes.
    """

    old: Compared
    new: Compared
    added: Sequence[RowRef]
    removed: Sequence[RowRef]
    changed: Sequence[ChangedRow]
    leaks: Sequence[Leak]
    unchanged: int
    kinds: Mapping[str, int]
    moves: Sequence[Move]
    leak_counts: Mapping[str, int]
    vocabulary: VocabularyChange | None
    options: Sequence[OptionChange]
    labels: Sequence[LabelDrift]
    sizes: Sequence[SizeDrift]

    @property
    def is_same(self) -> bool:
        """Whether both have the same rows in the same splits, and the same label numbers.

        Options and versions may differ, and so may shards and the order of rows.
        """
        rows = len(self.added) + len(self.removed) + len(self.changed)
        return not rows and not self.vocabulary

    def summary(self) -> dict[str, Any]:
        """Return everything except the rows, as JSON values."""
        return {
            "same": self.is_same,
            **{
                name: {**asdict(side), "examples": side.examples}
                for name, side in (("old", self.old), ("new", self.new))
            },
            "counts": {
                "added": len(self.added),
                "removed": len(self.removed),
                "changed": len(self.changed),
                "unchanged": self.unchanged,
                "leaks": len(self.leaks),
            },
            "changed_by_kind": dict(self.kinds),
            "moves": [{"from": move.old, "to": move.new, "rows": move.rows} for move in self.moves],
            "leaks_by_direction": dict(self.leak_counts),
            "vocabulary": None if self.vocabulary is None else asdict(self.vocabulary),
            "options": [item._asdict() for item in self.options],
            "label_drift": [asdict(item) for item in self.labels],
            "size_drift": [asdict(item) for item in self.sizes],
        }

    def json_pieces(self) -> Iterator[str]:
        """Yield the pieces of one JSON object with everything; each row has its own line.

        It is :meth:`summary` with the complete lists ``added``, ``removed``, ``changed`` and
        ``leaks``. Only a few thousand rows are in memory at a time.
        """
        yield "{\n"
        for name, value in self.summary().items():
            yield f'  "{name}": {json.dumps(value, ensure_ascii=False)},\n'
        lists: dict[str, Iterator[dict[str, Any]]] = {
            "added": map(_row_json, self.added),
            "removed": map(_row_json, self.removed),
            "changed": (_pair_json("kinds", item.kinds, item) for item in self.changed),
            "leaks": (_pair_json("direction", item.direction, item) for item in self.leaks),
        }
        ends = iter((",\n", ",\n", ",\n", "\n}\n"))
        for name, items in lists.items():
            yield f'  "{name}": ['
            separator = "\n    "
            for item in items:
                yield separator + json.dumps(item, ensure_ascii=False)
                separator = ",\n    "
            yield "]" + next(ends)


def _pair_json(name: str, value: object, pair: ChangedRow | Leak) -> dict[str, Any]:
    return {name: value, "old": _row_json(pair.old), "new": _row_json(pair.new)}


def _row_json(row: RowRef) -> dict[str, Any]:
    """Return a row as JSON, without an empty uri and without zero objects."""
    return {
        name: value
        for name, value in row._asdict().items()
        if name not in ("uri", "objects") or value
    }
