"""Boxes as targets and as truth; test_trained_models.py trains a model."""

import numpy as np
import pytest
import tensorflow as tf

from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.tasks.object_detection.training import cells_loss
from recordgen.training.measures import CROWD
from tests import trainer
from tests.formats.test_coco import box, coco
from tests.formats.test_coco import image as coco_image
from tests.training.sources import BOXES_SIDE, COLOURS, boxed, write_boxed


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """150 images, every fifth for evaluation; a third has no boxes."""
    folder = tmp_path_factory.mktemp("boxes")
    convert(write_boxed(folder, 150), str(folder / "out"))
    return str(folder / "out")


def detector_of(output, augmentation=0.0):
    size = (BOXES_SIDE, BOXES_SIDE)
    given = {"image_size": size, "batch_size": 8, "augmentation": augmentation}
    return trainer.trainer_of(output, **given)


def test_truth_has_all_boxes_of_the_import_file(dataset):
    """Each box is in ``truth`` with its corners and the number of its label; -1 is padding."""
    found = detector_of(dataset).truth(tf.constant(trainer.records_of(dataset)))
    truth = found["label"].numpy()
    assert found["weight"].numpy().tolist() == [1.0] * 30
    there = sorted(row for image in truth.tolist() for row in image if row[4] >= 0)
    assert (truth[truth[..., 4] < 0] == -1).all()
    assert read_dataset(dataset).labels == COLOURS
    expected = sorted(
        [*(corner / BOXES_SIDE for corner in corners), COLOURS.index(label)]
        for number in range(0, 150, 5)
        for label, *corners in boxed(number)[1]
    )
    np.testing.assert_allclose(there, expected, atol=1e-6)


def test_a_right_answer_has_almost_no_loss_and_each_wrong_part_adds():
    """Each kind of mistake adds to the loss."""
    wanted = np.zeros((1, 3, 3, 6), np.float32)
    wanted[..., 1] = -1
    wanted[0, 1, 1] = (1, 2, 0.1, 0.2, 0.3, 0.4)
    cells = np.zeros((1, 3, 3, 8), np.float32)
    cells[..., 0] = -10
    cells[0, 1, 1] = (10, 0.1, 0.2, 0.3, 0.4, 0, 0, 20)

    def loss(change=None, value=0.0):
        changed = cells.copy()
        if change is not None:
            changed[change] = value
        return float(cells_loss(tf.constant(wanted), tf.constant(changed)))

    assert loss() == pytest.approx(0, abs=1e-5)
    assert loss((0, 0, 0, 0), 10) > 1  # a false box
    assert loss((0, 1, 1, 0), -10) > 1  # a missed box
    assert loss((0, 1, 1, 5), 40) > 1  # another class
    assert loss((0, 1, 1, 1), 2.1) > 1  # another place
    assert loss((0, 0, 0, 1), 9) == loss()  # in cells without a box, only the score counts


def test_targets_follow_the_image(dataset):
    """The cell of each target shows the colour of its class, however the image was moved."""
    detector = detector_of(dataset, augmentation=0.5)
    assert detector.steps_per_epoch() == 15
    images, cells = next(iter(detector.train_data()))
    places = np.argwhere(cells[..., 0] == 1)
    assert len(places) > 2
    for image, row, column in places:
        pixel = images[image, row * 4 + 1 : row * 4 + 3, column * 4 + 1 : column * 4 + 3]
        colour = np.mean(pixel, axis=(0, 1))
        assert int(cells[image, row, column, 1]) == 2 - int(colour.argmax())


def test_crowds_do_not_teach_and_are_passed_on_to_evaluation(tmp_path):
    """A box around a crowd is no target; the truth has it with a class below -1."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        boxed(number)[0].save(folder / f"{number}.png")
    size = {"width": BOXES_SIDE, "height": BOXES_SIDE}
    images = (coco_image(at, f"{at}.png", **size) for at in range(2))
    boxes = box(0, 18, 8, 8, 8, 8, iscrowd=1), box(0, 18, 20, 20, 8, 8), box(1, 18, 8, 8, 8, 8)
    (folder / "instances_train.json").write_text(coco(*images, boxes=boxes))
    output = str(tmp_path / "out")
    convert(str(folder), output, lint="-ALL")
    detector = detector_of(output)
    _, cells = next(iter(detector.train_data()))
    assert {*(cells.numpy()[..., 0] == 1).sum(axis=(1, 2)).tolist()} == {1}
    truth = detector.truth(tf.constant(trainer.records_of(output, "train")))
    rows = truth["label"].numpy()[..., 4]
    labels = sorted(tuple(sorted(row[row != -1].tolist())) for row in rows)
    assert labels == [(CROWD - 1, 1), (1,)]
