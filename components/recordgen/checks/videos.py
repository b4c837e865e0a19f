"""The check of videos: overlapping segments with different labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from recordgen.checks.check import Examined, FoundRows
from recordgen.checks.contents import CopyCheck
from recordgen.core.facts import SEGMENTS


class Overlap(CopyCheck):
    """Parts of one video with different labels overlap."""

    code = "OVERLAP"
    needs = (SEGMENTS,)

    def findings(self, examined: Examined[Any]) -> Iterator[FoundRows]:
        """Yield segments that begin inside an earlier segment of their video with another label.

        Segments with the same start and end are one segment with several labels.
        """
        facts, task = examined.facts, examined.task
        segments = [task.segment(facts.annotation(row)) for row in range(len(facts))]
        videos = facts.contents
        order = sorted(range(len(facts)), key=lambda row: (videos[row], *segments[row][1:]))
        found: dict[int, int] = {}
        for _, parts in groupby(order, videos.__getitem__):
            last, *others = parts  # ``last`` is the segment with the latest end so far
            for row in others:
                label, start, end = segments[row]
                other, other_start, other_end = segments[last]
                is_other = label != other and (start, end) != (other_start, other_end)
                if start < other_end and is_other:
                    found[row] = last
                if end > other_end:
                    last = row
        rows = np.array(sorted(found), np.intp)
        partners = np.array([found[row] for row in rows], np.intp)

        def message(at: int) -> str:
            partner = int(partners[at])
            label, start, end = segments[partner]
            return f"overlaps {start:g} to {end:g} s, {label!r}, in {facts.place(partner)}"

        yield FoundRows(rows, message, partners)
