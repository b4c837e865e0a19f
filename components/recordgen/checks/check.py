"""What a check is: a class with one code, which is made without arguments; and how checks run."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recordgen.checks.selection import Selection
from recordgen.core.dataset import lint
from recordgen.core.dataset.counts import Split
from recordgen.core.dataset.lint import ERROR, WARNING, Found, Lint, LintFinding
from recordgen.core.dataset.splits import split_order
from recordgen.core.dataset.vocabulary import Vocabulary
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
from recordgen.measures.likeness import BANDS, same_in_band
from recordgen.measures.pictures import PictureFacts, picture_facts
from recordgen.measures.texts import Signatures, bands, similarity
from recordgen.registry import CHECKS
from recordgen.rejects import Finding, place_of

#: Import file, line, shard and record of an example: examples are in this order.
Address: TypeAlias = tuple[str, int, str, int]

#: A further column of examples that are examined together: the number of their group.
GROUP = "group"

# A column of names: the index of each example's name, and the names.
_Indexed: TypeAlias = tuple[npt.NDArray[np.int32], Sequence[str]]
_Addresses: TypeAlias = tuple[_Indexed, npt.NDArray[np.int64], _Indexed, npt.NDArray[np.int32]]

_NO_GROUPS = np.zeros(0, np.uint64)


#: The division in which all examples are together.
UNDIVIDED = -1


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

    def divided(self, buckets: int) -> Iterator[tuple[int, RowIndices, npt.NDArray[np.uint64]]]:
        """Yield divisions of the measured examples: two that are alike share a key in one of them.

        A division has a number, the rows, and a key of each. With one bucket, all are one division.
        """
        rows, looks = self.looks
        usable = looks.has_hash if len(rows) else np.zeros(0, np.bool_)
        rows, hashes = rows[usable], looks.perceptual_hash[usable]
        worded, signatures = self.signatures
        if buckets == 1:
            every = np.concatenate([rows, worded])
            yield UNDIVIDED, every, np.zeros(len(every), np.uint64)
            return
        for band in range(BANDS):
            yield band, rows, same_in_band(hashes, band)
        for band, keys in enumerate(bands(signatures)):
            yield BANDS + band, worded, keys.astype(np.uint64)

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


#: What a check must examine together: each example alone, those with the same key
#: (:meth:`Check.keys`), those that are nearly the same, the rows of a table that are kept whole, or
#: no examples: only the splits and the labels.
EACH, KEYED, ALIKE, KEPT, NONE = SCOPES = "each", "keyed", "alike", "kept", "none"

#: Members of a group of copies or near-duplicates that are examined together, at most.
MOST_TOGETHER = 250_000

_Shared = TypeVar("_Shared")
_Key = TypeVar("_Key")


class CheckedTask(Protocol):
    """The part of a task that all checks use; checks of boxes, say, use more."""

    noun: ClassVar[str]
    by_address: ClassVar[bool]
    facts: ClassVar[Collection[str]]

    def shown(self, annotation: str) -> str:
        """Return an annotation as messages show it."""

    def nearly_agree(self, one: str, other: str) -> bool:
        """Return whether different annotations of one payload mean the same."""


TaskT = TypeVar("TaskT", bound=CheckedTask)

_NO_LABELS = Vocabulary("text", ())


@dataclass(frozen=True)
class Examined(Generic[TaskT]):
    """What checks examine.

    Attributes:
        facts: facts about the examples that a check needs together.
        thresholds: the number from which on a check finds something, by code; for checks whose
            threshold is a similarity, only if the user gave it.
        vocabulary: all labels, and ``splits``, the splits with examples, by name: empty for checks
            of examples, which run before they are known.
        are_numbers_given: an option says that whole-number labels are the numbers of classes.
    """

    facts: ExampleFacts
    task: TaskT
    thresholds: Mapping[str, float]
    vocabulary: Vocabulary = _NO_LABELS
    splits: Mapping[str, Split] = field(default_factory=dict)
    eval_from: str = ""
    are_numbers_given: bool = False
    _shared: dict[Any, Any] = field(default_factory=dict)

    def shared(self, compute: Callable[..., _Shared], *args: Any) -> _Shared:
        """Return ``compute(self, *args)``, which several checks need, and compute it once."""
        key = compute, args
        if key not in self._shared:
            self._shared[key] = compute(self, *args)
        found: _Shared = self._shared[key]
        return found


class FoundRows(NamedTuple):
    """The examples that a check has found.

    Attributes:
        rows: the examples, each once.
        message: returns the message of a finding, given its index in ``rows``.
        partners: the example to which each one was compared; None if there was no comparison.
    """

    rows: RowIndices
    message: Callable[[int], str]
    partners: RowIndices | None = None


class _CodeOfName:
    """The code of a check that has none of its own: its name, ``NearLeak`` → ``NEAR_LEAK``."""

    def __get__(self, check: object, kind: type) -> str:
        return _in_capitals(kind.__name__)


@cache  # a run asks hundreds of times
def _in_capitals(name: str) -> str:
    return re.sub(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


class Check:
    """A check of one code. Its findings change nothing in the dataset.

    Attributes:
        code: its code, in capitals; the name of the entry point that installs it. By default the
            name of the class: ``NearLeak`` has the code ``NEAR_LEAK``.
        level: ``error`` if the data misleads a model's training or metrics, else ``warning``.
        is_default: whether it runs without an option that names it.
        is_about_all: whether all its findings about examples are one finding about the dataset,
            which names the first example.
        threshold: the number from which on it finds something; None if it has none.
        is_similarity: the threshold is the least similarity of two payloads, above 0 and at most
            1; its default depends on the kind of payload.
        scope: the examples that it needs together, such as :data:`EACH`. It has no default.
        most_together: examples with one key that it examines together, at most, if it is one of
            :data:`KEYED`: more are examined in parts, and a warning says so. By default, all are.
        needs: the facts that it needs, see :mod:`recordgen.core.facts`: it runs for tasks that have
            all of them.
        counted_as: the counts in ``rows.adjusted`` whose rows are its findings.
        remedies: what helps, if the code does not suggest it; one that names an option is only for
            tasks in which the option acts. docs/lint.md has all remedies.
    """

    code: ClassVar[str] = cast("str", _CodeOfName())
    level: ClassVar[str] = WARNING
    is_default: ClassVar[bool] = True
    is_about_all: ClassVar[bool] = False
    threshold: ClassVar[float | None] = None
    is_similarity: ClassVar[bool] = False
    scope: ClassVar[str]
    most_together: ClassVar[int] = sys.maxsize
    needs: ClassVar[Collection[str]] = ()
    counted_as: ClassVar[Collection[str]] = ()
    remedies: ClassVar[Sequence[str]] = ()

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows | str]:
        """Yield the examples that it finds, or messages about the dataset as a whole.

        By default nothing: readers of import files find the lines of some codes.
        """
        yield from ()

    @staticmethod
    def keys(facts: ExampleFacts) -> npt.NDArray[np.uint64]:
        """Return a key for each example: those with the same one are examined together.

        For checks of :data:`KEYED`. By default, the same key means the same payload.
        """
        return facts.contents


def check_declaration(name: str, check: Any) -> None:
    """Check the object of an entry point. Raises: TypeError: it is no complete check."""
    if not (isinstance(check, type) and issubclass(check, Check)):
        raise TypeError(f"a check is a subclass of recordgen.checks.Check (got {check!r})")
    code = getattr(check, "code", None)
    if code != name or name != name.upper():
        raise TypeError(
            f"the code of {check.__name__} must be the name of its entry point, in capitals: the "
            f"code is {code!r}, the entry point is named {name!r}"
        )
    scope = getattr(check, "scope", None)
    if scope not in SCOPES:
        raise TypeError(
            f"{name}: scope must say which examples the check needs together: one of "
            f"{', '.join(SCOPES)} (got {scope!r}); with keyed, a method keys returns the same "
            f"number for those that it needs together"
        )
    if check.level not in (ERROR, WARNING):
        raise TypeError(f"{name}: level must be {ERROR!r} or {WARNING!r} (got {check.level!r})")


def run_checks(
    about_splits: Examined[Any],
    found: Found,
    lines_of: Callable[[str], Iterator[bytes]],
    changes: Iterable[Finding],
    adjusted: Mapping[str, int],
    selection: Selection,
) -> Lint:
    """Run the selected checks that need no examples, and collect all findings.

    ``found`` is what steps have found; ``lines_of`` returns the findings in one of its files, as
    lines of JSON. ``changes`` may be the first of very many, ``adjusted`` has their numbers.
    """
    by_kind = {kind: code for code in selection.codes for kind in CHECKS[code].counted_as}
    changed = [it._replace(code=by_kind[it.code]) for it in changes if it.code in by_kind]
    checks = {check.code: check for check in checks_of(about_splits.task, selection)}
    about_all, lines = list[LintFinding](), lint.LineSpool()
    counts = Counter[str]()
    for kind, code in by_kind.items():
        counts[code] += adjusted.get(kind, 0)
    for code in (code for code in CHECKS if code in selection.codes):
        check, level = checks.get(code), CHECKS[code].level
        texts: list[str] = [*found.about_all.get(code, ())]
        if check is not None and check.scope == NONE:
            texts += map(str, check.findings(about_splits))
        of_examples = lines_of(found.files[code]) if code in found.files else iter(())
        if CHECKS[code].is_about_all:
            texts += _summed(of_examples)
        whole = [LintFinding(code, level, "", 0, "", "", text) for text in texts]
        about_all += whole
        lines.add(code, (item.to_line().encode() for item in whole))
        counts[code] += len(whole) + lines.add(code, of_examples)
        fixed = (
            LintFinding(code, level, *it[:3], "", it.message) for it in changed if it.code == code
        )
        lines.add(code, (item.to_line().encode() for item in fixed))
    in_order = {code: counts[code] for code in CHECKS if counts[code] and code in selection.codes}
    fatal = {code: count for code, count in in_order.items() if code in selection.fatal}
    return Lint(in_order, fatal, about_all, lines.read, found.remarks)


def _summed(lines: Iterator[bytes]) -> Iterator[str]:
    """Yield one message about several findings: the first, and the number of the others."""
    for line in lines:
        first, others = lint.finding_of(line.decode()), sum(1 for _ in lines)
        more = f", and {others:,} more" if others else ""
        yield f"{first.message}: {place_of(first.source, first.line, first.uri)}{more}"


def checks_of(task: CheckedTask, selection: Selection) -> Iterator[Check]:
    """Yield the selected checks that examine examples of a task, in the order of the registry."""
    for code in CHECKS:
        if code in selection.codes and set(CHECKS[code].needs) <= set(task.facts):
            yield CHECKS[code]()
