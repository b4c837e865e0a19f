"""Small pictures, their thumbnails, and the measures and perceptual hashes of these.

    64 SmallPictures (47×63 of a 375×500 JPEG, at 1/8)  ─look_at─▶  Looks (32×32 gray, sharpness)
    64 Looks  ─measured─▶  PictureFacts (an array for each measure)

Each picture is examined with 32 to 63 pixels on its shorter side. So all measures are relative to
the frame, and their cost does not grow with the picture; a blur that shows only when one zooms in
is not seen. A perceptual hash has the signs of a thumbnail's lowest frequencies.

Sums consist of integers that float64 holds exactly, and hashes are computed with whole numbers. So
thumbnail and hash of given pixels are the same on every machine, in whatever order its libraries
add.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

if TYPE_CHECKING:
    from recordgen.core.facts.columns import Columns

#: Perceptual hashes: uint64 [n].
Hashes: TypeAlias = "npt.NDArray[np.uint64]"

#: Pixels on each side of a thumbnail, and minimum on the shorter side of a small picture.
SIDE = 32

#: Bits of a perceptual hash.
HASH_BITS = 64


def perceptual_hashes(thumbnails: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the signs of the lowest frequencies of uint8 [n, 32, 32], the lowest bit first."""
    cosines, rows, columns, bits = _cosines()
    # Whole numbers below 255 * (32 * 2**12)**2 < 2**53.
    waves = np.matmul(cosines, np.matmul(thumbnails.astype(np.float64), cosines.T))
    signs = waves[:, rows, columns] > 0
    return np.where(signs, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)


@lru_cache(maxsize=1)
def _cosines() -> tuple[_Floats, Any, Any, Hashes]:
    """Return the DCT's matrix in whole numbers, its 64 lowest waves (rows, columns), their bits."""
    count = 11  # waves along a side: without the mean, diagonals 1 to 10 have 65
    waves = np.arange(count)[:, None] * (2 * np.arange(SIDE)[None] + 1)
    cosines = np.rint(np.cos(waves * (np.pi / (2 * SIDE))) * (1 << 12))
    lowest = sorted(
        ((row, column) for row in range(count) for column in range(count) if row or column),
        key=lambda wave: (sum(wave), wave),
    )[:HASH_BITS]
    rows, columns = np.array(lowest).T
    return cosines, rows, columns, np.uint64(1) << np.arange(HASH_BITS, dtype=np.uint64)


def mirrored_hashes(hashes: Hashes) -> Hashes:
    """Return the hashes of the mirror images: waves that are odd from left to right change sign."""
    _, _, columns, bits = _cosines()
    return hashes ^ np.bitwise_or.reduce(bits[columns % 2 == 1])


# Maximum pixels of a small picture's longer side: a strip of 1×100,000 must not cost more.
_LONGEST = 16 * SIDE

# Pictures of one shape that are measured together; more of them leave the processor's cache.
_AT_ONCE = 32

Pixels: TypeAlias = "npt.NDArray[np.uint8]"
_Floats: TypeAlias = "npt.NDArray[np.float64]"


class SmallPicture(NamedTuple):
    """A picture at ``1 / factor`` of its size."""

    # uint8 [h, w], [h, w, 1] (gray) or [h, w, 3] (RGB), with `h = ceil(height / factor)` and `w =
    # ceil(width / factor)`.
    pixels: Pixels
    height: int  # height of the original picture, in pixels
    width: int  # width of the original picture, in pixels
    factor: int  # side of one small pixel, in pixels of the original

    @staticmethod
    def columns(seen: Sequence[SmallPicture]) -> Mapping[str, Any]:
        """Return the measures of pictures, as columns of facts."""
        facts = measured(look_at(seen))
        return facts._asdict() | {"signature": [each.tobytes() for each in facts.signature]}


class Looks(NamedTuple):
    """Measures of pictures: arrays with one element for each picture."""

    thumbnail: Pixels  # uint8 [n, 32, 32], gray: the average of the area that each pixel covers
    # float64: the largest second difference in the small picture, as a part of the range of its
    # levels. 0 for one colour or a smooth ramp; about 0.24 / s² for edges blurred by s pixels of
    # the small picture (Gaussian); 1 for an edge as sharp as its pixels can show; at most 4.
    sharpness: _Floats


def jpeg_factor(height: int, width: int) -> int:
    """Return the factor by which a JPEG can shrink while it is decoded: 8, 4, 2 or 1.

    For simplejpeg, it means ``min_height=ceil(height / factor)``, likewise ``min_width``, and
    ``min_factor=factor``. A JPEG with 249 pixels or more on its shorter side is decoded at 1/8, as
    in the bitstream check.
    """
    shorter = min(height, width)
    return next((factor for factor in (8, 4, 2) if -(-shorter // factor) >= SIDE), 1)


def small_picture(image: Image.Image) -> SmallPicture:
    """Reduce a decoded picture of mode ``L`` or ``RGB`` to 32 to 63 pixels on its shorter side."""
    factor = _reducing(image.height, image.width)
    small = image.reduce(factor) if factor > 1 else image
    return bounded(SmallPicture(np.asarray(small), image.height, image.width, factor))


def _reducing(height: int, width: int) -> int:
    return max(1, min(height, width) // SIDE)


def bounded(picture: SmallPicture) -> SmallPicture:
    """Reduce a picture of any scale to at most 63 pixels on its shorter side, 512 on the other."""
    height, width, *channels = picture.pixels.shape
    factor = _reducing(height, width)
    if factor == 1 and max(height, width) <= _LONGEST:
        return picture
    flat = picture.pixels if channels == [3] else picture.pixels.reshape(height, width)
    image = Image.fromarray(flat)
    if factor > 1:
        image = image.reduce(factor)
        picture = picture._replace(pixels=np.asarray(image), factor=picture.factor * factor)
    if max(image.size) <= _LONGEST:
        return picture
    # A strip: less is lost at its ends than one of its 32 parts covers.
    size = min(image.width, _LONGEST), min(image.height, _LONGEST)
    strip = np.asarray(image.resize(size, Image.Resampling.BOX))
    return SmallPicture(strip, size[1], size[0], 1)


def look_at(pictures: Sequence[SmallPicture]) -> Looks:
    """Measure pictures; many at once cost far less than one by one."""
    count = len(pictures)
    looks = Looks(np.zeros((count, SIDE, SIDE), np.uint8), np.zeros(count))
    by_shape: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, picture in enumerate(pictures):
        by_shape[picture.pixels.shape].append(place)
    blocks = (
        places[start : start + _AT_ONCE]
        for places in by_shape.values()
        for start in range(0, len(places), _AT_ONCE)
    )
    for places in blocks:
        alike = [pictures[place] for place in places]
        gray = _gray_of(np.stack([each.pixels for each in alike]))
        looks.thumbnail[places] = _thumbnails(gray, alike)
        looks.sharpness[places] = _sharpness(gray)
    return looks


def _gray_of(pixels: Pixels) -> Pixels:
    """Return brightness (ITU-R BT.601), uint8 [n, h, w]."""
    if pixels.shape[3:] != (3,):
        return pixels.reshape(pixels.shape[:3])
    red, green, blue = np.ascontiguousarray(pixels.transpose(3, 0, 1, 2))
    gray = np.multiply(red, 77, dtype=np.uint16)  # the factors add up to 256
    gray += np.multiply(green, 150, dtype=np.uint16)
    gray += np.multiply(blue, 29, dtype=np.uint16)
    gray += 128
    gray >>= 8
    return gray.astype(np.uint8)


def _sharpness(gray: Pixels) -> _Floats | float:
    count, height, width = gray.shape
    if min(height, width) < 3:
        return 0.0
    # The discrete Laplacian: a pixel's four neighbours minus four times the pixel. All rows are in
    # one line, which is far faster; outer pixels, with neighbours in other rows, are set to 0.
    line = gray.reshape(count, -1).astype(np.int16)
    inner = line[:, width:-width]
    laplacian = line[:, : -2 * width] + line[:, 2 * width :]
    laplacian += line[:, width - 1 : -width - 1]
    laplacian += line[:, width + 1 : line.shape[1] - width + 1]
    laplacian -= 4 * inner
    rows = laplacian.reshape(count, height - 2, width)
    rows[:, :, [0, -1]] = 0
    strongest = np.maximum(laplacian.max(axis=1), -laplacian.min(axis=1)).astype(np.float64)
    levels = line.max(axis=1) - line.min(axis=1)
    return np.divide(strongest, levels, out=np.zeros(count), where=levels > 0)


def _thumbnails(gray: Pixels, pictures: Sequence[SmallPicture]) -> Pixels:
    """Average the area that each of 32×32 pixels covers: uint8 [n, 32, 32].

    Pixels are weighted by the shared area. Filters that use only whole pixels, such as Pillow's,
    shift the picture by up to half a pixel, which changes its hash.
    """
    sums: _Floats = np.empty((len(gray), SIDE, SIDE))
    by_size = defaultdict[tuple[int, int, int], list[int]](list)
    for place, picture in enumerate(pictures):
        by_size[picture[1:]].append(place)
    for (height, width, factor), places in by_size.items():
        sums[places] = _part_sums(gray[places], height, width, factor) / (height * width)
    return (sums + 0.5).astype(np.uint8)


def _part_sums(gray: Pixels, height: int, width: int, factor: int) -> _Floats:
    """Return the sum of the pixels in each of 32×32 parts, in 1/1024 pixels: [n, 32, 32].

    Its sums are whole numbers of at most 255 times the width, then 255 times the pixels: float32
    holds them up to 2**24, float64 up to 2**53. Products are small, picture by picture: OpenBLAS
    would divide a large one among threads, which then wait for the next one at full speed.
    """
    exact = np.float32 if 255 * width < 1 << 24 else np.float64
    across = gray.astype(exact) @ _shares(width, factor, gray.shape[2]).T.astype(exact)
    return _shares(height, factor, gray.shape[1]) @ across.astype(np.float64)


@lru_cache(maxsize=256)
def _shares(length: int, factor: int, count: int) -> npt.NDArray[np.float64]:
    """Return how much of each small pixel lies in each part of a side, in 1/32 pixels: [32, count].

    If ``factor`` does not divide the side, its last pixel reaches beyond the end; only the part
    inside counts. Each row adds up to ``length``, that of the side.
    """
    pixels = np.arange(count)[None] * (factor * SIDE)
    parts = np.arange(SIDE)[:, None] * length
    shared = np.minimum(pixels + factor * SIDE, parts + length) - np.maximum(pixels, parts)
    return np.maximum(shared, 0).astype(np.float64)


#: The least contrast of a picture with a meaningful hash.
LEAST_HASH_CONTRAST = 3.0

#: Pixels on each side of a signature.
SIGNATURE_SIDE = 8

_Singles: TypeAlias = "npt.NDArray[np.float32]"


class PictureFacts(NamedTuple):
    """Measures of pictures: arrays with one element for each picture."""

    # uint64: the signs of the 64 lowest frequencies. Copies differ in few bits, also after
    # encoding, resizing or brightening; it is meaningless without `contrast`.
    perceptual_hash: npt.NDArray[np.uint64]
    # uint8 [n, 8, 8]: the picture in 64 gray pixels, to verify that two are alike.
    signature: Pixels
    brightness: _Singles  # float32: mean, 0 (black) to 255 (white)
    contrast: _Singles  # float32: standard deviation, 0 to 127.5
    darkest: Pixels  # uint8: 1 % of the picture is at this level or below
    lightest: Pixels  # uint8: 1 % of the picture is at this level or above
    sharpness: _Singles  # float32: see Looks

    @property
    def has_hash(self) -> npt.NDArray[np.bool_]:
        """Whether each picture has enough contrast for a meaningful hash."""
        return self.contrast >= LEAST_HASH_CONTRAST


def picture_facts(seen: Columns) -> PictureFacts:
    """Return the measures of images that are in the columns; other measures are empty."""
    from recordgen.core.facts.columns import bytes_of  # decoding pictures does not need Arrow

    unknown = dict.fromkeys(PictureFacts._fields, np.zeros(0, np.float32))
    known = {name: seen[name].to_numpy() for name in seen.column_names if name != "signature"}
    signature = bytes_of(seen["signature"]).reshape(-1, SIGNATURE_SIDE, SIGNATURE_SIDE)
    return PictureFacts(**unknown | known | {"signature": signature})


def measured(looks: Looks) -> PictureFacts:
    """Measure pictures."""
    count, size = len(looks.thumbnail), SIDE * SIDE
    # The number of pixels at each level: float64 [n, 256].
    placed = looks.thumbnail.reshape(count, size) + np.arange(count)[:, None] * 256
    numbers = np.bincount(placed.ravel(), minlength=count * 256)
    histograms = numbers.reshape(count, 256).astype(float)
    levels = np.arange(256.0)
    sums, squares = (histograms @ np.stack([levels, levels * levels], axis=1)).T
    below, few = histograms.cumsum(axis=1), size // 100
    return PictureFacts(
        perceptual_hashes(looks.thumbnail),
        signatures(looks.thumbnail),
        (sums / size).astype(np.float32),
        (np.sqrt(size * squares - sums * sums) / size).astype(np.float32),
        (below <= few).sum(axis=1).astype(np.uint8),
        (below < size - few).sum(axis=1).astype(np.uint8),
        looks.sharpness.astype(np.float32),
    )


def signatures(thumbnails: Pixels) -> Pixels:
    """Reduce thumbnails to 8×8 pixels: uint8 [n, 8, 8]."""
    side = SIDE // SIGNATURE_SIDE
    rows = np.repeat(np.eye(SIGNATURE_SIDE), side, axis=1)
    sums = np.matmul(rows, np.matmul(thumbnails.astype(np.float64), rows.T))
    return (sums / (side * side) + 0.5).astype(np.uint8)
