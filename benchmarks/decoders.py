"""Compare the fast decoder with TensorFlow's default: difference of pixels, and time.

    python -m benchmarks.decoders --data DIR [--limit 64]

The JPEGs in DIR are decoded at several sizes. The output has the difference of pixels
(levels of 255) from ``decoder="exact"``, for ``decoder="fast"`` and for ``tf.io.decode_jpeg`` and
``tf.image.resize`` without options, as in tutorials. Times are CPU milliseconds per image in one
thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SIDES = (224, 160, 96, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--limit", type=int, default=64, metavar="N")
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

    def resized(data: Any, side: int) -> Any:
        return tf.image.resize(tf.io.decode_jpeg(data, 3), (side, side))

    def ours(data: Any, side: int, decoder: str) -> Any:
        return decode_images(data[None], (side, side), decoder=decoder)[0] * 255

    print(f"{len(images)} JPEGs      fast                              without options       exact")
    for side in SIDES:
        ways = [
            partial(ours, side=side, decoder="fast"),
            partial(resized, side=side),
            partial(ours, side=side, decoder="exact"),
        ]
        run = [tf.function(way, input_signature=[tf.TensorSpec((), tf.string)]) for way in ways]
        errors, others = (
            np.concatenate([_difference(one(data), run[2](data)) for data in images])
            for one in run[:2]
        )
        times = [_milliseconds(way, images) for way in run]
        print(
            f"{f'{side}x{side}':8s} "
            f"mean {errors.mean():.2f}, 99 % within {np.percentile(errors, 99):3.0f}, "
            f"{times[0]:6.2f} ms    mean {others.mean():5.2f}, {times[1]:6.2f} ms    "
            f"{times[2]:6.2f} ms"
        )


def _difference(one: npt.ArrayLike, other: npt.ArrayLike) -> npt.NDArray[np.float16]:
    difference = np.abs(np.asarray(one, np.float32) - np.asarray(other, np.float32))
    # 7 is no multiple of 3, so the sample has every channel.
    sample: npt.NDArray[np.float16] = difference.astype(np.float16).ravel()[::7]
    return sample


def _milliseconds(decode: Callable[[bytes], object], images: list[bytes]) -> float:
    started = time.process_time()
    for data in images:
        decode(data)
    return (time.process_time() - started) / len(images) * 1000


if __name__ == "__main__":
    main()
