"""Tokens and the numbers of their tags, without TensorFlow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from recordgen.access.decode import Decoder
from recordgen.access.pairs import Pairing
from recordgen.access.records import Example, Records
from recordgen.features import TAGS_LABEL, TOKENS


def entities(source: Records, there: Collection[str], decoder: Decoder) -> Pairing:
    """Return the pairing of tokens and tags; batches are padded as in ``recordgen.load``."""
    return Pairing((TOKENS, TAGS_LABEL), _tagged, padding=-1, least=1)


def _tagged(example: Example) -> Any:
    tokens, tags = example[TOKENS], example[TAGS_LABEL]
    if len(tokens) != len(tags):
        raise ValueError(f"{TAGS_LABEL} has {len(tags)} numbers for {len(tokens)} tokens")
    return {"tokens": tokens, "mask": np.ones(len(tokens), bool)}, tags
