"""The contents of a page by split: classes, and charts of images, boxes, texts and columns.

    {"train": [1, 2, 2], "eval": [9]}  ─histogram─▶  Histogram(bars, ticks, quantiles)

Bars are shares of their own split, so that small and large splits can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.core.dataset.manifest import Dataset
from recordgen.exports.export import annotating_task
from recordgen.exports.report.records import Record, as_text, is_own_value
from recordgen.features import TEXT, TOKENS
from recordgen.subjects.objects import areas_of

#: The columns of ``examples.parquet`` that a page needs.
COLUMNS = (
    *("split", "shard", "record", "source", "line", "annotation"),
    *("height", "width", "brightness", "contrast", "sharpness"),
)

_COLUMNS_SHOWN = 24

# Examples that charts show, and those of each split whose boxes are read: of more, each second one,
# or fewer.
_CHARTED = 1_000_000
_BOXED = 5000

# A column of texts shows lengths instead of values if more than this share of its values, and more
# than this number, are different.
_DIFFERENT = 0.5
_FEW = 20

# Row numbers of the examples by split.
_Rows = Mapping[str, npt.NDArray[np.intp]]

# Records by split.
_Sample = Mapping[str, Sequence[Record]]

#: Arrays of numbers by split; NaN means unknown.
Numbers = Mapping[str, npt.NDArray[Any]]

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


class ClassCount(NamedTuple):
    """One class; ``counts`` are examples in each split, in the dataset's order of splits."""

    label: str
    number: int
    counts: tuple[int, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Balance:
    """All classes that have examples.

    Attributes:
        classes: in the order of their numbers.
        by_size: the same classes, the largest first.
        median: examples of the class in the middle.
        unlabelled: examples without a label in each split.
        empty: labels of the vocabulary without an example.
    """

    classes: Sequence[ClassCount]
    by_size: Sequence[ClassCount]
    median: float
    unlabelled: Sequence[int]
    empty: int


def class_balance(dataset: Dataset) -> Balance:
    """Count examples by class and split."""
    splits = list(dataset.splits.values())
    classes = []
    for number, label in enumerate(dataset.labels):
        counts = tuple(split.labels.get(label, 0) for split in splits)
        if total := sum(counts):
            classes.append(ClassCount(label, number, counts, total))
    by_size = sorted(classes, key=lambda item: (-item.total, item.number))
    return Balance(
        classes,
        by_size,
        median([item.total for item in classes] or [0]),
        [split.unlabelled for split in splits],
        len(dataset.labels) - len(classes),
    )


@dataclass(frozen=True, slots=True)
class Contents:
    """The charts of a page.

    Attributes:
        images: charts of all images.
        values: charts of texts and columns.
        left_out: number of columns without a chart, because there are too many.
        sampled: examples per split that ``values`` covers; empty if these are all examples.
        boxes: sizes and numbers of boxes.
    """

    images: Sequence[Histogram] = ()
    values: Sequence[Histogram | TopValues] = ()
    left_out: int = 0
    sampled: Mapping[str, int] = field(default_factory=dict)
    boxes: Sequence[Histogram] = ()


def charted(part: Any, dataset: Dataset, before: int) -> Any:
    """Return the examples of a part that charts show, and the annotations of some of them.

    The others have null; "" is an example without an annotation whose boxes would be read.

    Args: before: the number of examples in the parts before this one.
    """
    step = -(-dataset.examples // _CHARTED) or 1
    numbers, steps = np.arange(before, before + len(part)), np.ones(len(part), np.int64)
    for name, rows in _rows_by_split(dataset, part).items():
        steps[rows] = step * (-(-dataset.splits[name].examples // (step * _BOXED)) or 1)
    is_boxed = pa.array(numbers % steps == 0)
    texts = pc.if_else(is_boxed, part["annotation"], None)  # few: all together may be large
    texts = pc.coalesce(texts, pc.if_else(is_boxed, "", None))
    part = part.set_column(part.column_names.index("annotation"), "annotation", texts)
    return part.filter(pa.array(numbers % step == 0))


def contents_of(dataset: Dataset, facts: Any, sample: _Sample) -> Contents:
    """Return the charts of a dataset's examples, of which ``facts`` has those :func:`charted`."""
    rows = _rows_by_split(dataset, facts)
    values, left_out = _values(dataset, sample)
    sampled = {name: len(records) for name, records in sample.items()}
    if all(count == dataset.splits[name].examples for name, count in sampled.items()):
        sampled = {}
    return Contents(_images(facts, rows), values, left_out, sampled, _boxes(dataset, facts, rows))


def _rows_by_split(dataset: Dataset, facts: Any) -> _Rows:
    if not facts:
        return {}
    splits = facts["split"].cast(pa.string())
    return {name: np.flatnonzero(pc.equal(splits, name).to_numpy()) for name in dataset.splits}


def _images(facts: Any, rows: _Rows) -> Sequence[Histogram]:
    def numbers(name: str) -> dict[str, npt.NDArray[Any]]:
        if not rows or name not in facts.column_names:
            return {}
        values = facts[name].cast(pa.float64()).to_numpy()
        return {split: values[chosen] for split, chosen in rows.items()}

    width, height = numbers("width"), numbers("height")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = {name: width[name] / height[name] for name in width if name in height}
    drawn = (
        histogram("Width, pixels", width),
        histogram("Height, pixels", height),
        histogram("Aspect ratio, width / height", ratio),
        histogram("Brightness, 0 to 255", numbers("brightness")),
        histogram("Contrast, 0 to 127.5", numbers("contrast")),
        histogram("Sharpness, 1 is sharp", numbers("sharpness")),
    )
    return [*filter(None, drawn)]


def _boxes(dataset: Dataset, facts: Any, rows: _Rows) -> Sequence[Histogram]:
    read: Any = annotating_task(dataset)
    if not hasattr(read, "boxes"):
        return []
    counts, areas, across, down = {}, {}, {}, {}
    for name, every in rows.items():
        annotations = facts["annotation"].take(pa.array(every)).drop_null().to_pylist()
        boxed = [read.boxes(text) if text else () for text in annotations]
        counts[name] = np.array([len(boxes) for boxes in boxed], np.float64)
        flat = [box[1:5] for boxes in boxed for box in boxes]
        corners = np.array(flat, np.float64).reshape(-1, 4)
        areas[name] = 100 * areas_of(corners)
        across[name], down[name] = 50 * (corners[:, :2] + corners[:, 2:]).T
    drawn = (
        histogram("Boxes in an image", counts),
        histogram("Area of a box, % of the image", areas),
        histogram("Centre of a box, % from the left", across),
        histogram("Centre of a box, % from the top", down),
    )
    return [*filter(None, drawn)]


def _values(dataset: Dataset, sample: _Sample) -> tuple[Sequence[Histogram | TopValues], int]:
    names = {name for records in sample.values() for record in records for name in record}
    ordered = dict.fromkeys((*dataset.features, *sorted(names)))
    own = [name for name in ordered if name in names and is_own_value(name)]
    found: list[Histogram | TopValues | None] = [
        _lengths("Length of the text, characters", sample, TEXT)
    ]
    if TOKENS in names:
        found.append(_chart("Tokens in a text", sample, lambda item: [len(item.get(TOKENS, ()))]))
    found += [_column(name, sample) for name in own[:_COLUMNS_SHOWN]]
    return [item for item in found if item is not None], max(0, len(own) - _COLUMNS_SHOWN)


def _chart(
    title: str, sample: _Sample, numbers_of: Callable[[Record], Iterable[float]]
) -> Histogram | TopValues | None:
    numbers = {
        split: np.array([number for item in records for number in numbers_of(item)], np.float64)
        for split, records in sample.items()
    }
    return histogram(title, numbers)


def _lengths(title: str, sample: _Sample, name: str) -> Histogram | TopValues | None:
    return _chart(title, sample, lambda item: [len(as_text(v)) for v in item.get(name, ())])


def _column(name: str, sample: _Sample) -> Histogram | TopValues | None:
    """Return a histogram of a feature's numbers, or its most frequent texts."""
    values = {
        split: [value for record in records for value in record.get(name, ())]
        for split, records in sample.items()
    }
    everything = [value for found in values.values() for value in found]
    if any(isinstance(value, bytes) for value in everything):
        texts = {split: [*map(as_text, found)] for split, found in values.items()}
        different = len({text for found in texts.values() for text in found})
        if different > max(_FEW, _DIFFERENT * len(everything)):
            return _lengths(f"{name}, characters", sample, name)
        return top_values(name, texts)
    return _chart(name, sample, lambda item: item.get(name) or (np.nan,))
