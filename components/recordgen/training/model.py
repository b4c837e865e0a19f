"""Keras models for image classification: a small CNN, or any ``keras.applications`` backbone."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from recordgen import storage
from recordgen.access.scales import BACKBONES
from recordgen.errors import SourceError, UsageError
from recordgen.training.config import DRAWING, FLOAT32, IMAGENET, SCORES, SMALL_CNN, TrainingConfig


class Models(NamedTuple):
    """Two models with the same weights.

    Attributes:
        trained: the model to fit; may have further layers, such as augmentation.
        backbone: the pretrained layers of both, which may be frozen; None without pretraining.
    """

    trained: keras.Model
    saved: keras.Model
    backbone: keras.Model | None = None


def build_model(config: TrainingConfig, classes: int, activation: str) -> keras.Model:
    """Build the model: images (float32 [batch, height, width, 3] in [0, 1]) → probabilities.

    ``activation`` is ``softmax``, or ``sigmoid`` for labels that do not exclude each other.

    Raises: UsageError: the model's name is unknown, or it does not accept this image size.
    """
    inputs = keras.Input((*config.size, 3), name="image")
    # Scale in the model, so that training and serving cannot differ.
    images = config.pixel_scale.apply(inputs, white=1)
    if config.model == SMALL_CNN:
        outputs = small_cnn(images, config.size)
    else:
        outputs = _backbone(images, config)
    return keras.Model(inputs, answer(outputs, config, classes, activation), name=config.model)


def answer(
    features: keras.KerasTensor, config: TrainingConfig, classes: int, activation: str
) -> keras.KerasTensor:
    """Return the output of the last layer for features, after dropout."""
    kept = keras.layers.Dropout(config.dropout, seed=config.seed)(features)
    # Always compute in 32 bits, so that probabilities add up to 1.
    return keras.layers.Dense(classes, activation=activation, dtype=FLOAT32, name=SCORES)(kept)


def augmented(
    model: keras.Model, config: TrainingConfig, move: Callable[[Any], Any] | None = None
) -> keras.Model:
    """Return ``model`` behind random shifts, or also turns and zooms, for training.

    They are not part of ``model``, so the saved model has no random number generators. ``move``
    changes the pixels among the inputs by :func:`movement`, if these are more than one image.
    """
    if not config.moves:
        return model
    outputs = model((move or movement(config))(model.input))
    return keras.Model(model.input, outputs, name=f"augmented_{model.name}")


def movement(config: TrainingConfig) -> keras.layers.Layer:
    """Return a layer that moves the pixels of images, only in training."""
    share, seed = config.augmentation, config.seed
    if config.augment != DRAWING:
        # Whole pixels and mirrored borders: training sees images as sharp as evaluation does.
        return keras.layers.RandomTranslation(
            share, share, fill_mode="reflect", interpolation="nearest", seed=seed
        )
    return keras.Sequential(
        [
            keras.layers.RandomTranslation(share, share, fill_mode="nearest", seed=seed),
            keras.layers.RandomRotation(share, fill_mode="nearest", seed=seed),
            keras.layers.RandomZoom(share, fill_mode="nearest", seed=seed),
        ]
    )


def small_cnn(images: keras.KerasTensor, image_size: tuple[int, int]) -> keras.KerasTensor:
    """Halve images until sides are about 4 pixels, then average: float32 [batch, filters]."""
    outputs, filters, side = images, 32, min(image_size)
    while True:
        outputs = convolved(outputs, filters)
        if side < 8:
            return keras.layers.GlobalAveragePooling2D()(outputs)
        outputs = keras.layers.MaxPooling2D()(outputs)
        filters, side = min(256, filters * 2), side // 2


def convolved(
    images: keras.KerasTensor,
    filters: int,
    convolution: type[keras.layers.Layer] = keras.layers.Conv2D,
) -> keras.KerasTensor:
    """Apply a convolution, a normalisation and a ReLU to images or clips."""
    outputs = convolution(filters, 3, padding="same", use_bias=False)(images)
    # Keras's default momentum, 0.99, averages over more steps than an epoch of a small dataset has.
    outputs = keras.layers.BatchNormalization(momentum=0.9)(outputs)
    return keras.layers.ReLU()(outputs)


def doubled(images: keras.KerasTensor, like: keras.KerasTensor) -> keras.KerasTensor:
    """Return images with twice the sides, cut to those of ``like``: odd sides were rounded up."""
    outputs = keras.layers.UpSampling2D()(images)
    rest = [outputs.shape[axis] - like.shape[axis] for axis in (1, 2)]
    return keras.layers.Cropping2D(((0, rest[0]), (0, rest[1])))(outputs)


def backbone_of(model: keras.Model) -> keras.Model | None:
    """Return the ``keras.applications`` model inside a model; None if it is a small CNN."""
    return next((layer for layer in model.layers if isinstance(layer, keras.Model)), None)


def train_backbone(backbone: keras.Model, *, is_frozen: bool) -> None:
    """Freeze or unfreeze pretrained layers; takes effect with the next ``compile``.

    Batch normalisation stays frozen: statistics of a few small batches of other images would spoil
    the weights. (``backbone(images, training=False)`` does not do this: Keras 3 overrides it in
    training.)
    """
    backbone.trainable = not is_frozen
    for layer in backbone.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.trainable = False


def _backbone(images: keras.KerasTensor, config: TrainingConfig) -> keras.KerasTensor:
    """Return the pooled features (float32 [batch, n]) of a ``keras.applications`` model."""
    if config.model not in BACKBONES:
        raise UsageError(
            f"model must be {SMALL_CNN} or one of keras.applications: "
            f"{', '.join(sorted(BACKBONES))} (got {config.model!r})"
        )
    build = getattr(keras.applications, config.model)
    with _weights_file(config.weights) as weights:
        try:
            backbone = build(
                include_top=False, weights=weights, input_shape=(*config.size, 3), pooling="avg"
            )
        except (ValueError, KeyError, OSError) as exc:
            is_file = config.weights not in (None, IMAGENET)
            remedy = "; a file of weights must be of this model, saved with include_top=False"
            raise UsageError(
                f"model={config.model}{f', weights={config.weights}' if is_file else ''}: Keras "
                f"cannot build it: {exc}{remedy if is_file else ''}"
            ) from exc
    return backbone(images)


@contextlib.contextmanager
def _weights_file(weights: str | None) -> Iterator[str | None]:
    """Yield the local path of a file of weights; copy a URL to a temporary file.

    Raises: SourceError, StorageError: the file cannot be read.
    """
    if weights in (None, IMAGENET):
        yield weights
        return
    try:
        data = storage.read_bytes(weights)
    except OSError as exc:
        raise SourceError(f"weights={weights}: cannot read this file: {exc}") from exc
    suffix = ".weights.h5" if weights.endswith(".weights.h5") else ".h5"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model{suffix}")
        path.write_bytes(data)
        yield str(path)


def predicted(model: keras.Model, inputs: Any) -> Any:
    """Return a model's outputs, also of a batch of none, which convolutions refuse.

    Such a batch becomes one of zeros or empty texts, whose output is cut off.
    """
    count = tf.shape(tf.nest.flatten(inputs)[0])[0]

    def filled(each: tf.Tensor) -> tf.Tensor:
        missing = tf.concat([[tf.maximum(1 - count, 0)], tf.shape(each)[1:]], 0)
        return tf.concat([each, tf.zeros(missing, each.dtype)], 0)

    outputs = model(tf.nest.map_structure(filled, inputs), training=False)
    return tf.nest.map_structure(lambda each: each[:count], outputs)
