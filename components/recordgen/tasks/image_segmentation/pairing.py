"""Images and their masks, which move with the pixels, without TensorFlow."""

from __future__ import annotations

import io
from collections.abc import Collection
from typing import Any

import numpy as np
from PIL import Image

from recordgen import features
from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing
from recordgen.access.records import Example, Records
from recordgen.core.records.class_masks import IGNORED, Mask, seen_through

_MASK = features.IMAGE_MASK_ENCODED


def masks(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and masks of class numbers."""
    decode = decoder.of_examples(source.dataset)

    def item(example: Example) -> Any:
        pixels, view, size = decode(example)
        mask = _decoded(np.asarray(example[_MASK]).tobytes())
        return pixels, seen_through(mask, view.tolist(), size)

    return Pairing((*decode.names, _MASK), item)


def _decoded(encoded: bytes) -> Mask:
    """Decode a stored mask; if there is none, all pixels are ignored. Raises: ValueError."""
    if not encoded:
        return np.full((1, 1), IGNORED, np.uint8)
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            if image.mode != "L":
                raise ValueError(f"its mask must be gray (got Pillow's mode {image.mode})")
            return np.asarray(image)
    except (OSError, SyntaxError, Image.DecompressionBombError) as exc:
        raise ValueError(f"its mask cannot be decoded: {exc}") from exc
