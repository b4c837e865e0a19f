"""Findings with the examples that they are about, code by code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.lint.codes import CHECKS
from recordgen.lint.findings import LintFinding
from recordgen.report.exhibits import Exhibit, Label
from recordgen.report.shown_records import Place

# Records that are read for findings, and bytes of their pictures on the page.
_RECORDS_SHOWN = 240
_PICTURE_BYTES = 2_000_000

#: An import file and a line.
Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One example of a finding.

    Attributes:
        source: its import file.
        line: 1-based line there.
        split: where it is; empty: not known.
        exhibit: what it looks like; None: it was not read.
    """

    source: str
    line: int
    split: str
    exhibit: Exhibit | None

    @property
    def labels(self) -> Sequence[Label]:
        """The labels of the example, as far as they are known."""
        return self.exhibit.labels if self.exhibit is not None else ()


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """One finding with one example, two, or none: it is about the dataset as a whole."""

    finding: LintFinding
    sides: Sequence[Side]

    @property
    def message(self) -> str:
        """What was found, with the name of the other import file instead of its path."""
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
    """The first findings of one code.

    Attributes:
        code: the code.
        level: ``error`` or ``warning``.
        count: how many findings there are in all.
        remedy: what to do about it; empty: the documentation says it.
        items: the first of them.
    """

    code: str
    level: str
    count: int
    remedy: str
    items: Sequence[ShownFinding]


def places_of(findings: Sequence[LintFinding], facts: Any) -> Mapping[Line, Place]:
    """Return where the records of findings lie: of each code the first, then the second, and on.

    Args:
        findings: those that are shown.
        facts: a table with a row for each example; None: nobody knows.
    """
    wanted = list(dict.fromkeys(_lines_by_turns(findings)))[:_RECORDS_SHOWN]
    if not facts or not wanted:
        return {}
    is_near = np.isin(facts["line"].to_numpy(), [line for _, line in wanted])
    sources = pa.array(sorted({source for source, _ in wanted}))
    is_near &= pc.is_in(facts["source"].cast(pa.string()), value_set=sources).to_numpy()
    names = ("source", "line", "split", "shard", "record")
    near = facts.select(names).take(pa.array(np.flatnonzero(is_near))).to_pydict()
    # A line may name several examples: the first one stands for it.
    rows = reversed(list(zip(*(near[name] for name in names), strict=True)))
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
    counts: Mapping[str, int],
    places: Mapping[Line, Place],
    at: Mapping[Place, Exhibit],
) -> Sequence[CodeGroup]:
    """Return findings by code, with their examples.

    Args:
        findings: code by code.
        counts: how many there are of each code in all.
        places: where the records of their lines lie.
        at: what records look like.
    """
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
        remedy = CHECKS[code].remedy if code in CHECKS else ""
        level, count = found[0].finding.level, counts.get(code, len(found))
        groups.append(CodeGroup(code, level, count, remedy, found))
    return groups
