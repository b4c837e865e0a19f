"""What a training of images does if the user sets neither ``image_size`` nor ``augment``."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from recordgen.tasks.images.training import keep_when_mirrored, size_of
from recordgen.training import TrainingConfig
from recordgen.training.config import DRAWING, PHOTO
from recordgen.training.model import movement
from tests.conftest import convert_lines
from tests.trainer import trainer_of

# height and width of the images, those in training of small_cnn and of MobileNetV2
SIZES = [
    ([(32, 32)] * 3, (32, 32), (96, 96)),
    ([(28, 28)], (32, 32), (96, 96)),
    ([(8, 8)], (32, 32), (96, 96)),
    ([(375, 500), (500, 375), (20, 20)], (96, 96), (224, 224)),
    ([(48, 200)], (48, 96), (96, 192)),
    ([(61, 67)], (64, 64), (96, 96)),
    ([], (96, 96), (96, 96)),
]


@pytest.mark.parametrize(("sizes", "small", "large"), SIZES)
def test_the_images_decide_about_the_size(sizes, small, large):
    """The size is that of most images, within what the model takes."""
    assert size_of("small_cnn", sizes) == small
    assert size_of("MobileNetV2", sizes) == large


# labels, expected
LABELS = [
    (["cat", "dog"], True),
    (["CAT", "ice cream", "jack-o'-lantern"], True),
    (["n02085620-Chihuahua"], True),
    (["cat", "7"], False),
    (["class_3"], False),
    (["A", "B"], False),
    (["letter b"], False),
    (["seven"], False),
    (["turnLeft"], False),
    (["turn_right"], False),
    (["Speed limit 50"], False),
    (["left-handed"], False),
    (["bright", "eastern"], True),
]


@pytest.mark.parametrize(("labels", "expected"), LABELS)
def test_labels_of_digits_letters_and_sides_forbid_mirroring(labels, expected):
    """Mirroring would change what such labels mean."""
    assert keep_when_mirrored(labels) is expected


@pytest.fixture(scope="module")
def made(tmp_path_factory, colour_image):
    """A dataset of 40×64 pixels for labels and a task."""

    @cache
    def make(*labels, task="image_classification"):
        folder = tmp_path_factory.mktemp("made")
        rows = []
        for number, label in enumerate(labels):
            colour_image("red", number).resize((64, 40)).save(folder / f"{number}.png")
            box = "0.1,0.1,,,0.9,0.9,," if task == "object_detection" else ""
            rows.append(f"TRAIN,{number}.png,{label},{box}".rstrip(","))
        return str(convert_lines(folder, rows, task=task, lint="-ALL"))

    return make


@pytest.mark.parametrize(("given", "expected"), [(61, 60), (12, 12)])
def test_a_batch_is_at_most_the_split(examples, given, expected):
    """Splits with fewer examples than a batch can be trained on, with default settings, too."""
    assert trainer_of(examples, batch_size=given).settled().config.batch_size == expected


@pytest.mark.parametrize("task", ["image_classification", "object_detection"])
def test_defaults_follow_from_the_dataset_and_are_logged(made, task, caplog):
    """Size and changes of images follow from the dataset, except for digits."""
    with caplog.at_level("INFO", "recordgen.training"):
        mild = trainer_of(made("cat", "dog", task=task)).settled()
    assert mild.config.image_size == (40, 64)
    assert "40×64" in caplog.text
    assert "mirrored" in caplog.text
    assert mild.training["augment"]["flip"] is True
    assert mild.training["augment"]["crop"] == (0.05 if task == "object_detection" else 0.0)
    caplog.clear()
    with caplog.at_level("INFO", "recordgen.training"):
        digits = trainer_of(made("3", "8", task=task), image_size=(16, 24)).settled()
    assert digits.config.image_size == (16, 24)
    assert "mirrored" not in caplog.text
    assert not (digits.training["augment"] or {}).get("flip")


# settings; how the images are resized, mirrored, and moved by a layer
AUGMENTS = [
    ({}, "stretch", True, tf.keras.layers.RandomTranslation),
    ({"augment": "none"}, "stretch", None, None),
    ({"augment": PHOTO}, "random_crop", True, None),
    ({"augment": DRAWING}, "stretch", None, tf.keras.Sequential),
    ({"augmentation": 0.0}, "stretch", True, None),
]


@pytest.mark.parametrize(("settings", "resize", "flip", "moved"), AUGMENTS, ids=str)
def test_augment_decides_about_the_changes(made, settings, resize, flip, moved):
    """Each word says how images are resized, mirrored and moved."""
    trainer = trainer_of(made("cat", "dog"), **settings).settled()
    assert trainer.training["resize"] == resize
    assert (trainer.training["augment"] or {}).get("flip") == flip
    models = trainer.models()
    assert (models.trained is models.saved) == (moved is None)
    if moved is not None:
        assert isinstance(movement(trainer.config), moved)
        assert any(isinstance(layer, moved) for layer in models.trained.layers)


def test_shifts_are_whole_pixels_and_only_in_training():
    """Each image moves by itself, by up to the share of its sides, and its border is mirrored."""
    height, width = 20, 40
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    images = np.stack([rows, columns, rows + columns], -1)[None].repeat(50, 0)
    config = TrainingConfig(augmentation=0.1, seed=3)
    np.testing.assert_array_equal(movement(config)(images, training=False), images)
    moved = movement(config)(images, training=True).numpy()
    by = moved[:, height // 2, width // 2, :2] - (height // 2, width // 2)
    assert set(by[:, 0]) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert set(by[:, 1]) == set(range(-4, 5))
    for image, (down, right) in zip(moved, by.astype(int), strict=True):
        wide = np.pad(images[0], ((2, 2), (4, 4), (0, 0)), "symmetric")
        part = wide[2 + down : 2 + down + height, 4 + right : 4 + right + width]
        np.testing.assert_array_equal(image, part)
    np.testing.assert_array_equal(movement(config)(images, training=True), moved)
