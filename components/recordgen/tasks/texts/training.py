"""Labels and sentiments of texts: a network over the mean vector of words and pairs of words.

Entities in texts: a small network that predicts the tag of each token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy.typing as npt
import tensorflow as tf

from recordgen import features
from recordgen.reading import eval_dataset, parsing_spec
from recordgen.reading.detection import padded
from recordgen.reading.words import learn_words, split_tokens
from recordgen.tasks import TextEntities
from recordgen.tasks.texts.tags import OUTSIDE, tag_names
from recordgen.training.config import FLOAT32, LABEL, SCORES, UNKNOWN, WEIGHT
from recordgen.training.learner import LabelTrainer, ManyLabels, OneLabel, TaskTrainer, in_order
from recordgen.training.model import Models, answer, predicted
from recordgen.training.words import (
    MOST_TOKENS,
    NGRAMS,
    TEXT,
    UNKNOWN_WORD,
    WordVectors,
    mean_of_words,
)


class TextLabels(LabelTrainer):
    """The base of both trainers of texts."""

    feature = features.CLASS_TEXT
    request = (TEXT,)

    def models(self) -> Models:
        """Build a classifier with the vocabulary of the training split.

        string [batch] → float32 [batch, classes], the probabilities of the labels.
        """
        texts = eval_dataset(self.root, batch_size=1024, split=self.split, label_mode=None)
        words = learn_words(texts, MOST_TOKENS, ngrams=NGRAMS)
        inputs = keras.Input((), dtype="string", name="text")
        mean = mean_of_words(words, inputs)
        outputs = answer(mean, self.config, len(self.dataset.labels), self.activation)
        model = keras.Model(inputs, outputs, name="words")
        return Models(model, model)

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``text`` → ``labels`` and ``scores``, best first."""
        return self.best(predicted(model, request[0]))

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        spec = {features.TEXT: tf.io.FixedLenFeature((), tf.string)}
        return predicted(model, tf.io.parse_example(records, spec)[features.TEXT])


class OneTextLabel(TextLabels, OneLabel):
    """One label per text, or a sentiment."""


class ManyTextLabels(TextLabels, ManyLabels):
    """Any number of labels per text."""


# --- entities ------------------------------------------------------------------------------------


_PADDING = -1
_WIDTH = 64

# Rows of the embeddings of shapes and endings, which are hashed.
_HASHED = 512

# The distances of the neighbours that each layer sees.
_DILATIONS = (1, 2, 4)

# "York-2" → "Xxxx-d": the replacements are applied in this order.
_SHAPES = ((r"\p{Lu}", "X"), (r"\p{Ll}", "x"), (r"\pN", "d"), (r"(xxx)x+", r"\1"))


class EntityTagger(TaskTrainer):
    """Any number of labelled spans per text."""

    request = (TEXT,)

    def prepared(self, data: tf.data.Dataset) -> tf.data.Dataset:
        return in_order(data, _without_mask)

    def models(self) -> Models:
        data = eval_dataset(self.root, batch_size=1024, split=self.split)
        lookup = keras.layers.StringLookup(max_tokens=20_000, mask_token="")
        lookup.adapt(data.map(lambda inputs, tags: inputs["tokens"]))
        model = build_tagger(lookup, len(self._tags), self.config.dropout, self.config.seed)
        return Models(model, model)

    def loss(self) -> Any:
        return keras.losses.SparseCategoricalCrossentropy(ignore_class=_PADDING)

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        return [TokenAccuracy()]

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``text`` → ``tokens``, their ``tags``, and the tags' ``scores``; padded with "" and 0."""
        tokens = padded(split_tokens(request[0]), "")
        is_token = tokens != ""
        scores = predicted(model, tokens)
        tags = tf.gather(tf.constant(self._tags), tf.argmax(scores, -1))
        return {
            "tokens": tokens,
            "tags": tf.where(is_token, tags, ""),
            SCORES: tf.where(is_token, tf.reduce_max(scores, -1), 0.0),
        }

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each tag of each token: float32 [batch, n, tags]."""
        spec = parsing_spec([features.TOKENS], task=TextEntities.name)
        tokens = tf.io.parse_example(records, spec)[features.TOKENS]
        return predicted(model, padded(tokens, ""))

    def outputs_of(self, labels: Sequence[str]) -> Sequence[str]:
        return tag_names(labels)

    def truth(self, records: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the number of each token's tag: int64 [batch, n], padded with -1.

        All labels that the model does not know share the tags of one additional label. A text
        without entities counts as labelled, as in training.
        """
        spec = parsing_spec([features.TAGS_TEXT, features.ENTITY_TEXT], task=TextEntities.name)
        parsed = tf.io.parse_example(records, spec)
        tags = parsed[features.TAGS_TEXT]
        texts = tags.values
        labels = self.numbers(tf.strings.regex_replace(texts, "^[BI]-", ""))
        labels = tf.where(labels < 0, tf.constant(len(self.dataset.labels), tf.int64), labels)
        inside = tf.cast(tf.strings.regex_full_match(texts, "(?s)I-.*"), tf.int64)
        numbers = tf.where(texts == OUTSIDE, tf.constant(0, tf.int64), 2 * labels + 1 + inside)
        return {
            LABEL: padded(tags.with_values(numbers), _PADDING),
            WEIGHT: tf.ones_like(records, tf.float32),
            UNKNOWN: self.unknown(parsed[features.ENTITY_TEXT]),
        }

    @property
    def _tags(self) -> list[str]:
        return tag_names(self.dataset.labels)


class TokenAccuracy(keras.metrics.Mean):
    """The share of tokens whose tag is right."""

    def __init__(self) -> None:
        super().__init__(name="token_accuracy")

    def update_state(self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: Any = None) -> Any:
        """Count a batch; ``y_true`` is [batch, n], ``y_pred`` float32 [batch, n, tags]."""
        del sample_weight
        y_true = tf.cast(y_true, tf.int64)
        is_right = tf.argmax(y_pred, -1) == y_true
        return super().update_state(tf.cast(is_right, tf.float32), y_true != _PADDING)


class TokenVectors(WordVectors):
    """Vectors of tokens; the vector of unknown tokens is zero."""

    def from_earlier(self, before: npt.NDArray[Any], words: Sequence[str]) -> npt.NDArray[Any]:
        """Return an earlier model's vectors of these tokens; new tokens have zeros."""
        known = before.copy()
        known[UNKNOWN_WORD] = 0
        return super().from_earlier(known, words)


class TokenEmbedding(keras.layers.Layer):
    """Tokens (string [batch, n]) → float32 [batch, n, width], zeros for padding, and a mask.

    A token's features are its own vector, if training has seen it, and the vectors of its shape
    (``Xxxx-d``) and of its last three characters. The mask (float32 [batch, n, 1]) is 0 for
    padding, else 1.
    """

    def __init__(self, lookup: keras.layers.StringLookup, dropout: float, seed: int) -> None:
        super().__init__(name="tokens")
        self.supports_jit = False  # strings
        self.lookup = lookup
        self.words = TokenVectors(lookup.get_vocabulary(), _WIDTH)
        self.shapes = keras.layers.Embedding(_HASHED, _WIDTH // 2)
        self.endings = keras.layers.Embedding(_HASHED, _WIDTH // 2)
        # Drop whole words, so that the model learns to use shapes and neighbours for new words.
        self.dropout = keras.layers.Dropout(dropout, noise_shape=(None, None, 1), seed=seed)

    def call(self, tokens: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
        """Look tokens up."""
        ids = self.lookup(tokens)
        words = self.words(ids) * self._where(ids > UNKNOWN_WORD)
        shapes = tokens
        for pattern, shape in _SHAPES:
            shapes = tf.strings.regex_replace(shapes, pattern, shape)
        endings = tf.strings.regex_replace(tokens, r"^.*(...)$", r"\1")
        parts = [
            self.dropout(words, training=training),
            self.shapes(tf.strings.to_hash_bucket_fast(shapes, _HASHED)),
            self.endings(tf.strings.to_hash_bucket_fast(endings, _HASHED)),
        ]
        is_token = self._where(tokens != "")
        return tf.concat(parts, -1) * is_token, is_token

    def _where(self, chosen: tf.Tensor) -> tf.Tensor:
        return tf.cast(chosen, self.compute_dtype)[..., None]


def build_tagger(
    lookup: keras.layers.StringLookup, tags: int, dropout: float, seed: int
) -> keras.Model:
    """Build the network: string [batch, n] → the score of each tag, float32 [batch, n, tags].

    Convolutions see seven tokens on either side. A token's scores do not depend on padding.
    """
    inputs = keras.Input((None,), dtype="string", name="tokens_in")
    outputs, is_token = TokenEmbedding(lookup, dropout, seed)(inputs)
    outputs = keras.layers.Dense(_WIDTH)(outputs)
    for distance in _DILATIONS:
        seen = keras.layers.Multiply()([outputs, is_token])
        seen = keras.layers.Conv1D(
            _WIDTH, 3, padding="same", dilation_rate=distance, activation="relu"
        )(seen)
        seen = keras.layers.Dropout(dropout, seed=seed)(seen)
        outputs = keras.layers.LayerNormalization()(keras.layers.Add()([outputs, seen]))
    outputs = keras.layers.Dense(tags, activation="softmax", dtype=FLOAT32, name="scores")(outputs)
    return keras.Model(inputs, outputs, name="small_tagger")


def _without_mask(inputs: dict[str, tf.Tensor], tags: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return inputs["tokens"], tags  # padding is the empty token
