"""``inputs.json``: what a saved model knows of its inputs, for a training that begins with it.

    MODEL/assets.extra/inputs.json   {"words": [["", "[UNK]", "good", …]], "columns": {…}, …}

Weights mean nothing without it: another dataset numbers other words, and its numbers have another
mean and deviation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordgen import storage
from recordgen.errors import SourceError
from recordgen.standards.model_labels import read_model_labels

INPUTS_FILE = "assets.extra/inputs.json"


@dataclass(frozen=True, slots=True)
class EarlierModel:
    """The model that a warm start begins with.

    Attributes:
        path: its folder or URL.
        labels: its labels, by number; (): it predicts numbers.
        inputs: its ``inputs.json``: ``words``, and what its task's trainer has added; {}: an
            earlier version, or another program, has saved it.
    """

    path: str
    labels: tuple[str, ...]
    inputs: Mapping[str, Any]

    @classmethod
    def read(cls, path: str) -> EarlierModel:
        """Read what a saved model knows.

        Raises:
            SourceError: it does not know its labels, or its ``inputs.json`` is no JSON.
        """
        labels, file = read_model_labels(path), storage.join(path, INPUTS_FILE)
        try:
            return cls(path, labels, json.loads(storage.read_text(file)))
        except FileNotFoundError:
            return cls(path, labels, {})
        except (OSError, ValueError) as exc:
            raise SourceError(
                f"{file}: cannot be read ({exc}); train without base_model once"
            ) from exc


def write_inputs(model: str, inputs: Mapping[str, Any]) -> None:
    """Write what a model knows of its inputs, if that is anything. Raises: StorageError."""
    if not inputs:
        return
    text = json.dumps(inputs, ensure_ascii=False) + "\n"
    storage.write_text(storage.join(model, INPUTS_FILE), text)
