"""What it costs that a bad image of a request does not fail the others.

    python -m benchmarks.serving [PHOTO]

A graph that decodes and resizes images as a saved model does, with and without bad-image handling,
in TensorFlow's C++ runtime: CPU milliseconds of a request, in turn, the median of all rounds.
Sizes are 32×32 for a made image of that size, and 96×96 for the photo.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from recordgen.reading.decoding import ImageDecoder
from tests.cpp_loader import CppModel

_REQUEST = tf.TensorSpec([None], tf.string, name="image_bytes")


def _save(folder: str, side: int, *, is_strict: bool) -> CppModel:
    decoder, path = ImageDecoder((side, side)), str(Path(folder, f"{side}-{is_strict}"))

    @tf.function(input_signature=[_REQUEST], autograph=False)
    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        if is_strict:
            return {"pixels": decoder.decode(images)}
        pixels, error = decoder.attempt(images)
        return {"pixels": pixels, "error": error}

    tf.saved_model.save(tf.Module(), path, signatures={"serving_default": serve})
    return CppModel(path)


def _small() -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photo", type=Path, nargs="?", help="an image file")
    parser.add_argument("--rounds", type=int, default=500)
    given = parser.parse_args()
    images = {32: _small()} | ({96: given.photo.read_bytes()} if given.photo else {})
    with tempfile.TemporaryDirectory() as folder:
        for side, image in images.items():
            models = [_save(folder, side, is_strict=strict) for strict in (True, False)]
            for batch in (1, 32):
                found: list[list[float]] = [[], []]
                for _ in range(max(10, given.rounds // batch)):
                    for times, model in zip(found, models, strict=True):
                        began = time.process_time()
                        model.run("serving_default", image_bytes=[image] * batch)
                        times.append(1000 * (time.process_time() - began))
                strict, attempted = map(statistics.median, found)
                print(
                    f"{side}×{side}, batch of {batch}: {strict:.3f} ms without handling, "
                    f"{attempted:.3f} ms with it: {strict / attempted:.2f} of the speed"
                )


if __name__ == "__main__":
    main()
