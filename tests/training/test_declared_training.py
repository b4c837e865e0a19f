"""Declared columns: from rows to a model, evaluated by Keras and Kubeflow's step."""

from __future__ import annotations

import base64
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import recordgen
from recordgen.errors import DataError, UsageError
from recordgen.tasks.tables.training import to_numbers
from tests import serving, trainer
from tests.cpp_loader import CppModel

ROWS = 240
SCHEMA = {"use": "split", "left": "image", "a/b": "int", "right": "image", "place": "floats[2]"}
SCHEMA |= {"marks": "floats", "note": "text", "verdict": "label"}


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    """``verdict`` is the sign of the sum of all columns, ``sum`` without the images'.

    Some verdicts are missing.
    """
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("images")
    lights = np.linspace(-1, 1, 11)
    for at, light in enumerate(lights):
        image = tf.io.encode_png(np.full((8, 8, 3), 127 + 120 * light, np.uint8)).numpy()
        for use in ("TRAIN", "VALIDATION"):
            (folder / f"{use}{at}.png").write_bytes(image)
    rows = []
    for number in range(ROWS):
        left, right = random.integers(0, len(lights), 2)
        whole, first, last = random.normal(0, 1, 3)
        marks = random.normal(0, 1, random.integers(0, 4)).round(3)
        word = ["gain", "loss"][random.integers(2)]
        others = whole + first + 2 * (word == "gain") - 1 + (marks.max() if marks.size else 0)
        total = lights[left] - lights[right] + others
        use = "TRAIN" if number % 4 else "VALIDATION"
        rows.append(
            {
                "use": use,
                "left": str(folder / f"{use}{left}.png"),
                "right": str(folder / f"{use}{right}.png"),
                "a/b": 10**6 + round(whole * 1000),
                "place": [first, last],
                "marks": marks.tolist(),
                "note": f"A {word}, or so.",
                "verdict": "" if number % 20 == 0 else "up" if total > 0 else "down",
                "sum": 1000 + 10 * others,
            }
        )
    return pd.DataFrame(rows)


def converted(frame, root, schema):
    output = str(root / "out")
    recordgen.convert(frame, output, schema=schema)
    return output


FAST = {"image_size": [8, 8], "batch_size": 12, "learning_rate": 0.01, "dropout": 0, "patience": 0}


@pytest.fixture(scope="module")
def classifier(frame, tmp_path_factory):
    """A training of classes: the folders of dataset and model, and the log."""
    root = tmp_path_factory.mktemp("classes")
    output = converted(frame, root, SCHEMA)
    model, log = trainer.train_and_listen(output, root, **FAST, epochs=12)
    return output, model, [line for line in log.splitlines() if "epoch " in line]


@pytest.mark.slow
def test_all_columns_together_classify_better_than_any(classifier):
    """The score is that of the served labels."""
    output, model, logged = classifier
    found = trainer.evaluated(model, output)
    assert found.measure == "accuracy"
    last = re.search(r"val_accuracy ([\d.]+)", logged[-1])
    assert last
    assert found.score == pytest.approx(float(last[1]), abs=1e-4)
    assert found.score > 0.8
    assert found.examples == ROWS // 4 - ROWS // 20  # unlabelled examples do not count
    records = trainer.records_of(output)
    answer = CppModel(model).run("serving_default", examples=records)
    assert answer["labels"].shape == answer["scores"].shape == (len(records), 2)
    spec = {"verdict/text": tf.io.FixedLenFeature((), tf.string, "")}
    truth = tf.io.parse_example(tf.constant(records), spec)["verdict/text"].numpy()
    right = answer["labels"][:, 0] == truth
    assert right[truth != b""].mean() == pytest.approx(found.score)


def instance(record, longest):
    """Return a record's inputs as a row of JSON; NaN pads lists and is a missing number."""
    stored = tf.train.Example.FromString(record).features.feature
    files = {name: stored[f"{name}/encoded"].bytes_list.value[0] for name in ("left", "right")}
    images = {name: {"b64": base64.b64encode(data).decode()} for name, data in files.items()}
    marks = list(stored["marks"].float_list.value)
    return {
        **images,
        "a_b": (list(stored["a/b"].int64_list.value) or [math.nan])[0],
        "place": list(stored["place"].float_list.value) or [math.nan] * 2,
        "marks": marks + [math.nan] * (longest - len(marks)),
        "note": stored["note"].bytes_list.value[0].decode(),
    }


@pytest.mark.slow
def test_columns_by_name_get_the_answers_of_examples(classifier):
    """A row of JSON has the columns of a row of CSV, image files in base64."""
    output, model, _ = classifier
    examples = trainer.records_of(output)[:8]
    gaps = tf.train.Example.FromString(examples[0])
    for name in ("a/b", "place", "marks"):
        gaps.features.feature.pop(name, None)  # an example without marks has no such feature
    examples.append(gaps.SerializeToString())
    del gaps.features.feature["right/encoded"]
    examples.append(gaps.SerializeToString())
    expected = CppModel(model).run("serving_default", examples=examples)
    rows = [instance(record, longest=4) for record in examples[:-1]]
    rows.append({**rows[-1], "right": {"b64": ""}})
    answer = serving.answer(model, "columns", json.dumps(rows))
    assert answer["labels"].tolist() == expected["labels"].tolist()
    np.testing.assert_allclose(answer["scores"], expected["scores"], rtol=1e-5)
    assert answer["error"].tolist() == expected["error"].tolist()
    assert [error[:6] for error in answer["error"]] == [b""] * 9 + [b"right:"]
    assert np.isnan(answer["scores"]).any(axis=1).tolist() == [False] * 9 + [True]


@pytest.mark.slow
def test_a_number_is_predicted_in_its_own_scale(frame, tmp_path):
    """Answers, truth and score have the unit of the column."""
    ignored = dict.fromkeys(("left", "right", "verdict"), "ignored")  # pictures cost most
    changes = {**ignored, "sum": "float_label", "blank": "text"}
    output = converted(frame.assign(blank=""), tmp_path, {**SCHEMA, **changes})
    model = trainer.train(output, tmp_path, **FAST, epochs=12)
    found = trainer.evaluated(model, output)
    assert found.measure == "r2"
    assert 0.7 < found.score < 1
    served = CppModel(model)
    records = trainer.records_of(output)
    answers = served.run("serving_default", examples=records)["predictions"]
    scores = served.run("evaluate", examples=records)["scores"]
    assert scores[:, 0] == pytest.approx(answers)
    truth = served.run("truth", examples=records)["label"].astype(np.float64)
    assert truth.mean() == pytest.approx(1000, abs=10)
    errors = np.square(truth - answers).sum()
    assert found.score == pytest.approx(1 - errors / np.square(truth - truth.mean()).sum())
    example = tf.train.Example.FromString(records[0])
    del example.features.feature["sum"]
    alone = served.run("serving_default", examples=[example.SerializeToString()])
    assert alone["predictions"] == pytest.approx(answers[:1], rel=1e-5)


def test_a_list_of_any_length_is_summarised():
    """Its number, mean and ends are inputs of the model; an empty list is zeros."""
    values = tf.ragged.constant([[3.0, 1.0], [], [-2.0]], row_splits_dtype=tf.int64)
    assert to_numbers(values).numpy().tolist() == [[2, 2, 1, 1, 3], [0] * 5, [1, -2, 0, -2, -2]]


NO_OTHER = dict.fromkeys(set(SCHEMA) - {"use", "verdict"}, "ignored")
TRAIN, EVAL = "TRAIN", "VALIDATION"

# the split of all rows, changes of the schema, settings, the error
WRONG = [
    (TRAIN, {"verdict": "text"}, {}, DataError, "no column is the target, only use, left"),
    (TRAIN, {"verdict": "ignored", "use": "label"}, {}, DataError, "TRAIN"),
    (TRAIN, NO_OTHER, {}, DataError, "target"),
    (TRAIN, {}, {"model": "MobileNetV2"}, UsageError, r"model.*'MobileNetV2'"),
    (EVAL, {}, {}, DataError, "'train'"),
]


@pytest.mark.parametrize(("use", "changes", "settings", "error", "message"), WRONG)
def test_rows_that_teach_nothing_are_an_error_before_training(
    frame, tmp_path, use, changes, settings, error, message
):
    """A table needs a target of several classes, another column, a split, and no image model."""
    output = converted(frame[frame["use"] == use][:20], tmp_path, {**SCHEMA, **changes})
    with pytest.raises(error, match=message):
        trainer.train(output, tmp_path, **settings)
