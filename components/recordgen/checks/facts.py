"""The facts about all examples, which checks examine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.splits import split_order
from recordgen.core.facts.columns import (
    KEPT_COLUMNS,
    LINTED,
    LOOK_COLUMNS,
    Columns,
    bytes_of,
    empty_column,
)
from recordgen.core.facts.kept_rows import RowIndices
from recordgen.core.rows.row import is_content_uri
from recordgen.measures.pictures import PictureFacts, picture_facts
from recordgen.measures.texts import Signatures, similarity
from recordgen.rejects import place_of

#: Import file, line, shard and record of an example: examples are in this order.
Address: TypeAlias = tuple[str, int, str, int]

#: A further column of examples that are examined together: the number of their group.
GROUP = "group"

# A column of names: the index of each example's name, and the names.
_Indexed: TypeAlias = tuple[npt.NDArray[np.int32], Sequence[str]]
_Addresses: TypeAlias = tuple[_Indexed, npt.NDArray[np.int64], _Indexed, npt.NDArray[np.int32]]

_NO_GROUPS = np.zeros(0, np.uint64)


class ExampleFacts:
    """The facts of examples, by import file and line.

    Attributes:
        columns: a row per example, as in ``examples.parquet``, and the rows that are kept whole.
        groups: a number for each example, the same for those that are nearly the same; empty if
            nobody has compared them.
    """

    def __init__(self, parts: Iterable[Columns]) -> None:
        """Concatenate the facts of shards, or ``columns`` of other facts.

        Memory holds them once and one column twice, if ``parts`` keeps none of them.
        """
        groups: list[npt.NDArray[np.uint64]] = []

        def without_groups(part: Columns) -> Columns:
            if GROUP in part.column_names:
                groups.append(part[GROUP].to_numpy())
            return part.select(LINTED.names).cast(LINTED)

        columns = pa.concat_tables([LINTED.empty_table(), *map(without_groups, parts)])
        columns = columns.unify_dictionaries()
        order = by_line(columns)
        self.groups = np.concatenate(groups)[order] if groups else _NO_GROUPS
        taken, places = [], pa.array(order)
        while columns.num_columns:
            taken.append(_taken(columns.column(0), places))
            columns = columns.remove_column(0)
        self.columns = pa.Table.from_arrays(taken, schema=LINTED)

    @classmethod
    def compared(cls, parts: Sequence[Columns]) -> ExampleFacts:
        """Return some facts of examples; ``parts`` have the same columns."""
        found, columns = cls.__new__(cls), pa.concat_tables(parts).unify_dictionaries()
        found.columns, found.groups = columns.take(pa.array(by_line(columns))), _NO_GROUPS
        return found

    def __len__(self) -> int:
        return len(self.columns)

    def taken(self, rows: npt.NDArray[Any]) -> Columns:
        """Return the columns of some rows."""
        taken = [_taken(column, pa.array(rows)) for column in self.columns.columns]
        return pa.Table.from_arrays(taken, schema=self.columns.schema)

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the splits, train first."""
        return sorted(set(self._splits[1]), key=split_order)

    @cached_property
    def splits(self) -> npt.NDArray[np.intp]:
        """The number of each example's split in :attr:`names`."""
        indexes, names = self._splits
        ranks = np.array([self.names.index(name) for name in names], np.intp)
        return ranks[indexes]

    @cached_property
    def contents(self) -> npt.NDArray[np.uint64]:
        """64 bits of a digest of what a trainer sees of each payload."""
        return self.columns["content"].to_numpy()

    @cached_property
    def annotations(self) -> npt.NDArray[np.int32]:
        """A number for each distinct annotation, -1 for rows without one."""
        codes = self.columns["annotation"].combine_chunks().dictionary_encode().indices
        return codes.fill_null(-1).to_numpy()

    @cached_property
    def kept(self) -> tuple[RowIndices, Columns, npt.NDArray[np.bool_]]:
        """The rows kept whole: their indexes, their texts, and whether each is in the sample."""
        rows = np.flatnonzero(np.asarray(self.columns["row"].is_valid()))
        kept = self.columns.select(list(KEPT_COLUMNS)).take(pa.array(rows)).combine_chunks()
        return rows, kept["row"].combine_chunks(), np.asarray(kept["is_sampled"])

    @cached_property
    def looks(self) -> tuple[RowIndices, PictureFacts]:
        """Indexes of the examples whose image was measured, and the measures."""
        rows = np.flatnonzero(self.columns["perceptual_hash"].is_valid().to_numpy())
        names = [name for name in LOOK_COLUMNS if name in self.columns.column_names]
        return rows, picture_facts(self.columns.select(names).take(pa.array(rows)))

    @cached_property
    def signatures(self) -> tuple[RowIndices, Signatures]:
        """Indexes of the examples whose text was measured and has words, and their signatures."""
        is_text = self.columns["characters"].is_valid().to_numpy()
        rows = np.flatnonzero(self.columns["signature"].is_valid().to_numpy() & is_text)
        return rows, bytes_of(self.columns["signature"].take(pa.array(rows)))

    def similarity(self, row: int, other: int) -> float | None:
        """Estimate the similarity of two texts, 0 to 1; None if one was not measured."""
        rows, signatures = self.signatures
        one, two = places = np.searchsorted(rows, [row, other])
        if places.max() >= len(rows) or [*rows[places]] != [row, other]:
            return None
        return float(similarity(signatures[one : one + 1], signatures[two : two + 1])[0])

    def annotation(self, row: int) -> str | None:
        """Return the annotation of a row."""
        return self._texts["annotation"][row].as_py()

    def address(self, row: int) -> Address:
        """Return where an example is."""
        (sources, files), lines, (shards, names), records = self._addresses
        return files[sources[row]], int(lines[row]), names[shards[row]], int(records[row])

    def place(self, row: int) -> str:
        """Return a row as messages name it: ``train.csv:7 (a.jpg, split train)``."""
        source, line, uri = self._origin(row)
        is_named = source.endswith("/") or is_content_uri(uri)
        inside = ("" if is_named else uri, f"split {self.split(row)}")
        return f"{place_of(source, line, uri)} ({', '.join(filter(None, inside))})"

    def split(self, row: int) -> str:
        """Return the split of an example."""
        return self.names[self.splits[row]]

    def finding(
        self, code: str, level: str, row: int, message: str, other: int | None = None
    ) -> LintFinding:
        """Return a finding about an example, which may name another example."""
        there = ("", 0) if other is None else self._origin(other)[:2]
        return LintFinding(code, level, *self._origin(row), self.split(row), message, *there)

    def _origin(self, row: int) -> tuple[str, int, str]:
        """Return the import file, the line and the uri of an example."""
        source, line, _, _ = self.address(row)
        return source, line, self._texts["uri"][row].as_py()

    @cached_property
    def _splits(self) -> _Indexed:
        return _indexed(self.columns["split"])

    @cached_property
    def _addresses(self) -> _Addresses:
        shards = _indexed(self.columns["shard"]), self.columns["record"].to_numpy()
        return _indexed(self.columns["source"]), self.columns["line"].to_numpy(), *shards

    @cached_property
    def _texts(self) -> Mapping[str, Any]:
        """Contiguous columns: finding a row in many chunks takes a hundred times as long."""
        return {name: self.columns[name].combine_chunks() for name in ("uri", "annotation")}


def _indexed(column: Any) -> _Indexed:
    names = column.combine_chunks()
    return names.indices.to_numpy(zero_copy_only=False), names.dictionary.to_pylist()


def by_line(columns: Columns) -> RowIndices:
    """Return the order of examples by import file and line; ``columns`` has one dictionary."""
    indexes, names = _indexed(columns["source"])
    ranks = np.argsort(np.argsort(names or [""]))
    return np.lexsort((columns["line"].to_numpy(), ranks[indexes]))


def _taken(column: Any, rows: Any) -> Any:
    """Return some rows of a column. An empty one, of which tables have many, takes no memory."""
    if column.null_count == len(column):
        return empty_column(len(rows), column.type)
    return column.take(rows)
