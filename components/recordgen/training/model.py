"""Keras models for image classification: a small CNN, or any ``keras.applications`` backbone."""

from __future__ import annotations

import keras

from recordgen.errors import UsageError
from recordgen.scales import BACKBONES
from recordgen.training.config import SMALL_CNN, TrainingConfig


def build_model(config: TrainingConfig, classes: int, activation: str) -> keras.Model:
    """Build the model: images (float32 [batch, height, width, 3] in [0, 1]) → probabilities.

    Args:
        config: the model and the image size.
        classes: the number of labels.
        activation: ``softmax``, or ``sigmoid`` for labels that do not exclude each other.

    Raises:
        UsageError: the model's name is unknown, or it does not take this image size.
    """
    inputs = keras.Input((*config.image_size, 3), name="image")
    # In the model, so that training and serving cannot scale differently.
    images = config.pixel_scale.apply(inputs, white=1)
    if config.model == SMALL_CNN:
        outputs = small_cnn(images, config.image_size)
    else:
        outputs = _backbone(images, config)
    outputs = keras.layers.Dropout(config.dropout, seed=config.seed)(outputs)
    outputs = keras.layers.Dense(classes, activation=activation, name="scores")(outputs)
    return keras.Model(inputs, outputs, name=config.model)


def augmented(model: keras.Model, config: TrainingConfig) -> keras.Model:
    """Return ``model`` behind random shifts, turns and zooms, which only happen in training.

    The saved model then has no random number generators.
    """
    if not config.augmentation:
        return model
    inputs = keras.Input(model.input_shape[1:], name="image")
    outputs = model(augmentation(config)(inputs))
    return keras.Model(inputs, outputs, name=f"augmented_{model.name}")


def augmentation(config: TrainingConfig) -> keras.Sequential:
    """Return a layer that shifts, turns and zooms images, only in training."""
    share, seed = config.augmentation, config.seed
    return keras.Sequential(
        [
            keras.layers.RandomTranslation(share, share, fill_mode="nearest", seed=seed),
            keras.layers.RandomRotation(share, fill_mode="nearest", seed=seed),
            keras.layers.RandomZoom(share, fill_mode="nearest", seed=seed),
        ]
    )


def small_cnn(images: keras.KerasTensor, image_size: tuple[int, int]) -> keras.KerasTensor:
    """Halve the image until about 4 pixels are left, then average: float32 [batch, filters]."""
    outputs, filters, side = images, 32, min(image_size)
    while True:
        outputs = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(outputs)
        # Keras's momentum of 0.99 averages over more steps than a small dataset has in an epoch.
        outputs = keras.layers.BatchNormalization(momentum=0.9)(outputs)
        outputs = keras.layers.ReLU()(outputs)
        if side < 8:
            return keras.layers.GlobalAveragePooling2D()(outputs)
        outputs = keras.layers.MaxPooling2D()(outputs)
        filters, side = min(256, filters * 2), side // 2


def _backbone(images: keras.KerasTensor, config: TrainingConfig) -> keras.KerasTensor:
    """Return the pooled features (float32 [batch, n]) of a ``keras.applications`` model."""
    if config.model not in BACKBONES:
        raise UsageError(
            f"model must be {SMALL_CNN} or one of keras.applications: "
            f"{', '.join(sorted(BACKBONES))} (got {config.model!r})"
        )
    build = getattr(keras.applications, config.model)
    try:
        backbone = build(
            include_top=False,
            weights=config.weights,
            input_shape=(*config.image_size, 3),
            pooling="avg",
        )
    except ValueError as exc:
        raise UsageError(f"model={config.model}: {exc}") from exc
    return backbone(images)
