"""The saved model: what it can be asked, and what it answers.

``serving_default``: ``image_bytes`` string [batch], encoded images of any size → ``labels``
string [batch, k] and ``scores`` float32 [batch, k], best first. TensorFlow Serving takes inputs
named ``…_bytes`` as base64 in JSON: ``{"image_bytes": {"b64": "…"}}``.

``evaluate``: ``examples`` string [batch], serialised records → ``scores`` float32
[batch, classes], in the order of ``labels.txt``: what TFMA needs.

``truth``: ``examples`` as before → ``label`` int64 [batch], for several labels per image float32
[batch, classes] of 0 and 1; and ``weight`` float32 [batch], 0 for an example without a label (its
``label`` is 0 then): TFMA fails on examples that have none.
"""

from __future__ import annotations

from collections.abc import Sequence

import keras
import tensorflow as tf

from recordgen import features
from recordgen.reading import decode_images, parsing_spec
from recordgen.training.config import EVALUATE, SCORES, TRUTH, TrainingConfig
from recordgen.training.objectives import Objective

SERVE = "serving_default"


def save_for_serving(
    model: keras.Model,
    path: str,
    *,
    labels: Sequence[str],
    objective: Objective,
    config: TrainingConfig,
) -> None:
    """Save ``model`` as a SavedModel with the signatures above.

    Args:
        model: takes float32 [batch, height, width, 3] in [0, 1], returns float32 [batch, classes].
        path: folder to write, such as ``fn_args.serving_model_dir``.
        labels: the vocabulary; a class's number is its index.
        objective: says what the truth is.
        config: gives ``image_size`` and ``top_k``.
    """
    vocabulary = tf.constant(list(labels))
    k = min(config.top_k, len(labels))

    def score(encoded: tf.Tensor) -> tf.Tensor:
        return model(decode_images(encoded, config.image_size), training=False)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image_bytes")])
    def serve(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
        scores, numbers = tf.math.top_k(score(image_bytes), k)
        return {"labels": tf.gather(vocabulary, numbers), SCORES: scores}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def evaluate(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(examples, parsing_spec([features.IMAGE_ENCODED]))
        return {SCORES: score(parsed[features.IMAGE_ENCODED])}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def truth(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return objective.truth(examples, len(labels))

    signatures = {SERVE: serve, EVALUATE: evaluate, TRUTH: truth}
    tf.saved_model.save(model, path, signatures=signatures)
