"""Files of a saved model that say what its numbers mean, to evaluate it or to train it further.

    MODEL/assets.extra/labels.txt    the dataset's labels.txt: line number (from 0) = number
    MODEL/assets.extra/inputs.json   {"words": [["", "[UNK]", "good", …]], "columns": {…}, …}

Another dataset numbers the same labels and words differently, and its numbers have another mean and
deviation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recordgen import storage
from recordgen.core.dataset.manifest import LABELS_FILE
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.errors import SourceError
from recordgen.lineage import LINEAGE_FILE

MODEL_LABELS_FILE = f"assets.extra/{LABELS_FILE}"
INPUTS_FILE = "assets.extra/inputs.json"


@dataclass(frozen=True, slots=True)
class EarlierModel:
    """The model that a warm start begins with.

    Attributes:
        labels: its labels, by number; empty if it predicts numbers.
        inputs: its ``inputs.json``: ``words``, and additions of the task's trainer; empty if an
            earlier version, or another program, saved the model.
        settings: the settings of its training; empty if another program saved it.
    """

    path: str
    labels: tuple[str, ...]
    inputs: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str) -> EarlierModel:
        """Read the labels, ``inputs.json`` and ``lineage.json`` of a saved model.

        Raises: SourceError: the labels are missing, or a file is not JSON.
        """
        lineage = _read_json(storage.join(path, LINEAGE_FILE))
        return cls(
            path,
            read_model_labels(path),
            _read_json(storage.join(path, INPUTS_FILE)),
            lineage.get("settings", {}),
        )


def _read_json(file: str) -> Mapping[str, Any]:
    """Return the object in a file; an empty one if there is no file. Raises: SourceError."""
    try:
        found: Mapping[str, Any] = json.loads(storage.read_text(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise SourceError(f"{file}: cannot be read ({exc}); train without base_model once") from exc
    return found


def write_inputs(model: str, inputs: Mapping[str, Any]) -> None:
    """Write ``inputs.json``, unless ``inputs`` is empty. Raises: StorageError."""
    if not inputs:
        return
    text = json.dumps(inputs, ensure_ascii=False) + "\n"
    storage.write_text(storage.join(model, INPUTS_FILE), text)


def write_model_labels(model: str, labels: Sequence[str]) -> None:
    """Write the labels into a saved model's folder. Raises: StorageError."""
    storage.write_text(storage.join(model, MODEL_LABELS_FILE), labels_text(labels))


def read_model_labels(model: str) -> tuple[str, ...]:
    """Return a saved model's labels, by number; () if it predicts numbers.

    Raises: SourceError: the model has no labels file.
    """
    path = storage.join(model, MODEL_LABELS_FILE)
    try:
        # Not splitlines: it also splits at characters that a label may contain, such as U+2028.
        return tuple(storage.read_text(path).split("\n")[:-1])
    except OSError as exc:
        raise SourceError(
            f"{path}: cannot be read ({exc.strerror or exc}), so the model's labels are unknown; "
            f"give a model that recordgen.training of this version has saved"
        ) from exc
