"""The saved model: what it can be asked, and what it answers.

``serving_default``: what a client has, such as ``image_bytes`` string [batch] → the answer, such as
``labels`` string [batch, k] and ``scores`` float32 [batch, k], best first. Each task's trainer says
which.

``evaluate``: ``examples`` string [batch], serialised records → ``scores``, what TFMA needs; of
labels float32 [batch, classes], in the order of ``labels.txt``.

``truth``: ``examples`` as before → ``label``, what the scores are compared with; of one label int64
[batch], of several float32 [batch, classes] of 0 and 1; and ``weight`` float32 [batch], 0 for an
example without a label: TFMA fails on examples that have none.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from recordgen.training.config import EVALUATE, SCORES, TRUTH
from recordgen.training.learner import TaskTrainer

SERVE = "serving_default"

_EXAMPLES = tf.TensorSpec([None], tf.string, name="examples")


def save_for_serving(model: keras.Model, path: str, trainer: TaskTrainer) -> None:
    """Save ``model`` as a SavedModel with the signatures above.

    Args:
        model: as the trainer has built it.
        path: folder to write, such as ``fn_args.serving_model_dir``.
        trainer: says what is answered.
    """

    @tf.function(input_signature=[_EXAMPLES], autograph=False)
    def evaluate(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {SCORES: trainer.scores(model, examples)}

    @tf.function(input_signature=[_EXAMPLES], autograph=False)
    def truth(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return trainer.truth(examples)

    signatures = {SERVE: trainer.serving(model), EVALUATE: evaluate, TRUTH: truth}
    tf.saved_model.save(model, path, signatures=signatures)
