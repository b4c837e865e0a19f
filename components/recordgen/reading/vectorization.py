"""Texts, or tokens, → ids: a Keras layer that has seen those of a split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordgen import splits
from recordgen.reading.datasets import Source, eval_dataset
from recordgen.reading.options import check_at_least

if TYPE_CHECKING:
    import keras

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
            ``standardize=None``.

    Returns:
        The layer: string [batch] → int64 [batch, n].

    Raises:
        UsageError: an option is wrong.
        And as :func:`recordgen.input_fn`.
    """
    import keras

    check_at_least(3, max_tokens=max_tokens)
    if sequence_length is not None:
        check_at_least(1, sequence_length=sequence_length)
        settings["output_sequence_length"] = sequence_length
    texts = eval_dataset(source, batch_size=_BATCH_SIZE, split=split, task=task, label_mode="none")
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
