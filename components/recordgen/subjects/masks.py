"""The masks of records: a class number for each pixel, as DeepLab stores them.

``image/segmentation/class/encoded`` is a PNG with one channel of 8 bits, whose levels are the
numbers of classes; :data:`IGNORED` is no class. TensorFlow turns a palette into its colours, so
masks have none.

The mask of an object has run lengths, as in COCO. Pixels count down each column, from left to
right; runs of 0 and 1 alternate, the first is of 0:

    0 1        runs 2, 1, 1; as COCO's compressed text "211"
    0 0

The text has six bits in each character, from "0" on: five of the number, the lowest first, and one
that says that more follow. From the fourth run on it holds the difference to the last run but one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from recordgen import features

if TYPE_CHECKING:
    import numpy as np
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
    import numpy as np  # reading rows does not need it

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


# --- run lengths ---------------------------------------------------------------------------------


_ZERO = ord("0")
_BITS, _MORE, _SIGN = 5, 0x20, 0x10
_MOST_BITS = 60  # of a run: one without an end would take the square of its letters


def runs_of(text: str) -> list[int]:
    """Return the runs of a compressed text. Raises: ValueError: it is none."""
    found: list[int] = []
    value = shift = 0
    for character in text:
        digit = ord(character) - _ZERO
        if not 0 <= digit < 1 << (_BITS + 1):
            raise ValueError(f"{character!r} is no character of compressed runs")
        value |= (digit & (_MORE - 1)) << shift
        shift += _BITS
        if digit & _MORE:
            if shift > _MOST_BITS:
                break
            continue
        if digit & _SIGN:
            value -= 1 << shift
        found.append(value + found[-2] if len(found) > 2 else value)
        value = shift = 0
    if shift or min(found, default=0) < 0:
        raise ValueError("the compressed runs are cut off or damaged")
    return found


def text_of(runs: Sequence[int]) -> str:
    """Return runs as a compressed text, the inverse of :func:`runs_of`."""
    return "".join(
        character
        for at, run in enumerate(runs)
        for character in _characters(run - runs[at - 2] if at > 2 else run)
    )


def _characters(value: int) -> Iterator[str]:
    more = True
    while more:
        digit = value & (_MORE - 1)
        value >>= _BITS
        more = value != (-1 if digit & _SIGN else 0)
        yield chr(_ZERO + digit + (_MORE if more else 0))


def pixels_of(runs: Sequence[int], height: int, width: int) -> Mask:
    """Return runs as pixels, uint8 [height, width]. Raises: ValueError: they do not fill them."""
    import numpy as np

    if sum(runs) != height * width or min(runs, default=0) < 0:
        raise ValueError(f"the runs have {sum(runs):,} pixels, but the image {height}×{width}")
    values = np.arange(len(runs), dtype=np.uint8) % 2
    return np.repeat(values, runs).reshape(width, height).T


def runs_in(pixels: Mask) -> list[int]:
    """Return pixels (uint8 [height, width], 0 or 1) as runs."""
    import numpy as np

    flat = pixels.T.reshape(-1)
    starts = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    first = [0, 0] if flat[0] else [0]  # the first run is of 0
    found: list[int] = np.diff(np.concatenate((first, starts, [flat.size]))).tolist()
    return found


def box_of(runs: Sequence[int], height: int) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the pixels that are 1; all 0 without any."""
    import numpy as np

    ends = np.cumsum(runs)
    starts, stops = ends[:-1:2], ends[1::2]
    is_there = starts < stops
    starts, stops = starts[is_there], stops[is_there] - 1
    if not len(starts):
        return 0, 0, 0, 0
    # A run that goes on in the next column reaches the top and the bottom.
    across = bool((starts // height < stops // height).any())
    top = 0 if across else int((starts % height).min())
    bottom = height if across else int((stops % height).max()) + 1
    return int(starts[0]) // height, top, int(stops[-1]) // height + 1, bottom
