"""Histograms, bars and a heat map of numbers and values by split.

    {"train": [1, 2, 2], "eval": [9]}  ─histogram─▶  Histogram(bars, ticks, quantiles)

Bars are shares of their own split, so that small and large splits can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Arrays of numbers by split; NaN means unknown.
Numbers = Mapping[str, npt.NDArray[Any]]

#: Cells on each side of a heat map.
HEAT_SIDE = 24

#: Levels of a heat map.
HEAT_LEVELS = 8

_BINS = 32
_TICKS = 4

# Use a logarithmic scale if the upper quantile is more than this multiple of the lower one.
_LOG_RANGE = 30

# Values beyond these quantiles are counted at the edges if they would squeeze all others.
_EDGES = 0.005, 0.995
_SQUEEZED = 3

_TOP = 8


@dataclass(frozen=True, slots=True)
class Series:
    """The numbers of one split.

    Attributes:
        count: known numbers.
        missing: unknown numbers.
        heights: height of each bar, 0 to 1; the highest bar of all splits is 1.
        quantiles: the smallest, the median and the largest as text; empty if all are unknown.
    """

    split: str
    count: int
    missing: int
    heights: Sequence[float]
    quantiles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers by split.

    Attributes:
        series: by split.
        ticks: positions, 0 (left) to 1, and the numbers there.
        is_log: whether the scale is logarithmic.
    """

    title: str
    series: Sequence[Series]
    ticks: Sequence[tuple[float, str]]
    is_log: bool


@dataclass(frozen=True, slots=True)
class TopValues:
    """The most frequent values, with their shares of each split in the order of the splits."""

    title: str
    splits: Sequence[str]
    values: Sequence[tuple[str, Sequence[float]]]
    others: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The positions of boxes.

    Attributes:
        paths: for each level from the second on, its cells as SVG path data; cells are 1 wide.
        most: boxes that cover the densest cell.
        centre: share of the covered area that is in the middle ninth of the image.
    """

    paths: Sequence[str]
    boxes: int
    most: int
    centre: float


def histogram(title: str, numbers: Numbers) -> Histogram | None:
    """Return a histogram of numbers by split; None if all are unknown."""
    known = {
        name: values[np.isfinite(values)].astype(np.float64) for name, values in numbers.items()
    }
    everything = np.concatenate([*known.values(), np.zeros(0)])
    if not len(everything):
        return None
    edges, is_log, is_clipped = _bin_edges(everything)
    heights = {
        name: np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(1, len(values))
        for name, values in known.items()
    }
    highest = max(float(bars.max()) for bars in heights.values())
    return Histogram(
        title,
        [
            Series(
                name,
                len(known[name]),
                len(numbers[name]) - len(known[name]),
                (bars / highest).round(3).tolist(),
                [number_text(float(each)) for each in np.quantile(known[name], (0, 0.5, 1))]
                if len(known[name])
                else [],
            )
            for name, bars in heights.items()
        ],
        _ticks(edges, is_log, is_clipped),
        is_log,
    )


def _bin_edges(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], bool, tuple[bool, bool]]:
    """Return the edges of the bins, whether they are logarithmic, and which ends are clipped."""
    least, most = float(values.min()), float(values.max())
    low, high = (float(edge) for edge in np.quantile(values, _EDGES))
    is_log = least > 0 and high > _LOG_RANGE * low
    is_clipped = (False, False)
    if not is_log and high > low and most - least > _SQUEEZED * (high - low):
        is_clipped = (least < low, most > high)
        least, most = low, high
    if bool((values == values.round()).all()) and most - least < _BINS:
        return np.arange(round(least), round(most) + 2) - 0.5, False, is_clipped
    if least == most:
        return np.array([least - 0.5, most + 0.5]), False, is_clipped
    if is_log:
        return np.geomspace(least, most, _BINS + 1), True, is_clipped
    return np.linspace(least, most, _BINS + 1), False, is_clipped


def _ticks(
    edges: npt.NDArray[Any], is_log: bool, is_clipped: tuple[bool, bool]
) -> list[tuple[float, str]]:
    bins = len(edges) - 1
    if bins < _BINS:  # whole numbers, in the middle of their bars
        step = max(1, -(-bins // 8))
        found = [((at + 0.5) / bins, float(edges[at] + 0.5)) for at in range(0, bins, step)]
    else:
        spaced = np.geomspace if is_log else np.linspace
        numbers = spaced(edges[0], edges[-1], _TICKS + 1).tolist()
        found = [(at / _TICKS, number) for at, number in enumerate(numbers)]
    texts = [number_text(number) for _, number in found]
    if is_clipped[0]:
        texts[0] = f"≤ {texts[0]}"
    if is_clipped[1]:
        texts[-1] = f"≥ {texts[-1]}"
    return [(round(place, 3), text) for (place, _), text in zip(found, texts, strict=True)]


def number_text(number: float) -> str:
    """Return a number as text: three digits, or all digits of a whole number."""
    is_shown_whole = number == round(number) or abs(number) >= 1000
    return f"{number:,.0f}" if is_shown_whole and abs(number) < 1e9 else f"{number:.3g}"


def top_values(title: str, values: Mapping[str, Sequence[str]]) -> TopValues | None:
    """Return the most frequent values by split; None if there are none."""
    counts = {name: Counter(found) for name, found in values.items()}
    total = sum(counts.values(), Counter[str]())
    if not total:
        return None
    top = sorted(total, key=lambda value: (-total[value], value))[:_TOP]
    sizes = {name: max(1, sum(found.values())) for name, found in counts.items()}
    return TopValues(
        title,
        list(values),
        [(value, [found[value] / sizes[name] for name, found in counts.items()]) for value in top],
        len(total) - len(top),
    )


def heat_map(boxes: npt.NDArray[Any]) -> HeatMap | None:
    """Count the boxes that cover each cell of an image; return None without boxes.

    Args:
        boxes: xmin, ymin, xmax, ymax as shares of the image: float [n, 4].
    """
    if not len(boxes):
        return None
    first = np.clip(np.floor(boxes[:, :2] * HEAT_SIDE), 0, HEAT_SIDE - 1).astype(np.intp)
    last = np.clip(np.ceil(boxes[:, 2:] * HEAT_SIDE), first + 1, HEAT_SIDE).astype(np.intp)
    # A box adds 1 at its first corner and subtracts it past the others; running sums fill the box.
    corners = np.zeros((HEAT_SIDE + 1, HEAT_SIDE + 1), np.int64)
    for rows, columns, sign in (
        (first[:, 1], first[:, 0], 1),
        (first[:, 1], last[:, 0], -1),
        (last[:, 1], first[:, 0], -1),
        (last[:, 1], last[:, 0], 1),
    ):
        np.add.at(corners, (rows, columns), sign)
    covered = corners.cumsum(axis=0).cumsum(axis=1)[:HEAT_SIDE, :HEAT_SIDE]
    most = int(covered.max())
    levels = -(-covered * (HEAT_LEVELS - 1) // most)
    third = HEAT_SIDE // 3
    middle = covered[third : 2 * third, third : 2 * third].sum() / covered.sum()
    return HeatMap(
        [_cells(levels == level) for level in range(1, HEAT_LEVELS)],
        len(boxes),
        most,
        float(middle),
    )


def _cells(is_there: npt.NDArray[np.bool_]) -> str:
    """Return cells as SVG path data, with adjacent cells of a row joined."""
    pieces = []
    for y, row in enumerate(is_there):
        turns = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        for left, right in turns.reshape(-1, 2).tolist():
            pieces.append(f"M{left} {y}h{right - left}v1h-{right - left}z")
    return "".join(pieces)
