"""Warm start: a training that begins with the weights of an earlier model (``fn_args.base_model``).

The earlier model may know other labels: each label takes the weights that it had there, by name,
and a new label begins at random. The last layer of a model of boxes begins at random if labels
differ. All other weights must fit.
"""

from __future__ import annotations

import logging

import keras
import tensorflow as tf

from recordgen.dataset.manifest import Dataset
from recordgen.errors import UsageError
from recordgen.standards.model_labels import read_model_labels
from recordgen.tasks import TASKS

_log = logging.getLogger(__name__)


#: The kinds of tasks that may begin so: pixels mean the same in each dataset, and words and columns
#: are numbered anew.
KINDS = ("image", "video")


def warm_start(model: keras.Model, dataset: Dataset, base: str) -> None:
    """Set the weights of ``model`` to those of an earlier one.

    Args:
        model: the new model, whose last layer has outputs for each label.
        dataset: what it is trained on.
        base: folder or URL of a SavedModel that :func:`recordgen.training.run_fn` has saved.

    Raises:
        UsageError: the earlier model has other layers, or keeps no weights; or the examples are
            neither images nor videos.
        SourceError: it does not know its labels.
    """
    if TASKS[dataset.task].kind not in KINDS:
        raise UsageError(
            f"base_model is for images and videos, not for {dataset.task}, whose words or columns "
            f"are learnt anew from each dataset (got {base}); train without it"
        )
    labels, known = dataset.labels, read_model_labels(base)
    saved = getattr(tf.saved_model.load(base), "weights", None)
    if saved is None:
        raise UsageError(
            f"base_model {base} keeps no weights to begin with: an earlier version, or another "
            f"program, has saved it; train without it once"
        )
    if len(saved) != len(model.weights):
        raise UsageError(
            f"base_model {base} has {len(saved)} weights, and this model has {len(model.weights)}; "
            f"give the settings that it was trained with, or train without it"
        )
    last = next(layer for layer in reversed(model.layers) if layer.weights)
    outputs = {id(weight) for weight in last.weights}
    shared = [label for label in labels if label in set(known)]
    mine, theirs = [labels.index(label) for label in shared], [known.index(x) for x in shared]
    for weight, old in zip(model.weights, saved, strict=True):
        values, before = weight.value.numpy().copy(), old.numpy()
        ends = (values.shape[-1:], before.shape[-1:])
        if id(weight) in outputs and ends == ((len(labels),), (len(known),)):
            values[..., mine] = before[..., theirs]
        elif values.shape == before.shape and (id(weight) not in outputs or labels == known):
            values = before
        elif id(weight) not in outputs:
            raise UsageError(
                f"base_model {base} has a weight of shape {before.shape} where this model's "
                f"{weight.path} has {values.shape}; give the settings that it was trained with, or "
                f"train without it"
            )
        weight.assign(values)
    _log.info("begins with %s, which knows %d of %d labels", base, len(shared), len(labels))
