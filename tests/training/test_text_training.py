"""Several labels and sentiments of texts: from rows to a model and its evaluation.

test_labels_by_name.py trains the model of texts with one label.
"""

from pathlib import Path

import keras
import numpy as np
import pytest

from pipelines.samples import sample_of
from recordgen import convert
from recordgen.core.dataset.manifest import read_dataset
from recordgen.kubeflow.evaluate import evaluate
from tests import trainer
from tests.cpp_loader import CppModel

FAST = {"batch_size": 16, "epochs": 8, "learning_rate": 1e-2}


def converted(task, folder):
    """Convert 300 reviews of a task, and an unlabelled one for evaluation."""
    path = Path(sample_of(task).write(str(folder / "data"), 300))
    path.write_text(f"{path.read_text()}VALIDATION,nobody said anything\n")
    convert(str(path), folder / "out", task=task)
    return str(folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "text", "label", "least"),
    [
        # task, a text with several labels, its surest label, a score that guesses do not reach
        ("text_multi_label", "The waiter was good and the bill pleased us.", "price", 0.8),
        ("text_sentiment", "The view was awful and ruined the evening.", "0", 0.6),
    ],
)
def test_the_saved_model_takes_texts_with_any_words(task, text, label, least, tmp_path):
    dataset = converted(task, tmp_path)
    labels = read_dataset(dataset).labels
    model = trainer.train(dataset, tmp_path, **FAST)
    served = CppModel(model)
    answer = served.run("serving_default", text=[text, "!!!", "x " * 5000, b"caf\xe9 \xff\0"])
    names, scores = answer["labels"], answer["scores"]
    assert names.shape == scores.shape == (4, min(5, len(labels)))
    assert label.encode() in names[0, : 2 if task == "text_multi_label" else 1]
    assert np.isfinite(scores).all()
    assert (np.diff(scores) <= 0).all()

    records = trainer.records_of(dataset)
    truth = served.run("truth", examples=records)
    weights = truth["weight"]
    assert weights.sum() == len(weights) - 1 == 60
    scores = served.run("evaluate", examples=records)["scores"][weights > 0]
    expected = truth["label"][weights > 0]
    found = evaluate(model, dataset, read_dataset(dataset), "eval")
    assert found.examples == 60
    if task == "text_multi_label":
        metric = keras.metrics.AUC(multi_label=True, num_thresholds=1000)
        metric.update_state(expected, scores)
        assert (found.measure, found.score) == (
            "auc",
            pytest.approx(float(metric.result()), abs=0.01),
        )
    else:
        right = float((scores.argmax(axis=1) == expected).mean())
        assert (found.measure, found.score) == ("accuracy", pytest.approx(right))
    assert found.score >= least
