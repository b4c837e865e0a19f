"""The formats of boxes that readers return: the same for TensorFlow and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Keras's names: ``xyxy`` is left, top, right, bottom in pixels; ``rel_``: in shares of the image.
BOX_FORMATS = tuple(
    prefix + order for prefix in ("rel_", "") for order in ("xyxy", "yxyx", "xywh", "center_xywh")
)


def formatted(
    corners: Sequence[Any], box_format: str, image_size: tuple[int, int]
) -> tuple[Any, Any, Any, Any]:
    """Return the four numbers of boxes in one of :data:`BOX_FORMATS`.

    Args:
        corners: top, left, bottom and right of the boxes in shares of the image, each float32 [n].
        box_format: formats with ``rel_`` are in shares of the image, others in pixels.
        image_size: height and width of the image.
    """
    top, left, bottom, right = corners
    if not box_format.startswith("rel_"):
        height, width = image_size
        top, left, bottom, right = top * height, left * width, bottom * height, right * width
    order = box_format.removeprefix("rel_")
    if order == "xyxy":
        return left, top, right, bottom
    if order == "yxyx":
        return top, left, bottom, right
    across, down = right - left, bottom - top
    if order == "xywh":
        return left, top, across, down
    return left + across / 2, top + down / 2, across, down
