"""Images and their boxes, which move with the pixels, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordgen import features
from recordgen.access.boxes import (
    CORNERS,
    FIELD_FEATURES,
    SIDES,
    formatted,
    object_masks,
    shown_keypoints,
)
from recordgen.access.decode import Decoder, Floats
from recordgen.access.pairs import Pairing
from recordgen.access.records import Example, Records
from recordgen.errors import UsageError
from recordgen.features import AREA, IS_CROWD, KEYPOINTS, MASKS
from recordgen.subjects.objects import areas_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Masks = npt.NDArray[np.uint8]

_LABELS = features.IMAGE_OBJECT_LABEL

# The features that a record lacks.
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
        corners = np.stack([example[name] for name in CORNERS], 1)
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

    more = [feature for name in (*fields, *skips) for feature in FIELD_FEATURES[name]]
    names = dict.fromkeys((*decode.names, *CORNERS, _LABELS, *more))
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
    return for_each_box(values[FIELD_FEATURES[name][0]], count)


def _seen(corners: Floats, labels: Any, view: Floats) -> tuple[Any, dict[str, Any]]:
    """Return which boxes are seen (bool [n]), and these relative to the view.

    Corners, also those of the seen boxes, are float32 [n, 4]: top, left, bottom, right.
    """
    start, extent = view[:2], view[2:]
    moved = (corners - np.tile(start, 2)) / np.tile(extent, 2)
    inside = np.clip(moved, 0, 1)
    areas = areas_of(inside)
    seen = (areas > 0) & (areas >= np.float32(_MIN_VISIBLE) * areas_of(moved)) & (labels >= 0)
    count = np.int64(seen.sum())
    return seen, {"boxes": inside[seen], "labels": labels[seen], "count": count}


#: Values by the name of their feature.
Values = Mapping[str, Any]


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
    height, width = (np.float32(values[name]) for name in SIDES)
    own = (corners[:, 3] - corners[:, 1]) * width * (corners[:, 2] - corners[:, 0]) * height
    found = for_each_box(values[features.IMAGE_OBJECT_AREA], len(corners))
    return np.where(found > 0, found, own)


def keypoints(values: Values, count: int, each: int, view: Floats) -> Floats:
    """Return the keypoints of boxes, float32 [boxes, keypoints, 3], in shares of the shown image.

    ``view`` is the part of the stored image that is shown: top, left, height, width.
    """
    columns = [for_each_box(values[name], count, each) for name in FIELD_FEATURES[KEYPOINTS]]
    points = np.stack(columns, -1).astype(np.float32)
    return shown_keypoints(points, np.tile(view, (count, 1)))


def masks(values: Values, count: int, view: Floats, size: tuple[int, int]) -> Masks:
    """Return the masks of boxes, uint8 [boxes, height, width]; ``view`` as for keypoints."""
    x, y = values[features.IMAGE_OBJECT_POLYGON_X], values[features.IMAGE_OBJECT_POLYGON_Y]
    stored = [values[name] for name in SIDES]
    return object_masks(
        np.stack([x, y], 1),
        values[features.IMAGE_OBJECT_POLYGON_POINTS],
        for_each_box(values[features.IMAGE_OBJECT_POLYGON_COUNT], count),
        values[features.IMAGE_OBJECT_MASK_RUNS],
        for_each_box(values[features.IMAGE_OBJECT_MASK_COUNT], count),
        np.tile(stored, (count, 1)),
        np.tile(view, (count, 1)),
        size,
    )
