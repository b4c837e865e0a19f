"""Make JPEG photos of about 100 KB from scikit-learn's two sample photographs.

    python -m benchmarks.photos --to DIR --count 5000

Each is another crop at 500x375 with some sensor noise, so no two are alike and they compress as
photographs do.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

WIDTH, HEIGHT, QUALITY, NOISE = 500, 375, 92, 14


def make_photos(folder: Path, count: int) -> list[Path]:
    """Write ``count`` photos into ``folder`` (those that are there stay) and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    photos = [Image.fromarray(pixels) for pixels in load_sample_images().images]
    paths = [folder / f"{number:05d}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        if not path.exists():
            _variant(photos[number % len(photos)], number).save(path, quality=QUALITY)
    return paths


def _variant(photo: Image.Image, number: int) -> Image.Image:
    random = np.random.default_rng(number)
    scale = random.uniform(0.6, 1.0)
    width, height = int(photo.width * scale), int(photo.height * scale)
    left = int(random.integers(0, photo.width - width + 1))
    top = int(random.integers(0, photo.height - height + 1))
    crop = photo.crop((left, top, left + width, top + height)).resize((WIDTH, HEIGHT))
    noise = random.integers(-NOISE, NOISE + 1, (HEIGHT, WIDTH, 1))
    return Image.fromarray(np.clip(np.asarray(crop) + noise, 0, 255).astype(np.uint8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, required=True, metavar="DIR")
    parser.add_argument("--count", type=int, default=5000)
    args = parser.parse_args()
    paths = make_photos(args.to, args.count)
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} photos, {size / len(paths) / 1000:.0f} kB each, in {args.to}")


if __name__ == "__main__":
    main()
