"""Images: what is odd about one of them, and which are nearly the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow.compute as pc

from recordgen.lint import pictures
from recordgen.lint.contents import Groups, LintedTask, Pairs
from recordgen.lint.facts import Facts
from recordgen.lint.findings import Hits, Rows

# The format that each suffix stands for, as ``image/format`` calls it; of the others, none is odd.
_FORMATS = {
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "jpeg"),
    **{".png": "png", ".gif": "gif", ".bmp": "bmp"},
}


def find_odd_images(
    facts: Facts, task: LintedTask, thresholds: Mapping[str, float]
) -> Iterator[Hits]:
    """Yield images that show little, and those of an odd size or name."""
    del task
    rows, looks = facts.looks
    for code, places, message in pictures.findings_of(looks, thresholds):
        yield Hits(code, rows[places], message)
    yield from _of_odd_size(facts, thresholds)
    yield _misnamed(facts)


def _of_odd_size(facts: Facts, thresholds: Mapping[str, float]) -> Iterator[Hits]:
    height, width = (facts.columns[name].fill_null(0).to_numpy() for name in ("height", "width"))
    shorter, longer = np.minimum(height, width), np.maximum(height, width)

    def size(rows: Rows, at: int) -> str:
        return f"{width[rows[at]]}×{height[rows[at]]} pixels"

    tiny = np.flatnonzero((shorter > 0) & (shorter < thresholds["TINY"]))
    yield Hits("TINY", tiny, lambda at: f"the image has {size(tiny, at)}")
    odd = np.flatnonzero(longer > thresholds["ODD_RATIO"] * shorter)
    yield Hits("ODD_RATIO", odd, lambda at: f"the image has {size(odd, at)}")


def _misnamed(facts: Facts) -> Hits:
    names = pc.utf8_lower(facts.columns["uri"])
    formats = facts.columns["format"].cast("string")
    is_odd = np.zeros(len(facts), np.bool_)
    for suffix, expected in _FORMATS.items():
        has_suffix = pc.ends_with(names, suffix)
        is_odd |= pc.and_(has_suffix, pc.not_equal(formats, expected)).fill_null(False).to_numpy()
    rows = np.flatnonzero(is_odd)

    def message(at: int) -> str:
        row = int(rows[at])
        return f"{facts.columns['uri'][row].as_py()} is stored as {formats[row].as_py()}"

    return Hits("SUFFIX", rows, message)


def find_alike(facts: Facts, task: LintedTask, thresholds: Mapping[str, float]) -> Iterator[Hits]:
    """Yield images that are nearly, but not wholly, the same as another one."""
    del thresholds
    seen, looks = facts.looks
    found = pictures.find_alike(looks)
    numbers = -1 - np.arange(len(facts))  # whose image was not looked at is alone
    numbers[seen] = found.groups
    # Of several copies in a split one is compared: find_repeated names the others.
    by_content = np.lexsort((facts.splits, facts.contents))
    contents, splits = facts.contents[by_content], facts.splits[by_content]
    is_copy = (contents[1:] == contents[:-1]) & (splits[1:] == splits[:-1])
    copies = by_content[1:][is_copy]
    numbers[copies] = -1 - copies
    groups = Groups(facts, numbers)
    near = (("NEAR_LEAK", groups.across_splits()), ("NEAR_DUPLICATE", groups.within_splits()))
    for code, (rows, partners) in near:
        is_other = facts.contents[rows] != facts.contents[partners]
        yield _near(code, facts, Pairs(rows[is_other], partners[is_other]))


def _near(code: str, facts: Facts, pairs: Pairs) -> Hits:
    def message(at: int) -> str:
        return f"nearly the same image as {facts.place(pairs.partners[at])}"

    return Hits(code, pairs.rows, message, pairs.partners)
