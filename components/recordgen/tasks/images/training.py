"""Labels of whole images: one label per image, or any number."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import keras
import tensorflow as tf

from recordgen import features
from recordgen.tasks.images.image_trainer import ImageTrainer
from recordgen.tasks.images.stored_images import request_images
from recordgen.training.config import PHOTO, PIXELS
from recordgen.training.learner import LabelTrainer, ManyLabels, OneLabel, Signature
from recordgen.training.model import Models, augmented, backbone_of, build_model


class ImageLabels(ImageTrainer, LabelTrainer):
    """The base of both trainers of images."""

    feature = features.IMAGE_CLASS_TEXT

    @property
    def settings(self) -> Set[str]:
        return {*super().settings, "model", "scale"}

    @property
    def training(self) -> Mapping[str, Any]:
        resize = "random_crop" if self.config.augment == PHOTO else "stretch"
        return {**super().training, "resize": resize}

    @property
    def crop(self) -> float:
        """None: a layer of the trained model moves the pixels."""
        return 0.0

    def models(self) -> Models:
        model = build_model(self.config, len(self.dataset.labels), self.activation)
        pretrained = None if self.config.weights is None else backbone_of(model)
        return Models(augmented(model, self.config), model, pretrained)

    def answers(self, model: keras.Model, images: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.best(self.image_scores(model, images))

    def more_signatures(self, model: keras.Model) -> Mapping[str, Signature]:
        """Add the two by whose names Vertex AI explains answers about images.

        ``xai_preprocess``: ``image_bytes`` → ``pixels``; ``xai_model`` is ``pixels``.
        """

        @tf.function(input_signature=self.request, autograph=False)
        def decode(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
            return {PIXELS: request_images(image_bytes, self.config.size)[0]}

        found = super().more_signatures(model)
        return {**found, "xai_preprocess": decode, "xai_model": found[PIXELS]}


class OneImageLabel(ImageLabels, OneLabel):
    """One label per image."""


class ManyImageLabels(ImageLabels, ManyLabels):
    """Any number of labels per image."""
