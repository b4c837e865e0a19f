"""The confusion matrix of a model's answers in TensorBoard."""

import io
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen import read_dataset
from recordgen.reading import eval_dataset
from recordgen.tasks.images.training import OneImageLabel
from recordgen.training import TrainingConfig
from recordgen.training.confusion import Confusion, draw_confusion

WHITE = (255, 255, 255)


def written(folder):
    """Return the pictures in event files: arrays by name."""
    found = {}
    for path in folder.glob("events.*"):
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            for value in tf.compat.v1.Event.FromString(record).summary.value:
                _, _, *pictures = value.tensor.string_val
                found[value.tag] = [np.asarray(Image.open(io.BytesIO(png))) for png in pictures]
    return found


def test_each_labelled_example_counts(examples, tmp_path):
    config = TrainingConfig(batch_size=5, image_size=(8, 8))
    dataset = read_dataset(examples)
    trainer = OneImageLabel(examples, "train", dataset, config)
    model = trainer.models().saved
    model.trainable_weights[-1].assign([3.0, 0.0, 0.0])  # it almost always answers the first label
    count_answers = partial(trainer.counting(model), examples, "eval", 0)
    Confusion(count_answers, dataset.labels, str(tmp_path)).on_epoch_end(0)
    images, labels = next(iter(eval_dataset(examples, batch_size=15, image_size=(8, 8))))
    answers = model(images, training=False).numpy().argmax(1)
    assert 0 < (answers != labels.numpy()).sum() < 15
    counts = tf.math.confusion_matrix(labels, answers, 3).numpy()
    assert np.array_equal(written(tmp_path)["confusion"][0], draw_confusion(counts, dataset.labels))


@pytest.mark.parametrize(
    ("labels", "size"),
    [
        # number of labels, side of the picture without names
        (2, 80),
        (64, None),
        (300, 900),
    ],
)
def test_right_answers_are_dark(labels, size):
    names = ["dog", "Füchsin", *map(str, range(labels - 2))]
    picture = draw_confusion(np.diag(np.arange(labels)), names)
    high, wide, _ = picture.shape
    assert high == wide
    if size is not None:
        assert (wide > size) == (labels == 2)
    side = size or 640
    cell = side // labels
    corner = wide - side
    assert tuple(picture[corner, corner]) == WHITE  # no example has the first label
    assert tuple(picture[corner + cell, corner + cell]) == (35, 105, 195)
    assert tuple(picture[corner + cell, corner]) == WHITE
