"""The contents of a page by split: classes, and charts of images, boxes, texts and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recordgen.checks.boxes import areas_of
from recordgen.core.dataset.manifest import Dataset
from recordgen.exports.report.charts import (
    HeatMap,
    Histogram,
    TopValues,
    heat_map,
    histogram,
    top_values,
)
from recordgen.exports.report.records import Record, as_text, is_own_value
from recordgen.exports.report.sampling import evenly
from recordgen.features import TEXT, TOKENS
from recordgen.options import ConvertOptions
from recordgen.tasks import TASKS, task_for

#: The columns of ``examples.parquet`` that a page needs.
COLUMNS = (
    *("split", "shard", "record", "source", "line", "annotation"),
    *("height", "width", "brightness", "contrast", "sharpness"),
)

_COLUMNS_SHOWN = 24

# Examples per split whose boxes are read, evenly spread over the split.
_BOXED_EXAMPLES = 5000

# A column of texts shows lengths instead of values if more than this share of its values, and more
# than this number, are different.
_DIFFERENT = 0.5
_FEW = 20

# Row numbers of the examples by split.
_Rows = Mapping[str, npt.NDArray[np.intp]]

# Records by split.
_Sample = Mapping[str, Sequence[Record]]

# Points of the curve over all classes, which is about 600 pixels wide.
_CURVE_POINTS = 200


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
        curve: points (share of classes, share of the largest class), from the largest class on.
        unlabelled: examples without a label in each split.
        empty: labels of the vocabulary without an example.
    """

    classes: Sequence[ClassCount]
    by_size: Sequence[ClassCount]
    median: float
    curve: Sequence[tuple[float, float]]
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
    places = list(enumerate(item.total / by_size[0].total for item in by_size))
    last = max(1, len(by_size) - 1)
    return Balance(
        classes,
        by_size,
        median([item.total for item in classes] or [0]),
        [(place / last, share) for place, share in evenly(places, _CURVE_POINTS)],
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
        heat: positions of boxes by split.
        boxes: sizes and numbers of boxes.
    """

    images: Sequence[Histogram] = ()
    values: Sequence[Histogram | TopValues] = ()
    left_out: int = 0
    sampled: Mapping[str, int] = field(default_factory=dict)
    heat: Mapping[str, HeatMap] = field(default_factory=dict)
    boxes: Sequence[Histogram] = ()


def contents_of(dataset: Dataset, facts: Any, sample: _Sample) -> Contents:
    """Return the charts of a dataset's examples.

    ``facts`` is a table of all examples with :data:`COLUMNS`, or some of them.
    """
    rows = _rows_by_split(dataset, facts)
    heat, boxes = _boxes(dataset, facts, rows)
    values, left_out = _values(dataset, sample)
    sampled = {name: len(records) for name, records in sample.items()}
    if all(count == dataset.splits[name].examples for name, count in sampled.items()):
        sampled = {}
    return Contents(_images(facts, rows), values, left_out, sampled, heat, boxes)


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


def _boxes(
    dataset: Dataset, facts: Any, rows: _Rows
) -> tuple[Mapping[str, HeatMap], Sequence[Histogram]]:
    task = TASKS.get(dataset.task)
    if task is None or not hasattr(task, "boxes"):
        return {}, []
    read: Any = task_for(ConvertOptions(task=dataset.task))
    corners, counts, areas = {}, {}, {}
    for name, every in rows.items():
        chosen = evenly(range(len(every)), _BOXED_EXAMPLES)
        annotations = facts["annotation"].take(pa.array(every[chosen])).to_pylist()
        boxed = [() if text is None else read.boxes(text) for text in annotations]
        counts[name] = np.array([len(boxes) for boxes in boxed], np.float64)
        flat = [box[1:5] for boxes in boxed for box in boxes]
        corners[name] = np.array(flat, np.float64).reshape(-1, 4)
        areas[name] = 100 * areas_of(corners[name])
    heat = {name: found for name, boxes in corners.items() if (found := heat_map(boxes))}
    drawn = (
        histogram("Boxes in an image", counts),
        histogram("Area of a box, % of the image", areas),
    )
    return heat, [*filter(None, drawn)]


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
