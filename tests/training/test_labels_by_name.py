"""A model is evaluated by the names of labels, whatever their numbers in the data."""

from pathlib import Path

import pytest

from recordgen import convert
from recordgen.core.dataset.manifest import LABELS_FILE, read_dataset
from recordgen.core.dataset.vocabulary import labels_digest
from recordgen.errors import DataError, SourceError
from recordgen.exports.lineage import find_lineage, lineage_lines
from recordgen.kubeflow.execution import Artifact, StepInput
from recordgen.kubeflow.models import evaluate
from recordgen.training.model_files import MODEL_LABELS_FILE, read_model_labels
from tests import trainer

COUNT = 16


def converted(folder, *labels):
    """Convert texts that contain the name of their label; return the dataset's folder."""
    source = folder / f"{'-'.join(labels)}.csv"
    trainer.write_texts(source, *labels, count=COUNT)
    convert(source, source.with_suffix(""), task="text_classification", lint="-ALL")
    return str(source.with_suffix(""))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Examples of ape, bee and cat."""
    return converted(tmp_path_factory.mktemp("data"), "ape", "bee", "cat")


@pytest.fixture(scope="module")
def model(dataset, tmp_path_factory):
    """A model that is always right about these labels."""
    root = tmp_path_factory.mktemp("model")
    return trainer.train(dataset, root, batch_size=8, epochs=5, learning_rate=0.05)


def test_the_model_names_its_labels(dataset, model):
    """A model carries the labels of its dataset, with the same digest."""
    text = Path(dataset, LABELS_FILE).read_text()
    assert Path(model, MODEL_LABELS_FILE).read_text() == text == "ape\nbee\ncat\n"
    digest = read_dataset(dataset).to_json()["labels_digest"]
    assert digest == labels_digest(read_model_labels(model))
    assert trainer.evaluated(model, dataset).score == 1


def test_a_model_of_several_spans_knows_all_labels(dataset, tmp_path):
    """Spans with different labels train one model that knows them all."""
    other = converted(tmp_path, "cat", "dog")
    spans = [other, dataset]
    model = trainer.train(spans, tmp_path, batch_size=8, epochs=5, learning_rate=0.05)
    assert read_model_labels(model) == ("ape", "bee", "cat", "dog")
    for each in spans:
        assert trainer.evaluated(model, each).score == 1
    found = find_lineage(model)
    assert (found.dataset.uri, found.state) == ((other, dataset), "same")
    assert found.dataset.splits == {"train": 5 * COUNT, "eval": 5 * COUNT}
    assert f"dataset {other}, {dataset}" in "\n".join(lineage_lines(found))
    convert(f"{dataset}.csv", other, task="text_classification", lint="-ALL", overwrite=True)
    assert find_lineage(model).state == "changed"


def test_other_numbers(model, tmp_path):
    """Bee and cat with other numbers are known; the dog, which the model does not know, is wrong.

    Compared by number, the score would be 1/3 at most.
    """
    found = trainer.evaluated(model, converted(tmp_path, "dog", "bee", "cat"))
    assert (found.score, found.examples) == (pytest.approx(2 / 3), 3 * COUNT)
    assert found.unknown == {"dog": COUNT}
    assert found.loss > -(2 / 3) * 1e-3  # and of the dogs, whose probability is 0
    matrix = found.confusion["confusionMatrix"]
    names = [spec["displayName"] for spec in matrix["annotationSpecs"]]
    rows = [row["row"] for row in matrix["rows"]]
    assert names == ["ape", "bee", "cat", "unknown_labels"]
    assert rows[:3] == [[0] * 4, [0, COUNT, 0, 0], [0, 0, COUNT, 0]]
    assert sum(rows[3]) == COUNT


def test_numbers_beyond_the_models_are_reported_as_unknown(model, tmp_path):
    """Examples of labels the model lacks count as wrong and as unknown."""
    out = converted(tmp_path, "ape", "bee", "cat", "dog", "eel")
    artifacts = {"dataset": [Artifact("1", out)], "model": [Artifact("2", model)]}
    found = evaluate(StepInput({}, artifacts, {}, frozenset(), ""))
    assert found.parameters["score"] == pytest.approx(3 / 5)
    metrics = found.metadata["metrics"]
    unknown = {"unknown_labels": 2, "unknown_labels:dog": COUNT, "unknown_labels:eel": COUNT}
    assert {name: metrics[name] for name in metrics if "unknown" in name} == unknown


def test_datasets_without_a_common_label_are_refused(model, tmp_path):
    """An evaluation without common labels is an error with both lists."""
    out = converted(tmp_path, "dog", "eel")
    with pytest.raises(DataError, match=r"'ape', 'bee', 'cat'.*'dog', 'eel'"):
        trainer.evaluated(model, out)


def test_a_model_that_does_not_say_what_it_knows(dataset, tmp_path):
    """A model without its labels is an error."""
    with pytest.raises(SourceError, match=r"labels\.txt"):
        trainer.evaluated(str(tmp_path), dataset)


def test_labels_that_do_not_match_their_digest_are_refused(dataset):
    """Labels changed without their digest are refused."""
    values = read_dataset(dataset).to_json()
    with pytest.raises(ValueError, match="labels_digest"):
        type(read_dataset(dataset)).from_json({**values, "labels": ["bee", "ape", "cat"]})
