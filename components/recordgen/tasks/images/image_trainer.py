"""What all trainers of images share: requests, sizes and changes of training images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar

import tensorflow as tf

from recordgen.tasks.images.stored_images import IMAGE_BYTES
from recordgen.training.config import SCORES, TrainingConfig
from recordgen.training.learner import Signature, TaskTrainer


class ImageTrainer(TaskTrainer):
    """The base of trainers of images, whose labels may move with the pixels."""

    request: ClassVar[Sequence[tf.TensorSpec]] = (IMAGE_BYTES,)

    @property
    def settings(self) -> Set[str]:
        """Images can be changed."""
        return {*super().settings, "augment", "colour"}

    @property
    def reading(self) -> Mapping[str, Any]:
        """The arguments of :func:`recordgen.eval_dataset`."""
        return {**super().reading, "image_size": self.config.image_size}

    @property
    def training(self) -> Mapping[str, Any]:
        """Further arguments of :func:`recordgen.train_dataset`: how images are changed."""
        config = self.config
        colour = dict.fromkeys(("brightness", "contrast", "saturation"), config.colour)
        changes = {"crop": self.crop, "flip": config.augments_photos, **colour}
        return {**super().training, "augment": changes if any(changes.values()) else None}

    @property
    def crop(self) -> float:
        """The largest share of a side that training cuts off: boxes and masks move with it."""
        return 0.0 if self.config.augment == "none" else self.config.augmentation


def pixels_signature(
    config: TrainingConfig, scores_of: Callable[[tf.Tensor], tf.Tensor]
) -> Mapping[str, Signature]:
    """``pixels``: decoded images → ``scores``, for explanations and for other runtimes."""
    # As training sees them: RGB from 0 to 1.
    pixels = tf.TensorSpec([None, *config.image_size, 3], tf.float32, name="pixels")

    @tf.function(input_signature=[pixels], autograph=False)
    def answer(pixels: tf.Tensor) -> dict[str, tf.Tensor]:
        return {SCORES: scores_of(pixels)}

    return {"pixels": answer}
