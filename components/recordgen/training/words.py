"""The mean of the vectors of a text's words and pairs of words."""

from __future__ import annotations

import keras

# Words, and pairs of neighbours: "not good" differs from "not" and "good".
MOST_TOKENS = 20_000
NGRAMS = 2
_WIDTH = 64

# Limits the memory for long texts.
_LONGEST = 1024


def mean_of_words(
    words: keras.layers.TextVectorization, texts: keras.KerasTensor
) -> keras.KerasTensor:
    """Return the mean of learnt vectors (float32 [batch, width]) of texts (string [batch]).

    ``words`` turns texts into ids, 0 for padding. A text without words has a mean of 0.
    """
    ids = words(texts)[:, :_LONGEST]
    vectors = keras.layers.Embedding(words.vocabulary_size(), _WIDTH)(ids)
    # Not GlobalAveragePooling1D: a text without any word would have a mean of 0 / 0.
    is_word = keras.ops.cast(keras.ops.not_equal(ids, 0), "float32")[..., None]
    count = keras.ops.maximum(keras.ops.sum(is_word, axis=1), 1.0)
    return keras.ops.sum(vectors * is_word, axis=1) / count
