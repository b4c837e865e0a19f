"""Several labels per image: from rows to a model, evaluated by Keras."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import recordgen
from recordgen import convert, write
from recordgen.core.dataset.manifest import read_dataset
from recordgen.errors import DataError
from recordgen.kubeflow.evaluate import evaluate
from recordgen.reading import eval_dataset
from tests import trainer
from tests.conftest import encoded
from tests.cpp_loader import CppModel

LABELS = ("blue", "green", "red")
FAST = {"image_size": [8, 8], "batch_size": 16, "epochs": 10, "learning_rate": 0.01}


def picture(number, *, spread=100):
    """Return a noisy image, and the labels of the channels that were made brighter by 60.

    Channels also differ at random, by up to ``spread``: with its default, a perfect model orders
    about 0.92 of all pairs correctly.
    """
    random = np.random.default_rng(number)
    pixels = random.integers(0, 30, (9, 8 + number % 5, 3), np.uint8)
    pixels += random.integers(0, spread, 3, np.uint8, endpoint=True)
    shown = [label for bit, label in enumerate(LABELS) if number >> bit & 1]
    for label in shown:
        pixels[..., {"red": 0, "green": 1, "blue": 2}[label]] += 60
    return Image.fromarray(pixels), shown


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """200 images, every fifth for evaluation; every eighth has no colour and no label."""
    folder = tmp_path_factory.mktemp("colours")
    rows = []
    for number in range(200):
        image, shown = picture(number)
        image.save(folder / f"{number}.png")
        rows.append(["TRAIN" if number % 5 else "VALIDATION", f"{number}.png", *shown])
    (folder / "a.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
    convert(str(folder / "a.csv"), str(folder / "out"), task="image_multi_label")
    return str(folder / "out")


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory):
    """The folder of a model that knows the colours, and the log of its training."""
    return trainer.train_and_listen(dataset, tmp_path_factory.mktemp("trained"), **FAST)


@pytest.fixture(scope="module")
def model(trained):
    return trained[0]


@pytest.fixture(scope="module")
def answers(model, dataset):
    """Scores, truth and weights of the evaluation split."""
    served, records = CppModel(model), trainer.records_of(dataset)
    truth = served.run("truth", examples=records)
    scores = served.run("evaluate", examples=records)["scores"]
    return scores, truth["label"], truth["weight"]


@pytest.mark.slow
def test_scores_of_labels_are_independent(answers):
    """They are probabilities of each label, which add up to more than 1 if there are several."""
    scores, truth, _ = answers
    assert scores.shape == truth.shape == (40, 3)
    assert ((scores >= 0) & (scores <= 1)).all()
    all_three = scores[truth.sum(axis=1) == 3]
    assert len(all_three) == 5
    assert (all_three.sum(axis=1) > 1.5).all()  # softmax would give 1


@pytest.mark.slow
def test_truth_is_what_reading_gives(answers, dataset):
    _, truth, weights = answers
    batches = eval_dataset(dataset, batch_size=8, image_size=(8, 8), label_mode="multi_hot")
    labels = np.concatenate([labels.numpy() for _, labels in batches])
    np.testing.assert_array_equal(truth[weights > 0], labels)
    assert weights.tolist().count(0) == read_dataset(dataset).splits["eval"].unlabelled == 5
    assert not truth[weights == 0].any()


@pytest.mark.slow
def test_serving_answers_images_with_all_labels_best_first(model):
    images, expected = [], []
    for number in (1001, 1002, 1004, 1003):  # modulo 8: one label, one, one, two
        image, shown = picture(number, spread=0)
        images.append(encoded(image.resize((30, 20)), "PNG"))
        expected.append(set(shown))
    answer = CppModel(model).run("serving_default", image_bytes=images)
    assert answer["labels"].shape == answer["scores"].shape == (4, 3)
    assert (np.diff(answer["scores"], axis=1) <= 0).all()
    for labels, shown in zip(answer["labels"], expected, strict=True):
        assert {label.decode() for label in labels[: len(shown)]} == shown


@pytest.mark.slow
def test_labels_are_compared_by_name(trained, dataset, tmp_path):
    """Most pairs are ordered as they should be; an unknown label counts as a guess."""
    model, log = trained
    rows = Path(dataset).with_name("a.csv").read_text().replace("red", "amber")
    Path(dataset).with_name("b.csv").write_text(rows)
    recordgen.convert(Path(dataset).with_name("b.csv"), tmp_path / "out", task="image_multi_label")
    known = evaluate(model, dataset, read_dataset(dataset), "eval")
    found = evaluate(model, str(tmp_path / "out"), read_dataset(str(tmp_path / "out")), "eval")
    assert known.unknown == {}
    assert known.score > 0.8
    assert len(re.findall(r"epoch .*: auc \d\.\d+, loss .*, val_auc \d\.\d+, val_loss", log)) == 10
    assert found.unknown == {"amber": 20}
    expected = {name: score for name, score in known.by_label.items() if name != "auc/red"}
    assert found.by_label == pytest.approx(expected)
    assert found.score == pytest.approx((sum(expected.values()) + 0.5) / 3)


def test_written_examples_have_no_model(tmp_path):
    write(iter([{"x": 1.0}]), str(tmp_path / "out"))
    expected = "out: there is no model for the task 'examples'; train your own model with recordgen"
    with pytest.raises(DataError, match=expected):
        trainer.train(str(tmp_path / "out"), tmp_path, **FAST)
