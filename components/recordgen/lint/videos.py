"""Videos: segments that overlap and say different things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from recordgen.lint.contents import LintedTask
from recordgen.lint.facts import Facts
from recordgen.lint.findings import Hits


class VideoTask(LintedTask, Protocol):
    """A task of videos."""

    def segment(self, annotation: str | None) -> tuple[str | None, float, float]:
        """Return a part of a video: label, start and end in seconds."""


def find_overlaps(facts: Facts, task: VideoTask, thresholds: Mapping[str, float]) -> Iterator[Hits]:
    """Yield segments that begin inside an earlier one of their video and have another label.

    Segments with the same start and end are one with several labels.
    """
    del thresholds
    segments = [task.segment(facts.annotation(row)) for row in range(len(facts))]
    videos = facts.contents
    order = sorted(range(len(facts)), key=lambda row: (videos[row], *segments[row][1:]))
    found: dict[int, int] = {}
    last = -1  # the segment of the video that ends last
    for row in order:
        label, start, end = segments[row]
        if last >= 0 and videos[last] == videos[row]:
            other, other_start, other_end = segments[last]
            if start < other_end and label != other and (start, end) != (other_start, other_end):
                found[row] = last
        if last < 0 or videos[last] != videos[row] or end > segments[last][2]:
            last = row
    rows = np.array(sorted(found), np.intp)
    partners = np.array([found[row] for row in rows], np.intp)

    def message(at: int) -> str:
        partner = int(partners[at])
        label, start, end = segments[partner]
        return f"overlaps {start:g} to {end:g} s, {label!r}, in {facts.place(partner)}"

    yield Hits("OVERLAP", rows, message, partners)
