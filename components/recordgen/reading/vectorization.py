"""Texts, or tokens, → ids: a Keras layer that has seen those of a split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordgen.dataset import splits
from recordgen.reading.checks import check_at_least
from recordgen.reading.datasets import Source, eval_dataset
from recordgen.reading.words import has_unspaced, split_words

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

# Texts that are looked at together: adapting costs a call for each batch.
_BATCH_SIZE = 1024


def text_vectorization(
    source: Source,
    *,
    max_tokens: int = 20_000,
    sequence_length: int | None = None,
    split: str = splits.TRAIN,
    task: str = "auto",
    **settings: Any,
) -> keras.layers.TextVectorization:
    """Return a layer that turns texts into ids, with the words of one split as its vocabulary.

    Texts without a label are looked at too. Only the split ``train`` should be: a model must not
    know the words of what it is evaluated on.

    Args:
        source: as in :func:`recordgen.input_fn`; a dataset of texts.
        max_tokens: size of the vocabulary, with 0 for padding and 1 for any other word.
        sequence_length: ids per text: longer texts are cut off, shorter ones padded with 0; None:
            those of the longest in a batch.
        split: the split to look at.
        task: of files without a ``dataset.json``, one of :data:`recordgen.features.TEXT_TASKS`.
        **settings: further arguments of ``keras.layers.TextVectorization``, such as ``ngrams=2`` or
            ``standardize=None``. Unless ``split`` is given, words are what lies between blanks,
            and single characters in scripts without blanks, such as Chinese, Japanese and Thai.

    Returns:
        The layer: string [batch] → int64 [batch, n].

    Raises:
        UsageError: an option is wrong.
        And as :func:`recordgen.input_fn`.
    """
    check_at_least(3, max_tokens=max_tokens)
    if sequence_length is not None:
        check_at_least(1, sequence_length=sequence_length)
        settings["output_sequence_length"] = sequence_length
    texts = eval_dataset(source, batch_size=_BATCH_SIZE, split=split, task=task, label_mode=None)
    return learn_words(texts, max_tokens, **settings)


def learn_words(
    texts: tf.data.Dataset, max_tokens: int, **settings: Any
) -> keras.layers.TextVectorization:
    """Return a layer that knows the words of texts (string [batch]).

    Args:
        texts: batches of them.
        max_tokens: as in :func:`text_vectorization`.
        **settings: as in :func:`text_vectorization`.
    """
    import keras

    # Keras's own way where it is enough: a .keras file with a function of ours in it is only
    # loaded with custom_objects.
    if "split" not in settings and has_unspaced(texts):
        settings["split"] = split_words
    layer = keras.layers.TextVectorization(max_tokens, **settings)
    layer.adapt(texts)
    return layer


def token_lookup(
    source: Source, *, max_tokens: int = 20_000, split: str = splits.TRAIN, task: str = "auto"
) -> keras.layers.StringLookup:
    """Return a layer that turns tokens into ids, with those of one split as its vocabulary.

    Args:
        source: as in :func:`recordgen.input_fn`; a dataset of entities in texts.
        max_tokens: size of the vocabulary, with 0 for padding and 1 for any other token.
        split: the split to look at.
        task: of files without a ``dataset.json``: ``text_entities``.

    Returns:
        The layer: string [batch, n] → int64 [batch, n].

    Raises:
        As :func:`text_vectorization`.
    """
    import keras

    check_at_least(3, max_tokens=max_tokens)
    batches = eval_dataset(source, batch_size=_BATCH_SIZE, split=split, task=task)
    layer = keras.layers.StringLookup(max_tokens=max_tokens, mask_token="")
    layer.adapt(batches.map(lambda inputs, tags: inputs["tokens"]))
    return layer
