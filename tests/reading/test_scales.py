"""The range of pixels that models expect."""

import inspect
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from recordgen import eval_dataset, train_dataset
from recordgen.access.scales import BACKBONES, RANGES, scale_of
from recordgen.errors import UsageError
from recordgen.reading import decode_images
from recordgen.reading.levels import scaled
from recordgen.training.config import TrainingConfig
from recordgen.training.model import build_model
from tests.conftest import encoded, noise

BUILDERS = {
    name: value
    for name, value in vars(keras.applications).items()
    if inspect.isfunction(value) and name[0].isupper()
}

# name, black, white
ENDS = [("auto", 0, 1), ("0..1", 0, 1), ("0..255", 0, 255), ("-1..1", -1, 1)]


def test_every_model_of_keras_has_a_scale():
    """A new model of Keras needs an entry."""
    assert set(BACKBONES) == set(BUILDERS)


@pytest.mark.parametrize("white", [1, 255])
def test_pixels_equal_those_of_the_backbones_preprocess_input(white):
    """Each backbone's own function is the reference."""
    levels = np.random.default_rng(0).uniform(0, 255, (2, 3, 4, 3)).astype(np.float32)
    for name, scale in BACKBONES.items():
        preprocess = sys.modules[BUILDERS[name].__module__].preprocess_input
        found = scale.apply(tf.constant(levels * (white / 255)), white=white)
        np.testing.assert_allclose(found, preprocess(levels.copy()), atol=1e-3, err_msg=name)


@pytest.mark.parametrize(("name", "black", "white"), ENDS)
def test_black_and_white_become_the_ends_of_the_range(name, black, white):
    """For each named range."""
    found = scale_of(name).apply(tf.constant([[0.0] * 3, [255.0] * 3]), white=255)
    np.testing.assert_allclose(found, [[black] * 3, [white] * 3], atol=1e-6)


@pytest.mark.parametrize("name", [*RANGES, "ResNet50", "DenseNet121"])
def test_levels_are_scaled_as_floats_are(name):
    """Whole levels give the same numbers."""
    levels = tf.constant(np.arange(256).repeat(3).reshape(256, 3), tf.uint8)
    expected = scale_of(name.partition(":")[0]).apply(tf.cast(levels, tf.float32), white=255)
    np.testing.assert_array_equal(scaled(levels, scale_of(name)), expected)


# every path of pixels, and every kind of scale
PATHS_OF_PIXELS = [
    ("-1..1", {}),
    ("0..1:float16", {}),
    ("ResNet50", {"cache": "memory"}),
    ("DenseNet121", {"augment": "photo"}),
]


@pytest.mark.parametrize(("name", "how"), PATHS_OF_PIXELS)
def test_cached_augmented_and_served_batches_have_the_range(output, name, how):
    """A scale is applied last, whatever came before."""
    options = dict(batch_size=8, image_size=(4, 6), seed=1, **how)
    [(levels, _)] = train_dataset(output, scale="0..255", **options).take(1)
    [(found, _)] = train_dataset(output, scale=name, **options).take(1)
    expected = scale_of(name.partition(":")[0]).apply(tf.cast(levels, tf.float32), white=255)
    found = tf.cast(found, tf.float32)
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.ptp(expected))


def test_serving_scales_as_training_does():
    """decode_images and training share one rule."""
    images = tf.constant([encoded(noise(9, 7), "PNG")])
    plain = decode_images(images, (4, 6))
    for name in ("0..255", "-1..1", "VGG16"):
        found = decode_images(images, (4, 6), scale=name)
        np.testing.assert_allclose(found, scale_of(name).apply(plain, white=1), atol=1e-3)


def test_uint8_is_the_range_of_some_models(output):
    """Levels stay whole numbers up to 255."""
    for name in ("uint8", "0..255:uint8", "EfficientNetB0:uint8"):
        [(found, _)] = eval_dataset(output, scale=name, image_size=4).take(1)
        assert found.dtype == tf.uint8
        assert found.numpy().max() > 1


# custom_config, the range of the saved model's own pixels
MODELS = [
    ({}, "0..1"),
    ({"scale": "-1..1"}, "-1..1"),
    ({"model": "MobileNetV2"}, "-1..1"),
    ({"model": "MobileNetV2", "scale": "-1..1"}, "-1..1"),
    ({"model": "ResNet50", "scale": "ResNet50"}, "ResNet50"),
]


@pytest.mark.parametrize(("config", "expected"), MODELS)
def test_the_trainer_takes_the_models_scale(config, expected):
    """It follows from the model, unless it is given."""
    assert TrainingConfig.from_custom_config(config).pixel_scale == scale_of(expected)


def test_another_scale_than_the_models_is_an_error():
    """A backbone has its own range."""
    with pytest.raises(UsageError, match=r"'-1\.\.1'.*model"):
        TrainingConfig(model="ResNet50", scale="-1..1")
    with pytest.raises(UsageError, match="scale"):
        TrainingConfig(scale="0..2")


def test_the_model_scales_by_itself(monkeypatch):
    """A built model takes pixels from 0 to 1 and scales them for its backbone."""

    def backbone(*, input_shape, **settings):
        inputs = keras.Input(input_shape)
        return keras.Model(inputs, keras.layers.Flatten()(inputs))

    monkeypatch.setattr(keras.applications, "ResNet50", backbone)
    model = build_model(TrainingConfig(model="ResNet50", image_size=(2, 2)), 3, "softmax")
    inner = keras.Model(model.input, model.layers[-2].input)
    pixels = np.random.default_rng(0).random((5, 2, 2, 3), np.float32)
    expected = keras.applications.resnet.preprocess_input(pixels * 255)
    np.testing.assert_allclose(inner(pixels), expected.reshape(5, -1), atol=1e-3)
