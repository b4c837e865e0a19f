"""The cost of ``--max-side`` and its effect on a large photo.

    python -m benchmarks.photos --to DIR --count 20 --image-size 4000 3000
    python -m benchmarks.downscale --images DIR --max-side 512 --rounds 3

In one run, interleaved, on one thread:

    recordgen   the check with max_side: decodes at the smallest DCT scale that covers the target
    full        a decode at full size, then the same resize and the same JPEG quality
    check       the check without max_side: the bitstream is read to its end, nothing is resized

The difference between the two results is computed over all their decoded pixels, in levels of
0..255 and as PSNR. ``again`` is the effect of JPEG only: the full result before and after encoding.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.lint_precision import encoded
from recordgen.conversion.settings import payloads_of
from recordgen.core.image_settings import ImageSizing
from recordgen.options import ConvertOptions
from recordgen.payloads.check import check_image
from recordgen.payloads.resizing import LOSSY_QUALITY

Pixels = npt.NDArray[np.int16]


def full_resize(data: bytes, max_side: int) -> Image.Image:
    """Return the photo decoded at full size and resized with Lanczos."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    scale = max_side / max(image.size)
    target = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(target, Image.Resampling.LANCZOS)


def pixels(data: bytes) -> Pixels:
    """Return int16 [height, width, 3]."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(np.int16)


def compare(pairs: list[tuple[Pixels, Pixels]]) -> dict[str, float]:
    """Return the difference of pairs of images: levels of 0..255, and PSNR in dB."""
    apart = np.concatenate([np.abs(one - other).ravel() for one, other in pairs]).astype(np.float64)
    return {
        "mean": float(apart.mean()),
        "p99": float(np.percentile(apart, 99)),
        "psnr_db": float(10 * np.log10(255**2 / np.mean(apart**2))),
    }


def rate(work: Callable[[bytes], object], photos: list[bytes]) -> float:
    """Return images per second."""
    started = time.perf_counter()
    for data in photos:
        work(data)
    return len(photos) / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, required=True, metavar="DIR")
    parser.add_argument("--max-side", type=int, default=512, metavar="PX")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="take only the first N")
    parser.add_argument("--json", action="store_true", help="print only JSON")
    args = parser.parse_args()
    photos = [path.read_bytes() for path in sorted(args.images.glob("*.jpg"))[: args.limit]]
    if not photos:
        parser.error(f"{args.images} holds no JPEGs; see python -m benchmarks.photos --help")
    smaller = payloads_of(
        ConvertOptions(image_size=ImageSizing("max", args.max_side, args.max_side))
    )
    checked = payloads_of(ConvertOptions())
    contenders: dict[str, Callable[[bytes], object]] = {
        "recordgen": lambda data: check_image(data, smaller),
        "full": lambda data: encoded(full_resize(data, args.max_side), LOSSY_QUALITY),
        "check": lambda data: check_image(data, checked),
    }
    rounds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(args.rounds):
        for name, work in contenders.items():
            rounds[name].append(rate(work, photos))
    ours = [pixels(check_image(data, smaller).data) for data in photos]
    images = [full_resize(data, args.max_side) for data in photos]
    theirs = [pixels(encoded(image, LOSSY_QUALITY)) for image in images]
    exact = [np.asarray(image).astype(np.int16) for image in images]
    result: dict[str, Any] = {
        "examples_per_s": {name: statistics.median(values) for name, values in rounds.items()},
        "difference": compare(list(zip(ours, theirs, strict=True))),
        "again": compare(list(zip(exact, theirs, strict=True))),
        "rounds": rounds,
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result["examples_per_s"].items():
        print(f"median     {name:10s} {value:7.1f} images/s")
    for name in ("difference", "again"):
        values = "  ".join(f"{key} {value:.2f}" for key, value in result[name].items())
        print(f"{name:10s} {values}")


if __name__ == "__main__":
    main()
