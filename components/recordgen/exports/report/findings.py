"""Findings by code, with their examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.dataset.lint import LintFinding
from recordgen.core.dataset.manifest import Dataset
from recordgen.exports.report.records import Label, RecordView
from recordgen.exports.report.sampling import Place
from recordgen.tasks.suiting import remedies_of

# Limits of the records read for findings, and of the bytes of their pictures on the page.
_RECORDS_SHOWN = 240
_PICTURE_BYTES = 2_000_000

#: An import file and a line.
Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One example of a finding; ``split`` is empty if unknown, ``view`` None if it was not read."""

    source: str
    line: int
    split: str
    view: RecordView | None

    @property
    def labels(self) -> Sequence[Label]:
        """The labels of the example; empty if it was not read."""
        return self.view.labels if self.view is not None else ()


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """One finding with one or two examples, or none if it concerns the whole dataset."""

    finding: LintFinding
    sides: Sequence[Side]

    @property
    def message(self) -> str:
        """The finding's message, with the name of the other import file instead of its path."""
        source = self.finding.other_source
        return self.finding.message.replace(source, source.rpartition("/")[2])

    @property
    def splits(self) -> Sequence[str]:
        """The splits of its examples, each once."""
        return list(dict.fromkeys(side.split for side in self.sides if side.split))

    @property
    def labels(self) -> Sequence[str]:
        """The labels of its examples, each once."""
        return list(dict.fromkeys(label.text for side in self.sides for label in side.labels))


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """The first findings of one code, and the number of all.

    ``remedy`` is empty if only the documentation has it.
    """

    code: str
    level: str
    count: int
    remedy: str
    items: Sequence[ShownFinding]


def wanted_lines(findings: Sequence[LintFinding]) -> Sequence[Line]:
    """Return the lines whose records are read, taking one finding of each code in turn."""
    return list(dict.fromkeys(_lines_by_turns(findings)))[:_RECORDS_SHOWN]


def places_in(facts: Any, wanted: Sequence[Line]) -> Mapping[Line, Place]:
    """Return the places of the examples of lines, of a table of some examples.

    A line may name several examples: the first one counts.
    """
    is_near = np.isin(facts["line"].to_numpy(), [line for _, line in wanted])
    sources = pa.array({source for source, _ in wanted}, pa.string())
    is_near &= pc.is_in(facts["source"].cast(pa.string()), value_set=sources).to_numpy()
    near = facts.select(["source", "line", *Place._fields]).filter(pa.array(is_near)).to_pydict()
    rows = reversed(list(zip(*near.values(), strict=True)))
    found = {(source, line): Place(*place) for source, line, *place in rows}
    return {line: found[line] for line in wanted if line in found}


def _lines_by_turns(findings: Sequence[LintFinding]) -> Iterator[Line]:
    by_code = [list(items) for _, items in groupby(findings, attrgetter("code"))]
    for turn in zip_longest(*by_code):
        for item in turn:
            if item is not None and item.source:
                yield item.source, item.line
                if item.other_source:
                    yield item.other_source, item.other_line


def groups_of(
    findings: Iterable[LintFinding],
    dataset: Dataset,
    places: Mapping[Line, Place],
    at: Mapping[Place, RecordView],
) -> Sequence[CodeGroup]:
    """Return findings by code, with their examples."""
    left = _PICTURE_BYTES

    def side(source: str, line: int, split: str) -> Side:
        nonlocal left
        place = places.get((source, line))
        if place is None:
            return Side(source, line, split, None)
        found = at.get(place)
        if found is not None and found.thumbnail is not None:
            left -= len(found.thumbnail.data) * 4 // 3
            found = found if left >= 0 else replace(found, thumbnail=None)
        return Side(source, line, place.split, found)

    def shown(item: LintFinding) -> ShownFinding:
        sides = []
        if item.source:
            sides.append(side(item.source, item.line, item.split))
        if item.other_source:
            sides.append(side(item.other_source, item.other_line, ""))
        return ShownFinding(item, sides)

    groups = []
    for code, items in groupby(findings, attrgetter("code")):
        found = [shown(item) for item in items]
        remedy = remedies_of(code, dataset)
        level, count = found[0].finding.level, dataset.lint.get(code, len(found))
        groups.append(CodeGroup(code, level, count, remedy, found))
    return groups
