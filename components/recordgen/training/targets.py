"""One column as the target, of few classes or of numbers: what its trainers have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from recordgen.errors import DataError
from recordgen.training.config import ACCURACY, RMSE
from recordgen.training.learner import TaskTrainer
from recordgen.training.moments import Moments

_UNITS = (64, 32)

_EXAMPLES = tf.TensorSpec([None], tf.string, name="examples")


class TargetTrainer(TaskTrainer):
    """Classes or numbers, from what parts of a network say of the other columns."""

    @property
    @abstractmethod
    def are_classes(self) -> bool:
        """Whether the target is one of some classes, not a number."""

    def check_classes(self) -> None:
        """Check that classes, if any, can be told apart. Raises: DataError: there is but one."""
        if not self.are_classes:
            return
        split = self.dataset.splits.get(self.split)
        if split is None:
            raise DataError(
                f"{self.root}: there is no example in split {self.split!r}, only in "
                f"{', '.join(self.dataset.splits)}: there is nothing to learn"
            )
        seen = [label for label, count in split.labels.items() if count]
        if len(seen) < 2:
            found = f"the one class {', '.join(seen)}" if seen else "no class"
            raise DataError(
                f"{self.root}: the target has {found} in split {self.split!r}: there is nothing "
                f"to learn"
            )

    def answer(self, parts: Sequence[Any], target: Moments) -> Any:
        """Return what two hidden layers over parts of a network answer.

        Args:
            parts: Keras tensors, each float32 [batch, n].
            target: its moments, if it is a number.

        Returns:
            Probabilities (float32 [batch, classes]), or the number (float32 [batch, 1]).
        """
        hidden = parts[0] if len(parts) == 1 else keras.layers.Concatenate()(parts)
        for units in _UNITS:
            hidden = keras.layers.Dense(units, activation="relu")(hidden)
            hidden = keras.layers.Dropout(self.config.dropout)(hidden)
        if self.are_classes:
            return keras.layers.Dense(len(self.dataset.labels), activation="softmax")(hidden)
        # The network predicts how far a target is from the mean, in standard deviations.
        scale = float(np.sqrt(target.variance[0]))
        return keras.layers.Rescaling(scale, offset=float(target.mean[0]))(
            keras.layers.Dense(1)(hidden)
        )

    def loss(self) -> str:
        """Return the cross-entropy, or the mean squared error."""
        return "sparse_categorical_crossentropy" if self.are_classes else "mean_squared_error"

    def metrics(self) -> Sequence[keras.metrics.Metric]:
        """Return the accuracy, or the root of the mean squared error."""
        if self.are_classes:
            return [keras.metrics.SparseCategoricalAccuracy(name=ACCURACY)]
        return [keras.metrics.RootMeanSquaredError(name=RMSE)]

    def serving(self, model: keras.Model) -> tf.types.experimental.PolymorphicFunction:
        """``examples`` → ``labels`` and ``scores``, best first; of numbers ``predictions``.

        Examples are serialised, as TFX has it for tables; they need no target.
        """

        @tf.function(input_signature=[_EXAMPLES], autograph=False)
        def serve(examples: tf.Tensor) -> dict[str, tf.Tensor]:
            answers = self.scores(model, examples)
            return self.best(answers) if self.are_classes else {"predictions": answers[:, 0]}

        return serve
