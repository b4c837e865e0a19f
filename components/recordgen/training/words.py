"""The mean of the vectors of a text's words and pairs of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

#: The input of a request.
TEXT = tf.TensorSpec([None], tf.string, name="text")

# Words, and pairs of neighbours: "not good" differs from "not" and "good".
MOST_TOKENS = 20_000
NGRAMS = 2

# Vectors of words take larger steps, from initial values in Keras's usual range. At the default
# rate, accuracy after ten epochs rose from 0.58 to 0.68 (texts of docs/results.md, seed 0).
_RANGE = 0.05
_STRETCH = 8.0

# Limits the memory for long texts.
_LONGEST = 1024

#: The row of all words that are not in a vocabulary; row 0 is padding.
UNKNOWN_WORD = 1


class WordVectors(keras.layers.Embedding):
    """Learnt vectors of a vocabulary: ids (int64 [...]) → float32 [..., width].

    Attributes:
        vocabulary: the word of each row; the first two are padding and ``[UNK]``.
    """

    def __init__(self, vocabulary: Sequence[str], width: int, initial: Any = "uniform") -> None:
        super().__init__(len(vocabulary), width, initial)
        self.vocabulary = tuple(vocabulary)

    def from_earlier(self, before: npt.NDArray[Any], words: Sequence[str]) -> npt.NDArray[Any]:
        """Return vectors [vocabulary, width], given an earlier model's vectors of its words.

        A new word has the vector of unknown words, which the earlier model used for it.
        """
        rows = {word: row for row, word in enumerate(words)}
        return before[[rows.get(word, UNKNOWN_WORD) for word in self.vocabulary]]


def word_vectors(model: keras.Model) -> list[WordVectors]:
    """Return a model's layers of word vectors, in the order of its weights."""
    parts = tf.train.TrackableView(model).descendants()
    found = {id(part.weights[0]): part for part in parts if isinstance(part, WordVectors)}
    return [found[id(weight)] for weight in model.weights if id(weight) in found]


def mean_of_words(
    words: keras.layers.TextVectorization, texts: keras.KerasTensor, width: int = 64
) -> keras.KerasTensor:
    """Return the mean vector (float32 [batch, width]) of the words of texts (string [batch]).

    ``words`` turns texts into ids, 0 for padding. The mean of a text without words is 0.
    """
    ids = words(texts)[:, :_LONGEST]
    small = keras.initializers.RandomUniform(-_RANGE / _STRETCH, _RANGE / _STRETCH)
    vectors = WordVectors(words.get_vocabulary(), width, small)(ids) * _STRETCH
    # Not GlobalAveragePooling1D: the mean of a text without words would be 0 / 0.
    is_word = keras.ops.cast(keras.ops.not_equal(ids, 0), "float32")[..., None]
    count = keras.ops.maximum(keras.ops.sum(is_word, axis=1), 1.0)
    return keras.ops.sum(vectors * is_word, axis=1) / count


def has_words(
    words: keras.layers.TextVectorization, texts: keras.KerasTensor, most: int
) -> keras.KerasTensor:
    """Return 1 for each of the ``most`` frequent words that a text has: float32 [batch, words]."""
    ids = words(texts)[:, :_LONGEST, None]
    known = np.arange(UNKNOWN_WORD + 1, min(words.vocabulary_size(), UNKNOWN_WORD + 1 + most))
    return keras.ops.cast(keras.ops.any(keras.ops.equal(ids, known), axis=1), "float32")
