"""Labels and sentiments of texts: a network over the mean vector of words and pairs of words."""

from __future__ import annotations

import keras
import tensorflow as tf

from recordgen import features
from recordgen.reading import eval_dataset
from recordgen.reading.words import learn_words
from recordgen.training.learner import LabelTrainer, ManyLabels, OneLabel
from recordgen.training.model import Models, answer
from recordgen.training.words import MOST_TOKENS, NGRAMS, TEXT, mean_of_words


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
        return self.best(model(request[0], training=False))

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        spec = {features.TEXT: tf.io.FixedLenFeature((), tf.string)}
        return model(tf.io.parse_example(records, spec)[features.TEXT], training=False)


class OneTextLabel(TextLabels, OneLabel):
    """One label per text, or a sentiment."""


class ManyTextLabels(TextLabels, ManyLabels):
    """Any number of labels per text."""
