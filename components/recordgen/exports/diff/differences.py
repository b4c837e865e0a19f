"""The result of :func:`recordgen.diff`: counts, rows that are made on demand, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from recordgen.messages import Shown

_Item = TypeVar("_Item")


class RowRef(NamedTuple):
    """One row of a dataset, for display.

    Attributes:
        uri: uri of its payload; empty if it has none.
        split: its split.
        labels: its labels, sorted.
        objects: number of boxes or entities.
        file: its shard, relative to the dataset's folder.
        record: its index in the shard, from 0.
        source: its import file.
        line: its line in that file, from 1.
    """

    uri: str
    split: str
    labels: tuple[str, ...]
    objects: int
    file: str
    record: int
    source: str
    line: int


class ChangedRow(NamedTuple):
    """A row of both datasets that differs; ``kinds`` are those of :attr:`Differences.kinds`."""

    kinds: tuple[str, ...]
    old: RowRef
    new: RowRef


class Leak(NamedTuple):
    """A payload that is used both to train and to evaluate models.

    Attributes:
        direction: ``train_to_evaluation`` if it is in OLD's train and in NEW's eval, test or
            another split; ``evaluation_to_train`` for the opposite.
    """

    direction: str
    old: RowRef
    new: RowRef


class Listing(Sequence[_Item], Generic[_Item]):
    """A sequence whose items are made on demand: ``read`` yields those of a slice."""

    def __init__(self, count: int, read: Callable[[slice], Iterator[_Item]]) -> None:
        self._count = count
        self._read = read

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_Item]:
        return self._read(slice(None))

    def __getitem__(self, place: Any) -> Any:
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


class Compared(NamedTuple):
    """One of the two datasets: its folder or URL, and what its ``dataset.json`` says."""

    path: str
    task: str
    recordgen_version: str
    digest: str
    examples: int
    splits: Mapping[str, int]


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
        before, after = ({name: at for at, name in enumerate(names)} for names in (old, new))
        return cls(
            tuple(name for name in new if name not in before),
            tuple(name for name in old if name not in after),
            {name: (at, after[name]) for name, at in before.items() if after.get(name, at) != at},
        )


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
            entities or a segment), ``bytes``, ``features`` (declared columns) and ``split``.
        moves: number of rows that moved between splits, the largest first.
        leak_counts: leaks by direction.
        vocabulary: changes of labels and their numbers.
        options: options, versions and types of features that differ.
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
    vocabulary: VocabularyChange
    options: Sequence[OptionChange]

    @property
    def is_same(self) -> bool:
        """Whether both have the same rows in the same splits, and the same label numbers.

        Options and versions may differ, and so may shards and the order of rows.
        """
        rows = len(self.added) + len(self.removed) + len(self.changed)
        return not rows and not self.vocabulary

    def summary(self) -> dict[str, Any]:
        """Return everything except the rows, as JSON values."""
        counts = {name: len(getattr(self, name)) for name in ("added", "removed", "changed")}
        return {
            "same": self.is_same,
            "old": self.old._asdict(),
            "new": self.new._asdict(),
            "counts": {**counts, "unchanged": self.unchanged, "leaks": len(self.leaks)},
            "changed_by_kind": dict(self.kinds),
            "moves": [{"from": move.old, "to": move.new, "rows": move.rows} for move in self.moves],
            "leaks_by_direction": dict(self.leak_counts),
            "vocabulary": asdict(self.vocabulary),
            "options": [item._asdict() for item in self.options],
        }

    def json_pieces(self) -> Iterator[str]:
        """Yield the pieces of one JSON object with everything; each row has its own line.

        It is :meth:`summary` with the complete lists ``added``, ``removed``, ``changed`` and
        ``leaks``. Only a few thousand rows are in memory at a time.
        """
        start = "{"
        for name, value in self.summary().items():
            yield f'{start}\n  "{name}": {json.dumps(value, ensure_ascii=False)}'
            start = ","
        for name in ("added", "removed", "changed", "leaks"):
            yield f',\n  "{name}": ['
            for number, item in enumerate(getattr(self, name)):
                line = json.dumps(_plain(item), ensure_ascii=False)
                yield f"{',' if number else ''}\n    {line}"
            yield "]"
        yield "\n}\n"


def _plain(item: Any) -> dict[str, Any]:
    """Return a row or a pair of rows as JSON, without empty uris and zero objects."""
    return {
        name: _plain(value) if isinstance(value, RowRef) else value
        for name, value in item._asdict().items()
        if name not in ("uri", "objects") or value
    }
