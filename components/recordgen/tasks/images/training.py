"""Labels of whole images: one label per image, or any number."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import keras
import tensorflow as tf

from recordgen import features
from recordgen.reading import decode_images
from recordgen.tasks.images.stored_images import IMAGE_BYTES, stored_images
from recordgen.training.config import SCORES
from recordgen.training.labels import LabelTrainer, ManyLabels, OneLabel
from recordgen.training.learner import Models, Signature
from recordgen.training.model import augmented, backbone_of, build_model


class ImageLabels(LabelTrainer):
    """The base of both trainers of images."""

    feature = features.IMAGE_CLASS_TEXT
    request = (IMAGE_BYTES,)

    @property
    def settings(self) -> Set[str]:
        """Images can be changed, and models be pretrained."""
        return {*super().settings, "model", "scale", "augment", "colour"}

    @property
    def reading(self) -> Mapping[str, Any]:
        """The arguments of :func:`recordgen.eval_dataset`."""
        return {**super().reading, "image_size": self.config.image_size}

    @property
    def training(self) -> Mapping[str, Any]:
        """Further arguments of :func:`recordgen.train_dataset`: how photos are changed."""
        config = self.config
        colour = dict.fromkeys(("brightness", "contrast", "saturation"), config.colour)
        changes = {"flip": config.augments_photos, **colour}
        return {
            **super().training,
            "resize": "random_crop" if config.augments_photos else "stretch",
            "augment": changes if config.augments_photos or config.colour else None,
        }

    def models(self) -> Models:
        """Build a classifier; training may shift, turn and zoom drawings at random."""
        model = build_model(self.config, len(self.dataset.labels), self.activation)
        pretrained = None if self.config.weights is None else backbone_of(model)
        return Models(augmented(model, self.config), model, pretrained)

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``image_bytes`` → ``labels`` and ``scores``, best first."""
        images = decode_images(request[0], self.config.image_size)
        return self.best(model(images, training=False))

    def portable_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """``pixels``: decoded images → ``scores``, for explanations and for other runtimes."""
        height, width = self.config.image_size
        # As training sees them: RGB from 0 to 1.
        pixels = tf.TensorSpec([None, height, width, 3], tf.float32, name="pixels")

        @tf.function(input_signature=[pixels], autograph=False)
        def scores_of(pixels: tf.Tensor) -> dict[str, tf.Tensor]:
            return {SCORES: model(pixels, training=False)}

        return {"pixels": scores_of}

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each label, float32 [batch, classes]."""
        return model(stored_images(records, self.config.image_size), training=False)


class OneImageLabel(ImageLabels, OneLabel):
    """One label per image."""


class ManyImageLabels(ImageLabels, ManyLabels):
    """Any number of labels per image."""
