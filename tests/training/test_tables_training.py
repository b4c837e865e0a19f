"""Tables: from rows to a model, evaluated by Keras, Kubeflow's step and TFMA."""

import json
import re
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from sklearn import ensemble, linear_model

import recordgen
from recordgen.core.records.example import serialize_example
from recordgen.tasks.tables import training
from recordgen.tasks.tables.trees import answer_of, better_model
from recordgen.training.model_files import INPUTS_FILE
from tests import serving, trainer
from tests.cpp_loader import CppModel

ROWS = 400


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """``y`` depends on a number and a text; both, a whole number and the class have gaps."""
    random = np.random.default_rng(0)
    lines = ["fold,a/b,n,word,w,y,cls\n"]
    for number in range(ROWS):
        a, n, word = random.normal(1000, 50), random.integers(-3, 4), ["low", "high"][number % 2]
        y = 5e4 + (a - 1000) * 20 + (800 if word == "high" else -800) + n * 100
        shown = "" if number % 19 == 0 else f"{a:.3f}", "" if number % 23 == 0 else n
        fold = "TRAIN" if number % 5 else "VALIDATE"
        cls = "" if number % 37 == 0 else "up" if y > 5e4 else "low"
        lines.append(f"{fold},{shown[0]},{shown[1]},{word},1,{y:.2f},{cls}\n")
    path = tmp_path_factory.mktemp("source") / "a.csv"
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.slow
def test_the_model_learns_classes_and_answers_without_a_target(source, tmp_path, caplog):
    """The step's score is that of the log, and unknown words get an answer."""
    caplog.set_level("INFO")
    output = str(tmp_path / "out")
    recordgen.convert(source, output, task="tabular", columns="split=fold,target=cls,weight=w")
    settings = {"epochs": 10, "batch_size": 16, "learning_rate": 0.01, "dropout": 0, "patience": 0}
    model = trainer.train(output, tmp_path, **settings)
    last = [item.message for item in caplog.records if "epoch 10/10" in item.message][-1]
    found = trainer.evaluated(model, output)
    assert found.measure == "accuracy"
    logged = float(re.search(r"val_accuracy ([0-9.]+)", last)[1])
    assert found.score == pytest.approx(logged, abs=1e-4)
    assert found.score > 0.9
    assert found.examples == ROWS // 5 - 3  # rows without a class do not count
    rows = [{"a/b": 1100.0, "n": 0, "word": b"high", "y": 52_000.0}, {"word": b"never seen"}]
    examples = [b"".join(serialize_example(row)) for row in rows]
    answer = CppModel(model).run("serving_default", examples=examples)
    assert answer["labels"].shape == answer["scores"].shape == (2, 2)
    assert answer["labels"][0, 0] == b"up"
    assert np.isfinite(answer["scores"]).all()
    by_name = serving.answer(
        model,
        "columns",
        """[{"a_b": 1100, "n": 0, "word": "high", "y": 5.2e4},
            {"a_b": NaN, "n": NaN, "word": "never seen", "y": NaN}]""",
    )
    assert by_name["labels"].tolist() == answer["labels"].tolist()
    np.testing.assert_allclose(by_name["scores"], answer["scores"], rtol=1e-6)


@pytest.mark.filterwarnings("error:All-NaN:RuntimeWarning")
def test_names_of_rows_are_left_out_and_dates_are_numbers(tmp_path):
    """No answer depends on a name; the log and the model say so; training by heart stops early.

    A column may lack all numbers in training: it causes no warning.
    """
    random, days = np.random.default_rng(0), pd.date_range("2024-02-01", periods=80)
    lines = ["fold,later,id,day,cls"]
    for number, cls in enumerate(random.integers(0, 2, 80)):
        fold = "TRAIN," if number % 4 else f"VALIDATE,{number}"
        lines.append(f"{fold},A-{number},{days[number]:%Y-%m-%d},class{cls}")
    output = trainer.convert_table(tmp_path, lines, target="cls")
    settings = {"epochs": 40, "learning_rate": 0.05, "dropout": 0}
    model, log = trainer.train_and_listen(output, tmp_path, **settings)
    assert "column 'id'" in log
    assert 5 < len(re.findall("epoch [0-9]+/40: ", log)) < 40
    inputs = json.loads(Path(model, INPUTS_FILE).read_text())["columns"]
    kinds = {"later": "number", "id": training.ROW_NAME, "day": training.DATE}
    assert inputs == {**kinds, "cls": "the target, a class"}
    asked = [("A-1", "2024-02-02"), ("new", "2024-02-02"), ("A-1", "2024-04-20"), ("A-1", "")]
    rows = [{"id": name, "day": day, "later": 1} for name, day in asked]
    scores = serving.answer(model, "columns", json.dumps(rows))["scores"]
    assert np.isfinite(scores).all()
    assert scores[0].tolist() == scores[1].tolist() != scores[2].tolist()


@pytest.mark.slow
def test_words_of_a_few_rows_are_not_learnt_by_heart(tmp_path):
    """The sellers say nothing about ``y``; without them, R² would be at most 0.5."""
    random, lines = np.random.default_rng(2), ["fold,x,seller,y"]
    for number in range(300):
        x, noise = random.normal(size=2)
        fold = "TRAIN" if number % 2 else "VALIDATE"
        lines.append(f"{fold},{x:.3f},shop{random.integers(60)},{x + noise:.3f}")
    output = trainer.convert_table(tmp_path, lines, target="y")
    model = trainer.train(output, tmp_path, patience=0, seed=2)
    assert trainer.evaluated(model, output).score > 0.34


@pytest.mark.parametrize(("scale", "precision"), [(1, "mixed_float16"), (1e-23, "float32")])
def test_numbers_are_learnt_in_few_bits(scale, precision, tmp_path):
    """The gradients of their errors fit, also if words that rows share are all that is known."""
    random, lines = np.random.default_rng(0), ["fold,word,y"]
    for number in range(64):
        fold = "TRAIN" if number % 4 else "VALIDATE"
        lines.append(f"{fold},{number}.png,{random.normal(100, 70) * scale:.6g}")
    output = trainer.convert_table(tmp_path, lines, target="y")
    model = trainer.train(output, tmp_path, patience=0, epochs=20, precision=precision)
    assert np.isfinite(trainer.evaluated(model, output).score)


# texts, kind
TEXT_COLUMNS = [
    ([f"A-{number}" for number in range(50)], training.ROW_NAME),
    ([f"customer {number}" for number in range(50)], training.ROW_NAME),
    ([f"A-{number}" for number in range(9)], training.TEXT),  # few texts may differ by chance
    (["red", "blue"] * 50, training.TEXT),
    (["the old town", "the new town"] * 50, training.TEXT),
    ([f"the {number} is red" for number in range(50)], training.SENTENCE),
    (["好" + chr(0x4E00 + number) + "吃的" for number in range(50)], training.SENTENCE),
    (["2024-03-14", ""] * 50, training.DATE),
    (["2024-03-14", "soon"] * 50, training.TEXT),
    ([""] * 50, training.TEXT),
]


@pytest.mark.parametrize(("texts", "kind"), TEXT_COLUMNS)
def test_texts_of_a_column_are_told_apart(texts, kind):
    """Names differ and are short; sentences, repeated words and few texts stay texts."""
    assert training.kind_of_texts(tf.constant(texts)) == kind


@pytest.mark.parametrize(
    "form", ["%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M"]
)
def test_dates_have_the_days_of_the_calendar(form):
    """Over centuries, in each form that is read; other texts are missing numbers."""
    times = pd.date_range("1850-01-01", periods=3000, freq="997h")
    texts = [f"{time:{form}}" for time in times]
    expected = [[(t - pd.Timestamp(0)).days, t.month, t.weekday(), t.hour] for t in times]
    assert training.date_numbers(tf.constant(texts)).numpy().tolist() == expected
    assert np.isnan(training.date_numbers(tf.constant(["", "soon", "2024-13-01"]))).all()


@pytest.mark.parametrize(
    ("given", "epochs"),
    [({}, 60), ({"batch_size": 6}, 50), ({"batch_size": 120}, 150), ({"epochs": 3}, 3)],
)
def test_few_rows_are_read_more_often(given, epochs, tmp_path):
    """2,000 steps in at most 60 epochs, or 300 in 200; the setting has the last word."""
    rows = [f"TRAIN,{number},c{number % 2}" for number in range(240)]
    output = trainer.convert_table(tmp_path, ["fold,n,cls", *rows], target="cls")
    assert trainer.trainer_of(output, **given).settled().config.epochs == epochs


def test_only_columns_with_gaps_have_inputs_for_missing_numbers():
    """Columns with a gap in any part are remembered as such."""
    from recordgen.training.measures import Moments

    moments = Moments.of(np.array([[1.0, np.nan, 2.0], [2.0, 3.0, 3.0]]))
    assert (moments + Moments.of(np.array([[1.0, 1.0, np.nan]]))).with_gaps == [1, 2]


@pytest.mark.parametrize("seen", [[], [0, 1], [1, 3], [0, 1, 3]])
def test_saved_models_answer_as_scikit_learn(seen, tmp_path):
    """Also where a number is equal to a limit, and if some of four classes have no rows."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 9, (200, 4)).astype(np.float32) / 10
    targets = random.choice(seen, 200) if seen else rows[:, 0] * 5 + random.normal(size=200)
    numbers, limits = keras.Input((4,)), np.arange(-1, 21)[:, None].repeat(4, 1) / np.float32(20)
    trees = ensemble.GradientBoostingClassifier if seen else ensemble.GradientBoostingRegressor
    line = linear_model.LogisticRegression() if seen else linear_model.Ridge()
    for model in (trees(random_state=0), line):
        model.fit(rows, targets, sample_weight=random.uniform(0.1, 2, 200))
        answer = answer_of(model, 4 if seen else 0, numbers)
        keras.Model(numbers, answer).save(tmp_path / "a.keras")
        expected = np.zeros((22, 4)) if seen else model.predict(limits)[:, None]
        if seen:
            expected[:, seen] = model.predict_proba(limits)
        found = keras.models.load_model(tmp_path / "a.keras")(limits)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("classes", [0, 2])
def test_trees_answer_where_a_line_does_not_fit(classes):
    """The better of both is that with the lower loss on rows that it has not learnt from."""
    numbers = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    line = numbers[:, 0] + numbers[:, 1]
    for targets, most in (
        (np.abs(numbers[:, 0]) > 0.7, 0.1),
        (line > 0 if classes else line, 0.05),
    ):
        targets = targets.astype(int if classes else float)
        model = better_model([numbers, targets, np.ones(200)], classes, 0)
        scores = answer_of(model, classes, tf.constant(numbers)).numpy()
        found = scores.argmax(-1) if classes else scores[:, 0]
        assert np.mean(np.abs(found - targets)) < most


@pytest.mark.parametrize(("cells", "count"), [(1, 0), (4000, 1)])
def test_trees_read_the_rows_once(cells, count, tmp_path, monkeypatch):
    """Also if the model is built again, in 32 bits; never if one row has too many cells."""
    rows = [f"TRAIN,{number},{number % 3},{number}.5" for number in range(20)]
    output = trainer.convert_table(tmp_path, ["fold,n,m,y", *rows], target="y")
    made = trainer.trainer_of(output)
    monkeypatch.setattr(training, "_CELLS", cells)
    with mock.patch.object(training, "train_dataset", wraps=training.train_dataset) as reading:
        assert made.models().saved.count_params() == made.models().saved.count_params()
    assert reading.call_count == count


def test_tfma_says_the_same():
    """Parts of the rows have the score and the loss of our own measures."""
    tfma_metrics = pytest.importorskip("recordgen.training.tfma_metrics", exc_type=ImportError)
    from tensorflow_model_analysis import metrics

    key = metrics.MetricKey("score")
    for truth, scores, expected in (
        ([1, 0, 1], [[0.2, 0.8], [0.4, 0.6], [0.1, 0.9]], 2 / 3),
        ([1.0, 2.0, 3.0], [[1.0], [2.5], [3.0]], 1 - 0.25 / 2),
    ):
        [computation] = tfma_metrics.TableScore().computations(model_names=[""], output_names=[""])
        combiner = computation.combiner
        inputs = map(trainer.tfma_input, truth, scores)
        parts = [combiner.add_input(None, each) for each in inputs]
        found = combiner.extract_output(combiner.merge_accumulators(parts))
        assert found[key] == pytest.approx(expected)
