"""Settings of stored images: what one may cost, its size, and its format.

Each is one option of the conversion, decoded from text such as ``mb=30,seconds=5``, ``512max`` and
``jpeg:90``; :class:`PayloadSettings` has them all.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from threading import Lock
from typing import Any

from recordgen.core.limits import DECODING_SECONDS, DECODING_SECONDS_MB
from recordgen.errors import PayloadError, UsageError, did_you_mean
from recordgen.rejects import RejectCode

KEEP = "keep"
JPEG, PNG = "jpeg", "png"
#: Formats of files; ``keep``: JPEG stays JPEG, and all others become PNG if they are encoded.
_FORMATS = (KEEP, JPEG, PNG)

#: All pixels are raw, or only those of small images.
RAW, MIXED = "raw", "mixed"

#: Most pixels on a side: libpng's default limit. Images of other formats may become PNGs.
MAX_SIDE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one image, text or video may cost."""

    mb: float = 30  # largest file, in MB of 10^6 bytes
    # Most pixels of an image; all frames of a GIF together may have ten times as many.
    pixels: float = 100_000_000
    seconds: float = 20  # longest check of an image, in processor time
    # Memory for decoded images in each process, in MB of 10^6 bytes; None: half of the memory of
    # the machine or container, divided by its cores.
    memory: float | None = None

    @classmethod
    def of(cls, given: str | Mapping[str, float] | Limits | None) -> Limits:
        """Decode limits: ``mb=30,pixels=100000000``, or a mapping.

        Raises: UsageError: a name is unknown, or a value is no number above 0.
        """
        if isinstance(given, Limits):
            return given
        known = [item.name for item in fields(cls)]
        found: dict[str, float] = {}
        for name, value in _pairs("limit", given):
            if name not in known:
                hint = did_you_mean(name, known, f"; limits: {', '.join(known)}")
                raise UsageError(f"limit: there is no limit {name!r}{hint}")
            found[name] = _above_zero(name, value)
        return cls(**found)

    @property
    def bytes(self) -> int:
        """Largest accepted file in bytes."""
        return int(self.mb * 1_000_000)

    @property
    def memory_bytes(self) -> int | None:
        """Memory for decoded images per process, in bytes; None: depends on the machine."""
        return None if self.memory is None else int(self.memory * 1_000_000)

    def check_size(self, size: int) -> None:
        """Refuse a payload of too many bytes. Raises: PayloadError."""
        if size > self.bytes:
            raise self.too_many_bytes(size)

    def too_many_bytes(self, size: int) -> PayloadError:
        """Return the refusal of a payload with at least ``size`` bytes."""
        return PayloadError(
            RejectCode.TOO_MANY_BYTES,
            f"a file must be at most {self.mb:g} MB (got {size / 1e6:.1f} MB); "
            f"--limit mb=… allows more",
        )

    def check_pixels(self, height: int, width: int) -> None:
        """Refuse an image that announces too many pixels. Raises: PayloadError."""
        if max(height, width) > MAX_SIDE:
            raise PayloadError(
                RejectCode.TOO_MANY_PIXELS,
                f"an image must have at most {MAX_SIDE:,} pixels on each side, TensorFlow's limit "
                f"for PNGs (got {width}×{height}); cut it into several images",
            )
        if height * width > self.pixels:
            raise PayloadError(
                RejectCode.TOO_MANY_PIXELS,
                f"an image must have at most {self.pixels:,} pixels (got {width}×{height} "
                f"= {height * width:,}); --limit pixels=… allows more",
            )

    def check_seconds(self, seconds: float, what: str, share: float = 1) -> None:
        """Refuse work that takes too much processor time by its estimate.

        Args: share: of the time of an image, what the work may take; below the default limit, of
            the default.

        Raises: PayloadError.
        """
        most = min(self.seconds, share * max(self.seconds, Limits().seconds))
        if seconds > most:
            raise PayloadError(
                RejectCode.TOO_SLOW,
                f"{what} would take about {seconds:.2g} s of processor time, but may take "
                f"{most:.2g} s; --limit seconds=… allows more",
            )

    @property
    def recorded(self) -> str:
        """The limits that affect the output, as text; images rarely reach the others."""
        return f"mb={_plain(self.mb)},pixels={_plain(self.pixels)}"

    def __str__(self) -> str:
        memory = "" if self.memory is None else f",memory={_plain(self.memory)}"
        return f"{self.recorded},seconds={_plain(self.seconds)}{memory}"


# Images whose estimate is shorter are decoded each time, and files of so many bytes are compared.
_WORTH_SECONDS, _KEPT_BYTES = 0.002, 16_000_000

# Bytes of a file that stand for all of them until the rest is compared.
_SAMPLED_BYTES = 64


class Decoding:
    """What decoding all images of a run takes, in this process.

    Each image has its limits, but a file of some kB may hold thousands that announce much, or name
    one image in thousands of rows. So the estimated time grows with the bytes in files
    (:data:`recordgen.core.limits.DECODING_SECONDS`), and the last costly results are kept.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._seconds = self._mb = 0.0
        self._kept: OrderedDict[object, tuple[bytes, Any, int]] = OrderedDict()
        self._kept_bytes = 0

    def __reduce__(self) -> tuple[type[Decoding], tuple[()]]:
        return Decoding, ()  # another process has taken nothing

    def spend(self, seconds: float, stored: int, limit: Limits) -> None:
        """Count the estimated time of an image that takes ``stored`` bytes in a file.

        Raises: PayloadError: with this image, decoding takes too long for the bytes so far.
        """
        with self._lock:
            self._mb += stored / 1e6
            most = DECODING_SECONDS.most + self._mb * DECODING_SECONDS_MB.most
            most *= max(1, limit.seconds / Limits().seconds)
            if self._seconds + seconds > most:
                raise PayloadError(
                    RejectCode.TOO_SLOW,
                    f"the images of this run take {self._mb:,.2f} MB in their files so far, and "
                    f"with this one, decoding them would take more than {most:,.0f} s of processor "
                    f"time; --limit seconds=… allows more",
                )
            self._seconds += seconds

    def result_of(self, data: bytes) -> Any:
        """Return what was kept for the same bytes; None if nothing was."""
        found = self._kept.get(_key(data))
        return found[1] if found is not None and found[0] == data else None

    def keep(self, data: bytes, seconds: float, result: Any, size: int) -> None:
        """Keep the result, of ``size`` bytes, of an image that took ``seconds`` by its estimate."""
        if seconds < _WORTH_SECONDS:
            return
        with self._lock:
            if _key(data) in self._kept:
                return
            self._kept[_key(data)] = data, result, size
            self._kept_bytes += len(data) + size
            while self._kept_bytes > _KEPT_BYTES:
                _, (old, _, size) = self._kept.popitem(last=False)
                self._kept_bytes -= len(old) + size


def _key(data: bytes) -> object:
    return len(data), data[:: len(data) // _SAMPLED_BYTES + 1]


def _pairs(option: str, given: object) -> list[tuple[str, Any]]:
    """Return the pairs of ``name=value,…`` or of a mapping. Raises: UsageError."""
    if isinstance(given, Mapping):
        return [(str(name), value) for name, value in given.items()]
    if not isinstance(given, str | None):
        raise UsageError(f"{option} must be a text or a mapping (got {given!r:.80})")
    pairs = [item.partition("=") for item in (given or "").split(",") if item.strip()]
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def _above_zero(name: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"limit: {name} must be a number above 0 (got {value!r})")
    return int(number) if number.is_integer() else number


def _plain(number: float) -> str:
    """Return a number as a person writes it, so that equal numbers have equal texts."""
    return str(int(number)) if float(number).is_integer() else str(float(number))


@dataclass(frozen=True, slots=True)
class ImageSizing:
    """The size of stored images. They are never enlarged."""

    # `max`: the longer side has at most `height` pixels; `short`: the shorter side has; `shape`:
    # images get the shape of height and width; empty: images keep their size.
    rule: str = ""
    height: int = 0  # height in pixels, or the limit of a side
    width: int = 0  # width in pixels; as `height` if `rule` is about a side

    @classmethod
    def of(cls, given: str | int | Sequence[int] | ImageSizing | None) -> ImageSizing:
        """Decode ``512max``, ``256short``, ``224x320`` (height and width), or ``224`` (a square).

        Raises: UsageError: it has another form.
        """
        if isinstance(given, ImageSizing):
            return given
        sides = isinstance(given, Sequence) and not isinstance(given, str)
        text = "x".join(map(str, given)) if sides else str(given or "")  # type: ignore[arg-type]
        text = text.lower().replace("×", "x").replace(" ", "")
        if not text:
            return cls()
        found = re.fullmatch(r"(\d+)(max|short|x(\d+))?", text)
        if found is None or not int(found[1]) or not int(found[3] or 1):
            raise UsageError(
                f"image_size must be a longest side such as 512max, a shortest side such as "
                f"256short, or a height and a width such as 224x224, each at least 1 pixel (got "
                f"{given!r})"
            )
        height = int(found[1])
        rule = found[2] if found[2] in ("max", "short") else "shape"
        return cls(rule, height, int(found[3] or height))

    def __bool__(self) -> bool:
        return bool(self.rule)

    def __str__(self) -> str:
        if self.rule == "shape":
            return f"{self.height}x{self.width}"
        return f"{self.height}{self.rule}" if self.rule else ""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The format of stored images."""

    format: str = KEEP  # `keep`, `jpeg` or `png`
    # Quality of JPEGs that are re-encoded, from 1 to 100; None: the default.
    quality: int | None = None
    # `raw`: all images are stored as their pixels; `mixed`: small ones; empty: none.
    pixels: str = ""

    @classmethod
    def of(cls, given: str | Encoding | None) -> Encoding:
        """Decode ``keep``, ``jpeg:90``, ``png``, ``raw``, ``mixed`` or ``mixed:jpeg:90``.

        Raises: UsageError: it has another form.
        """
        if isinstance(given, Encoding):
            return given
        words = str(given or KEEP).lower().split(":")
        pixels = words.pop(0) if words[0] in (RAW, MIXED) else ""
        kind = words.pop(0) if words and words[0] in _FORMATS else KEEP
        quality = words.pop(0) if words else None
        is_number = quality is not None and quality.isdecimal() and 1 <= int(quality) <= 100
        is_lossless = kind == PNG and quality is not None
        is_raw = pixels == RAW and (kind, quality) != (KEEP, None)
        if words or is_lossless or is_raw or not (quality is None or is_number):
            raise UsageError(
                f"encode must be keep, jpeg, png, raw or mixed; keep and jpeg may have a quality "
                f"from 1 to 100, such as jpeg:90, and mixed a format for large images, such as "
                f"mixed:jpeg:90 (got {given!r})"
            )
        return cls(kind, None if quality is None else int(quality), pixels)

    def __str__(self) -> str:
        words = [self.pixels] if self.pixels else []
        if self.format != KEEP or self.quality is not None or not words:
            words.append(self.format)
        return ":".join(map(str, [*words, *([] if self.quality is None else [self.quality])]))


def image_size_of(size: Any) -> tuple[int, int]:
    """Return the height and width of ``image_size``: 224, ``(224, 320)`` or ``"224x320"``.

    Raises: UsageError: it has another form.
    """
    with suppress(UsageError, ValueError):  # the latter by arrays
        sizing = ImageSizing.of(size)
        if sizing.rule == "shape":
            return sizing.height, sizing.width
    raise UsageError(
        f"image_size must be height and width, each at least 1, or one number for a square "
        f"(got {size!r})"
    )


_KEPT, _AS_IT_IS = Encoding(), ImageSizing()


@dataclass(frozen=True, kw_only=True)
class PayloadSettings:
    """How payloads are checked and stored, and what the checks of the data note about them.

    By default, an image is decoded and stored as it is.
    """

    check: str = "decode"  # how images are checked: `decode`, `header` or `none`
    limit: Limits
    image_size: ImageSizing = _AS_IT_IS
    resize: str = "stretch"  # how an image gets its shape: `stretch`, `fit` or `center_crop`
    encode: Encoding = _KEPT
    needs_looks: bool = False  # downscaled images and the words of texts are noted
    needs_rows: bool = False  # whole rows of tables are noted
    text_encoding: str = ""  # the encoding of texts in files; empty for UTF-8

    @cached_property
    def decoding(self) -> Decoding:
        """What decoding has taken in this process, for all images that have these settings."""
        return Decoding()

    @cached_property  # read for each image
    def changes_pictures(self) -> bool:
        """Whether images may be stored in another size or format than their file has."""
        return bool(self.image_size) or self.encode != _KEPT
