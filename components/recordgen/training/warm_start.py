"""Warm start: a training that begins with the weights of an earlier model (``fn_args.base_model``).

Datasets number labels, words and columns differently, so weights are matched by name:

- A label keeps its weights in the last layer; a new label begins with random weights.
- A word keeps its vector; a new word begins with the vector of unknown words, which the earlier
  model used for it. Words that are not in the new data are dropped.
- Numbers are normalised with the earlier model's mean and deviation, so that the output stays the
  same.

All other weights must have the same shapes.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.training.learner import TaskTrainer
from recordgen.training.model_files import EarlierModel
from recordgen.training.progress_log import log_info
from recordgen.training.words import WordVectors, word_vectors

# Layers that number words differently for each dataset.
_LOOKUPS = (keras.layers.StringLookup, keras.layers.IntegerLookup)


def warm_start(model: keras.Model, trainer: TaskTrainer, earlier: EarlierModel) -> None:
    """Copy the weights of an earlier model, saved by ``run_fn``, to ``model``.

    The last layer of ``model``, which ``trainer`` has built, has outputs for each label.

    Raises:
        UsageError: the earlier model has other layers, no weights, or no list of the words that
            its vectors belong to.
    """
    labels = trainer.dataset.labels
    vectors, words = word_vectors(model), earlier.inputs.get("words", [])
    parts = tf.train.TrackableView(model).descendants()
    if len(vectors) != sum(isinstance(part, _LOOKUPS) for part in parts):
        raise _refused(earlier, f"{model.name} has vocabularies without {WordVectors.__name__}")
    if len(vectors) != len(words):
        raise _refused(earlier, f"it names {len(words)} vocabularies instead of {len(vectors)}")
    saved = getattr(tf.saved_model.load(earlier.path), "weights", ())
    if len(saved) != len(model.weights):
        raise _refused(earlier, f"it has {len(saved)} weights instead of {len(model.weights)}")
    last = next(layer for layer in reversed(model.layers) if layer.weights)
    outputs = {id(weight) for weight in last.weights}
    names, known = trainer.outputs_of(labels), trainer.outputs_of(earlier.labels)
    shared = [name for name in names if name in set(known)]
    mine, theirs = [names.index(name) for name in shared], [known.index(x) for x in shared]
    layers = {
        id(layer.weights[0]): (layer, known_words)
        for layer, known_words in zip(vectors, words, strict=True)
    }
    for weight, stored in zip(model.weights, saved, strict=True):
        before = stored.numpy()
        values = weight.value.numpy().copy()
        ends = (values.shape[-1:], before.shape[-1:])
        is_output = id(weight) in outputs
        if id(weight) in layers and ends[0] == ends[1]:
            layer, known_words = layers[id(weight)]
            values = layer.from_earlier(before, known_words)
        elif is_output and ends == ((len(names),), (len(known),)):
            values[..., mine] = before[..., theirs]
        elif values.shape == before.shape and (not is_output or names == known):
            values = before
        elif not is_output:
            raise _refused(earlier, f"{weight.path} has shape {values.shape}, not {before.shape}")
        weight.assign(values)
    both = set(labels) & set(earlier.labels)
    log_info("begins with %s, which knows %d of %d labels", earlier.path, len(both), len(labels))


def _refused(earlier: EarlierModel, why: str) -> UsageError:
    return UsageError(
        f"base_model {earlier.path} does not fit this model: {why}; use a model that this version "
        f"has saved, and the settings that it was trained with, or train without it once"
    )
