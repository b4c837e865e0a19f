"""Keras layers from texts or tokens to ids, adapted to a split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordgen.access.shards import find_shards
from recordgen.core.dataset import splits
from recordgen.errors import UsageError
from recordgen.reading.checks import check_at_least
from recordgen.reading.datasets import Source, eval_dataset
from recordgen.reading.kinds import kind_of
from recordgen.reading.words import has_unspaced, split_words

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

# Large batches: adapting makes one call for each.
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

    Unlabelled texts count too. Use the split ``train``: a model must not know the words of the
    texts that evaluate it.

    Args:
        source: as in :func:`recordgen.input_fn`; a dataset of texts.
        max_tokens: size of the vocabulary, with 0 for padding and 1 for any other word.
        sequence_length: ids per text: longer texts are cut, shorter ones padded with 0; None: the
            length of the longest in a batch.
        split: the split to use.
        task: a task of labelled texts, for files without a ``dataset.json``.
        **settings: further arguments of ``keras.layers.TextVectorization``, such as ``ngrams=2`` or
            ``standardize=None``. Without ``split``, blanks separate words, and the characters of
            scripts without blanks, such as Chinese, Japanese and Thai, are words.

    Returns:
        The layer: string [batch] → int64 [batch, n].

    Raises: UsageError: an option is wrong; RecordgenError: as :func:`recordgen.input_fn`.
    """
    check_at_least(3, max_tokens=max_tokens)
    if sequence_length is not None:
        check_at_least(1, sequence_length=sequence_length)
        settings["output_sequence_length"] = sequence_length
    _need_words("texts", source, split, task, "text_vectorization is for labelled texts")
    texts = eval_dataset(source, batch_size=_BATCH_SIZE, split=split, task=task, label_mode=None)
    return learn_words(texts, max_tokens, **settings)


def _need_words(words: str, source: Source, split: str, task: str, what: str) -> None:
    """Check that words can be learned from the examples of a source. Raises: UsageError."""
    shards = find_shards(source, split)
    if kind_of(shards, {"task": task}).words == words:
        return
    if shards.dataset is None:
        path = shards.files[0].path
        raise UsageError(f"{what}; give task, as no dataset.json says what {path} holds")
    raise UsageError(f"{what}, and these are examples of {shards.dataset.task}")


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


def token_lookup(
    source: Source, *, max_tokens: int = 20_000, split: str = splits.TRAIN, task: str = "auto"
) -> keras.layers.StringLookup:
    """Return a layer that turns tokens into ids, with the tokens of one split as its vocabulary.

    Args:
        source: as in :func:`recordgen.input_fn`; a dataset of entities in texts.
        max_tokens: size of the vocabulary, with 0 for padding and 1 for any other token.
        split: the split to use.
        task: ``text_entities``, for files without a ``dataset.json``.

    Returns:
        The layer: string [batch, n] → int64 [batch, n].

    Raises: RecordgenError: as :func:`text_vectorization`.
    """
    import keras

    check_at_least(3, max_tokens=max_tokens)
    _need_words("tokens", source, split, task, "token_lookup is for entities in texts")
    batches = eval_dataset(source, batch_size=_BATCH_SIZE, split=split, task=task)
    layer = keras.layers.StringLookup(max_tokens=max_tokens, mask_token="")
    layer.adapt(batches.map(lambda inputs, tags: inputs["tokens"]))
    return layer
