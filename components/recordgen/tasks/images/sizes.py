"""The size to which training resizes images, if the user chooses none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from recordgen import features
from recordgen.core.records import RECORDS
from recordgen.reading import parsing_spec
from recordgen.training.config import SMALL_CNN

# Shards hold examples in random order, so the first records of some are a sample.
_FILES, _RECORDS = 16, 256


class _Range(NamedTuple):
    """The sides of a network's images: multiples of a number of pixels."""

    least: int
    most: int
    multiple: int


# Small networks halve images until sides are below 8 pixels. Those of keras.applications halve them
# five times, refuse less than 32 to 75 pixels, and were designed for 224 or more.
_SMALL = _Range(32, 96, 8)
_LARGE = _Range(96, 224, 32)


def sampled_sizes(files: Sequence[str]) -> list[tuple[int, int]]:
    """Return height and width of some images in shards, in pixels. Raises: RecordError."""
    some = files[:: -(-len(files) // _FILES) or 1]
    each = -(-_RECORDS // max(1, len(some)))
    records = list(chain.from_iterable(islice(RECORDS.read(file), each) for file in some))
    if not records:
        return []
    sides = features.IMAGE_HEIGHT, features.IMAGE_WIDTH
    parsed = tf.io.parse_example(tf.constant(records), parsing_spec(sides))
    heights, widths = (parsed[side].numpy().tolist() for side in sides)
    return [size for size in zip(heights, widths, strict=True) if min(size) > 0]


def size_of(model: str, sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return height and width for a model: the medians of ``sizes``, rounded and limited.

    32×32 and 500×375 pixels become 32×32 and 96×96 for ``small_cnn``, and 96×96 and 224×224 for
    a model in keras.applications. Without sizes, images have 96×96 pixels.
    """
    known = list(sizes) or [(96, 96)]
    least, most, multiple = _SMALL if model == SMALL_CNN else _LARGE
    height, width = (
        min(most, max(least, multiple * round(float(side) / multiple)))
        for side in np.median(known, axis=0)
    )
    return height, width
