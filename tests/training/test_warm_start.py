"""Warm starts of texts and tables whose later data have other words, labels and numbers."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from recordgen import convert
from recordgen.errors import UsageError
from recordgen.training import run_fn
from recordgen.training.measures import Scale
from recordgen.training.model_files import EarlierModel, write_inputs, write_model_labels
from recordgen.training.run import warm_start
from recordgen.training.saving import save_for_serving
from recordgen.training.words import WordVectors, word_vectors
from tests.trainer import records_of, trainer_of


def converted(folder, task, files):
    """Write files, and convert the first; return the output's folder."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    options = {"columns": "target=y"} if task == "tabular" else {}
    convert(str(folder / next(iter(files))), str(folder / "out"), task=task, **options)
    return str(folder / "out")


def saved(output, path):
    """Save a model with random weights, in place of trained ones."""
    trainer, random = trainer_of(output), np.random.default_rng(0)
    model = trainer.models().saved
    model.set_weights([random.normal(0, 0.3, weight.shape) for weight in model.weights])
    save_for_serving(model, str(path), trainer)
    return trainer, model


def begun(output, base):
    """Return a model that begins with another model, before training."""
    earlier = EarlierModel.read(str(base))
    trainer = trainer_of(output, earlier)
    model = trainer.models().saved
    warm_start(model, trainer, earlier)
    return trainer, model


# task, files; additions of a later import: words and a label, which get the first numbers
TEXTS = [
    (
        "text_classification",
        {"a.csv": "TRAIN,good soup,food\nTRAIN,a rude waiter,service\n"},
        {"a.csv": "TRAIN,dear dear dear bill bill bill,bar\n"},
    ),
    (
        "text_multi_label",
        {"a.csv": "TRAIN,good soup,food,praise\nTRAIN,a rude waiter,service\n"},
        {"a.csv": "TRAIN,dear dear dear bill bill bill,bar,food\n"},
    ),
    (
        "text_entities",
        {
            "train_sentences.txt": "Ann left Rome\nRome greets Bob May\n",
            "train_labels.txt": "B-person O B-town\nB-town O B-person I-person\n",
        },
        {
            "train_sentences.txt": "Ann buys Zeit and Zeit and Zeit\n",
            "train_labels.txt": "B-person O B-paper O B-paper O B-paper\n",
        },
    ),
]


@pytest.mark.parametrize(("task", "files", "added"), TEXTS, ids=[case[0] for case in TEXTS])
def test_texts_get_the_scores_of_the_first_model_by_label(task, files, added, tmp_path):
    """Although words and labels have other numbers."""
    first = converted(tmp_path / "old", task, files)
    old_trainer, old = saved(first, tmp_path / "model")
    grown = {name: added[name] + content for name, content in files.items()}
    later = converted(tmp_path / "new", task, grown)
    trainer, model = begun(later, tmp_path / "model")
    old_words, words = (word_vectors(each)[0].vocabulary for each in (old, model))
    assert set(old_words) < set(words)
    assert words[: len(old_words)] != old_words
    names = list(trainer.outputs_of(trainer.dataset.labels))
    places = [names.index(x) for x in old_trainer.outputs_of(old_trainer.dataset.labels)]
    assert places != list(range(len(places)))
    for output in (first, later):
        records = tf.constant(records_of(output, "*"))
        before = old_trainer.scores(old, records).numpy()
        now = trainer.scores(model, records).numpy()[..., places]
        if task != "text_multi_label":
            now /= now.sum(axis=-1, keepdims=True)  # the new label takes its share of softmax
        np.testing.assert_allclose(now, before, atol=1e-5)


def rows(y, *, mean, whole, same, word, empty):
    """Return ten rows of a table without its header; column ``empty``, a or b, has gaps."""
    random, lines = np.random.default_rng(0), []
    for number in range(10):
        cells = [f"{random.normal(mean, mean / 4):.4f}", whole.format(number)]
        if number % 3 == 0:
            cells[empty] = ""
        answer = y.format(number, "hi" if number % 2 else "lo")
        lines.append(",".join(["TRAIN", *cells, same.format(number), word, answer]) + "\n")
    return "".join(lines)


HEADER = "ml_use,a,b,same,word,y\n"
FIRST = {"mean": 3, "whole": "{}", "same": "7", "word": "red", "empty": 0}
LATER = {"mean": 900, "whole": "{}00", "same": "{}", "word": "zinc red", "empty": 1}


@pytest.mark.parametrize(("y", "added"), [("{1}", "aha"), ("{0}.5", "900.5")])
def test_rows_get_the_scores_of_the_first_model(y, added, tmp_path):
    """Although scales, gaps, words and labels have changed."""
    output = converted(tmp_path / "old", "tabular", {"a.csv": HEADER + rows(y, **FIRST)})
    old_trainer, old = saved(output, tmp_path / "model")
    more = f"{HEADER}{rows(y, **LATER)}TRAIN,950,1,1,zinc,{added}\n"
    later = converted(tmp_path / "new", "tabular", {"a.csv": more})
    trainer, model = begun(later, tmp_path / "model")
    records = tf.constant(records_of(output, "*"))
    before, now = (t.scores(m, records).numpy() for t, m in ((old_trainer, old), (trainer, model)))
    if trainer.dataset.labels:
        assert trainer.dataset.labels == ("aha", "hi", "lo")
        now = now[:, 1:] / now[:, 1:].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(now, before, rtol=1e-3, atol=1e-4)
    assert np.ptp(before) > 0.01


def test_equal_numbers_get_the_deviation_of_new_ones():
    """A scale stays; a column without one is measured from the number that it always had."""
    before = Scale(np.array([7.0, 1.0]), np.array([0.0, 4.0]))
    mean, deviation = before.kept(Scale(np.array([10.0, 3.0]), np.array([4.0, 9.0])))
    assert (mean.tolist(), deviation.tolist()) == ([7, 1], [5, 4])


A_CLASS = "the target, a class"

FITTING = {"a": "number", "b": "number", "same": "number", "word": "text", "y": A_CLASS}
MOVED = {"b": "number", "a": "number", "same": "number", "word": "text", "y": A_CLASS}
OTHERS = {"a": "number", "b": "image", "age": "number", "word": "text", "y": A_CLASS}

# what an earlier model says about its inputs, what the error names
EARLIER = [
    ({}, "a, b, same, word, y;"),
    ({"columns": OTHERS}, "age, b, same;"),
    ({"columns": MOVED}, "b, a, same"),
    ({"columns": FITTING, "sixteenths": [[0.0]]}, "train without it"),
]


@pytest.fixture(scope="module")
def a_table(tmp_path_factory):
    content = HEADER + rows("{1}", **FIRST)
    return converted(tmp_path_factory.mktemp("table") / "1", "tabular", {"a.csv": content})


@pytest.mark.parametrize(("inputs", "named"), EARLIER)
def test_a_warm_start_names_each_column_that_does_not_fit(a_table, inputs, named, tmp_path):
    """Missing, additional and moved columns, or an older kind: an error before data are read."""
    write_model_labels(str(tmp_path), ["hi", "lo"])
    write_inputs(str(tmp_path), inputs)
    files = [f"{a_table}/Split-train/*"]
    places = {"base_model": str(tmp_path), "serving_model_dir": str(tmp_path / "model")}
    with pytest.raises(UsageError, match=f"^base_model {tmp_path} .*: {named}"):
        run_fn(SimpleNamespace(train_files=files, custom_config={}, **places))


def test_a_warm_start_without_words_is_refused(a_table):
    """The vocabularies of both models must be comparable."""
    trainer, lookup = trainer_of(a_table), keras.layers.TextVectorization(vocabulary=["a"])
    text = keras.Input((), dtype="string")
    for vectors, message in (
        (
            WordVectors(lookup.get_vocabulary(), 2),
            "base_model m .* it names 0 vocabularies instead of 1",
        ),
        (keras.layers.Embedding(3, 2), "has vocabularies without WordVectors"),
    ):
        model = keras.Model(text, vectors(lookup(text)))
        with pytest.raises(UsageError, match=message):
            warm_start(model, trainer, EarlierModel("m", (), {}))
