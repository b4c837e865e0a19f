"""Labels of whole images: one label per image, or any number."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from recordgen import features
from recordgen.reading import decode_images
from recordgen.tasks.images.image_trainer import ImageTrainer, pixels_signature
from recordgen.tasks.images.stored_images import stored_images
from recordgen.training.config import PHOTO
from recordgen.training.labels import LabelTrainer, ManyLabels, OneLabel
from recordgen.training.learner import Models, Signature
from recordgen.training.model import augmented, backbone_of, build_model


class ImageLabels(ImageTrainer, LabelTrainer):
    """The base of both trainers of images."""

    feature = features.IMAGE_CLASS_TEXT

    @property
    def settings(self) -> Set[str]:
        """Models can be pretrained."""
        return {*super().settings, "model", "scale"}

    @property
    def training(self) -> Mapping[str, Any]:
        """Further arguments of :func:`recordgen.train_dataset`: how photos are changed."""
        resize = "random_crop" if self.config.augment == PHOTO else "stretch"
        return {**super().training, "resize": resize}

    @property
    def crop(self) -> float:
        """None: a layer of the trained model moves the pixels."""
        return 0.0

    def models(self) -> Models:
        """Build a classifier; training may move its images at random."""
        model = build_model(self.config, len(self.dataset.labels), self.activation)
        pretrained = None if self.config.weights is None else backbone_of(model)
        return Models(augmented(model, self.config), model, pretrained)

    def respond(self, model: keras.Model, *request: tf.Tensor) -> dict[str, tf.Tensor]:
        """``image_bytes`` → ``labels`` and ``scores``, best first."""
        images = decode_images(request[0], self.config.size)
        return self.best(model(images, training=False))

    def portable_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """``pixels``: decoded images → ``scores`` of the labels."""
        return pixels_signature(self.config, partial(model, training=False))

    def scores(self, model: keras.Model, records: tf.Tensor) -> tf.Tensor:
        """Return the score of each label, float32 [batch, classes]."""
        return model(stored_images(records, self.config.size), training=False)


class OneImageLabel(ImageLabels, OneLabel):
    """One label per image."""


class ManyImageLabels(ImageLabels, ManyLabels):
    """Any number of labels per image."""
