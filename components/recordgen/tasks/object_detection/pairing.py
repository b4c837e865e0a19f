"""Images and their boxes, which move with the pixels, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen import features
from recordgen.access.boxes import formatted
from recordgen.access.decode import Decoder, Floats
from recordgen.access.pairs import Pairing
from recordgen.access.records import Example, Records
from recordgen.core.records.class_masks import seen_through
from recordgen.core.records.run_lengths import pixels_of
from recordgen.errors import UsageError
from recordgen.features import AREA, FLAGS, IS_CROWD, KEYPOINTS, MASKS

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Masks = npt.NDArray[np.uint8]

_CORNERS = (
    features.IMAGE_OBJECT_YMIN,
    features.IMAGE_OBJECT_XMIN,
    features.IMAGE_OBJECT_YMAX,
    features.IMAGE_OBJECT_XMAX,
)
_LABELS = features.IMAGE_OBJECT_LABEL

# Flags by the name of their feature, and the features that a record lacks.
_FLAGS = dict(zip(FLAGS, features.OBJECT_FLAGS, strict=True))
_EMPTY = {name: np.zeros(0, spec.dtype) for name, spec in features.OBJECTS.items()}

# As in recordgen.load: boxes with less of their area in the image are skipped.
_MIN_VISIBLE = 0.3 - 1e-4


def boxes(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and boxes; batches are padded as in ``recordgen.load``."""
    decode = decoder.of_examples(source.dataset)
    fields = decoder.fields
    known = {} if source.dataset is None else source.dataset.keypoints
    if KEYPOINTS in fields and not known:
        raise UsageError("fields: the examples have no keypoints; remove them")
    # Without the flag nobody could tell crowds from objects.
    skips = () if IS_CROWD in fields else (IS_CROWD,)

    def item(example: Example) -> Any:
        pixels, view, size = decode(example)
        corners = np.stack([example[name] for name in _CORNERS], 1)
        seen, found = _seen(corners, example[_LABELS], view)
        sides = formatted(found["boxes"].T, decoder.boxes, size)
        found["boxes"] = np.stack(sides, 1)
        if not fields and features.IMAGE_OBJECT_IS_CROWD not in example:
            return pixels, found
        values = {**_EMPTY, **example}
        each = len(known.get("names", ()))
        more = {
            name: _field(name, values, corners, view, size, each)[seen]
            for name in (*fields, *skips)
        }
        if KEYPOINTS in more and not decoder.boxes.startswith("rel_"):
            more[KEYPOINTS] *= np.array([*size[::-1], 1], np.float32)
        del found["count"]
        found |= more
        if skips:
            is_object = found.pop(IS_CROWD) == 0
            found = {name: part[is_object] for name, part in found.items()}
        return pixels, {**found, "count": np.int64(len(found["labels"]))}

    more = [*names_of((*fields, *skips), _FLAGS)]
    names = dict.fromkeys((*decode.names, *_CORNERS, _LABELS, *more))
    return Pairing([*names], item, padding=-1, least=1, several=("boxes", *fields))


def _field(
    name: str, values: Values, corners: Floats, view: Floats, size: tuple[int, int], each: int
) -> Any:
    """Return a field of all boxes of an image; ``each``: keypoints of a box."""
    count = len(corners)
    if name == AREA:
        return areas(values, corners)
    if name == KEYPOINTS:
        return keypoints(values, count, each, view)
    if name == MASKS:
        return masks(values, count, view, size)
    return for_each_box(values[_FLAGS[name]], count)


def _seen(corners: Floats, labels: Any, view: Floats) -> tuple[Any, dict[str, Any]]:
    """Return which boxes are seen (bool [n]), and these relative to the view.

    Corners, also those of the seen boxes, are float32 [n, 4]: top, left, bottom, right.
    """
    start, extent = view[:2], view[2:]
    moved = (corners - np.tile(start, 2)) / np.tile(extent, 2)
    inside = np.clip(moved, 0, 1)
    areas = _areas(inside)
    seen = (areas > 0) & (areas >= np.float32(_MIN_VISIBLE) * _areas(moved)) & (labels >= 0)
    count = np.int64(seen.sum())
    return seen, {"boxes": inside[seen], "labels": labels[seen], "count": count}


def _areas(corners: Floats) -> Floats:
    sides = np.maximum(corners[:, 2:] - corners[:, :2], 0)
    found: Floats = sides[:, 0] * sides[:, 1]
    return found


#: Values by the name of their feature.
Values = Mapping[str, Any]
_OUTSIDE = 1e-4
KEYPOINT_NAMES = (
    features.IMAGE_OBJECT_KEYPOINT_X,
    features.IMAGE_OBJECT_KEYPOINT_Y,
    features.IMAGE_OBJECT_KEYPOINT_VISIBILITY,
)
_SIDES = (features.IMAGE_HEIGHT, features.IMAGE_WIDTH)
AREA_NAMES = (features.IMAGE_OBJECT_AREA, *_SIDES)
MASK_NAMES = (
    *_SIDES,
    features.IMAGE_OBJECT_POLYGON_COUNT,
    features.IMAGE_OBJECT_POLYGON_POINTS,
    features.IMAGE_OBJECT_POLYGON_X,
    features.IMAGE_OBJECT_POLYGON_Y,
    features.IMAGE_OBJECT_MASK_COUNT,
    features.IMAGE_OBJECT_MASK_RUNS,
)


def for_each_box(found: Any, count: int, each: int = 0) -> Any:
    """Return a feature that a record may lack with ``each`` values for each box, 0 without it.

    If ``each`` is 0, it is one value, without a dimension of its own.

    Raises: ValueError: there is another number of values.
    """
    shape = (count, each) if each else (count,)
    if not len(found):
        return np.zeros(shape, found.dtype)
    if len(found) != count * max(1, each):
        raise ValueError(f"{count} boxes need {max(1, each)} values each (got {len(found)})")
    return np.reshape(found, shape)


def areas(values: Values, corners: Floats) -> Floats:
    """Return the areas of boxes in pixels of the stored image.

    ``corners`` are top, left, bottom and right of each box.
    """
    height, width = (np.float32(values[name]) for name in _SIDES)
    own = (corners[:, 3] - corners[:, 1]) * width * (corners[:, 2] - corners[:, 0]) * height
    found = for_each_box(values[features.IMAGE_OBJECT_AREA], len(corners))
    return np.where(found > 0, found, own)


def keypoints(values: Values, count: int, each: int, view: Floats) -> Floats:
    """Return the keypoints of boxes, float32 [boxes, keypoints, 3], in shares of the shown image.

    ``view`` is the part of the stored image that is shown: top, left, height, width.
    """
    columns = [for_each_box(values[name], count, each) for name in KEYPOINT_NAMES]
    points = np.stack(columns, -1).astype(np.float32)
    places = (points[..., :2] - view[1::-1]) / view[:1:-1]
    is_in = ((places >= -_OUTSIDE) & (places <= 1 + _OUTSIDE)).all(-1) & points.any(-1)
    found = np.concatenate([np.clip(places, 0, 1), points[..., 2:]], -1)
    return np.where(is_in[..., None], found, np.float32(0))


def masks(values: Values, count: int, view: Floats, size: tuple[int, int]) -> Masks:
    """Return the masks of boxes, uint8 [boxes, height, width]; ``view`` as for keypoints."""
    found = np.zeros((count, *size), np.uint8)
    counts = for_each_box(values[features.IMAGE_OBJECT_POLYGON_COUNT], count)
    ends = np.cumsum(values[features.IMAGE_OBJECT_POLYGON_POINTS])
    x, y = values[features.IMAGE_OBJECT_POLYGON_X], values[features.IMAGE_OBJECT_POLYGON_Y]
    points = (np.stack([x, y], 1) - view[1::-1]) / view[:1:-1] * np.array(size[::-1], np.float32)
    polygons = np.split(points, ends[:-1])
    for box, polygon in zip(np.repeat(np.arange(count), counts), polygons, strict=False):
        found[box] |= filled(polygon, size)
    runs = values[features.IMAGE_OBJECT_MASK_RUNS]
    of_box = for_each_box(values[features.IMAGE_OBJECT_MASK_COUNT], count)
    stored = int(values[_SIDES[0]]), int(values[_SIDES[1]])
    for box, mine in enumerate(np.split(runs, np.cumsum(of_box)[:-1])) if count else ():
        if len(mine):
            found[box] |= seen_through(pixels_of(mine.tolist(), *stored), view.tolist(), size) == 1
    return found


def filled(points: Floats, size: tuple[int, int]) -> Masks:
    """Return the pixels whose centers are in a polygon, given x and y of its points in pixels."""
    height, width = size
    x0, y0 = points[:, :1], points[:, 1:]
    x1, y1 = np.roll(x0, -1, 0), np.roll(y0, -1, 0)
    centers = np.arange(height, dtype=np.float32) + np.float32(0.5)
    crosses = (y0 <= centers) != (y1 <= centers)
    share = np.divide(centers - y0, y1 - y0, out=np.zeros(crosses.shape, np.float32), where=crosses)
    first = np.clip(np.ceil(x0 + (x1 - x0) * share - 0.5), 0, width).astype(np.intp)
    changes = np.zeros((height, width + 1), np.uint8)
    np.add.at(changes, (np.nonzero(crosses)[1], first[crosses]), 1)
    inside: Masks = np.cumsum(changes, 1, dtype=np.uint8)[:, :width] & np.uint8(1)
    return inside


def names_of(fields: Sequence[str], flags: Mapping[str, str]) -> Iterable[str]:
    """Return the features of fields; ``flags`` are features by the name of a field."""
    more = {"area": AREA_NAMES, "keypoints": KEYPOINT_NAMES, "masks": MASK_NAMES}
    for name in fields:
        yield from more.get(name) or (flags[name],)
