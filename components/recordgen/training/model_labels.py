"""``labels.txt``: the labels of a model, stored inside the model.

    MODEL/assets.extra/labels.txt   the dataset's labels.txt: line number (from 0) = number

Numbers need these names: another dataset may number the same labels differently.
"""

from __future__ import annotations

from collections.abc import Sequence

from recordgen import storage
from recordgen.core.dataset.manifest import LABELS_FILE
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.errors import SourceError

MODEL_LABELS_FILE = f"assets.extra/{LABELS_FILE}"


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
