"""What the fast decoder costs in pixels and gains in time, against TensorFlow's default.

    python -m benchmarks.decoders --data DIR [--image-size 224 224] [--limit 200]

For the JPEGs in DIR: the difference between pixels (0..255) of the whole image decoded with the
fast flags and with the default ones; and between images of the size asked for, as
``decoder="fast"`` and ``decoder="exact"`` make them, which includes the scaled decoding and the
resizing without antialiasing. Times are CPU milliseconds per image in one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--limit", type=int, default=200, metavar="N")
    parser.add_argument(
        "--image-size", type=int, nargs=2, default=(224, 224), metavar=("HEIGHT", "WIDTH")
    )
    args = parser.parse_args()
    files = sorted(
        path for path in args.data.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")
    )
    images = [path.read_bytes() for path in files[: args.limit]]
    if not images:
        raise SystemExit(f"{args.data} holds no JPEGs")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    from recordgen.reading import decode_images

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    size = tuple(args.image_size)
    text = [tf.TensorSpec((), tf.string)]

    def whole(**flags: object) -> Callable[[bytes], object]:
        return tf.function(lambda data: tf.io.decode_jpeg(data, 3, **flags), input_signature=text)

    def resized(decoder: str) -> Callable[[bytes], object]:
        return tf.function(
            lambda data: decode_images(data[None], size, decoder=decoder)[0] * 255,
            input_signature=text,
        )

    pairs = {
        "whole image": (whole(dct_method="INTEGER_FAST", fancy_upscaling=False), whole()),
        f"{size[0]}x{size[1]}": (resized("fast"), resized("exact")),
    }
    print(f"{len(images)} JPEGs, fast against default")
    for name, (fast, exact) in pairs.items():
        errors = np.concatenate([_difference(fast(data), exact(data)) for data in images])
        times = [_milliseconds(decode, images) for decode in (fast, exact)]
        print(
            f"{name:12s} mean error {errors.mean():.2f}, 99 % of values within "
            f"{np.percentile(errors, 99):.0f}, largest {errors.max():.0f}; "
            f"{times[0]:.2f} ms against {times[1]:.2f} ms"
        )


def _difference(one: object, other: object) -> np.ndarray:
    difference = np.asarray(one, np.float32) - np.asarray(other, np.float32)
    return np.abs(difference).astype(np.float16).ravel()[::7]  # every channel comes into the sample


def _milliseconds(decode: Callable[[bytes], object], images: list[bytes]) -> float:
    started = time.process_time()
    for data in images:
        decode(data)
    return (time.process_time() - started) / len(images) * 1000


if __name__ == "__main__":
    main()
