"""Words and tokens of texts, split inside a TensorFlow graph for both training and serving.

Scripts without blanks between words (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) are split
into characters; :data:`recordgen.messages.UNSPACED` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from recordgen.messages import UNSPACED

if TYPE_CHECKING:
    import keras

# The rules of recordgen.tasks.texts.tags in RE2's syntax: blanks, and one token of a text
# after _apart.
_BLANKS = r"[\x09-\x0d\x1c-\x20\x{85}\pZ]+"
_TOKEN = r"[\pL\pN_][\pL\pN_\pM]*|[^\pL\pN_ ]\pM*"


def split_words(texts: tf.Tensor) -> tf.RaggedTensor:
    """Split texts at blanks, and around each character of a script without blanks.

    ``"Good food"`` → ``Good food``; ``"好吃 ok"`` → ``好 吃 ok``

    Returns:
        string [batch, (n)]; combining marks stay with the character before them.
    """
    return tf.strings.split(_apart(texts))


def has_unspaced(texts: tf.data.Dataset) -> bool:
    """Return whether any text (batches of string [batch]) is in a script without blanks."""
    pattern = f"(?s).*[{UNSPACED}].*"
    found = texts.map(lambda batch: tf.reduce_any(tf.strings.regex_full_match(batch, pattern)))
    return any(found.filter(lambda has: has).take(1))


def learn_words(
    texts: tf.data.Dataset, max_tokens: int, **settings: Any
) -> keras.layers.TextVectorization:
    """Return a layer that knows the words of batches of texts (string [batch])."""
    import keras

    # Prefer Keras's own function: a .keras file with ours can only be loaded with custom_objects.
    if "split" not in settings and has_unspaced(texts):
        settings["split"] = split_words
    layer = keras.layers.TextVectorization(max_tokens, **settings)
    layer.adapt(texts)
    return layer


def split_tokens(texts: tf.Tensor) -> tf.RaggedTensor:
    """Split texts into tokens, exactly as :func:`recordgen.tasks.texts.tags.tokenize` does.

    string [batch] → string [batch, (n)]
    """
    texts = _apart(tf.strings.regex_replace(texts, _BLANKS, " "))
    return tf.strings.split(tf.strings.regex_replace(texts, f"({_TOKEN})", r"\1 "))


def _apart(texts: tf.Tensor) -> tf.Tensor:
    """Put blanks around each character of a script without blanks."""
    return tf.strings.regex_replace(texts, rf"([{UNSPACED}]\pM*)", r" \1 ")
