"""Masks as targets, and the network for them; test_trained_models.py trains a model."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen import convert
from recordgen.errors import DataError
from recordgen.tasks.image_segmentation.training import build_unet, pixels_loss
from recordgen.training import TrainingConfig
from tests.conftest import convert_lines
from tests.trainer import trainer_of
from tests.training.sources import MASKS_SIDE, masked, write_masked


def test_a_single_class_is_nothing_to_learn(tmp_path):
    """Masks of 0 and 255 alone are a mistake of whoever wrote them."""
    masked(0)[0].save(tmp_path / "a.png")
    image = Image.open(tmp_path / "a.png")
    Image.fromarray(np.zeros((image.height, image.width), np.uint8)).save(tmp_path / "m.png")
    out = str(convert_lines(tmp_path, ["TRAIN,a.png,m.png"]))
    with pytest.raises(DataError, match="255"):
        trainer_of(out).check()


def test_pixels_without_a_class_do_not_count():
    """The loss is that of the other pixels; 0 if there are none."""
    true = np.array([[[0, 1, 255]]], np.uint8)
    right = np.array([[[[9, 0], [0, 9], [0, 0]]]], np.float32)
    wrong = np.array([[[[9, 0], [9, 0], [0, 0]]]], np.float32)
    assert float(pixels_loss(tf.constant(true), tf.constant(right))) == pytest.approx(0, abs=1e-3)
    assert float(pixels_loss(tf.constant(true), tf.constant(wrong))) == pytest.approx(4.5, abs=1e-3)
    nothing = tf.fill((1, 1, 3), tf.constant(255, tf.uint8))
    assert float(pixels_loss(nothing, tf.constant(right))) == 0


@pytest.mark.parametrize("size", [(17, 31), (5, 64)])
def test_masks_have_the_size_of_their_images(size):
    """The network takes sides that cannot be halved."""
    assert build_unet(TrainingConfig(image_size=size), 3).output_shape == (None, *size, 3)


def test_masks_follow_their_images(tmp_path):
    """The pixels of a class have its colour, however the image was moved."""
    output = str(tmp_path / "out")
    names = str(tmp_path / "names.txt")
    convert(write_masked(tmp_path, 20), output, vocabulary=names)
    size = (MASKS_SIDE, MASKS_SIDE)
    segmenter = trainer_of(output, image_size=size, batch_size=8, augmentation=0.5)
    images, masks = next(iter(segmenter.train_data()))
    for label, channel in ((1, 0), (2, 2)):
        assert (images.numpy()[masks.numpy() == label, channel] > 0.5).mean() > 0.8
