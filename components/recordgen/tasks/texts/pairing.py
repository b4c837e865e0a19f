"""Texts and the numbers of their classes, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter

from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing, labelled
from recordgen.access.records import Records
from recordgen.features import CLASS_LABEL, TEXT


def texts(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of texts and their labels."""
    return labelled(source, there, (TEXT,), itemgetter(TEXT), CLASS_LABEL)
