"""What a network sees of a text: the mean of its words' vectors, and of pairs of words."""

from __future__ import annotations

import keras

# Words, and pairs of neighbours: "not good" is something else than "not" and "good".
MOST_TOKENS = 20_000
NGRAMS = 2
_WIDTH = 64

# Of each text so many are looked at, so that a long one does not fill the memory.
_LONGEST = 1024


def mean_of_words(
    words: keras.layers.TextVectorization, texts: keras.KerasTensor
) -> keras.KerasTensor:
    """Return the mean of learnt vectors (float32 [batch, width]) of texts (string [batch]).

    Args:
        words: turns texts into ids, 0 for padding.
        texts: of which a text without any word has a mean of 0.
    """
    ids = words(texts)[:, :_LONGEST]
    vectors = keras.layers.Embedding(words.vocabulary_size(), _WIDTH)(ids)
    # Not GlobalAveragePooling1D: a text without any word would have a mean of 0 / 0.
    is_word = keras.ops.cast(keras.ops.not_equal(ids, 0), "float32")[..., None]
    count = keras.ops.maximum(keras.ops.sum(is_word, axis=1), 1.0)
    return keras.ops.sum(vectors * is_word, axis=1) / count
