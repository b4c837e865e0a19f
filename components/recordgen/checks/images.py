"""Checks of single images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow.compute as pc

from recordgen.checks import pictures
from recordgen.checks.contents import LintedTask
from recordgen.checks.facts import ExampleFacts
from recordgen.checks.findings import FoundRows, RowIndices

# The format of each suffix, as in ``image/format``. Other suffixes are not checked.
_FORMATS = {
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "jpeg"),
    **{".png": "png", ".gif": "gif", ".bmp": "bmp"},
}


def find_odd_images(
    facts: ExampleFacts, task: LintedTask, thresholds: Mapping[str, float]
) -> Iterator[FoundRows]:
    """Yield images that show little, or have an odd size, name or number of channels."""
    rows, looks = facts.looks
    for hits in pictures.findings_of(looks, thresholds):
        yield hits._replace(rows=rows[hits.rows])
    yield from _of_odd_size(facts, thresholds)
    yield _misnamed(facts)
    yield _of_few_channels(facts, thresholds["GRAY"])
    yield _of_other_colours(facts)
    yield _of_several_frames(facts)


def _of_odd_size(facts: ExampleFacts, thresholds: Mapping[str, float]) -> Iterator[FoundRows]:
    height, width = (facts.columns[name].fill_null(0).to_numpy() for name in ("height", "width"))
    shorter, longer = np.minimum(height, width), np.maximum(height, width)

    def size(rows: RowIndices, at: int) -> str:
        return f"{width[rows[at]]}×{height[rows[at]]} pixels"

    tiny = np.flatnonzero((shorter > 0) & (shorter < thresholds["TINY"]))
    yield FoundRows("TINY", tiny, lambda at: f"the image has {size(tiny, at)}")
    odd = np.flatnonzero(longer > thresholds["ODD_RATIO"] * shorter)
    yield FoundRows("ODD_RATIO", odd, lambda at: f"the image has {size(odd, at)}")


def _misnamed(facts: ExampleFacts) -> FoundRows:
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

    return FoundRows("SUFFIX", rows, message)


def _of_few_channels(facts: ExampleFacts, threshold: float) -> FoundRows:
    """Return a few gray images among many in colour, or the opposite."""
    known = facts.columns["gray"]
    gray, colour = (
        np.flatnonzero(pc.equal(known, value).fill_null(False).to_numpy())
        for value in (True, False)
    )
    is_gray_rare = len(gray) <= len(colour)
    few, many = (gray, colour) if is_gray_rare else (colour, gray)
    if len(few) > threshold / 100 * (len(few) + len(many)):
        few = few[:0]
    what, others = ("gray", "in colour") if is_gray_rare else ("in colour", "gray")

    def message(at: int) -> str:
        return f"the image is stored {what} ({len(few):,} images); {len(many):,} are {others}"

    return FoundRows("GRAY", few, message)


def _of_other_colours(facts: ExampleFacts) -> FoundRows:
    """Return images whose colours viewers convert, and TensorFlow does not."""
    names = facts.columns["colours"].cast("string")
    rows = np.flatnonzero(names.is_valid().to_numpy())

    def message(at: int) -> str:
        name = names[int(rows[at])].as_py()
        return f"viewers convert the colours of the file ({name}), TensorFlow does not"

    return FoundRows("COLOUR_PROFILE", rows, message)


def _of_several_frames(facts: ExampleFacts) -> FoundRows:
    frames = facts.columns["frames"].fill_null(1).to_numpy()
    rows = np.flatnonzero(frames > 1)

    def message(at: int) -> str:
        return f"the file has {frames[rows[at]]:,} pictures; the record has the first"

    return FoundRows("FRAMES", rows, message)
