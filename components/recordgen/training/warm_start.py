"""Warm start: a training that begins with the weights of an earlier model (``fn_args.base_model``).

Datasets number labels, words and columns differently, so weights are matched by name:

- A label keeps its weights in the last layer; a new label begins with random weights.
- A word keeps its vector; a new word begins with the vector of unknown words, which the earlier
  model used for it. Words that are not in the new data are dropped.
- Numbers are normalised with the mean and deviation of the new data. The weights of the next layer
  are rescaled, so that the output stays the same.

All other weights must have the same shapes.
"""

from __future__ import annotations

import logging

import keras
import tensorflow as tf

from recordgen.errors import UsageError
from recordgen.training.earlier import EarlierModel
from recordgen.training.learner import TaskTrainer
from recordgen.training.words import WordVectors, word_vectors

_log = logging.getLogger(__name__)

# Layers that number words differently for each dataset.
_LOOKUPS = (keras.layers.StringLookup, keras.layers.IntegerLookup)


def warm_start(model: keras.Model, trainer: TaskTrainer, earlier: EarlierModel) -> None:
    """Copy the weights of an earlier model, saved by ``run_fn``, to ``model``.

    The last layer of ``model``, which ``trainer`` has built, has outputs for each label.

    Raises:
        UsageError: the earlier model has other layers, no weights, or no list of the words that
            its vectors belong to.
    """
    base, labels = earlier.path, trainer.dataset.labels
    vectors, words = word_vectors(model), earlier.inputs.get("words", [])
    parts = tf.train.TrackableView(model).descendants()
    if len(vectors) != sum(isinstance(part, _LOOKUPS) for part in parts):
        raise UsageError(
            f"base_model needs models whose vocabularies belong to {WordVectors.__name__} layers, "
            f"but {model.name} has other lookups, which number words differently; train without it"
        )
    if len(vectors) != len(words):
        raise UsageError(
            f"base_model {base} names the words of {len(words)} vocabularies, but this model has "
            f"{len(vectors)}; if an earlier version saved it, train without it once"
        )
    saved = getattr(tf.saved_model.load(base), "weights", None)
    if saved is None:
        raise UsageError(
            f"base_model {base} has no weights to begin with: an earlier version, or another "
            f"program, saved it; train without it once"
        )
    if len(saved) != len(model.weights):
        raise UsageError(
            f"base_model {base} has {len(saved)} weights, but this model has {len(model.weights)}; "
            f"use the settings that it was trained with, or train without it"
        )
    last = next(layer for layer in reversed(model.layers) if layer.weights)
    outputs = {id(weight) for weight in last.weights}
    names, known = trainer.outputs_of(labels), trainer.outputs_of(earlier.labels)
    shared = [name for name in names if name in set(known)]
    mine, theirs = [names.index(name) for name in shared], [known.index(x) for x in shared]
    layers = {
        id(layer.weights[0]): (layer, known_words)
        for layer, known_words in zip(vectors, words, strict=True)
    }
    rescaled = trainer.rescaled(model, [weight.numpy() for weight in saved], earlier)
    for weight, before in zip(model.weights, rescaled, strict=True):
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
            raise UsageError(
                f"base_model {base} has a weight of shape {before.shape} where this model's "
                f"{weight.path} has {values.shape}; use the settings that it was trained with, or "
                f"train without it"
            )
        weight.assign(values)
    both = set(labels) & set(earlier.labels)
    _log.info("begins with %s, which knows %d of %d labels", base, len(both), len(labels))
