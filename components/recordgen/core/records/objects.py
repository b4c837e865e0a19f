"""The features of what is known of boxes besides label and corners; and the way back.

    image/object/is_crowd            one value for each box, as area, keypoint/num and the counts
    image/object/keypoint/x          the same number of keypoints for each box
    image/object/polygon/count       polygons of each box
    image/object/polygon/points      points of each polygon
    image/object/polygon/x           of each point
    image/object/mask/count          runs of each box
    image/object/mask/runs           :mod:`recordgen.core.records.run_lengths`, of the stored image

A record has a feature only if it is known of one of its boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from recordgen import features
from recordgen.core.records.example import FeatureValue
from recordgen.core.records.run_lengths import runs_of, text_of
from recordgen.core.rows.details import KEYPOINT, Details, Mask
from recordgen.core.rows.polygons import NO_POLYGONS, Points, Polygons, points_of
from recordgen.features import FLAGS

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
            features.IMAGE_OBJECT_POLYGON_COUNT: list(map(len, polygons)),
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
    return [
        Details(
            frozenset(filter(None, (mine[at] for mine in flags))),
            areas[at],
            polygons[at],
            masks[at],
            keypoints[at],
        )
        for at in range(count)
    ]


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
