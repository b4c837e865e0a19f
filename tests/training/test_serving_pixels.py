"""A saved model gets the same pixels as in training."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen.training.saving import save_for_serving
from tests.conftest import convert_lines, encoded
from tests.cpp_loader import CppModel
from tests.trainer import trainer_of

# With one label per pixel value, the answers are the pixels.
SIDE = 2
COUNT = SIDE * SIDE * 3


@pytest.fixture(scope="module")
def images():
    """Noise in each size and format that is decoded differently: file content by label."""
    random = np.random.default_rng(0)
    sizes = [(2, 2), (3, 3), (5, 4), (7, 9), (1, 8), (31, 40)]
    found = {}
    for number in range(COUNT):
        pixels = random.integers(0, 256, (*sizes[number // 2], 3), np.uint8)
        found[f"{number:02}.png"] = encoded(Image.fromarray(pixels), ("PNG", "JPEG")[number % 2])
    return found


@pytest.fixture(scope="module")
def dataset(images, tmp_path_factory):
    """The images, converted."""
    folder = tmp_path_factory.mktemp("images")
    for name, data in images.items():
        (folder / name).write_bytes(data)
    rows = [f"TRAIN,{name},{number}" for number, name in enumerate(images)]
    return str(convert_lines(folder, rows, labels="integer"))


def test_training_and_serving_see_the_same_pixels(images, dataset, tmp_path):
    """Training, serving and evaluating decode images alike."""
    trainer = trainer_of(dataset, image_size=(SIDE, SIDE), batch_size=COUNT, top_k=COUNT)
    inputs = keras.Input((SIDE, SIDE, 3))
    model = keras.Model(inputs, keras.layers.Flatten()(inputs))
    save_for_serving(model, str(tmp_path / "model"), trainer)
    saved = CppModel(tmp_path / "model")

    pixels, labels = next(iter(trainer.train_data()))
    seen = np.zeros((COUNT, COUNT), np.float32)
    seen[labels.numpy()] = tf.reshape(pixels, (COUNT, COUNT))

    answer = saved.run("serving_default", image_bytes=list(images.values()))
    served = np.zeros((COUNT, COUNT), np.float32)
    np.put_along_axis(served, answer["labels"].astype(int), answer["scores"], axis=1)
    np.testing.assert_array_equal(served, seen)

    records = tf.data.TFRecordDataset(tf.io.gfile.glob(f"{dataset}/Split-train/*"))
    records = tf.stack(list(records))
    evaluated = saved.run("evaluate", examples=records)["scores"]
    order = saved.run("truth", examples=records)["label"]
    np.testing.assert_array_equal(evaluated, seen[order])
