"""An encoded image → pixels of one size, without TensorFlow.

JPEGs are decoded with the same fast arithmetic as in ``tf.io.decode_jpeg``, so that images of their
stored size have the same pixels as in ``recordgen.load``. Resized ones differ by at most one level:

    area        from ``load``, which takes the mean of the pixels that a new pixel covers
    bilinear    from ``load`` with ``Tuning(decoder="exact")``, which interpolates with antialiasing
    torch       the same, by PyTorch, in a quarter of the time
    auto        torch if PyTorch is installed, else bilinear

What a program imports changes no pixel.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import simplejpeg
from PIL import Image

from recordgen.access.boxes import BOX_FORMATS
from recordgen.access.scales import parse_scale, scale_for
from recordgen.core.dataset.manifest import Dataset
from recordgen.core.image_settings import image_size_of
from recordgen.errors import UsageError, check_one_of
from recordgen.features import OBJECT_FIELDS, RAW, RAW_CHANNELS

if TYPE_CHECKING:
    import numpy.typing as npt

Pixels: TypeAlias = "npt.NDArray[np.uint8]"  # [height, width, 3], RGB
Floats: TypeAlias = "npt.NDArray[np.float32]"

#: Larger images are damaged or hostile; Pillow refuses the same number.
MAX_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 0)

_WORDS: Mapping[str, Sequence[str]] = {
    "resize": ("stretch", "fit", "center_crop"),
    "method": ("auto", "bilinear", "area", "torch"),
    "layout": ("HWC", "CHW"),
    "boxes": BOX_FORMATS,
}

_JPEG = b"\xff\xd8\xff"

# The scales of libjpeg's decoder that TensorFlow uses: 1 / ratio. Others are slower, too.
_RATIOS = (1, 2, 4, 8)

# The view of a whole image: top, left, height, width.
_WHOLE = np.array([0, 0, 1, 1], np.float32)
_WHOLE.flags.writeable = False


class Decoded(NamedTuple):
    """A decoded image.

    Attributes:
        pixels: uint8 or floats [height, width, 3] or [3, height, width]; writable.
        view: the part of the stored image that it shows: top, left, height and width in shares of
            the stored ones (float32 [4]); with bars, it is larger than the image.
        size: height and width of the pixels.
    """

    pixels: npt.NDArray[Any]
    view: Floats
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Decoder:
    """How images are decoded, and with which fields of their boxes.

    See :meth:`recordgen.access.source.Source.images`.
    """

    size: tuple[int, int] | None
    resize: str = "stretch"
    method: str = "auto"
    scale: str = "uint8"
    layout: str = "HWC"
    boxes: str = BOX_FORMATS[0]
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the values. Raises: UsageError."""
        for name, known in _WORDS.items():
            check_one_of(name, getattr(self, name), known)
        # Found on the path, whether it is imported or not.
        has_torch = PathFinder.find_spec("torch") is not None
        if self.method == "auto":
            object.__setattr__(self, "method", "torch" if has_torch else "bilinear")
        if self.method == "torch" and not has_torch:
            raise UsageError(
                "method='torch' needs PyTorch, which is not installed: pip install torch"
            )
        if self.size is not None:
            object.__setattr__(self, "size", image_size_of(self.size))
        _, dtype = parse_scale(self.scale)
        if dtype == "uint8":
            object.__setattr__(self, "scale", dtype)
        elif dtype == "bfloat16":
            raise UsageError("NumPy has no bfloat16; take float32 or uint8, and convert batches")
        for field in self.fields:
            check_one_of("fields", field, OBJECT_FIELDS)

    def of_examples(self, dataset: Dataset | None, column: str = "image") -> OfExamples:
        """Return how images of examples are decoded; ``column`` begins their features' names."""
        may_be_raw = dataset is not None and dataset.encoding.pixels != ""
        parts = ("encoded", "format", "height", "width") if may_be_raw else ("encoded",)
        return OfExamples(self, tuple(f"{column}/{part}" for part in parts))

    def decode(self, encoded: Pixels, raw_size: tuple[int, int] | None = None) -> Decoded:
        """Decode an image file, or raw pixels of a height and width. Raises: ValueError."""
        if raw_size is not None:
            whole = encoded.reshape(*raw_size, RAW_CHANNELS), raw_size, 1
        elif encoded[:3].tobytes() == _JPEG:
            whole = self._jpeg(encoded)
        else:
            whole = _by_pillow(encoded)
        pixels, view = self._shown(*whole)
        height, width, _ = pixels.shape
        shown: npt.NDArray[Any] = pixels
        if self.scale != "uint8":
            name, dtype = parse_scale(self.scale)
            scaled = scale_for(name, dtype).apply(pixels.astype(np.float32), white=255)
            shown = np.asarray(scaled, dtype)
        if self.layout == "CHW":
            shown = np.ascontiguousarray(shown.transpose(2, 0, 1))
        # Pillow's pixels are not writable, and those of a record share its memory.
        return Decoded(shown if shown.flags.writeable else shown.copy(), view, (height, width))

    def _jpeg(self, encoded: Pixels) -> tuple[Pixels, tuple[int, int], int]:
        """Return the pixels of a JPEG, the size of the whole, and the ratio of their scale."""
        height, width, *_ = simplejpeg.decode_jpeg_header(encoded)
        if height * width > MAX_PIXELS:
            raise ValueError(f"its header promises {height:,}×{width:,} pixels")
        ratio = 1
        if self.size is not None and self.method == "area":
            ratio = self._ratio(height, width, self.size)
        least = (-(-height // ratio), -(-width // ratio)) if ratio > 1 else (0, 0)
        pixels = simplejpeg.decode_jpeg(
            encoded, "RGB", fastdct=True, min_height=least[0], min_width=least[1]
        )
        return pixels, (height, width), ratio

    def _ratio(self, height: int, width: int, size: tuple[int, int]) -> int:
        """Return the largest ratio at which what is shown still covers the size."""
        if self.resize == "center_crop":
            _, _, height, width = _largest(height, width, size)
        times = (height // size[0], width // size[1])
        tight = max(times) if self.resize == "fit" else min(times)
        return max(ratio for ratio in _RATIOS if ratio <= max(tight, 1))

    def _shown(self, pixels: Pixels, whole: tuple[int, int], ratio: int) -> tuple[Pixels, Floats]:
        """Cut and resize pixels of an image of the size ``whole``, at the scale 1 / ratio."""
        if self.size is None or (pixels.shape[:2] == self.size and ratio == 1):
            return pixels, _WHOLE
        height, width = pixels.shape[:2]
        window = np.array([0, 0, height, width])
        if self.resize == "center_crop":
            window = np.array(_largest(*whole, self.size)) // ratio
            top, left, height, width = (*window[:2], *np.maximum(window[2:], 1))
            pixels = pixels[top : top + height, left : left + width]
            window[2:] = height, width
        # At a scale, the last row and column may represent fewer pixels than the others.
        view = _WHOLE
        if self.resize == "center_crop" or ratio > 1:
            view = _float32(window) * np.float32(ratio) / _float32((*whole, *whole))
        if self.resize != "fit":
            return self._resized(pixels, self.size), view
        top, left, *inner = _largest(*self.size, (height, width))
        padded = np.zeros((*self.size, RAW_CHANNELS), np.uint8)
        shown = self._resized(pixels, (inner[0], inner[1]))
        padded[top : top + inner[0], left : left + inner[1]] = shown
        larger = view[2:] * _float32(self.size) / _float32(inner)
        start = _float32((top, left)) / _float32(self.size)
        return padded, np.concatenate([view[:2] - larger * start, larger])

    def _resized(self, pixels: Pixels, size: tuple[int, int]) -> Pixels:
        if pixels.shape[:2] == size:  # a part of an image keeps the whole
            return pixels if self.resize == "stretch" else pixels.copy()
        resize = {"bilinear": _interpolated, "area": _means, "torch": _by_torch}[self.method]
        return resize(pixels, size)


class OfExamples(NamedTuple):
    """The decoder of the images in one column of examples.

    Attributes:
        decoder: decodes the images.
        names: the features of an image: its bytes; and, if it may be raw pixels, its format, height
            and width.
    """

    decoder: Decoder
    names: tuple[str, ...]

    def __call__(self, example: Mapping[str, Any]) -> Decoded:
        """Decode the image of an example. Raises: ValueError: it cannot be decoded."""
        encoded, *others = map(example.__getitem__, self.names)
        size = (int(others[1]), int(others[2])) if others and others[0] == RAW else None
        try:
            return self.decoder.decode(encoded, size)
        except ValueError as exc:
            raise ValueError(f"its image cannot be decoded: {exc}") from exc


def _by_pillow(encoded: Pixels) -> tuple[Pixels, tuple[int, int], int]:
    """Decode the first frame of an image file of any format; return as :meth:`Decoder._jpeg`."""
    try:
        with Image.open(io.BytesIO(encoded.tobytes())) as image:
            size = image.height, image.width
            if image.mode.startswith("I;16"):
                levels = np.asarray(np.asarray(image)[..., None] >> 8, np.uint8)
                return levels.repeat(3, -1), size, 1
            return np.asarray(image.convert("RGB")), size, 1
    except (OSError, SyntaxError, Image.DecompressionBombError) as exc:
        raise ValueError(str(exc)) from exc


def _largest(height: int, width: int, target: tuple[int, int]) -> tuple[int, ...]:
    """Return the largest centred window of a target's shape: top, left, height, width."""
    sides = np.array([height, width])
    scale = (_float32(sides) / _float32(target)).min()
    inner = np.clip(np.rint(scale * _float32(target)).astype(int), 1, sides)
    return tuple(map(int, (*(sides - inner) // 2, *inner)))


def _float32(values: Any) -> Floats:
    return np.asarray(values, np.float32)


def _interpolated(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize with antialiasing."""
    height, width = size
    resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized)


def _by_torch(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize with antialiasing by PyTorch."""
    import torch

    writable = pixels if pixels.flags.writeable else pixels.copy()
    channels_last = torch.from_numpy(writable).permute(2, 0, 1)[None]
    resized = torch.nn.functional.interpolate(channels_last, size, mode="bilinear", antialias=True)
    return np.asarray(resized[0].permute(1, 2, 0))


def _means(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize to the means of the areas that new pixels cover; interpolate along growing sides."""
    height, width = pixels.shape[:2]
    rows = _summed(pixels.reshape(height, -1), size[0]).reshape(size[0], width, -1)
    columns = _summed(rows.transpose(1, 0, 2).reshape(width, -1), size[1])
    means = columns.reshape(size[1], size[0], -1).transpose(1, 0, 2)
    return np.rint(means).astype(np.uint8, order="C")


def _summed(values: npt.NDArray[Any], new: int) -> Floats:
    """Return the weighted sums of old pixels along the first axis: [old, n] → float32 [new, n]."""
    (pixels, weights), *others = _weights(len(values), new)
    total: Floats = values[pixels] * weights
    for pixels, weights in others:
        total += values[pixels] * weights
    return total


@lru_cache(64)
def _weights(old: int, new: int) -> Sequence[tuple[npt.NDArray[np.intp], Floats]]:
    """Return the old pixels of each new one along a side, one after the other.

    Each is an index for each new pixel (int64 [new]), and its weight (float32 [new, 1]).
    """
    if new > old:
        centers = np.maximum((np.arange(new) + 0.5) * old / new - 0.5, 0)
        lower = np.floor(centers)
        share = centers - lower
        found = [(lower, 1 - share), (lower + 1, share)]
    else:
        edges = np.arange(new + 1) * old / new
        starts, ends = edges[:-1], edges[1:]
        first = np.floor(starts)
        found = []
        for pixel in (first + number for number in range(int((np.ceil(ends) - first).max()))):
            covered = np.minimum(ends, pixel + 1) - np.maximum(starts, pixel)
            found.append((pixel, np.maximum(covered, 0) * new / old))
    return [
        (np.minimum(pixel, old - 1).astype(np.intp), _float32(weight)[:, None])
        for pixel, weight in found
    ]
