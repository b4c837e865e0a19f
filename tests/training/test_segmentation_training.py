"""Masks: from rows to a model, evaluated by its signatures and Kubeflow's step."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import DataError
from recordgen.kubeflow.evaluate import evaluate
from recordgen.tasks.image_segmentation.training import ImageSegmenter, build_unet, pixels_loss
from recordgen.training import TrainingConfig
from recordgen.training.measures import MaskAccumulator
from tests import trainer
from tests.conftest import encoded
from tests.cpp_loader import CppModel

SIDE = 16
NAMES = ("ground", "red", "blue")
FAST = {"image_size": [SIDE, SIDE], "batch_size": 8, "epochs": 12, "learning_rate": 0.01}


def picture(number):
    """Return noise with a red and a blue rectangle, and its mask; one row has no class."""
    random = np.random.default_rng(number)
    pixels = random.integers(0, 60, (SIDE, SIDE, 3), np.uint8)
    mask = np.zeros((SIDE, SIDE), np.uint8)
    for label in (1, 2):
        top, left = random.integers(0, SIDE // 2, 2)
        mask[top : top + 8, left : left + 8] = label
    for label, channel in ((1, 0), (2, 2)):
        pixels[mask == label, channel] += 180
    mask[0] = 255
    return Image.fromarray(pixels), mask


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """60 images, every fifth for evaluation."""
    folder = tmp_path_factory.mktemp("masks")
    rows = []
    for number in range(60):
        image, mask = picture(number)
        image.save(folder / f"{number}.png")
        Image.fromarray(mask).save(folder / f"{number}_mask.png")
        split = "TRAIN" if number % 5 else "VALIDATION"
        rows.append(f"{split},{number}.png,{number}_mask.png\n")
    (folder / "a.csv").write_text("".join(rows))
    (folder / "names.txt").write_text("".join(f"{name}\n" for name in NAMES))
    convert(folder / "a.csv", folder / "out", vocabulary=str(folder / "names.txt"))
    return str(folder / "out")


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory):
    return trainer.train(dataset, tmp_path_factory.mktemp("trained"), **FAST)


@pytest.fixture(scope="module")
def answers(trained, dataset):
    """The model's masks and the true masks of the evaluation split."""
    return trainer.answers_and_truth(trained, dataset, 12)


def counted(answers):
    counts = MaskAccumulator(len(NAMES))
    counts.add(answers[1], answers[0])
    return counts


@pytest.mark.slow
def test_classes_of_pixels_are_found(answers):
    assert counted(answers).score() > 0.8


@pytest.mark.slow
def test_truth_has_the_masks_of_the_import_file(answers):
    found = sorted(mask.tolist() for mask in answers[1])
    assert found == sorted(picture(number)[1].tolist() for number in range(0, 60, 5))


@pytest.mark.slow
def test_serving_answers_image_files_with_masks(trained):
    image, mask = picture(1001)
    answer = CppModel(trained).run("serving_default", image_bytes=[encoded(image, "PNG")] * 2)
    shapes = {name: value.shape for name, value in answer.items()}
    assert shapes == {"masks": (2, SIDE, SIDE), "error": (2,)}
    assert (answer["masks"][0] == mask)[mask != 255].mean() > 0.9


@pytest.mark.slow
def test_scores_of_the_step_agree_with_the_models_answers(trained, dataset, answers):
    found = evaluate(trained, dataset, read_dataset(dataset), "eval")
    expected = counted(answers)
    assert (found.measure, found.examples) == ("mean_iou", 12)
    assert found.score == pytest.approx(expected.score())
    by_name = {f"mean_iou/{NAMES[n]}": iou for n, iou in expected.by_label().items()}
    assert found.by_label == pytest.approx(by_name)
    assert found.loss == pytest.approx(expected.loss())


@pytest.mark.slow
def test_labels_are_compared_by_name(trained, dataset, answers):
    """Other data may number the classes differently, and have others."""
    folder = Path(dataset).parent
    (folder / "other.txt").write_text("ground\namber\nblue\nbird\n")
    out = str(folder / "other")
    convert(folder / "a.csv", out, vocabulary=str(folder / "other.txt"))
    found = evaluate(trained, out, read_dataset(out), "eval")
    assert found.unknown == {"amber": 12}
    expected = counted(answers).by_label()
    assert found.by_label["mean_iou/blue"] == pytest.approx(expected[2])
    assert found.score == pytest.approx((expected[0] + expected[2]) / 3)


@pytest.mark.slow
def test_images_without_masks_have_no_score(trained, tmp_path):
    picture(0)[0].save(tmp_path / "a.png")
    trainer.check_no_score(trained, tmp_path, "VALIDATION,a.png", "image_segmentation")


def test_a_single_class_is_nothing_to_learn(tmp_path):
    """Masks of 0 and 255 alone are a mistake of whoever wrote them."""
    picture(0)[0].save(tmp_path / "a.png")
    image = Image.open(tmp_path / "a.png")
    Image.fromarray(np.zeros((image.height, image.width), np.uint8)).save(tmp_path / "m.png")
    (tmp_path / "a.csv").write_text("TRAIN,a.png,m.png\n")
    out = str(tmp_path / "out")
    convert(str(tmp_path / "a.csv"), out)
    segmenter = ImageSegmenter(out, "train", read_dataset(out), TrainingConfig())
    with pytest.raises(DataError, match="255"):
        segmenter.check()


def test_pixels_without_a_class_do_not_count():
    true = np.array([[[0, 1, 255]]], np.uint8)
    right = np.array([[[[9, 0], [0, 9], [0, 0]]]], np.float32)
    wrong = np.array([[[[9, 0], [9, 0], [0, 0]]]], np.float32)
    assert float(pixels_loss(tf.constant(true), tf.constant(right))) == pytest.approx(0, abs=1e-3)
    assert float(pixels_loss(tf.constant(true), tf.constant(wrong))) == pytest.approx(4.5, abs=1e-3)
    nothing = tf.fill((1, 1, 3), tf.constant(255, tf.uint8))
    assert float(pixels_loss(nothing, tf.constant(right))) == 0


@pytest.mark.parametrize("size", [(17, 31), (5, 64)])
def test_masks_have_the_size_of_their_images(size):
    config = TrainingConfig(image_size=size)
    assert build_unet(config, 3).output_shape == (None, *size, 3)


def test_masks_follow_their_images(dataset):
    config = TrainingConfig.from_custom_config({**FAST, "augmentation": 0.5})
    segmenter = ImageSegmenter(dataset, "train", read_dataset(dataset), config)
    images, masks = next(iter(segmenter.train_data()))
    for label, channel in ((1, 0), (2, 2)):
        assert (images.numpy()[masks.numpy() == label, channel] > 0.5).mean() > 0.8
