"""Reading and training of pairs; TensorFlow is loaded here, not in :mod:`text_pairs.task`."""

from __future__ import annotations

import keras
import tensorflow as tf

from recordgen.reading.kinds import parsed_kind
from recordgen.reading.parsing import parsing_spec
from recordgen.training.config import LABEL, WEIGHT
from recordgen.training.learner import TaskTrainer
from recordgen.training.model import Models
from text_pairs.task import TextSimilarity

TEXTS = ("first", "second")


def to_batch(parsed):
    """Return a batch of ``recordgen.load``: both texts, and their score."""
    return {name: parsed[name] for name in TEXTS}, parsed["score"]


PAIRS = parsed_kind(TextSimilarity.features, to_batch)


class SimilarityTrainer(TaskTrainer):
    """The cosine of two texts as vectors of their words, with learnt weights."""

    request = tuple(tf.TensorSpec([None], tf.string, name) for name in TEXTS)

    def check(self):
        pass  # a score is a number: there are no labels to check

    def can_validate(self, split):
        return split in self.dataset.splits

    def models(self):
        words = keras.layers.TextVectorization(10_000, output_mode="tf_idf")
        words.adapt(self.eval_data(self.root, self.split).map(lambda texts, _: texts["first"]))
        weigh = keras.layers.Dense(64, use_bias=False)
        texts = {name: keras.Input((), dtype="string", name=name) for name in TEXTS}
        cosine = keras.layers.Dot(1, normalize=True)([weigh(words(x)) for x in texts.values()])
        model = keras.Model(texts, keras.layers.Dense(1, kernel_initializer="ones")(cosine))
        return Models(model, model)

    def loss(self):
        return "mean_squared_error"

    def metrics(self):
        return [keras.metrics.RootMeanSquaredError(name="rmse")]

    def respond(self, model, first, second):
        return {"score": model({"first": first, "second": second})[:, 0]}

    def scores(self, model, records):
        texts, _ = to_batch(self.parsed(records))
        return model(texts)

    def truth(self, records):
        score = self.parsed(records)["score"]
        return {LABEL: score, WEIGHT: tf.ones_like(score)}

    def parsed(self, records):
        return tf.io.parse_example(records, parsing_spec(task=TextSimilarity.name))
