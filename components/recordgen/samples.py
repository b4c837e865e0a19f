"""Sample photos to try Recordgen with, such as python -m recordgen.samples photos.

    photos/daisy/000.jpg, photos/rose/001.jpg, …: 120 drawn flowers of two kinds, 64×48 pixels

The same number gives the same picture.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from recordgen.errors import RecordgenError, UsageError

KINDS = ("daisy", "rose")
COUNT = 120

_SIZE = (64, 48)
_DRAWN = 4  # times as large, so that edges are smooth
_NOISE = 10  # levels of 255


def write_photos(folder: str | os.PathLike[str], count: int = COUNT) -> None:
    """Write the photos below a folder, one subfolder for each kind of flower.

    Raises: UsageError: the folder has other files.
    """
    folder = Path(folder).expanduser()
    names = {f"{KINDS[number % 2]}/{number:03d}.jpg": number for number in range(count)}
    there = folder.rglob("*") if folder.is_dir() else ()
    others = {path.relative_to(folder).as_posix() for path in there if not path.is_dir()}
    if folder.is_file() or others - names.keys():
        raise UsageError(f"{folder}: holds other files; choose a new folder for the sample photos")
    for name, number in names.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(number).save(path, "JPEG", quality=90)


def photo(number: int) -> Image.Image:
    """Return a picture of a flower: a daisy if ``number`` is even, else a rose."""
    chance = random.Random(number)
    width, height = (side * _DRAWN for side in _SIZE)
    meadow = tuple(int(chance.uniform(*shades)) for shades in ((20, 90), (80, 170), (20, 80)))
    picture = Image.new("RGB", (width, height), meadow)
    draw = ImageDraw.Draw(picture)
    x, y = chance.uniform(0.3, 0.7) * width, chance.uniform(0.35, 0.65) * height
    for circle in (_daisy if number % 2 == 0 else _rose)(
        chance, height * chance.uniform(0.3, 0.45)
    ):
        dx, dy, radius, colour = circle
        box = (x + dx - radius, y + dy - radius, x + dx + radius, y + dy + radius)
        draw.ellipse(box, tuple(map(round, colour)))
    small = np.asarray(picture.resize(_SIZE, Image.Resampling.LANCZOS), np.int16)
    noise = np.random.default_rng(number).integers(-_NOISE, _NOISE + 1, small.shape)
    return Image.fromarray(np.clip(small + noise, 0, 255).astype(np.uint8))


_Circle = tuple[float, float, float, tuple[float, float, float]]


def _daisy(chance: random.Random, radius: float) -> Iterator[_Circle]:
    """Yield petals around a yellow centre: offsets from the middle, radius, colour."""
    petals, turn = chance.randint(9, 14), chance.uniform(0, math.tau)
    for petal in range(petals):
        angle = turn + petal * math.tau / petals
        white = chance.uniform(215, 250)
        for at in (0.45, 0.6, 0.75):
            place = math.cos(angle) * radius * at, math.sin(angle) * radius * at
            yield *place, radius * 0.17, (white, white, white - 10)
    yield 0, 0, radius * 0.3, (chance.uniform(220, 250), chance.uniform(170, 200), 30)


def _rose(chance: random.Random, radius: float) -> Iterator[_Circle]:
    """Yield layers of red petals: offsets from the middle, radius, colour."""
    red = chance.uniform(150, 220)
    for layer in range(5):
        size = radius * (1 - layer * 0.18)
        angle = chance.uniform(0, math.tau)
        place = math.cos(angle) * radius * 0.1, math.sin(angle) * radius * 0.1
        shade = red * (1 if layer % 2 == 0 else 0.72)
        yield *place, size, (shade, shade * 0.15, shade * 0.25)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the photos below the folder that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m recordgen.samples", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", help="a new folder, such as photos")
    folder: str = parser.parse_args(argv).folder
    try:
        write_photos(folder)
    except (OSError, RecordgenError) as exc:
        print(f"recordgen: {exc}", file=sys.stderr)
        return exc.exit_code if isinstance(exc, RecordgenError) else 1
    except KeyboardInterrupt:
        return 130
    print(f"wrote {COUNT} photos of {' and '.join(KINDS)} to {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
