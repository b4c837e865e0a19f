"""The boxes of a record, and what is known of them besides label and corners, as features and back.

Names are those of TensorFlow's Object Detection API. Each feature is a list with one value per box,
and corners are shares of the image's width and height. Other writers may omit
``image/object/class/text`` (then the label is the number) or ``image/object/class/label``.

    image/object/is_crowd            one value for each box, as area, keypoint/num and the counts
    image/object/keypoint/x          the same number of keypoints for each box
    image/object/polygon/count       polygons of each box
    image/object/polygon/points      points of each polygon
    image/object/polygon/x           of each point
    image/object/mask/count          runs of each box
    image/object/mask/runs           :mod:`recordgen.subjects.masks`, of the stored image

A record has a feature only if it is known of one of its boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordgen import features
from recordgen.core.records.example import FeatureValue
from recordgen.features import FLAGS
from recordgen.subjects.details import (
    KEYPOINT,
    NO_POLYGONS,
    NOTHING,
    Details,
    Mask,
    Points,
    Polygons,
    points_of,
)
from recordgen.subjects.masks import runs_of, text_of

#: Corners of boxes: xmin, ymin, xmax and ymax, or the same in another order, [..., 4].
Corners: TypeAlias = "npt.NDArray[np.floating[Any]]"

# Other writers' keypoints may have no visibility.
_VISIBLE = 2


def features_of(details: Sequence[Details]) -> Mapping[str, FeatureValue]:
    """Return the features of the boxes of one image."""
    found: dict[str, FeatureValue] = {}
    flags = frozenset[str]().union(*[each.flags for each in details])
    for name, flag in zip(features.OBJECT_FLAGS, FLAGS, strict=True):
        if flag in flags:
            found[name] = [int(flag in each.flags) for each in details]
    if any(each.area is not None for each in details):
        found[features.IMAGE_OBJECT_AREA] = [each.area or 0.0 for each in details]
    if any(each.keypoints for each in details):
        found |= _keypoint_features([each.keypoints for each in details])
    polygons = [each.polygons for each in details]
    if any(polygons):
        points = points_of(polygons).astype(np.float32)
        found |= {
            features.IMAGE_OBJECT_POLYGON_COUNT: [len(each.sizes) for each in polygons],
            features.IMAGE_OBJECT_POLYGON_POINTS: [n for mine in polygons for n in mine.sizes],
            features.IMAGE_OBJECT_POLYGON_X: points[:, 0],
            features.IMAGE_OBJECT_POLYGON_Y: points[:, 1],
        }
    if any(each.mask for each in details):
        runs = [runs_of(each.mask.counts) if each.mask else [] for each in details]
        found |= {
            features.IMAGE_OBJECT_MASK_COUNT: list(map(len, runs)),
            features.IMAGE_OBJECT_MASK_RUNS: [run for mine in runs for run in mine],
        }
    return found


def _keypoint_features(keypoints: Sequence[Points]) -> Mapping[str, FeatureValue]:
    most = max(map(len, keypoints))
    every = [mine + (0.0,) * (most - len(mine)) for mine in keypoints]
    x, y, shown = ([v for mine in every for v in mine[at::KEYPOINT]] for at in range(KEYPOINT))
    return {
        features.IMAGE_OBJECT_KEYPOINT_X: x,
        features.IMAGE_OBJECT_KEYPOINT_Y: y,
        features.IMAGE_OBJECT_KEYPOINT_VISIBILITY: list(map(int, shown)),
        features.IMAGE_OBJECT_KEYPOINT_NUM: [sum(map(bool, mine[2::KEYPOINT])) for mine in every],
    }


def details_in(values: Mapping[str, Sequence[Any]], count: int) -> Sequence[Details]:
    """Return the details of the boxes of a record, the inverse of :func:`features_of`.

    Raises: ValueError: a feature does not fit the number of boxes.
    """
    if not count or features.OBJECTS.keys().isdisjoint(values):
        return [Details()] * count
    named = zip(features.OBJECT_FLAGS, FLAGS, strict=True)
    flags = [[flag if on else "" for on in _each(values, name, count)] for name, flag in named]
    areas = _each(values, features.IMAGE_OBJECT_AREA, count, None)
    keypoints = _keypoints(values, count)
    polygons, masks = _polygons(values, count), _masks(values, count)
    rest = zip(areas, polygons, masks, keypoints, strict=True)
    each = zip(zip(*flags, strict=True), rest, strict=True)
    return [Details(frozenset(filter(None, words)), *others) for words, others in each]


def _each(
    values: Mapping[str, Sequence[Any]], name: str, count: int, default: Any = 0
) -> Sequence[Any]:
    """Return a feature with one value for each box, or the default for each."""
    found = values.get(name) or [default] * count
    if len(found) != count:
        raise ValueError(f"{name} needs one value for each of {count} boxes (got {len(found)})")
    return found


def _keypoints(values: Mapping[str, Sequence[Any]], count: int) -> Sequence[Points]:
    x = values.get(features.IMAGE_OBJECT_KEYPOINT_X) or ()
    y = values.get(features.IMAGE_OBJECT_KEYPOINT_Y) or ()
    shown = values.get(features.IMAGE_OBJECT_KEYPOINT_VISIBILITY) or [_VISIBLE] * len(x)
    if len(x) % count or not len(x) == len(y) == len(shown):
        raise ValueError(f"{count} boxes need the same number of keypoints (got {len(x)} in all)")
    most = len(x) // count
    flat = [value for point in zip(x, y, map(float, shown), strict=True) for value in point]
    every = (tuple(flat[at * most * KEYPOINT :][: most * KEYPOINT]) for at in range(count))
    return [points if any(points) else () for points in every]


def _polygons(values: Mapping[str, Sequence[Any]], count: int) -> Sequence[Polygons]:
    counts = _each(values, features.IMAGE_OBJECT_POLYGON_COUNT, count)
    sizes = values.get(features.IMAGE_OBJECT_POLYGON_POINTS, ())
    x = values.get(features.IMAGE_OBJECT_POLYGON_X, ())
    y = values.get(features.IMAGE_OBJECT_POLYGON_Y, ())
    if sum(counts) != len(sizes) or not len(x) == len(y) == sum(sizes):
        raise ValueError(
            f"the polygons of {count} boxes need {sum(sizes)} points in {sum(counts)} polygons "
            f"(got {len(sizes)} polygons, {len(x)} x and {len(y)} y)"
        )
    if not len(sizes):
        return [NO_POLYGONS] * count
    numbers = iter(sizes)
    mine = [tuple(islice(numbers, number)) for number in counts]
    return Polygons.split(mine, np.stack([x, y], 1).astype("<f8"))


def _masks(values: Mapping[str, Sequence[Any]], count: int) -> Sequence[Mask | None]:
    counts = _each(values, features.IMAGE_OBJECT_MASK_COUNT, count)
    runs: Iterator[int] = iter(values.get(features.IMAGE_OBJECT_MASK_RUNS) or ())
    if not any(counts):
        return [None] * count
    sides = (values.get(name) or [0] for name in (features.IMAGE_HEIGHT, features.IMAGE_WIDTH))
    (height, *_), (width, *_) = sides
    return [
        Mask(text_of(list(islice(runs, number))), height, width) if number else None
        for number in counts
    ]


def areas_of(corners: Corners) -> Corners:
    """Return the areas of boxes ([...]); 0 if their corners are swapped."""
    return np.maximum(corners[..., 2:] - corners[..., :2], 0).prod(-1)


def shared_areas(first: Corners, second: Corners) -> Corners:
    """Return the area that each box shares with its partner; shapes are broadcast.

    ``first[:, None], second`` (float [n, 4], [m, 4]) are all pairs: [n, m].
    """
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., 2:], second[..., 2:])
    return areas_of(np.concatenate([low, high], -1))


#: Features with one value per box; lists even for a single box.
OBJECT_FEATURES = (*features.BBOX, features.IMAGE_OBJECT_TEXT, features.IMAGE_OBJECT_LABEL)

_DECIMALS = 4


class StoredBox(NamedTuple):
    """One box of a record."""

    label: str  # its text, or its number as text; empty if it has neither
    number: int  # `image/object/class/label`; -1 if there is none
    xmin: float  # left edge, 0..1 of the image's width
    ymin: float  # upper edge, 0..1 of the image's height
    xmax: float  # right edge
    ymax: float  # lower edge
    details: Details = NOTHING  # what else is known of it

    def in_pixels(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return x, y, width and height in pixels, as COCO has them, with four decimals.

        Corners that were whole pixels become whole again, though shares are float32.
        """
        left, right = round(self.xmin * width, _DECIMALS), round(self.xmax * width, _DECIMALS)
        upper, lower = round(self.ymin * height, _DECIMALS), round(self.ymax * height, _DECIMALS)
        return left, upper, round(right - left, _DECIMALS), round(lower - upper, _DECIMALS)


def stored_boxes(record: Mapping[str, Sequence[Any]]) -> list[StoredBox]:
    """Return the boxes of a record, clipped to the image and with their corners in order.

    Records of other writers may contain anything.

    Raises: ValueError: the features differ in length, or are not boxes.
    """
    *corners, texts, numbers = (record.get(name, ()) for name in OBJECT_FEATURES)
    count = len(corners[0])
    texts, numbers = texts or [b""] * count, numbers or [features.NO_LABEL] * count
    if any(len(column) != count for column in (*corners, texts, numbers)):
        found = ", ".join(f"{len(record.get(name, ()))} {name}" for name in OBJECT_FEATURES)
        raise ValueError(f"each box needs one value of each feature (got {found})")
    details = details_in(record, count) if count else ()
    return [_box(*values) for values in zip(details, texts, numbers, *corners, strict=True)]


def _box(details: Details, text: Any, number: Any, *corners: Any) -> StoredBox:
    if not (
        isinstance(text, bytes)
        and isinstance(number, int)
        and all(isinstance(value, int | float) and math.isfinite(value) for value in corners)
    ):
        raise ValueError(
            f"a box must have a text, a whole number and four finite numbers "
            f"(got {(text, number, *corners)!r:.120})"
        )
    label = text.decode("utf-8", "replace") or ("" if number == features.NO_LABEL else str(number))
    xs, ys = ([min(1.0, max(0.0, value)) for value in corners[axis::2]] for axis in (0, 1))
    return StoredBox(label, number, min(xs), min(ys), max(xs), max(ys), details)
