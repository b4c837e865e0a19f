"""Entities in texts: from spans to a tagger and its score. For TFMA, see test_demo."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.samples.travels import sentences, write_travels
from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.kubeflow.evaluate import evaluate
from recordgen.reading import eval_dataset
from recordgen.reading.words import split_tokens
from recordgen.tasks.text_entities.tags import tag_names, tokenize
from recordgen.tasks.text_entities.training import build_tagger
from recordgen.training.measures import EntityAccumulator
from tests import trainer
from tests.cpp_loader import CppModel

NAMES = np.array(tag_names(["city", "date", "person"]))


@given(
    st.text(
        "aZé9_東々〇京かナー・हिन्दीที่า๒ລຂັខ្មែ៥မြ၅한\u0301.,'-€。❤\ufe0f \t\n\u00a0\u2003\u3000",
        max_size=30,
    )
)
@settings(max_examples=50)
def test_a_request_is_cut_into_tokens_as_records_are(text):
    expected = [text[start:end] for start, end in tokenize(text)]
    assert [token.decode() for token in split_tokens(tf.constant([text]))[0].numpy()] == expected


FAST = {"batch_size": 16, "learning_rate": 5e-3, "epochs": 4}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """200 sentences."""
    folder = tmp_path_factory.mktemp("travels")
    convert(write_travels(str(folder), 200), str(folder / "out"), task="text_entities")
    return str(folder / "out")


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory):
    """The folder of a model that knows the sentences fairly well, and the log of its training."""
    return trainer.train_and_listen(dataset, tmp_path_factory.mktemp("trained"), **FAST)


def test_masks_of_the_tagger_have_the_dtype_of_its_layers():
    lookup, policy = keras.layers.StringLookup(vocabulary=["in"]), keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = build_tagger(lookup, tags=3, dropout=0.1, seed=0)
    finally:
        keras.config.set_dtype_policy(policy)
    assert model(tf.constant([["in", "Bonn", ""]])).dtype == tf.float32


@pytest.mark.slow
def test_the_model_learns_and_its_f1_is_that_of_sets_of_spans(dataset, trained):
    model, log = trained
    assert re.search(r"epoch 4/4: loss .*, token_accuracy .*, val_loss .*, val_token_acc", log)
    found = evaluate(model, dataset, read_dataset(dataset), "eval")
    assert found.measure == "f1"
    assert found.score > 0.75
    assert found.examples == read_dataset(dataset).splits["eval"].examples

    served, records = CppModel(model), trainer.records_of(dataset)
    truth = served.run("truth", examples=records)
    assert (truth["weight"] == 1).all()
    [(_, tags)] = eval_dataset(dataset, batch_size=len(records))
    np.testing.assert_array_equal(truth["label"], tags)
    scores = served.run("evaluate", examples=records)["scores"]
    counts = EntityAccumulator(3)
    counts.add(tags.numpy(), scores)
    assert found.score == pytest.approx(counts.score())
    # The answer to a text does not depend on its batch.
    alone = served.run("evaluate", examples=records[:1])["scores"]
    np.testing.assert_allclose(scores[:1, : alone.shape[1]], alone, atol=1e-5)


@pytest.mark.slow
def test_labels_are_compared_by_name(dataset, trained, tmp_path):
    known = read_dataset(dataset)
    source = tmp_path / f"b{Path(known.source[0]).suffix}"
    source.write_text(Path(known.source[0]).read_text().replace('"person"', '"a person"'))
    convert(source, tmp_path / "out", task="text_entities")
    other = read_dataset(str(tmp_path / "out"))
    assert (known.labels, other.labels) == (
        ("city", "date", "person"),
        ("a person", "city", "date"),
    )
    first = evaluate(trained[0], dataset, known, "eval")
    found = evaluate(trained[0], str(tmp_path / "out"), other, "eval")
    [(label, count)] = found.unknown.items()
    assert (label, count > 0) == ("a person", True)
    expected = {name: score for name, score in first.by_label.items() if name != "f1/person"}
    assert found.by_label == pytest.approx(expected)
    assert 0 < found.score < first.score


@pytest.mark.slow
def test_serving_answers_texts_of_any_length_token_by_token(trained):
    model = CppModel(trained[0])
    known = [text for text, _ in sentences(20)]
    answer = model.run("serving_default", text=[*known, ""])
    tokens, tags = answer["tokens"], answer["tags"]
    for text, row, predicted in zip([*known, ""], tokens, tags, strict=True):
        expected = [text[start:end].encode() for start, end in tokenize(text)]
        assert [token for token in row if token] == expected
        assert {tag.decode() for tag in predicted[: len(expected)]} <= set(NAMES)
        assert not any(predicted[len(expected) :])
    assert sum(tag.startswith(b"B-") for tag in tags.ravel()) >= 20
    assert (answer["scores"][tokens == b""] == 0).all()
    assert model.run("serving_default", text=[""])["tags"].shape == (1, 1)
    assert np.isfinite(model.run("serving_default", text=[b"caf\xe9 \xff\0"])["scores"]).all()
