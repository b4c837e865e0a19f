"""The masks of records: a class number for each pixel, as DeepLab stores them.

``image/segmentation/class/encoded`` is a PNG with one channel of 8 bits, whose levels are the
numbers of classes; :data:`IGNORED` is no class. TensorFlow turns a palette into its colours, so
masks have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

#: The class numbers of a picture's pixels: uint8 [height, width].
Mask: TypeAlias = "npt.NDArray[np.uint8]"

#: The level of pixels without a class: VOC's void, and the bars around a fitted picture.
IGNORED = 255


def seen_through(mask: Mask, view: Sequence[float], size: Sequence[int]) -> Mask:
    """Return the part of a mask that a view shows, resized by taking the nearest pixel.

    Args:
        mask: the whole mask.
        view: top, left, height and width of what is shown, in shares of the mask's height and
            width; beyond the mask, pixels are ignored.
        size: height and width of the result.
    """
    found = mask
    for axis in (0, 1):
        start, extent = view[axis], view[axis + 2]
        shares = start + (np.arange(size[axis]) + 0.5) / size[axis] * extent
        at = np.floor(shares * mask.shape[axis]).astype(int)
        is_inside = (at >= 0) & (at < mask.shape[axis])
        found = found.take(at.clip(0, mask.shape[axis] - 1), axis)
        if not is_inside.all():
            found[(slice(None), ~is_inside) if axis else ~is_inside] = IGNORED
    return found
