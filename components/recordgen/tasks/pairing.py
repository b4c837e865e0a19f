"""Inputs and the numbers of their classes, without TensorFlow: images, texts, segments, tokens.

Tasks whose labels move with the pixels, and tables, have a module of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter
from typing import Any

import numpy as np

from recordgen import features
from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing, labelled
from recordgen.access.records import Example, Records
from recordgen.features import CLASS_LABEL, IMAGE_CLASS_LABEL, TAGS_LABEL, TEXT, TOKENS

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
