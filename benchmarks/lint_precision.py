"""Measures how many planted faults the checks of pictures find, and their false findings.

    python -m benchmarks.lint_precision
    python -m benchmarks.lint_precision --images DIR

Plants known faults in pictures of several kinds (:mod:`benchmarks.scenes`), or in the images in
DIR, and prints for each fault the share of pictures in which it was found:

    near-duplicates   a copy is found if it is in one group with its picture; a picture in one group
                      with another picture is false
    looks             any code of a picture without a fault, and any code that a fault should not
                      have, is false

Pictures are encoded as JPEG of quality 92. The last lines are the cost of a look, relative to the
decode at 1/8 that the check of a JPEG does anyway.
"""

from __future__ import annotations

import argparse
import io
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from benchmarks.scenes import KINDS, SIZE
from recordgen.checks.examples import PICTURE_CHECKS
from recordgen.measures.likeness import find_alike
from recordgen.measures.pictures import PictureFacts, SmallPicture, jpeg_factor, look_at, measured
from recordgen.registry import CHECKS

QUALITY = 92
BATCH = 16
TICK = 1e-6  # seconds that a clock can tell
THRESHOLDS = {code: check.threshold for code, check in CHECKS.items() if check.threshold}

Picture = Image.Image
Fault = Callable[[Picture], bytes]


def encoded(image: Picture, quality: int = QUALITY) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def facts_of(pictures: Iterable[bytes]) -> PictureFacts:
    return measured(look_at([small_jpeg(data) for data in pictures]))


def small_jpeg(data: bytes, colorspace: str = "GRAY") -> SmallPicture:
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    factor = jpeg_factor(height, width)
    pixels = simplejpeg.decode_jpeg(
        data,
        colorspace=colorspace,
        min_height=math.ceil(height / factor),
        min_width=math.ceil(width / factor),
        min_factor=factor,
    )
    return SmallPicture(pixels, height, width, factor)


# --- faults -----------------------------------------------------------------------------------


def _resized(image: Picture, scale: float) -> Picture:
    return image.resize(
        (round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS
    )


def _cropped(image: Picture, percent: float) -> Picture:
    """Cut a part of the width and height, equally at both ends."""
    left, top = round(image.width * percent / 200), round(image.height * percent / 200)
    return image.crop((left, top, image.width - left, image.height - top))


def _lit(image: Picture, percent: float) -> Picture:
    return ImageEnhance.Brightness(image).enhance(percent / 100)


def _brighter(image: Picture, percent: float) -> Picture:
    return _lit(image, 100 + percent)


def _blurred(image: Picture, percent: float) -> Picture:
    """Blur by a part of the shorter side (sigma of a Gaussian)."""
    return image.filter(ImageFilter.GaussianBlur(min(image.size) * percent / 100))


def _veiled(image: Picture, percent: float) -> Picture:
    """Mix a picture with white."""
    return Image.blend(image, Image.new(image.mode, image.size, "white"), percent / 100)


def _gray(image: Picture) -> Picture:
    return ImageOps.grayscale(image).convert(image.mode)


def _plain(image: Picture, deviation: float) -> Picture:
    """Replace a picture by one colour, with noise."""
    random = np.random.default_rng(image.tobytes()[0])
    noise = random.normal(random.integers(20, 235), deviation, (image.height, image.width))
    return Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)).convert(image.mode)


def _faults(name: str, change: Callable[..., Picture], *values: float) -> dict[str, Fault]:
    """Return functions that change a picture by each value, and encode it; by name."""

    def fault(image: Picture, value: float) -> bytes:
        return encoded(change(image, value))

    return {name.format(value): partial(fault, value=value) for value in values}


COPIES: Mapping[str, Fault] = {
    "exact copy": encoded,
    **{f"quality {quality}": partial(encoded, quality=quality) for quality in (95, 80, 65, 50)},
    **_faults("resize {}", _resized, 0.9, 0.75, 0.5),
    **_faults("crop {} %", _cropped, 1, 2, 4, 6, 10),
    **_faults("brightness {:+} %", _brighter, -30, -10, 10, 30),
    "gray": lambda image: encoded(_gray(image)),
    **_faults("blur {} %", _blurred, 0.5),
    "flip": lambda image: encoded(ImageOps.mirror(image)),
}

# Codes, and faults that should have any of them.
_OF_CODES = (
    ((), {"none": encoded}),
    (("DARK", "ONE_COLOUR"), _faults("brightness {} %", _lit, 20, 10, 5, 1)),
    (("LIGHT", "ONE_COLOUR"), _faults("white veil {} %", _veiled, 60, 80, 90, 95)),
    (("LIGHT", "ONE_COLOUR"), _faults("exposure ×8", _lit, 800)),
    (("BLURRED",), _faults("blur {} %", _blurred, 0.25, 0.5, 1, 1.5, 2, 3, 5)),
    (("ONE_COLOUR",), _faults("one colour, noise {}", _plain, 0, 4)),
)
LOOKS: Mapping[str, tuple[frozenset[str], Fault]] = {
    name: (frozenset(codes), fault) for codes, faults in _OF_CODES for name, fault in faults.items()
}


# --- findings ---------------------------------------------------------------------------------


def share_of_copies(pictures: Sequence[Picture], fault: Fault) -> str:
    data = [*map(encoded, pictures), *map(fault, pictures)]
    return share_in_groups(find_alike(facts_of(data)))


def share_in_groups(groups: npt.NDArray[np.int32]) -> str:
    """Return the share of copies that were found, and the number of originals in a false group.

    ``groups`` has the groups of the originals, then the groups of their copies.
    """
    originals, copies = np.split(groups, 2)
    false = (originals != np.arange(len(originals))).sum()
    return f"{(copies == originals).mean():.0%}" + (f", {false} false" if false else "")


def share_of_looks(pictures: Sequence[Picture], look: tuple[frozenset[str], Fault]) -> str:
    """Return the share of pictures with an expected code, and the counts of other codes."""
    expected, fault = look
    facts = facts_of(map(fault, pictures))
    found = {
        check.code: set(check().of_pictures(facts, THRESHOLDS).rows.tolist())
        for check in PICTURE_CHECKS
    }
    right = set[int]().union(*(found[code] for code in expected))
    others = [
        f"{len(rows)} {code}"
        for code, rows in sorted(found.items())
        if rows and code not in expected
    ]
    return ", ".join([f"{len(right) / len(pictures):.0%}" if expected else "-", *others])


_Item = TypeVar("_Item")
_Fault = TypeVar("_Fault")


def print_table(
    name: str,
    kinds: Mapping[str, Sequence[_Item]],
    faults: Mapping[str, _Fault],
    cell: Callable[[Sequence[_Item], _Fault], str],
) -> None:
    """Print a line for each fault, with a cell for each kind of data."""
    titles = [f"{len(items)} {kind}" for kind, items in kinds.items()]
    lines = [[name, *titles]]
    for fault_name, fault in faults.items():
        lines.append([fault_name, *(cell(items, fault) for items in kinds.values())])
    first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))
    for line in lines:
        cells = (text.rjust(width) for text, width in zip(line[1:], widths, strict=True))
        print(f"{line[0]:{first}}  {'  '.join(cells)}")
    print()


def measure_cost(pictures: Sequence[Picture]) -> None:
    for width, height in (SIZE, (2 * SIZE[0], 2 * SIZE[1])):
        data = [encoded(picture.resize((width, height))) for picture in pictures[:BATCH]]
        gray, colour, look, look_at_colour = best_times(
            partial(_decode_all, data, "GRAY"),
            partial(_decode_all, data, "RGB"),
            partial(_look_at_all, _decode_all(data, "GRAY")),
            partial(_look_at_all, _decode_all(data, "RGB")),
        )
        gray = max(gray, TICK)  # a few small pictures may take less
        print(
            f"{width}×{height}, {sum(map(len, data)) / len(data) / 1000:.0f} kB: a look takes "
            f"{look / gray:.2f} of the decode at 1/8; with colours "
            f"{(look_at_colour + colour) / gray - 1:.2f}"
        )


def _decode_all(data: Sequence[bytes], colorspace: str) -> Sequence[SmallPicture]:
    return [small_jpeg(each, colorspace) for each in data]


def _look_at_all(pictures: Sequence[SmallPicture]) -> PictureFacts:
    return measured(look_at(pictures))


def best_times(*runs: Callable[[], object], rounds: int = 20) -> Sequence[float]:
    """Return the CPU seconds of each function's fastest round; the functions alternate."""
    times = [math.inf] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            started = time.process_time()
            run()
            times[number] = min(times[number], time.process_time() - started)
    return times


def read_images(folder: Path, count: int) -> Sequence[Picture]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    if not paths:
        raise SystemExit(f"{folder} holds no images ({', '.join(_SUFFIXES)})")
    return [Image.open(path).convert("RGB") for path in paths[:count]]


_SUFFIXES = (".jpg", ".jpeg", ".png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, metavar="DIR", help="default: made here")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="of each kind, at most")
    args = parser.parse_args()
    if args.images:
        kinds = {"images": read_images(args.images, args.count)}
    else:
        kinds = {name: make(args.count) for name, make in KINDS.items()}
    print_table("near-duplicates", kinds, COPIES, share_of_copies)
    print_table("looks", kinds, LOOKS, share_of_looks)
    measure_cost(kinds["images" if args.images else "scenes"])


if __name__ == "__main__":
    main()
