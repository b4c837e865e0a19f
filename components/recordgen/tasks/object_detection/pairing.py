"""Images and their boxes, which move with the pixels, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from recordgen import features
from recordgen.access.decode import Decoder, Floats
from recordgen.access.objects import Values, areas, for_each_box, keypoints, masks, names_of
from recordgen.access.pairs import Pairing
from recordgen.access.source import Example, Source
from recordgen.core.rows.details import FLAGS, IS_CROWD
from recordgen.errors import UsageError
from recordgen.features import AREA, KEYPOINTS, MASKS

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


def boxes(source: Source, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and boxes; batches are padded as in ``recordgen.load``."""
    decode = decoder.of_examples(source.dataset)
    fields = decoder.fields
    known = {} if source.dataset is None else source.dataset.keypoints
    if KEYPOINTS in fields and not known:
        raise UsageError("fields: the examples have no keypoints; remove them")
    # Without the flag nobody could tell crowds from objects.
    skips = () if IS_CROWD in fields else (IS_CROWD,)

    def item(example: Example) -> Any:
        pixels, view = decode(example)
        corners = np.stack([example[name] for name in _CORNERS], 1)
        seen, found = _seen(corners, example[_LABELS], view)
        if not fields and features.IMAGE_OBJECT_IS_CROWD not in example:
            return pixels, found
        values = {**_EMPTY, **example}
        each = len(known.get("names", ()))
        size = (pixels.shape[0], pixels.shape[1])
        more = {
            name: _field(name, values, corners, view, size, each)[seen]
            for name in (*fields, *skips)
        }
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

    Corners are float32 [n, 4]: top, left, bottom, right.
    """
    start, extent = view[:2], view[2:]
    moved = (corners - np.tile(start, 2)) / np.tile(extent, 2)
    inside = np.clip(moved, 0, 1)
    areas = _areas(inside)
    seen = (areas > 0) & (areas >= np.float32(_MIN_VISIBLE) * _areas(moved)) & (labels >= 0)
    count = np.int64(seen.sum())
    found = {"boxes": inside[seen][:, [1, 0, 3, 2]], "labels": labels[seen], "count": count}
    return seen, found


def _areas(corners: Floats) -> Floats:
    sides = np.maximum(corners[:, 2:] - corners[:, :2], 0)
    found: Floats = sides[:, 0] * sides[:, 1]
    return found
