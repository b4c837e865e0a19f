"""Pictures of a model's answers in TensorBoard."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen import convert, read_dataset
from recordgen.payloads.drawing import label_colour
from recordgen.reading import eval_dataset
from recordgen.training import TrainingConfig
from recordgen.training.detection import ObjectDetector
from recordgen.training.image_labels import OneImageLabel
from recordgen.training.pictures import Mistake, Pictures, draw_confusion, draw_mistakes

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


def pictures_of(trainer_class, output, folder, bias=(), **settings):
    """Write the pictures of an untrained model; return them and the model.

    Its last weights are ``bias``, if given.
    """
    config = TrainingConfig(batch_size=5, **settings)
    trainer = trainer_class(output, "train", read_dataset(output), config)
    model = trainer.models().saved
    if bias:
        model.trainable_weights[-1].assign(bias)
    Pictures(trainer, model, output, "eval", str(folder)).on_epoch_end(0)
    return written(folder), model


def test_confusion_and_worst_mistakes(examples, tmp_path):
    """Each labelled example counts; all images with wrong answers are shown."""
    # It almost always answers the first label.
    bias = [3.0, 0.0, 0.0]
    found, model = pictures_of(OneImageLabel, examples, tmp_path, bias, image_size=(8, 8))
    data = eval_dataset(examples, batch_size=15, image_size=(8, 8))
    images, labels = next(iter(data))
    scores = model(images, training=False).numpy()
    wrong = scores.argmax(1) != labels.numpy()
    assert 0 < wrong.sum() < 15
    mistakes = found["worst mistakes"]
    assert len(mistakes) == wrong.sum()
    # The first picture is the worst mistake: an image in the noisy colour of its label.
    worst = np.where(wrong, scores[np.arange(15), labels], 2).argmin()
    shown = mistakes[0][:64, :64].mean((0, 1)).argmax()
    assert shown == {"blue": 2, "green": 1, "red": 0}[data.class_names[labels[worst]]]
    counts = tf.math.confusion_matrix(labels, scores.argmax(1), 3).numpy()
    expected = draw_confusion(counts, data.class_names)
    assert np.array_equal(found["confusion"][0], expected)


@pytest.mark.parametrize(
    ("labels", "size"),
    [
        # number of labels, side of the picture without names
        (2, 80),
        (64, None),
        (300, 900),
    ],
)
def test_draw_confusion(labels, size):
    """Right answers are dark; there are names if there is room."""
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


def test_draw_mistakes():
    """An unknown label is called unknown; examples without images are skipped."""
    assert draw_mistakes([Mistake(0.0, 0, b"", -1, 0, 0.9)], ["cat"]) == []


def test_boxes(tmp_path):
    """True boxes are on the left, boxes with high scores on the right."""
    Image.new("RGB", (32, 16)).save(tmp_path / "a.png")
    Image.new("RGB", (32, 16), "white").save(tmp_path / "b.png")
    box = "0.25,0.25,,,0.75,0.75,,"
    rows = [f"TRAIN,a.png,cat,{box}\n", f"VALIDATION,b.png,cat,{box}\n"]
    (tmp_path / "a.csv").write_text("".join(rows))
    output = str(tmp_path / "out")
    convert(str(tmp_path / "a.csv"), output)
    found, _ = pictures_of(ObjectDetector, output, tmp_path / "logs", image_size=(16, 32))
    [picture] = found["boxes, true and found/0"]
    assert picture.shape == (160, 640, 3)
    true, none = picture[:, :320], picture[:, 320:]
    assert (true == label_colour(0)).all(-1).any()
    assert (none == 255).all()  # an untrained model has no high scores
