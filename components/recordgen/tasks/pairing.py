"""What each task gives for training without TensorFlow: images, texts, segments, tokens, masks.

Masks move with the pixels of their images. Boxes and tables have a module of their own.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from operator import itemgetter
from typing import Any

import numpy as np
from PIL import Image

from recordgen import features
from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing, labelled
from recordgen.access.records import Example, Records
from recordgen.features import CLASS_LABEL, IMAGE_CLASS_LABEL, TAGS_LABEL, TEXT, TOKENS
from recordgen.subjects.class_masks import IGNORED, Mask, seen_through

#: The parts of a segment, and the features that hold them.
SEGMENT = {
    "uri": features.VIDEO_URI,
    "start": features.VIDEO_SEGMENT_START,
    "end": features.VIDEO_SEGMENT_END,
}


def images(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and their labels."""
    decode = decoder.of_examples(source.dataset)
    return labelled(source, there, decode.names, lambda e: decode(e).pixels, IMAGE_CLASS_LABEL)


def texts(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of texts and their labels."""
    return labelled(source, there, (TEXT,), itemgetter(TEXT), CLASS_LABEL)


def segments(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of segments (path of the video, start and end in seconds) and labels."""

    def segment(example: Example) -> dict[str, object]:
        return {part: example[name] for part, name in SEGMENT.items()}

    return labelled(source, there, tuple(SEGMENT.values()), segment, features.VIDEO_CLASS_LABEL)


def entities(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of tokens and tags; batches are padded as in ``recordgen.load``."""
    return Pairing((TOKENS, TAGS_LABEL), _tagged, padding=-1, least=1)


def _tagged(example: Example) -> Any:
    tokens, tags = example[TOKENS], example[TAGS_LABEL]
    if len(tokens) != len(tags):
        raise ValueError(f"{TAGS_LABEL} has {len(tags)} numbers for {len(tokens)} tokens")
    return {"tokens": tokens, "mask": np.ones(len(tokens), bool)}, tags


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
