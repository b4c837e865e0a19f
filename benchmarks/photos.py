"""Make JPEG photos from scikit-learn's two sample photographs.

    python -m benchmarks.photos --to DIR --count 5000                     500x375, about 100 kB
    python -m benchmarks.photos --to DIR --count 200 --size 4000 3000     12 megapixels, about 4 MB
    python -m benchmarks.photos --to DIR --count 10000 --size 32 32       about 1 kB

Each is a different crop with some sensor noise, so all differ and compress like photographs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

SIZE, QUALITY, NOISE = (500, 375), 92, 14


def make_photos(folder: Path, count: int, size: tuple[int, int] = SIZE) -> list[Path]:
    """Write photos of ``size`` (width, height), keep existing ones, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    photos = [Image.fromarray(pixels) for pixels in load_sample_images().images]
    paths = [folder / f"{number:05d}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        if not path.exists():
            _variant(photos[number % len(photos)], number, size).save(path, quality=QUALITY)
    return paths


def _variant(photo: Image.Image, number: int, size: tuple[int, int]) -> Image.Image:
    random = np.random.default_rng(number)
    scale = random.uniform(0.6, 1.0)
    width, height = int(photo.width * scale), int(photo.height * scale)
    left = int(random.integers(0, photo.width - width + 1))
    top = int(random.integers(0, photo.height - height + 1))
    crop = photo.crop((left, top, left + width, top + height)).resize(size)
    noise = random.integers(-NOISE, NOISE + 1, (size[1], size[0], 1))
    return Image.fromarray(np.clip(np.asarray(crop) + noise, 0, 255).astype(np.uint8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, required=True, metavar="DIR")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument(
        "--size",
        type=int,
        nargs=2,
        default=SIZE,
        metavar=("WIDTH", "HEIGHT"),
        help="in pixels",
    )
    args = parser.parse_args()
    paths = make_photos(args.to, args.count, tuple(args.size))
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} photos, {size / len(paths) / 1000:.0f} kB each, in {args.to}")


if __name__ == "__main__":
    main()
