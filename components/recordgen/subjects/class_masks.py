"""The masks of records: a class number for each pixel, as DeepLab stores them.

``image/segmentation/class/encoded`` is a PNG with one channel of 8 bits, whose levels are the
numbers of classes; :data:`IGNORED` is no class. TensorFlow turns a palette into its colours, so
masks have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recordgen import features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

#: The class numbers of a picture's pixels: uint8 [height, width].
Mask: TypeAlias = "npt.NDArray[np.uint8]"

#: The level of pixels without a class: VOC's void, and the bars around a fitted picture.
IGNORED = 255


#: The class that pictures show without a colour; without it, class 0.
BACKGROUND = "background"


def background_of(record: Mapping[str, Sequence[Any]]) -> int:
    """Return the number of the background in the mask of a record, lists by feature name."""
    texts = record.get(features.IMAGE_MASK_TEXT, ())
    numbers = record.get(features.IMAGE_MASK_LABEL, ())
    named = dict(zip(texts, numbers, strict=False))
    return int(named.get(BACKGROUND.encode(), 0))


def seen_through(
    mask: Mask, view: Sequence[float], size: Sequence[int], outside: int = IGNORED
) -> Mask:
    """Return the part of a mask that a view shows, resized by taking the nearest pixel.

    The view is top, left, height and width in shares of the mask, beyond which pixels are
    ``outside``; a negative width is mirrored.
    """
    found = mask
    for axis in (0, 1):
        start, extent = view[axis], view[axis + 2]
        shares = start + (np.arange(size[axis]) + 0.5) / size[axis] * extent
        at = np.floor(shares * mask.shape[axis]).astype(int)
        is_inside = (at >= 0) & (at < mask.shape[axis])
        found = found.take(at.clip(0, mask.shape[axis] - 1), axis)
        if not is_inside.all():
            found[(slice(None), ~is_inside) if axis else ~is_inside] = outside
    return found
