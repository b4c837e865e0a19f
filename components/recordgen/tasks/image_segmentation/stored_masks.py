"""Read a mask file or draw a mask; bring it into the form and geometry in which it is stored.

    palette        its indexes, without the colours
    gray, 8 bit    its levels; a file that needs no change keeps its bytes
    gray, 1–4 bit  its samples: the white of 1 bit is class 1
    16 bit         its levels, if none is above 255
    RGB            the classes of its colours if the row names them; else the levels of gray pixels

A mask file has the size of its image, stored or upright. It is turned, cropped, resized and padded
as its image is, by taking the nearest pixel.

In a drawn mask, a pixel belongs to a polygon if its centre does; a polygon that crosses itself has
holes. Large objects are painted first, so that small ones before them stay visible.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from recordgen.core.image_settings import Limits, PayloadSettings
from recordgen.errors import PayloadError
from recordgen.payloads.check import decoded_mask
from recordgen.payloads.header import FileHeader
from recordgen.payloads.opening import file_header
from recordgen.payloads.png import PNG_COLOUR, PNG_DEPTH, check_png
from recordgen.payloads.reencoding import CheckedImage, turn
from recordgen.rejects import RejectCode
from recordgen.subjects.details import Details
from recordgen.subjects.masks import IGNORED, Mask, pixels_of, runs_of, seen_through

_GRAY = 0  # colour type of a PNG

# Samples of fewer than 8 bits are stretched when they are decoded.
_STRETCHED = {2: 85, 4: 17}

# Exif orientations from this one on swap height and width.
_ON_ITS_SIDE = 5

# Rows of a mask whose colours are looked up at once, and what a colour's bytes count in its code.
_ROWS, _PLACES = 256, np.array([1 << 16, 1 << 8, 1], np.uint32)

# Not GIF: its encoders renumber colours.
_EXACT = ("PNG", "BMP", "TIFF")


_WHOLE = (0.0, 0.0, 1.0, 1.0)

# Crossings of edges and rows that are computed at once.
_AT_ONCE = 1 << 20

# Shares of what an image may take that its pixels and each byte of its annotation allow: a small
# document may describe many images. An object has some bytes besides those of each coordinate.
_SHARE_PER_PIXEL, _SHARE_PER_BYTE, _OBJECT_BYTES, _COORDINATE_BYTES = 5e-10, 1e-6, 60, 4

# Processor time on a current machine: of a polygon, of a row that one of its edges crosses, of a
# filled pixel, and of one that runs are unpacked to.
_POLYGON, _CROSSING, _FILLED, _UNPACKED = 1e-4, 3e-7, 1e-10, 4e-9


class StoredMask(NamedTuple):
    """A mask as it is stored.

    Attributes:
        data: a gray PNG of 8 bits.
        numbers: the classes that have pixels, sorted.
        has_void: whether pixels have no class.
    """

    data: bytes
    numbers: tuple[int, ...]
    has_void: bool = False


def mask_of(
    data: bytes,
    colours: Mapping[str, int],
    image: CheckedImage,
    orientation: str,
    settings: PayloadSettings,
) -> StoredMask:
    """Return the mask in a file as it is stored with its image.

    ``colours`` has the class of each colour; empty if pixels are class numbers.

    Raises:
        PayloadError: the mask is no lossless image, is damaged, has another size than its image, or
            has pixels without a class.
    """
    size = image.height, image.width
    geometry = CheckedImage(b"", "", *size, orientation=image.orientation, placed=image.placed)
    return _mask_of(data, tuple(colours.items()), geometry, orientation, settings.limit)


@lru_cache(maxsize=1)  # images may share a mask file
def _mask_of(
    data: bytes,
    colours: Sequence[tuple[str, int]],
    image: CheckedImage,
    orientation: str,
    limit: Limits,
) -> StoredMask:
    file = file_header(data)
    way = _way(file, image, orientation)
    levels, is_plain = _levels(file, data, dict(colours), limit)
    mask = levels if way == 1 else np.asarray(turn(Image.fromarray(levels), way))
    stored = _placed(mask, image)
    *counts, void = _histogram(stored)
    kept = is_plain and stored is levels
    numbers = tuple(np.flatnonzero(counts).tolist())
    return StoredMask(data if kept else _png(stored), numbers, void > 0)


def drawn_mask(
    objects: Sequence[tuple[int, Mapping[str, Any]]],
    background: int,
    image: CheckedImage,
    orientation: str,
    limit: Limits,
) -> StoredMask:
    """Return the mask of a stored image whose objects have a class and an outline as JSON.

    Raises:
        PayloadError: the size of the image is unknown, there are too many classes, a mask has other
            proportions than the image, or drawing would take too long.
    """
    if image.height is None or image.width is None:
        raise _bad("its size is unknown, so nothing can be drawn; use check=header")
    if max([background, *(number for number, _ in objects)]) >= IGNORED:
        raise _bad("a mask has 255 classes at most")
    is_turned = orientation == "stored" and image.orientation != 1
    size = _whole(image)
    if is_turned and image.orientation >= _ON_ITS_SIDE:
        size = size[::-1]
    drawn = [(number, Details.from_json(text)) for number, text in objects]
    for _, details in drawn:
        if details.mask is not None and not _is_alike(details.mask[1:], size):
            raise _unlike(details.mask[1:], size, "proportions")
    mask = paint(drawn, background, size, limit)
    if is_turned:
        mask = np.asarray(turn(Image.fromarray(mask), image.orientation))
    stored = _placed(mask, image)
    numbers = np.flatnonzero(_histogram(stored)[:IGNORED])
    return StoredMask(_png(stored), tuple(numbers.tolist()))


def gray_levels(data: bytes) -> set[int]:
    """Return the levels of a gray file; of another form, numbers that no level has.

    Raises: PayloadError: it is no image, too large, or damaged.
    """
    image = decoded_mask(file_header(data), data, Limits())
    if image.mode != "L":
        return {-1}
    return {level for level, count in enumerate(image.histogram()) if count}


def _histogram(mask: Mask) -> Sequence[int]:
    """Return the number of pixels of each level; NumPy would count in eight times the memory."""
    return Image.fromarray(mask).histogram()


def _levels(
    file: FileHeader, data: bytes, colours: Mapping[str, int], limit: Limits
) -> tuple[Mask, bool]:
    """Return class numbers, and whether the file is in the form in which masks are stored."""
    if file.format not in _EXACT:
        raise _bad(f"a mask must be a PNG, which keeps class numbers (got a {file.format})")
    if file.format == "PNG":
        check_png(data)  # Pillow skips checksums
    image = decoded_mask(file, data, limit)
    if colours:
        return _classes(np.asarray(image.convert("RGB")), colours), False
    if image.mode in ("P", "1"):
        return np.asarray(image).astype(np.uint8), False
    if image.mode == "L" and file.format == "PNG" and data[PNG_DEPTH] in _STRETCHED:
        return np.asarray(image) // np.uint8(_STRETCHED[data[PNG_DEPTH]]), False
    if image.mode == "L":
        is_gray = file.format == "PNG" and data[PNG_COLOUR] == _GRAY
        return np.asarray(image), is_gray and "transparency" not in image.info
    if image.mode.startswith("I"):
        return _small(np.asarray(image)), False
    bands = np.asarray(image.convert("RGB"))
    if (bands[..., 0] != bands[..., 1]).any() or (bands[..., 0] != bands[..., 2]).any():
        raise _bad(
            "its pixels are colours, but must be class numbers, in a palette or gray; name the "
            "class of each colour: in a class_dict.csv with the columns name,r,g,b beside the "
            "folders of images, or as annotationSpecColors in Vertex AI's JSON Lines"
        )
    return bands[..., 0], False


def _small(levels: npt.NDArray[Any]) -> Mask:
    """Return levels of 16 or 32 bits in 8. Raises: PayloadError: one is too large."""
    if levels.min() < 0 or levels.max() > IGNORED:
        raise _bad(f"class numbers must be at most 255 (got {levels.max()})")
    return levels.astype(np.uint8)


def _classes(pixels: npt.NDArray[np.uint8], colours: Mapping[str, int]) -> Mask:
    """Return the class of each pixel's colour. Raises: PayloadError: a colour has no class."""
    known = np.array([int(colour[1:], 16) for colour in colours], np.uint32)  # sorted
    numbers = np.array(list(colours.values()), np.uint8)
    found = np.empty(pixels.shape[:2], np.uint8)
    wrong = list[int]()
    for start in range(0, len(pixels), _ROWS):  # all codes at once take 24 bytes for each pixel
        codes = pixels[start : start + _ROWS].astype(np.uint32) @ _PLACES
        at = np.searchsorted(known, codes).clip(0, len(known) - 1)
        found[start : start + _ROWS] = numbers[at]
        unknown = codes[known[at] != codes]
        wrong += [len(unknown), int(unknown[0])] if len(unknown) else []
    if wrong:
        raise _bad(
            f"{sum(wrong[::2]):,} of its pixels have colours without a class, such as "
            f"#{wrong[1]:06x}; the colours are {', '.join(colours)}"
        )
    return found


def _way(file: FileHeader, image: CheckedImage, orientation: str) -> int:
    """Return the Exif orientation of a mask file. Raises: PayloadError: its size is another one."""
    if image.height is None or image.width is None:
        return 1
    upright, size = _whole(image), (file.height, file.width)
    stored = upright[::-1] if image.orientation >= _ON_ITS_SIDE else upright
    if size not in (upright, stored):
        raise _unlike(size, stored, "size")
    return (
        image.orientation if size == stored and (orientation == "stored" or size != upright) else 1
    )


def _placed(mask: Mask, image: CheckedImage) -> Mask:
    """Return a mask in the geometry of its image."""
    if image.height is None or image.width is None or image.placed is None:
        return mask
    left, top, width, height = image.placed.view
    return seen_through(mask, (top, left, height, width), (image.height, image.width))


def _whole(image: CheckedImage) -> tuple[int, int]:
    """Return height and width of the upright image before an option changed its size."""
    if image.placed is not None:
        return image.placed.size[1], image.placed.size[0]
    return image.height or 0, image.width or 0


def _is_alike(size: tuple[int, ...], other: tuple[int, int]) -> bool:
    """Return whether two sizes have the same proportions, up to a pixel."""
    return abs(size[0] * other[1] - size[1] * other[0]) <= max(*size, *other)


def _unlike(size: tuple[int, ...], image: tuple[int, int], what: str) -> PayloadError:
    return _bad(
        f"it has {size[1]}×{size[0]} pixels, but its image {image[1]}×{image[0]}; a mask must have "
        f"the {what} of its image"
    )


def _png(mask: Mask) -> bytes:
    out = io.BytesIO()
    Image.fromarray(mask).save(out, "PNG")
    return out.getvalue()


def _bad(message: str) -> PayloadError:
    return PayloadError(RejectCode.BAD_ANNOTATION, message)


def paint(
    objects: Sequence[tuple[int, Details]], background: int, size: tuple[int, int], limit: Limits
) -> Mask:
    """Return the mask of an image: the class of each object in its outline, else the background.

    Raises: PayloadError: runs do not fill their picture, an outline has a point that is none, or
        drawing would take too long.
    """
    drawn = [(number, details, _columns_of(details)) for number, details in objects]
    seconds = sum(_seconds(details, columns, size) for _, details, columns in drawn)
    size_bytes = sum(map(_bytes_of, (details for _, details, _ in drawn)))
    share = math.prod(size) * _SHARE_PER_PIXEL + size_bytes * _SHARE_PER_BYTE
    limit.check_seconds(seconds, "drawing its mask", share)
    mask = np.full(size, background, np.uint8)
    flat = mask.reshape(-1)
    for number, details, columns in sorted(drawn, key=lambda each: -_area(*each[1:])):
        if columns is not None:
            columns.paint(mask, number)
            continue
        for points in details.polygons.arrays():
            for start, end in _spans(points, size):
                flat[start:end] = number
    return mask


class _Columns(NamedTuple):
    """The columns of a mask that have pixels of its object."""

    runs: Sequence[int]  # of these columns
    left: int
    width: int
    whole: tuple[int, int]  # height and width of the mask

    @property
    def share(self) -> float:
        """The share of the mask that belongs to the object."""
        return sum(self.runs[1::2]) / math.prod(self.whole)

    def paint(self, mask: Mask, number: int) -> None:
        """Set the pixels of the object in a mask of any size."""
        pixels = pixels_of(self.runs, self.whole[0], self.width)
        if mask.shape == self.whole:
            mask[:, self.left : self.left + self.width][pixels == 1] = number
        else:
            whole = np.zeros(self.whole, np.uint8)
            whole[:, self.left : self.left + self.width] = pixels
            mask[seen_through(whole, _WHOLE, mask.shape) == 1] = number


def _columns_of(details: Details) -> _Columns | None:
    """Return the mask of an object; None if it has polygons. Raises: PayloadError."""
    if details.mask is None or details.polygons:
        return None
    counts, height, width = details.mask
    runs = runs_of(counts)
    if sum(runs) != height * width:
        raise _bad(
            f"the runs of an object have {sum(runs):,} pixels, but its mask {height}×{width}"
        )
    before, behind = runs[0] // height, runs[-1] // height if len(runs) % 2 else 0
    if len(runs) == 1:
        before, behind = 0, width - 1  # empty
    runs[0] -= before * height
    runs[-1] -= behind * height
    return _Columns(runs, before, width - before - behind, (height, width))


def _seconds(details: Details, columns: _Columns | None, size: tuple[int, int]) -> float:
    """Return about how much processor time it takes to draw an object. Raises: PayloadError."""
    height, width = size
    if columns is not None:
        others = 0 if columns.whole == size else math.prod(size) + math.prod(columns.whole)
        return (columns.whole[0] * columns.width + others) * _UNPACKED
    seconds = 0.0
    for points in details.polygons.arrays():
        if not np.isfinite(points).all():
            raise _bad("an outline has a coordinate that is no finite number")
        inside = np.clip(points, 0, 1)
        across, down = inside.max(0) - inside.min(0)
        y = inside[:, 1]
        crossings = float(np.abs(y - np.roll(y, -1)).sum()) * height + len(y)
        area = float(across * down) * height * width
        seconds += _POLYGON + crossings * _CROSSING + area * _FILLED
    return seconds


def _bytes_of(details: Details) -> int:
    """Return about how many bytes a document needs for an outline or for runs."""
    if details.mask is not None:
        return _OBJECT_BYTES + len(details.mask.counts)
    numbers = sum(points.size for points in details.polygons.arrays())
    return _OBJECT_BYTES + _COORDINATE_BYTES * numbers


def _area(details: Details, columns: _Columns | None) -> float:
    if columns is not None:
        return columns.share
    return sum(abs(_twice_area(points)) for points in details.polygons.arrays()) / 2


def _twice_area(points: npt.NDArray[np.float64]) -> float:
    x, y = points.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _spans(points: npt.NDArray[np.float64], size: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield where the pixels of a polygon begin and end in each row, counted along the rows."""
    height, width = size
    x0, y0 = points[:, 0] * width, points[:, 1] * height
    x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
    # An edge crosses the rows whose centres are between its ends, or at its upper end.
    firsts, ends = (
        np.clip(np.ceil(each - 0.5), 0, height).astype(np.int64)
        for each in (np.minimum(y0, y1), np.maximum(y0, y1))
    )
    step = max(1, height * _AT_ONCE // max(1, int((ends - firsts).sum())))
    for start in range(int(firsts.min()), int(ends.max()), step):
        first, end = (np.clip(each, start, start + step) for each in (firsts, ends))
        counts = end - first
        edges = np.repeat(np.arange(len(counts)), counts)
        rows = np.arange(len(edges)) + (first - np.cumsum(counts) + counts)[edges]
        slope = (x1 - x0)[edges] / (y1 - y0)[edges]
        x = x0[edges] + slope * (rows + 0.5 - y0[edges])
        places = np.sort(rows * width + np.clip(np.ceil(x - 0.5), 0, width).astype(np.int64))
        # Each row is crossed an even number of times: inside and outside change places.
        yield from places.reshape(-1, 2).tolist()
