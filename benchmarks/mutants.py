"""Damage images of every kind and compare the check with the decoder that training uses.

    python -m benchmarks.mutants
    python -m benchmarks.mutants --each 120 --seed 7

A kind is an image (``group 4 tiff``) and a change: damage (``cut``), or another structure of the
same format (``a repeated part``, see :mod:`benchmarks.structures`). The table has the accepted and
refused mutants of each kind, and the false ones among them:

    false accept   the stored image does not decode in TensorFlow, or its size differs from the
                   record's
    false reject   refused, although the change is harmless by the format's standard
    same           refused, although TensorFlow decodes it to the pixels of the undamaged image: a
                   damage that this decoder ignores, such as a wrong checksum; not false

Equal arguments make equal mutants. The exit code is 1 if anything is false.
"""

from __future__ import annotations

import argparse
import io
import logging
import random
import struct
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from PIL import Image

from benchmarks.structures import Change, changes_of
from recordgen.conversion.settings import payloads_of
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.payloads.check import check_image
from recordgen.payloads.reencoding import CheckedImage

SIDE = (52, 40)


@dataclass
class Counts:
    """Results of the mutants of one kind."""

    accepted: int = 0
    refused: int = 0
    same: int = 0
    false_accepts: int = 0
    false_rejects: int = 0

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


# --- images -----------------------------------------------------------------------------------


def picture(seed: int = 0) -> Image.Image:
    """Return a smooth picture with some noise, so that every codec has work to do."""
    rough = Image.frombytes("RGB", (13, 10), random.Random(seed).randbytes(390))
    return rough.resize(SIDE, Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str, **settings: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **settings)
    return out.getvalue()


def images() -> Mapping[str, bytes]:
    """Return an image of each kind, by name."""
    photo, other = picture(), picture(1)
    gray, cmyk, palette = photo.convert("L"), photo.convert("CMYK"), photo.convert("P")
    fax = photo.convert("1")
    glass = photo.convert("RGBA")
    glass.putalpha(other.convert("L"))
    turned = Image.Exif()
    turned[0x0112] = 6
    deep = Image.frombytes("I;16", SIDE, random.Random(2).randbytes(2 * SIDE[0] * SIDE[1]))
    return {
        "jpeg": encoded(photo, "JPEG", quality=90),
        "jpeg 4:4:4": encoded(photo, "JPEG", quality=90, subsampling=0),
        "jpeg 4:2:2": encoded(photo, "JPEG", quality=90, subsampling=1),
        "rgb jpeg": encoded(photo, "JPEG", keep_rgb=True),
        "gray jpeg": encoded(gray, "JPEG"),
        "progressive jpeg": encoded(photo, "JPEG", progressive=True),
        "jpeg with restarts": encoded(photo, "JPEG", restart_marker_rows=1),
        "turned jpeg": encoded(photo, "JPEG", exif=turned),
        "cmyk jpeg": encoded(cmyk, "JPEG", quality=90),
        "progressive cmyk jpeg": encoded(cmyk, "JPEG", progressive=True),
        "png": encoded(photo, "PNG"),
        "gray png": encoded(gray, "PNG"),
        "palette png": encoded(palette, "PNG"),
        "2 bit palette png": encoded(photo.quantize(4), "PNG", bits=2),
        "transparent palette png": encoded(palette, "PNG", transparency=3),
        "1 bit png": encoded(fax, "PNG"),
        "transparent png": encoded(glass, "PNG"),
        "16 bit png": encoded(deep, "PNG"),
        "gray transparent png": encoded(glass.convert("LA"), "PNG"),
        "animated png": encoded(photo, "PNG", save_all=True, append_images=[other]),
        "gif": encoded(photo, "GIF"),
        "interlaced gif": encoded(photo, "GIF", interlace=1),
        "transparent gif": encoded(palette, "GIF", transparency=3),
        "gray gif": encoded(gray, "GIF", interlace=0),
        "animated gif": encoded(photo, "GIF", save_all=True, append_images=[other, photo]),
        "bmp": encoded(photo, "BMP"),
        "palette bmp": encoded(palette, "BMP"),
        "32 bit bmp": encoded(glass, "BMP"),
        "webp": encoded(photo, "WEBP"),
        "lossless webp": encoded(photo, "WEBP", lossless=True),
        "transparent webp": encoded(glass, "WEBP", lossless=True),
        "animated webp": encoded(photo, "WEBP", save_all=True, append_images=[other]),
        "tiff": encoded(photo, "TIFF"),
        "tiff of two pages": encoded(photo, "TIFF", save_all=True, append_images=[other]),
        "16 bit tiff": encoded(deep, "TIFF"),
        "lzw tiff": encoded(photo, "TIFF", compression="tiff_lzw"),
        "deflate tiff": encoded(photo, "TIFF", compression="tiff_adobe_deflate"),
        "group 4 tiff": encoded(fax, "TIFF", compression="group4"),
        "group 3 tiff": encoded(fax, "TIFF", compression="group3"),
        "jpeg tiff": encoded(photo, "TIFF", compression="jpeg"),
        "ico": encoded(photo.resize((48, 48)), "ICO", sizes=[(48, 48)]),
        "bmp ico": encoded(photo.resize((48, 48)), "ICO", sizes=[(48, 48)], bitmap_format="bmp"),
    }


# --- damage -----------------------------------------------------------------------------------


def _flip(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def _overwrite(data: bytes, draw: random.Random, *, fill: bytes | None = None) -> bytes:
    at, size = draw.randrange(len(data)), draw.randint(1, 32)
    some = draw.randbytes(size) if fill is None else fill * size
    return data[:at] + some[: len(data) - at] + data[at + size :]


def _header(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(2, min(64, len(data)))
    return data[:at] + draw.randbytes(1) + data[at + 1 :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + draw.randbytes(draw.randint(1, 8)) + data[at:]


def _delete(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + data[at + draw.randint(1, 8) :]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    at, size = draw.randrange(len(data)), draw.randint(4, 64)
    return data[: at + size] + data[at:]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(1, len(data))]


def _cut_end(data: bytes, draw: random.Random) -> bytes:
    return data[: -draw.randint(1, 4)]


#: name: a change that may damage an image.
DAMAGE: Mapping[str, Change] = {
    "flip a bit": _flip,
    "overwrite": _overwrite,
    "zeros": partial(_overwrite, fill=b"\0"),
    "ones": partial(_overwrite, fill=b"\xff"),
    "header": _header,
    "insert": _insert,
    "delete": _delete,
    "repeat": _repeat,
    "cut": _cut,
    "cut 1 to 4 bytes": _cut_end,
}


def _behind(data: bytes, draw: random.Random) -> bytes:
    return data + draw.randbytes(draw.randint(1, 9))


def _comment(data: bytes, draw: random.Random) -> bytes:
    """Insert a comment if the format allows comments, else change nothing."""
    text = draw.randbytes(draw.randint(1, 40)).hex().encode()
    if data.startswith(b"\xff\xd8"):
        return data[:2] + b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text + data[2:]
    if data.startswith(b"\x89PNG"):
        body = b"tEXtComment\0" + text
        chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
        return data[:33] + chunk + data[33:]
    if data.startswith(b"GIF8"):
        return data[:-1] + b"!\xfe" + bytes([len(text)]) + text + b"\0;"
    return data


#: name: a change that every decoder ignores.
HARMLESS: Mapping[str, Change] = {
    "as it is": lambda data, _: data,
    "bytes behind the end": _behind,
    "comment": _comment,
}


# --- the judge --------------------------------------------------------------------------------


def as_trained(data: bytes) -> Any:
    """Return the pixels as a trainer decodes them, uint8 [h, w, 3]; None if it fails."""
    import tensorflow as tf  # slow to load

    try:
        return tf.io.decode_image(data, channels=3, expand_animations=False).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def judged(
    mutants: Iterable[bytes], sound: bytes, settings: PayloadSettings, *, harmless: bool
) -> Counts:
    """Check mutants of an image and judge the results."""
    counts, pixels = Counts(), as_trained(sound)
    for data in mutants:
        try:
            stored: CheckedImage | None = check_image(data, settings)
        except PayloadError:
            stored = None
        if stored is not None:
            counts.accepted += 1
            found = as_trained(stored.data)
            shape = (stored.height, stored.width, 3)
            counts.false_accepts += found is None or found.shape != shape
            continue
        counts.refused += 1
        counts.false_rejects += harmless
        if pixels is not None and not harmless:
            found = as_trained(data)
            counts.same += (
                found is not None and found.shape == pixels.shape and bool((found == pixels).all())
            )
    return counts


def judge(each: int, seed: int, only: Sequence[str] = ()) -> Iterator[tuple[str, str, Counts]]:
    """Judge ``each`` mutants of every kind; yield the image, the change and the counts."""
    settings = payloads_of(ConvertOptions(lint=("-ALL",)))
    for name, data in images().items():
        if only and name not in only:
            continue
        for change, apply in {**DAMAGE, **changes_of(data), **HARMLESS}.items():
            harmless = change in HARMLESS
            draw = random.Random(f"{seed} {name} {change}")
            count = max(1, each // 20) if harmless else each
            mutants = (
                mutant for _ in range(count) if (mutant := apply(data, draw)) != data or harmless
            )
            yield name, change, judged(mutants, data, settings, harmless=harmless)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=80, metavar="N", help="mutants of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(images()), default=(), metavar="IMAGE")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # Pillow's warnings about metadata
    logging.disable()
    total, kinds = Counts(), 0
    print(f"{'image':<24}{'change':<34}{'accepted':>9}{'refused':>9}{'same':>6}  false")
    for name, change, counts in judge(args.each, args.seed, args.only):
        false = f"{counts.false_accepts} accepts, {counts.false_rejects} rejects"
        wrong = counts.false_accepts or counts.false_rejects
        print(
            f"{name:<24}{change:<34}{counts.accepted:>9}{counts.refused:>9}{counts.same:>6}  "
            f"{false if wrong else ''}",
            flush=True,
        )
        total.add(counts)
        kinds += 1
    print(
        f"{total.accepted + total.refused:,} mutants of {kinds} kinds: {total.accepted:,} "
        f"accepted, {total.refused:,} refused; false: {total.false_accepts} accepts, "
        f"{total.false_rejects} rejects"
    )
    return int(bool(total.false_accepts or total.false_rejects))


if __name__ == "__main__":
    sys.exit(main())
