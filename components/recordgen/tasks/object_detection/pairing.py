"""Images and their boxes, which move with the pixels, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from recordgen import features
from recordgen.access.decode import Decoder, Floats
from recordgen.access.pairs import Pairing
from recordgen.access.source import Example, Source

_CORNERS = (
    features.IMAGE_OBJECT_YMIN,
    features.IMAGE_OBJECT_XMIN,
    features.IMAGE_OBJECT_YMAX,
    features.IMAGE_OBJECT_XMAX,
)
_LABELS = features.IMAGE_OBJECT_LABEL

# As in recordgen.load: boxes with less of their area in the image are skipped.
_MIN_VISIBLE = 0.3 - 1e-4


def boxes(source: Source, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and boxes; batches are padded as in ``recordgen.load``."""
    decode = decoder.of_examples(source.dataset)

    def item(example: Example) -> Any:
        pixels, view = decode(example)
        corners = np.stack([example[name] for name in _CORNERS], 1)
        return pixels, _seen(corners, example[_LABELS], view)

    return Pairing((*decode.names, *_CORNERS, _LABELS), item, padding=-1, least=1)


def _seen(corners: Floats, labels: Any, view: Floats) -> dict[str, Any]:
    """Return boxes relative to the view; corners are float32 [n, 4]: top, left, bottom, right."""
    start, extent = view[:2], view[2:]
    moved = (corners - np.tile(start, 2)) / np.tile(extent, 2)
    inside = np.clip(moved, 0, 1)
    areas = _areas(inside)
    seen = (areas > 0) & (areas >= np.float32(_MIN_VISIBLE) * _areas(moved)) & (labels >= 0)
    count = np.int64(seen.sum())
    return {"boxes": inside[seen][:, [1, 0, 3, 2]], "labels": labels[seen], "count": count}


def _areas(corners: Floats) -> Floats:
    sides = np.maximum(corners[:, 2:] - corners[:, :2], 0)
    found: Floats = sides[:, 0] * sides[:, 1]
    return found
