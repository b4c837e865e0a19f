"""Images and the numbers of their classes, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection

from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing, labelled
from recordgen.access.records import Records
from recordgen.features import IMAGE_CLASS_LABEL


def images(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of images and their labels."""
    decode = decoder.of_examples(source.dataset)
    return labelled(source, there, decode.names, lambda e: decode(e).pixels, IMAGE_CLASS_LABEL)
