"""Boxes: from rows to a model, evaluated by its signatures, Kubeflow's step and TFMA."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.kubeflow.evaluate import evaluate
from recordgen.tasks.object_detection.training import ObjectDetector, cells_loss
from recordgen.training import TrainingConfig
from recordgen.training.measures import CROWD, BoxAccumulator
from tests import trainer
from tests.conftest import encoded
from tests.cpp_loader import CppModel

SIDE = 32
LABELS = ("blue", "green", "red")
FAST = {"image_size": [SIDE, SIDE], "batch_size": 8, "epochs": 6, "learning_rate": 0.01}


def picture(number):
    """Return a noisy image with up to two coloured boxes, and the boxes (label, x0, y0, x1, y1)."""
    random = np.random.default_rng(number)
    pixels = random.integers(0, 60, (SIDE, SIDE, 3), np.uint8)
    boxes = []
    for half in range(number % 3):
        label = int(random.integers(3))
        width, height = random.integers(6, 12, 2)
        left, top = random.integers(0, SIDE - 12), 16 * half + random.integers(0, 5)
        pixels[top : top + height, left : left + width, 2 - label] += 180
        boxes.append((LABELS[label], left, top, left + width, top + height))
    return Image.fromarray(pixels), boxes


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """150 images, every fifth for evaluation; a third has no boxes."""
    folder = tmp_path_factory.mktemp("boxes")
    rows = []
    for number in range(150):
        image, boxes = picture(number)
        image.save(folder / f"{number}.png")
        start = f"{'TRAIN' if number % 5 else 'VALIDATION'},{number}.png"
        for label, *corners in boxes:
            left, top, right, bottom = (corner / SIDE for corner in corners)
            rows.append(f"{start},{label},{left},{top},,,{right},{bottom},,\n")
        if not boxes:
            rows.append(f"{start},,,,,,,,,\n")
    (folder / "a.csv").write_text("".join(rows))
    convert(str(folder / "a.csv"), str(folder / "out"))
    return str(folder / "out")


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory):
    """The folder of a model that finds the colours, and the losses by epoch."""
    root = tmp_path_factory.mktemp("trained")
    model, log = trainer.train_and_listen(dataset, root, **FAST)
    losses = [
        [float(n) for n in re.findall(r"loss (\d+\.\d+)", line)]
        for line in log.splitlines()
        if "epoch " in line
    ]
    return model, losses


@pytest.fixture(scope="module")
def answers(trained, dataset):
    """The model's boxes and the true boxes of the evaluation split."""
    return trainer.answers_and_truth(trained[0], dataset, 30)


def precisions(answers):
    found, true = answers
    counts = BoxAccumulator(len(LABELS))
    counts.add(true, found)
    return counts.by_label()


@pytest.mark.slow
def test_the_losses_fall_and_boxes_are_found(trained, answers):
    _, losses = trained
    assert len(losses) == FAST["epochs"]
    for first, last in zip(losses[0], losses[-1], strict=True):
        assert last < first / 2
    assert np.mean(list(precisions(answers).values())) > 0.5


@pytest.mark.slow
def test_scores_are_labelled_boxes_best_first_with_padding(answers):
    found, _ = answers
    assert found.shape == (30, SIDE // 4 * SIDE // 4, 6)  # there are fewer cells than 100
    are_boxes = found[..., 5] > 0
    assert (found[~are_boxes] == -1).all()
    assert (np.diff(np.maximum(found[..., 5], 0), axis=1) <= 0).all()
    boxes = found[are_boxes]
    assert ((boxes[:, :4] >= 0) & (boxes[:, :4] <= 1)).all()
    assert (boxes[:, :2] <= boxes[:, 2:4]).all()
    assert set(boxes[:, 4]) <= {0, 1, 2}


@pytest.mark.slow
def test_truth_has_all_boxes_of_the_import_file(answers, dataset):
    _, truth = answers
    there = sorted(row for image in truth.tolist() for row in image if row[4] >= 0)
    assert (truth[truth[..., 4] < 0] == -1).all()
    assert read_dataset(dataset).labels == LABELS
    expected = sorted(
        [*(corner / SIDE for corner in corners), LABELS.index(label)]
        for number in range(0, 150, 5)
        for label, *corners in picture(number)[1]
    )
    np.testing.assert_allclose(there, expected, atol=1e-6)


@pytest.mark.slow
def test_serving_answers_image_files_of_any_size(trained):
    images, expected = [], []
    for number in (1001, 1002, 1004, 1005):
        image, boxes = picture(number)
        images.append(encoded(image.resize((50, 40)), "PNG"))
        expected.append(boxes)
    answer = CppModel(trained[0]).run("serving_default", image_bytes=images)
    shapes = {name: value.shape for name, value in answer.items()}
    assert shapes == {"boxes": (4, 5, 4), "labels": (4, 5), "scores": (4, 5), "error": (4,)}
    counts = BoxAccumulator(len(LABELS))
    for boxes, *found in zip(
        expected, *map(answer.get, ("boxes", "labels", "scores")), strict=True
    ):
        corners, names, scores = found
        numbers = [LABELS.index(name.decode()) for name in names]
        true = [[*np.array(box[1:]) / SIDE, LABELS.index(box[0])] for box in boxes]
        counts.add(
            np.reshape(true, (1, -1, 5)).astype(np.float32),
            np.column_stack([corners, numbers, scores])[None].astype(np.float32),
        )
    assert counts.score() > 0.5


@pytest.mark.slow
def test_scores_of_the_step_agree_with_the_models_answers(trained, dataset, answers):
    found = evaluate(trained[0], dataset, read_dataset(dataset), "eval")
    expected = precisions(answers)
    assert (found.measure, found.examples) == ("map", 30)
    assert found.score == pytest.approx(np.mean(list(expected.values())))
    assert found.by_label == pytest.approx(
        {f"map/{LABELS[number]}": precision for number, precision in expected.items()}
    )
    assert 0 < found.loss < 1 - found.score / 2  # matches overlap at least by half


@pytest.mark.slow
def test_labels_are_compared_by_name(trained, dataset, answers, tmp_path):
    rows = Path(dataset).with_name("a.csv").read_text().replace("red", "amber")
    Path(dataset).with_name("b.csv").write_text(rows)
    convert(Path(dataset).with_name("b.csv"), tmp_path / "out")
    found = evaluate(trained[0], str(tmp_path / "out"), read_dataset(str(tmp_path / "out")), "eval")
    _, truth = answers
    assert found.unknown == {"amber": (truth[..., 4] == LABELS.index("red")).sum()}
    expected = precisions(answers)
    assert found.by_label == pytest.approx({f"map/{LABELS[n]}": expected[n] for n in (0, 1)})
    assert found.score == pytest.approx((expected[0] + expected[1]) / 3)


@pytest.mark.slow
def test_images_without_boxes_have_no_score(trained, tmp_path):
    picture(0)[0].save(tmp_path / "a.png")
    row = "VALIDATION,a.png,,,,,,,,,"
    trainer.check_no_score(trained[0], tmp_path, row, "object_detection")


def test_a_right_answer_has_almost_no_loss_and_each_wrong_part_adds():
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
    config = TrainingConfig.from_custom_config({**FAST, "augmentation": 0.5})
    trainer = ObjectDetector(dataset, "train", read_dataset(dataset), config)
    assert trainer.steps_per_epoch() == 15
    images, cells = next(iter(trainer.train_data()))
    places = np.argwhere(cells[..., 0] == 1)
    assert len(places) > 2
    for image, row, column in places:
        pixel = images[image, row * 4 + 1 : row * 4 + 3, column * 4 + 1 : column * 4 + 3]
        colour = np.mean(pixel, axis=(0, 1))
        assert LABELS[int(cells[image, row, column, 1])] == LABELS[2 - int(colour.argmax())]


def test_crowds_do_not_teach_and_are_passed_on_to_evaluation(tmp_path):
    """A box around a crowd is no target; the truth has it with a class below -1."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        picture(number)[0].save(folder / f"{number}.png")
    shared = {"category_id": 2, "bbox": [8, 8, 8, 8]}
    document = {
        "images": [
            {"id": at, "file_name": f"{at}.png", "width": SIDE, "height": SIDE} for at in range(2)
        ],
        "annotations": [
            {**shared, "image_id": 0, "iscrowd": 1},
            {**shared, "image_id": 0, "bbox": [20, 20, 8, 8]},
            {**shared, "image_id": 1},
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }
    (folder / "instances_train.json").write_text(json.dumps(document))
    output = str(tmp_path / "out")
    convert(str(folder), output, lint="-ALL")
    config = TrainingConfig.from_custom_config({**FAST, "augmentation": 0})
    detector = ObjectDetector(output, "train", read_dataset(output), config)
    _, cells = next(iter(detector.train_data()))
    assert {*(cells.numpy()[..., 0] == 1).sum(axis=(1, 2)).tolist()} == {1}
    truth = detector.truth(tf.constant(trainer.records_of(output, "train")))
    labels = sorted(
        tuple(sorted(row[row != -1].tolist())) for row in truth["label"].numpy()[..., 4]
    )
    assert labels == [(CROWD - 1, 1), (1,)]
